"""The report: one page with the pictures and tables of a run, or of two."""

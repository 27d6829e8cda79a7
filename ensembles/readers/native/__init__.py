"""Spools and job files, which the recorder writes into a run directory."""

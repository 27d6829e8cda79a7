"""Pictures and pages of a history of runs."""

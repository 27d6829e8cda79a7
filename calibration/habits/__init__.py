"""Real programs with planted habits: what they cost is measured, and compared with what `diagnose` says."""

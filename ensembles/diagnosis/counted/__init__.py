"""Causes in counters by file and rank, where there are no single calls."""

"""Spools, and parts of runs as runs."""

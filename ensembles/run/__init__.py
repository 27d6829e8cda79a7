"""Runs: opening, selecting and collecting what was recorded."""

"""Spools, and extracts of runs."""

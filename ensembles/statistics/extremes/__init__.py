"""Extremes: the slowest of N calls, and the coverage of predictions of it."""

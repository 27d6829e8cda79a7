"""Samples of durations: counts, distinct values, histograms and the step of their clock."""

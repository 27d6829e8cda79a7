"""Samples of durations: counted, as distinct values, as histograms, with the step of their clock."""

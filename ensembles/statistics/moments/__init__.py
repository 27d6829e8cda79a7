"""Moments, L-moments, quantiles and robust statistics, each with an interval."""

"""Moments, L-moments and quantiles, with intervals."""

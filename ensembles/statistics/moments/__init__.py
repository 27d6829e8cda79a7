"""Moments, L-moments and quantiles, with intervals.

The entry points are `moments.compute_moments`, `quantiles.compute_quantiles` and `robust.compute_robust`.
"""

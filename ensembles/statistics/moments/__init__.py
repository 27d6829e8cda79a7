"""Moments and quantiles, with intervals.

The entry points are `moments.compute_moments` and `quantiles.compute_quantiles`.
"""

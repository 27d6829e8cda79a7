"""Sums of consecutive calls, and the gain by splitting calls."""

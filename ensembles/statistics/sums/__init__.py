"""Sums of consecutive calls, and the gain by splitting calls.

`split.predict_split` is the entry point.
"""

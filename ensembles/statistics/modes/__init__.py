"""The modes of log duration: how many, where, how heavy and how wide, and whether they are harmonics.

`modes.fit_modes` is the entry point; `density` tests for antimodes, `locations` computes the intervals.
"""

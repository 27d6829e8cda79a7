"""Statistics of ensembles: functions of arrays whose estimates have intervals.

The entry points are `modes.modes.fit_modes`, `extremes.slowest_of_n.predict_slowest`,
`sums.split.predict_split` and `moments.moments.compute_moments`. docs/reference/methods has the formulas and
their sources.
"""

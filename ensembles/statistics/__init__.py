"""Statistics of ensembles: functions of arrays whose estimates have intervals.

docs/reference/methods has the formulas and their sources.
"""

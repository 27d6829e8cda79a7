"""Ensembles: the durations of many calls, taken together, and what can be asked of them."""

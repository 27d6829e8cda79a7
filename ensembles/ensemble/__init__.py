"""Ensembles: the durations of many calls as one distribution, and their statistics."""

"""Comparison of runs and ensembles: what moved, by how much, and whether it is significant."""

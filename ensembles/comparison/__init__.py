"""Comparison of groups of runs: same, different or inconclusive, what shifted and by how much."""

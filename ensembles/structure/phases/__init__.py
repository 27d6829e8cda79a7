"""Phases: what a run does between two moments at which its ranks wait for each other."""

"""Phases: parts of a run between moments at which its ranks wait for each other."""

"""Passes over the events of a run: what a summary is, and who fills it."""

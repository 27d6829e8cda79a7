"""Passes over the events of a run: the protocol of summaries, and executors."""

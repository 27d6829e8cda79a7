"""Ordinals: ensembles by call index, and how durations change with it."""

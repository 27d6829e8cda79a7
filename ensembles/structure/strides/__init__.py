"""Reads with a constant stride."""

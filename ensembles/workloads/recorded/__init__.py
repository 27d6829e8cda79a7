"""Recorded runs as plans: their calls are made again, perhaps with a remedy."""

"""Mergeable summaries: each has ``add(chunk)``, ``merge(other)`` and ``to_arrays()``."""

"""I/O patterns as data: read from TOML, expanded into the calls of every task."""

from ensembles.patterns.pattern import Pattern, read_pattern
from ensembles.patterns.plan import Plan, expand

__all__ = ["Pattern", "Plan", "expand", "read_pattern"]

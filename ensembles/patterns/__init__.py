"""I/O patterns as data: read from TOML, expanded into the calls of every task."""

from ensembles.patterns.pattern import Pattern
from ensembles.patterns.plan import Plan, expand
from ensembles.patterns.reading import read_pattern

__all__ = ["Pattern", "Plan", "expand", "read_pattern"]

"""I/O patterns as data, read from TOML and expanded into the calls of every task."""

from ensembles.workloads.patterns.pattern import Pattern
from ensembles.workloads.patterns.plan import Plan, expand
from ensembles.workloads.patterns.reading import read_pattern

__all__ = ["Pattern", "Plan", "expand", "read_pattern"]

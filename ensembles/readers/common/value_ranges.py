"""Numbers of events that every reader lets through: others are damage, and their sums would be nonsense."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

LARGEST_NS = 1 << 58
"""Times beyond this many ns (nine years) are damage: sums of a few smaller ones stay within 64 bits."""

LARGEST_MOVED_BYTES = 1 << 50
"""A call that is said to have moved more is damage: Linux moves less than 2**31 bytes in one."""

LATEST_NS = 1 << 62
"""The last origin of a run, ns since 1970."""

LIMITS = {
    "moved": (-1, LARGEST_MOVED_BYTES),
    "start": (-LARGEST_NS, LATEST_NS + LARGEST_NS),
    "duration": (0, LARGEST_NS),
}
"""Least and largest value of columns."""


def unsound(columns: Mapping[str, np.ndarray]) -> np.ndarray | None:
    """Which rows have a number beyond `LIMITS`: bool, shape (rows,); None: no row has."""
    found = None
    for name, (least, most) in LIMITS.items():
        column = columns.get(name)
        if column is None or not len(column) or (column.min() >= least and column.max() <= most):
            continue
        beyond = (column < least) | (column > most)
        found = beyond if found is None else found | beyond
    return found

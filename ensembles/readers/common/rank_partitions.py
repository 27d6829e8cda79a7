"""Divides ranks among workers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def even_spans(ranks: Sequence[int], events: Sequence[int], most_parts: int) -> list[tuple[int, int]]:
    """Spans of ranks with about equally many events.

    Parameters
    ----------
    ranks : sequence of int
        Rising.
    events : sequence of int
        Of each.
    most_parts : int

    Returns
    -------
    list of (int, int)
        First and last rank of each span, rising; no rank is in two.
    """
    if not len(ranks):
        return []
    behind = np.cumsum(np.asarray(events, np.float64))
    middle = behind - np.asarray(events) / 2
    part = np.minimum(middle * most_parts / max(behind[-1], 1), most_parts - 1).astype(int)
    first = np.flatnonzero(np.diff(part, prepend=-1))
    last = np.append(first[1:], len(ranks)) - 1
    return [
        (int(ranks[low]), int(ranks[high])) for low, high in zip(first.tolist(), last.tolist(), strict=True)
    ]

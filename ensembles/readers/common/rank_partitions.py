"""Split ranks among workers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def even_spans(ranks: Sequence[int], events: Sequence[int], most_parts: int) -> list[tuple[int, int]]:
    """Split ranks into contiguous spans with about equal numbers of events.

    Parameters
    ----------
    ranks : sequence of int
        Ascending.
    events : sequence of int
        Number of events of each rank.
    most_parts : int
        Maximum number of spans.

    Returns
    -------
    list of (int, int)
        First and last rank of each span, ascending and disjoint.

    Examples
    --------
    >>> from ensembles.readers.common.rank_partitions import even_spans
    >>> even_spans([0, 1, 2, 3], [10, 10, 10, 30], 2)
    [(0, 2), (3, 3)]
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

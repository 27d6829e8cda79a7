"""The order in which tasks began their calls, where calls come as they were completed, thread by thread."""

from __future__ import annotations

import numpy as np

from ensembles.model.events import Events

_AT_ONCE = 1 << 14


def order_by_start(events: Events) -> np.ndarray | None:
    """Where the calls of each task are, in the order of their start; of those that start at once the first
    one first.

    Parameters
    ----------
    events : Events
        In the order of ranks. They remember it, for all who ask.

    Returns
    -------
    ndarray of int64, shape (n,), or None
        None: they are in that order as they come, as those of a task with one thread and no nested calls.
    """
    return events.remembered(order_by_start, _ordered)


def _ordered(events: Events) -> np.ndarray | None:
    rank, start = events.rank, events.start
    falls = []
    for low in range(0, len(start) - 1, _AT_ONCE):
        high = min(low + _AT_ONCE, len(start) - 1)
        earlier = start[low + 1 : high + 1] < start[low:high]
        if earlier.any():
            falls.append(low + np.flatnonzero(earlier & (rank[low + 1 : high + 1] == rank[low:high])))
    unsorted = np.unique(rank[np.concatenate(falls)]) if falls else ()
    if not len(unsorted):
        return None
    order = np.arange(len(start))
    for low, high in zip(
        np.searchsorted(rank, unsorted), np.searchsorted(rank, unsorted, side="right"), strict=True
    ):
        order[low:high] = low + np.argsort(start[low:high], kind="stable")
    return order

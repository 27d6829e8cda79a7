"""Order of calls by rank and start.

Readers give the calls of a task thread by thread, in the order of completion.
"""

from __future__ import annotations

import numpy as np

from ensembles.model.events import Events
from ensembles.model.units import ROWS_AT_ONCE


def order_by_start(events: Events) -> np.ndarray | None:
    """Compute the positions of calls in the order of their rank and start.

    `events`: in the order of ranks. They cache the result for other callers.

    Calls that start at the same time keep their order. None: the events already are in this order, as those
    of tasks with one thread and without nested calls.
    """
    return events.remembered(order_by_start, _ordered)


def _ordered(events: Events) -> np.ndarray | None:
    rank, start = events.rank, events.start
    falls = []
    for low in range(0, len(start) - 1, ROWS_AT_ONCE):
        high = min(low + ROWS_AT_ONCE, len(start) - 1)
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


def sort_by_rank_and_start(columns: dict[str, np.ndarray]) -> None:
    """Sort columns in place by rank and then start, stably.

    Only ranks whose calls are out of order take time: those with several threads or nested calls.

    `columns`: ranks must be ascending already.
    """
    rank, start = columns["rank"], columns["start"]
    if len(rank) < 2:
        return
    descents = []
    for low in range(0, len(rank) - 1, 1 << 18):
        high = min(low + (1 << 18), len(rank) - 1)
        falls = start[low + 1 : high + 1] < start[low:high]
        falls &= rank[low + 1 : high + 1] == rank[low:high]
        descents.append(low + np.flatnonzero(falls))
    for unsorted_rank in np.unique(rank[np.concatenate(descents)]):
        low, high = np.searchsorted(rank, [unsorted_rank, unsorted_rank + 1])
        order = np.argsort(start[low:high], kind="stable")
        for column in columns.values():
            column[low:high] = column[low:high][order]

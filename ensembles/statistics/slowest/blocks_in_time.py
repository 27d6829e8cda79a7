"""Stretches of time in place of phases, where phases are not known and calls change with time."""

from __future__ import annotations

import numpy as np

from ensembles.statistics.sample import Sample
from ensembles.statistics.slowest.exchangeability import Calls

MOST_STEP = 16
_BLOCKS = 20
_LEAST = 16


def blocks_in_time(calls: Calls, tasks: int, resolution_s: float = 0.0) -> Sample | None:
    """Calls in blocks that follow one another in time, of as many calls as are asked for.

    Where that makes fewer than 20 blocks, they are shorter, down to a sixteenth; None: there are too few
    calls for that.
    """
    n = len(calls.durations_s)
    if calls.start_ns is None:
        return None
    size = min(max(tasks, _LEAST), n // _BLOCKS)
    if size < _LEAST or size * MOST_STEP < tasks:
        return None
    order = np.argsort(calls.start_ns, kind="stable")
    # The first calls, which would be no whole block, belong to none.
    order = order[n % size :]
    return Sample.of(calls.durations_s[order], np.arange(len(order)) // size, resolution_s)

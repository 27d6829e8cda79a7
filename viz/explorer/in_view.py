"""Calls of a window of a run that the explorer does not hold."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from ensembles.model.errors import EnsioError
from ensembles.model.events import Events
from ensembles.passes.reading import ascending_ranges
from ensembles.run.run import Run
from ensembles.run.selection import Selection
from ensembles.viz.common.single_calls import Window
from ensembles.viz.common.task_order import WindowCount
from ensembles.viz.explorer.sums import not_kept


def calls_in_view(run: Run, selection: Selection, window: Window | None, most: int) -> Events:
    """Read the calls of a selection that are in progress in a window."""
    if window is None:
        raise EnsioError(f"these calls are more than {most:,}, or still being read: zoom in, or set a filter")
    ranks = ranks_within(selection.ranks, window.first, window.last)
    if not ranks:
        return Events.empty(run.calls, run.files)
    some = replace(selection, ranks=ranks, under_way_ns=(window.low_ns, window.high_ns))
    row = np.arange(run.tasks)
    count = run.summarize(not_kept(partial(WindowCount, window, row)), selection=some).count
    if count > most:
        raise EnsioError(
            f"{count:,} of these calls are in view, more than {most:,}: zoom in, or set a filter"
        )
    return run.reading.chosen_by(some)


def ranks_within(ranges: Any, first: int, last: int) -> tuple[tuple[int, int], ...]:
    """Intersect ranges of ranks with one; None: all ranks."""
    if ranges is None:
        return ((first, last),)
    cut = [(max(low, first), min(high, last)) for low, high in ranges]
    return tuple(ascending_ranges([(low, high) for low, high in cut if low <= high]))

"""What the explorer shows of a run: its calls, those that the filters select, and the marked ones."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from ensembles.model.calls import is_io_of_calls
from ensembles.model.errors import EnsioError
from ensembles.model.events import Call, Events
from ensembles.run.run import Run
from ensembles.run.selection import Selection
from ensembles.summaries.histogram import LogHistogram
from ensembles.summaries.raster import Raster
from ensembles.viz.explorer.view import View
from ensembles.viz.style import CLASS_OF_OP

MOST_EVENTS = 4_000_000
"""Runs with more events are shown in part: all calls of some ranks."""

_ROWS = 512
_CELLS = 1024
_TABLE_ROWS = 50


class Shown:
    """The calls of a run that the explorer holds in memory.

    Parameters
    ----------
    run : Run
    most_events : int
        Of a run with more events, all calls of evenly spaced ranks are held, and `notes` says so.

    Attributes
    ----------
    run : Run
    events : Events
        The calls that are held.
    notes : list of str
        What is missing.

    Raises
    ------
    EnsioError
        The run was recorded without events, or cannot be read.
    """

    def __init__(self, run: Run, most_events: int = MOST_EVENTS) -> None:
        if not run.has_all_events and run.mode == "profile":
            raise EnsioError(f"{run.path} {run.how_it_was_recorded}: {run.how_to_keep_calls}")
        self.run = run
        self.notes: list[str] = []
        if run.most_events > most_events:
            self.events = run.some_ranks(most_events, least_ranks=1)
            ranks = len(np.unique(self.events.rank))
            self.notes.append(
                f"Part of the run: all {len(self.events):,} calls of {ranks:,} evenly spaced ranks "
                f"of {run.tasks:,}."
            )
        else:
            self.events = run.events
        self._filtered = lru_cache(maxsize=4)(self._apply)

    def filtered(self, view: View) -> Events:
        """Return the calls that the filters of a view select.

        Raises
        ------
        EnsioError
            A filter is malformed, or names what the run does not have.
        """
        return self._filtered(tuple(sorted(view.filters.items())))

    def _apply(self, filters: tuple[tuple[str, str], ...]) -> Events:
        if not filters:
            return self.events
        given: dict[str, Any] = dict(filters)
        return Selection.parse(**given).for_run(self.run).apply(self.events)

    def marked(self, view: View) -> Events:
        """Return the marked calls, among those that the filters select.

        They are those that `View.command` and `View.python` select.
        """
        events = self.filtered(view)
        if not view.is_marked:
            return events
        chosen = np.ones(len(events), bool)
        if view.ranks is not None:
            chosen &= (events.rank >= view.ranks[0]) & (events.rank <= view.ranks[1])
        if view.time_s is not None:
            low, high = (round(end * 1e9) for end in view.time_s)
            chosen &= (events.start >= low) & (events.start < high)
        if view.durations_s is not None:
            low, high = (round(end * 1e9) for end in view.durations_s)
            chosen &= (events.duration >= low) & (events.duration < high)
        return events[np.flatnonzero(chosen)]

    def raster(self, events: Events) -> Raster:
        """Return the numbers of the trace diagram of some calls."""
        raster = Raster(self.run.tasks, rows=_ROWS, cells=_CELLS)
        raster.add(events)
        return raster


def durations_by_class(events: Events) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Count durations by class of operations.

    Returns
    -------
    dict
        Edges in s, shape (k + 1,), and numbers of calls, shape (k,), by name of the class.
    """
    by_call, by_class = LogHistogram(), LogHistogram()
    by_call.add(events)
    for call, counts in by_call.counts.items():
        name = CLASS_OF_OP[call.op]
        merged = Call(name, "", call.op)
        same = next((other for other in by_class.counts if other.name == name), merged)
        by_class.counts[same] = by_class.counts.get(same, 0) + counts
    return {call.name: by_class.coarse(call) for call in by_class.counts}


def by_rank(events: Events) -> dict[str, np.ndarray]:
    """Return calls and their time by rank, the rank with most time first.

    Returns
    -------
    dict
        ``rank``, ``calls``, ``time_s`` and ``slowest_s`` of at most 50 ranks. Calls inside others count
        as calls, but add no time. Calls that wait for other tasks are left out, unless there are no others.
    """
    events = _without_waiting(events)
    if not len(events):
        return {name: np.zeros(0) for name in ("rank", "calls", "time_s", "slowest_s")}
    ranks, row = np.unique(events.rank, return_inverse=True)
    calls = np.bincount(row)
    outer = np.where(events.depth == 0, events.duration, 0)
    time_s = np.bincount(row, weights=outer) * 1e-9
    slowest = np.zeros(len(ranks), np.int64)
    np.maximum.at(slowest, row, events.duration)
    order = np.lexsort((ranks, -time_s))[:_TABLE_ROWS]
    return {
        "rank": ranks[order],
        "calls": calls[order],
        "time_s": time_s[order],
        "slowest_s": slowest[order] * 1e-9,
    }


def slowest_calls(events: Events) -> dict[str, Any]:
    """Return the columns of the table of the slowest calls, the longest first.

    Calls that wait for other tasks are left out, unless there are no others.
    """
    events = _without_waiting(events)
    order = np.lexsort((events.start, events.rank, -events.duration))
    slow = events[order[:_TABLE_ROWS]]
    return {
        "rank": slow.rank,
        "call": [slow.calls[number].name for number in slow.call.tolist()],
        "start_s": slow.start * 1e-9,
        "duration_s": slow.duration * 1e-9,
        "moved_bytes": slow.moved,
        "offset_bytes": slow.offset,
        "file": [slow.files[number] for number in slow.file.tolist()],
    }


def _without_waiting(events: Events) -> Events:
    io = np.flatnonzero(is_io_of_calls(events.calls)[events.call])
    return events[io] if len(io) else events

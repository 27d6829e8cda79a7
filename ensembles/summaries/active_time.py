"""Active time: the time in which at least one call moved bytes, for reads and for writes.

Time in I/O of a run as a whole: when at least one thread was in an I/O call.
"""

from __future__ import annotations

import numpy as np

from ensembles.model.events import Events, is_io_of_calls
from ensembles.model.units import ROWS_AT_ONCE
from ensembles.passes.summary import Summary
from ensembles.summaries.calltable import carried_bits
from ensembles.summaries.kernels import Choice, moving_ns
from ensembles.summaries.runtotals import DIRECTIONS, direction_of_calls, shared_directions
from ensembles.summaries.timegrid import TimeGrid

MOST_EXACT = 1 << 20
"""Calls of a direction up to which the union of their times is exact."""

MOST_CELLS = 1 << 16


class ActiveTime(Summary):
    """A mergeable summary: the time in which bytes moved, by direction, and how many calls moved them when.

    A non-blocking request moves bytes in its flight, any other call while it lasts.

    Up to `MOST_EXACT` calls the union of their times is computed. Beyond that, the time of all calls in each
    of 65,536 cells of time is known; a cell is active for that time, at most for its width. That is exact
    where calls of a cell do not overlap and where they fill it, and otherwise too long.

    `ensembles.summaries.runtotals.direction_of_events` defines which calls count. Non-blocking requests move
    bytes in their flight (`ensembles.summaries.kernels.moving_ns`). The result does not depend on how the
    events are divided.
    """

    of_all_calls = True
    columns = ("call", "carried", "moved", "start", "duration", "flight")
    results = ("_spans", "_grid")

    def __init__(self) -> None:
        self._spans: list[list[np.ndarray] | None] = [[] for _ in DIRECTIONS]
        """By direction; None: there are too many."""
        self._grid = TimeGrid(2 * len(DIRECTIONS), MOST_CELLS)

    def add(self, chunk: Events) -> None:
        """Add events."""
        if not len(chunk):
            return
        choice = Choice(direction_of_calls(chunk.calls), bits=carried_bits(chunk.calls), shift=-1)
        self._grid.add_calls(chunk, choice, counts_from=len(DIRECTIONS))
        if all(spans is None for spans in self._spans):
            return
        direction, start, duration = shared_directions(chunk), chunk.start, moving_ns(chunk)
        for number in range(len(DIRECTIONS)):
            these = direction == number
            self._hold(number, [np.stack([start[these], start[these] + duration[these]])])

    def merge(self, other: ActiveTime) -> None:
        """Add the calls of another summary."""
        self._grid.merge(other._grid)
        for number in range(len(DIRECTIONS)):
            self._hold(number, other._spans[number])

    def _hold(self, number: int, spans: list[np.ndarray] | None) -> None:
        """Hold the times of calls, which the grid counts already."""
        held = self._spans[number]
        if held is None or spans is None or self._counts()[number] > MOST_EXACT:
            self._spans[number] = None
        else:
            held += spans

    def _counts(self) -> list[int]:
        counts: list[int] = self._grid.values[len(DIRECTIONS) :].sum(axis=1).tolist()
        return counts

    def calls(self, direction: str) -> int:
        """Number of calls that moved bytes in this direction."""
        return self._counts()[DIRECTIONS.index(direction)]

    def is_exact(self, direction: str) -> bool:
        """Whether `active_s` is exact in this direction; otherwise it may be too long."""
        return self._spans[DIRECTIONS.index(direction)] is not None

    def active_s(self, direction: str) -> float:
        """Time in s in which at least one call moved bytes in this direction."""
        number = DIRECTIONS.index(direction)
        spans = self._spans[number]
        if spans is not None:
            return 1e-9 * union_ns(spans)
        return 1e-9 * float(np.minimum(self._grid.values[number], self._grid.cell_ns).sum())

    def calls_between(self, direction: str, from_ns: int, to_ns: int) -> int:
        """Estimate how many calls moved bytes between two moments: begun before the second, and not ended."""
        number, cell_ns = DIRECTIONS.index(direction), self._grid.cell_ns
        if not self._grid.values.shape[1]:
            return 0
        first, last = np.clip(
            np.searchsorted(self._grid.edges_ns, [from_ns, to_ns]), 0, self._grid.values.shape[1] - 1
        )
        under_way = self._grid.values[number, first] / cell_ns
        begun = self._grid.values[len(DIRECTIONS) + number, first + 1 : last + 1].sum()
        return int(np.ceil(under_way + begun - 1e-9))

    def condense(self) -> None:
        """Replace the times of calls by one span that is as long as their union."""
        for number, spans in enumerate(self._spans):
            if spans is not None:
                self._spans[number] = [np.array([[0], [union_ns(spans)]])] if spans else []


def union_ns(spans: list[np.ndarray]) -> int:
    """Length of the union of spans of time: arrays of shape (2, n) with their starts and ends, ns."""
    if not spans:
        return 0
    start, end = disjoint(spans)
    return int((end - start).sum())


def unions_ns(group: np.ndarray, start: np.ndarray, end: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Lengths of the unions of spans of time by group, as `union_ns`: the groups and ns, each of shape (m,).

    Examples
    --------
    >>> from ensembles.summaries.active_time import unions_ns
    >>> unions_ns(np.array([7, 3, 7]), np.array([0, 5, 2]), np.array([4, 6, 9]))
    (array([3, 7]), array([1, 9]))
    """
    start = _sorted_within(group, start)[1]
    group, end = _sorted_within(group, end)
    is_first = np.append(True, group[1:] != group[:-1])
    begins = is_first.copy()
    begins[1:] |= start[1:] > end[:-1]
    lengths = np.where(np.append(begins[1:], True), end, 0) - np.where(begins, start, 0)
    first = np.flatnonzero(is_first)
    return group[first], np.add.reduceat(lengths, first)


def _sorted_within(group: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Sort values by group, and within each: as one number for both if these fit, which is quicker."""
    least = values.min()
    bits = int(values.max() - least).bit_length()
    if int(group.max()).bit_length() + bits < 64:
        both = np.sort(group << bits | values - least)
        return both >> bits, (both & (1 << bits) - 1) + least
    order = np.lexsort((values, group))
    return group[order], values[order]


def disjoint(spans: list[np.ndarray]) -> np.ndarray:
    """Join spans of time that overlap."""
    # Each is sorted for itself, which is several times quicker than in pairs: a span of the union begins
    # where as many calls have ended as have begun before.
    start, end = map(np.sort, np.concatenate(spans, axis=1))
    begins = np.flatnonzero(np.append(True, start[1:] > end[:-1])[: len(start)])
    last = np.append(begins[1:], len(start))[: len(begins)] - 1
    return np.stack([start[begins], end[last]])


class IoUnion(Summary):
    """A mergeable summary: the times in which at least one thread was in an I/O call.

    It holds spans that do not overlap, at most one for each outermost call.
    """

    of_all_calls = True
    columns = ("call", "depth", "start", "duration")
    results = ("_spans",)

    def __init__(self) -> None:
        self._spans = np.empty((2, 0), np.int64)
        self._waiting: list[np.ndarray] = []
        self._waiting_spans = 0

    def add(self, chunk: Events) -> None:
        """Add events."""
        if not len(chunk):
            return
        mine = np.flatnonzero(is_io_of_calls(chunk.calls)[chunk.call] & (chunk.depth == 0))
        start = chunk.start[mine]
        self._hold(disjoint([np.stack([start, start + chunk.duration[mine]])]))

    def _hold(self, spans: np.ndarray) -> None:
        self._waiting.append(spans)
        self._waiting_spans += spans.shape[1]
        # As many are joined as are there, so that a span is sorted a few times in all.
        if self._waiting_spans > max(self._spans.shape[1], ROWS_AT_ONCE):
            self._join()

    def _join(self) -> None:
        if self._waiting:
            self._spans = disjoint([self._spans, *self._waiting])
            self._waiting, self._waiting_spans = [], 0

    def condense(self) -> None:
        """Replace the spans by one that is as long as all of them."""
        time_ns = self._time_ns
        self._spans = np.array([[0], [time_ns]] if time_ns else [[], []], np.int64)

    def merge(self, other: IoUnion) -> None:
        """Add the calls of another part of the run."""
        other._join()
        self._hold(other._spans)

    @property
    def time_s(self) -> float:
        """Time in s in which at least one thread was in an I/O call."""
        return 1e-9 * float(self._time_ns)

    @property
    def _time_ns(self) -> int:
        self._join()
        return int((self._spans[1] - self._spans[0]).sum())

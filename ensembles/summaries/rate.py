"""Rate curve: aggregate rates over time.

The bytes of each call are spread evenly over its duration, those of a non-blocking request over its flight:
from its post to its observed completion, in which the data moved.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ensembles.model.events import Call, Events, of_calls
from ensembles.passes.summary import Summary
from ensembles.summaries.active_time import ActiveTime
from ensembles.summaries.calltable import carried_bits
from ensembles.summaries.kernels import Choice, moving_ns
from ensembles.summaries.runtotals import DIRECTIONS, direction_of_calls
from ensembles.summaries.timegrid import CELLS, TimeGrid

_FRACTION_BITS = 10
"""Bytes are spread in units of 1/1024: whole bytes would show as ripples if a call moves few a cell."""


class RateCurve(Summary):
    """A mergeable summary: bytes read and written in each cell of time, by all tasks.

    The parts of a call add up to its bytes, so that the area under the curve is exactly the bytes moved.
    `ensembles.summaries.runtotals.direction_of_events` defines which calls count.

    `active`: when calls moved bytes, and how many.
    """

    columns = ("call", "carried", "moved", "start", "duration", "flight")
    results = ("_grid", "active")
    added_up = ("_grid", "active")

    def __init__(self, cells: int = CELLS, knows_active: bool = True) -> None:
        self._knows_active = knows_active
        self._grid = TimeGrid(len(DIRECTIONS), cells)
        self.active = ActiveTime()

    def add(self, chunk: Events) -> None:
        """Add events; those that moved no bytes do not count."""
        if len(chunk):
            self._grid.add_calls(chunk, _choice(chunk.calls))
            if self._knows_active:
                self.active.add(chunk)

    @property
    def edges_ns(self) -> np.ndarray:
        """Edges of the cells, ns since the origin: int64, shape (cells + 1,); no cells if no bytes moved."""
        return self._grid.edges_ns

    @property
    def cell_ns(self) -> int:
        """Width of a cell in ns, a power of two."""
        return self._grid.cell_ns

    @property
    def moved_bytes(self) -> np.ndarray:
        """Bytes moved in each cell: float64, shape (2, cells), as in `DIRECTIONS`."""
        return self._grid.values * 2.0**-_FRACTION_BITS

    def rate_bytes_per_s(self, direction: str) -> np.ndarray:
        """Compute the aggregate rate in each cell, in bytes/s: float64, shape (cells,)."""
        rate: np.ndarray = self.moved_bytes[DIRECTIONS.index(direction)] * (1e9 / self.cell_ns)
        return rate

    def total_bytes(self, direction: str) -> int:
        """Sum all bytes read or written: the area under the curve."""
        values = self._grid.values[DIRECTIONS.index(direction)]
        # Whole bytes and fractions are added separately: their sum would exceed 64 bits at 8 PiB.
        whole, fractions = values >> _FRACTION_BITS, values & ((1 << _FRACTION_BITS) - 1)
        return int(whole.sum()) + (int(fractions.sum()) >> _FRACTION_BITS)

    def active_s(self, direction: str) -> float:
        """Compute the time in s in which at least one call moved bytes; see `ActiveTime`."""
        return self.active.active_s(direction)

    def with_cells_of(self, least_ns: int) -> RateCurve:
        """Return this curve with cells that are at least so wide, in ns; a power of two.

        Times of calls are whole ns, and amounts are parts of a byte: in cells of a few ns, the rate of one
        call would have ripples.

        Examples
        --------
        >>> from ensembles.passes.summary import ignoring_run
        >>> curve = en.open("ensio-ior").summarize(ignoring_run(RateCurve))
        >>> wide = curve.with_cells_of(2 * curve.cell_ns)
        >>> wide.cell_ns // curve.cell_ns, wide.total_bytes("write") == curve.total_bytes("write")
        (2, True)
        """
        if self.cell_ns >= least_ns:
            return self
        found = RateCurve(self._grid.cells, knows_active=False)
        found._grid = self._grid.coarser(least_ns.bit_length() - 1)
        found.active = self.active
        return found

    def moved_bytes_on(self, other: RateCurve) -> np.ndarray:
        """Return the bytes of this curve in the cells of another one: float64, shape (2, cells of `other`).

        `other`: with cells that are at least as wide, over the time of this curve.

        Examples
        --------
        >>> run = en.open("ensio-ior")
        >>> some, whole = RateCurve(), RateCurve()
        >>> some.add(run.select(op="write", rank=0)), whole.add(run.events)
        (None, None)
        >>> some.total_bytes("write"), int(some.moved_bytes_on(whole).sum())
        (20971520, 20971520)
        """
        if other.cell_ns < self.cell_ns:
            raise ValueError("cells cannot be divided: give a curve with cells that are at least as wide")
        moved = np.zeros((len(DIRECTIONS), len(other.edges_ns) - 1))
        if moved.size and self.moved_bytes.size:
            cell = np.searchsorted(other.edges_ns, self.edges_ns[:-1], side="right") - 1
            inside = (cell >= 0) & (cell < moved.shape[1])
            for mine, values in zip(moved, self.moved_bytes, strict=True):
                np.add.at(mine, cell[inside], values[inside])
        return moved


class WindowRate(RateCurve):
    """The rate curve of a time: calls count with the part of their bytes that they moved in it.

    The cells are narrower than those of the whole run, because they divide the window only. `active` is
    empty.

    Examples
    --------
    >>> from ensembles.passes.summary import ignoring_run
    >>> from ensembles.summaries.rate import RateCurve, WindowRate
    >>> run, whole = en.open("ensio-ior"), RateCurve()
    >>> whole.add(run.events)
    >>> low, high = (int(edge) for edge in whole.edges_ns[[100, 200]])
    >>> curve = WindowRate(low, high)
    >>> curve.add(run.events)
    >>> curve.cell_ns < whole.cell_ns, bool(curve.edges_ns[0] >= low), bool(curve.edges_ns[-1] <= high)
    (True, True, True)
    >>> bool(abs(curve.moved_bytes.sum() - whole.moved_bytes[:, 100:200].sum()) < len(run.events))
    True
    """

    def __init__(self, low_ns: int, high_ns: int) -> None:
        super().__init__(knows_active=False)
        self._low_ns, self._high_ns = low_ns, high_ns

    def add(self, chunk: Events) -> None:
        """Add events."""
        super().add(_moved_in(chunk, self._low_ns, self._high_ns))


def _moved_in(chunk: Events, low_ns: int, high_ns: int) -> Events:
    """Return the parts of calls in a time in which they moved bytes, with whole bytes."""
    moving = moving_ns(chunk)
    mine = np.flatnonzero((chunk.start < high_ns) & (chunk.remembered(_end_ns, _end_ns) > low_ns))
    start, moving, moved = chunk.start.take(mine), moving.take(mine), chunk.moved.take(mine)
    low, high = np.maximum(start, low_ns), np.minimum(start + moving, high_ns)
    cut = np.flatnonzero(((low > start) | (high < start + moving)) & (moved > 0))
    moved[cut] = np.rint(moved[cut] * ((high - low)[cut] / moving[cut])).astype(np.int64)
    columns = {
        "call": chunk.call.take(mine),
        "carried": chunk.carried.take(mine),
        "moved": moved,
        "start": low,
        "duration": high - low,
        "flight": np.full(len(mine), -1, np.int64),
    }
    return Events.partly(columns, chunk.calls, chunk.files)


@of_calls
def _choice(calls: Sequence[Call]) -> Choice:
    """Choose calls as `ensembles.summaries.runtotals.direction_of_events` does."""
    return Choice(direction_of_calls(calls), bits=carried_bits(calls), shift=_FRACTION_BITS)


def _end_ns(chunk: Events) -> np.ndarray:
    """Compute when each call ends to move bytes, ns; one of no duration takes up one ns."""
    ends: np.ndarray = chunk.start + np.maximum(moving_ns(chunk), 1)
    return ends

"""Time grid: rows of cells over a time axis that grows with the events.

It is filled in one pass and without rounding.

The width of a cell is a power of two ns, and its edges are multiples of that width from the origin of the
run. If an event does not fit, pairs of cells are merged and the width doubles. The final width depends only
on the first and the last moment, and the contents are integers. Grids filled from any division of the events,
and merged in any order, are therefore equal to the last bit.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ensembles.model.errors import EnsioError
from ensembles.model.events import Events
from ensembles.model.units import SCREEN_CELLS
from ensembles.summaries import kernels
from ensembles.summaries.kernels import Choice, bounds_ns, compute_extent, spread_calls

CELLS = 2 * SCREEN_CELLS
"""Largest number of cells of a time axis. At least half of them are in use, except in runs of fewer ns."""


class TimeGrid:
    """Integer amounts by row and cell of time.

    `level`: binary logarithm of the width of a cell in ns.
    `low_ns`, `high_ns`: first moment of the events so far, and the moment after the last; None: no events
    yet.
    """

    results = ("level", "low_ns", "high_ns", "_first", "_filled")

    def __init__(self, rows: int, cells: int = CELLS) -> None:
        self.rows = rows
        self.cells = cells
        self.level = 0
        self.low_ns: int | None = None
        self.high_ns: int | None = None
        self._first = 0
        self._values = np.zeros((rows, 0), dtype=np.int64)

    def __getstate__(self) -> dict[str, Any]:
        """Pickle only rows with amounts: most rows of a span of ranks have none."""
        rows = np.flatnonzero(self._values.any(axis=1))
        return self.__dict__ | {"_values": (self._values.shape, rows, self._values[rows])}

    def __setstate__(self, state: dict[str, Any]) -> None:
        shape, rows, values = state["_values"]
        self.__dict__.update(state)
        self._values = np.zeros(shape, np.int64)
        self._values[rows] = values

    @property
    def _filled(self) -> tuple[np.ndarray, np.ndarray]:
        """Rows with amounts, and their amounts in the cells in use."""
        rows = np.flatnonzero(self._values.any(axis=1))
        return rows, self.values[rows]

    @_filled.setter
    def _filled(self, filled: tuple[np.ndarray, np.ndarray]) -> None:
        rows, values = filled
        self._values = np.zeros((self.rows, self.cells if self._used else 0), np.int64)
        if values.shape != (len(rows), self._used):
            raise ValueError("the rows of a grid have other lengths than its axis")
        self._values[rows, : self._used] = values

    @property
    def cell_ns(self) -> int:
        """Width of a cell in ns."""
        return 1 << self.level

    @property
    def values(self) -> np.ndarray:
        """Amounts: int64, shape (rows, cells in use), a view until the next `add` or `merge`."""
        return self._values[:, : self._used]

    @property
    def edges_ns(self) -> np.ndarray:
        """Edges of the cells in use, ns since the origin: int64, shape (cells in use + 1,)."""
        return (self._first + np.arange(self._used + 1, dtype=np.int64)) << self.level

    @property
    def _used(self) -> int:
        if self.low_ns is None or self.high_ns is None:
            return 0
        return ((self.high_ns - 1) >> self.level) - self._first + 1

    def add(
        self, start_ns: np.ndarray, duration_ns: np.ndarray, row: np.ndarray, amount: np.ndarray | None = None
    ) -> None:
        """Spread amounts evenly over the durations of their events."""
        if not len(start_ns):
            return
        low, high = extent_ns(start_ns, duration_ns)
        self._cover(low, high)
        for each in np.atleast_2d(row):
            kernels.spread(start_ns, duration_ns, each, amount, self.level, self._first, self._values)

    def add_calls(self, chunk: Events, choice: Choice, counts_from: int | None = None) -> None:
        """Spread the chosen calls of a chunk.

        `counts_from`: first of as many rows as those of `choice`, and behind them, that count the calls which
        begin in a cell. Default: they are not counted.
        """
        self.cover_calls(chunk, choice)
        if self.low_ns is not None:
            values = self._values
            amounts, begun = values[:counts_from], None if counts_from is None else values[counts_from:]
            spread_calls(chunk, choice, self.level, self._first, amounts, begun)

    def cover_calls(self, chunk: Events, choice: Choice) -> None:
        """Extend the axis to the times of the chosen calls of a chunk."""
        if not self._holds(bounds_ns(chunk)):
            self.add_extent(compute_extent(chunk, choice))

    def _holds(self, span_ns: tuple[int, int] | None) -> bool:
        """Whether the axis has a time span, as of most chunks but the first."""
        if span_ns is None or self.low_ns is None or self.high_ns is None:
            return False
        return self.low_ns <= span_ns[0] and span_ns[1] <= self.high_ns

    def add_extent(self, extent_ns: tuple[int, int] | None) -> None:
        """Extend the axis to a time span in ns; None: no change."""
        if extent_ns is not None:
            self._cover(*extent_ns)

    def merge(self, other: TimeGrid) -> None:
        """Add another grid."""
        if (other.rows, other.cells) != (self.rows, self.cells):
            raise ValueError("time grids can be merged only if their numbers of rows and of cells are equal")
        if other.low_ns is None or other.high_ns is None:
            return
        self._cover(other.low_ns, other.high_ns)
        _fold(other.values, other._first, other.level, self._values, self._first, self.level)

    def coarser(self, level: int) -> TimeGrid:
        """Return a grid with the same amounts in cells of 2^level ns, which is at least as wide."""
        found = TimeGrid(self.rows, self.cells)
        found.level = level
        found.merge(self)
        return found

    def add_grid(self, other: TimeGrid, row: np.ndarray) -> None:
        """Add amounts of another grid that lie on the axis of this one, which has cells at least as wide."""
        if self.low_ns is None or self.high_ns is None or other.low_ns is None:
            return
        begin = max((self._first << (self.level - other.level)) - other._first, 0)
        end = ((self._first + self._used) << (self.level - other.level)) - other._first
        values = other.values[: len(row), begin : max(end, begin)]
        _fold(values, other._first + begin, other.level, self._values, self._first, self.level, row)

    def put(self, values: np.ndarray, first: int, level: int) -> None:
        """Take amounts in place of what there is."""
        rows, cells = values.shape
        if rows != self.rows or not 0 < cells <= self.cells:
            raise ValueError(f"a grid of {self.rows} rows and {self.cells} cells cannot take {values.shape}")
        self.level, self._first, self._values = level, first, values
        self.low_ns, self.high_ns = first << level, (first + cells) << level

    def _cover(self, low_ns: int, high_ns: int) -> None:
        """Extend the axis to the time from `low_ns` to `high_ns`."""
        if self.low_ns is not None and self.high_ns is not None:
            low_ns, high_ns = min(low_ns, self.low_ns), max(high_ns, self.high_ns)
        level = self.level
        while ((high_ns - 1) >> level) - (low_ns >> level) >= self.cells:
            level += 1
        first = low_ns >> level
        if not self._values.size or (level, first) != (self.level, self._first):
            values = np.zeros((self.rows, self.cells), dtype=np.int64)
            _fold(self.values, self._first, self.level, values, first, level)
            self._values, self.level, self._first = values, level, first
        self.low_ns, self.high_ns = low_ns, high_ns


def extent_ns(start_ns: np.ndarray, duration_ns: np.ndarray) -> tuple[int, int]:
    """Compute the time span of events."""
    low = int(start_ns.min())
    end = start_ns + np.maximum(duration_ns, 1)
    if duration_ns.min() < 0 or np.any(end <= start_ns):
        raise EnsioError(
            "an event ends before it starts: the time stamps of this run are damaged, record it again"
        )
    return low, int(end.max())


def _fold(
    source: np.ndarray,
    source_first: int,
    source_level: int,
    target: np.ndarray,
    first: int,
    level: int,
    rows: np.ndarray | None = None,
) -> None:
    """Add the cells of `source` to rows of `target`, which covers them and has cells as wide."""
    if not source.shape[1]:
        return
    column = ((source_first + np.arange(source.shape[1])) >> (level - source_level)) - first
    starts = np.flatnonzero(np.diff(column, prepend=column[0] - 1))
    for row in np.flatnonzero(source.any(axis=1)):  # pages of `target` that are not written take no memory
        to = row if rows is None else rows[row]
        target[to, column[0] : column[-1] + 1] += np.add.reduceat(source[row], starts)

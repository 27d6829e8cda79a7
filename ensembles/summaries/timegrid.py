"""Rows of cells over a time axis that grows by itself, in one pass and without rounding.

The width of a cell is a power of two ns, and its edges are whole multiples of that width from the run's
origin. When events come that the axis cannot hold, pairs of cells are put together and the width doubles. The
final width depends only on the first and the last moment, not on the order in which events came; the contents
are integers. So grids filled from any split of the events, merged in any order, are equal to the last bit.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ensembles.model.errors import EnsioError
from ensembles.model.events import Events
from ensembles.summaries import kernels
from ensembles.summaries.spreading import Choice, compute_extent, spread_calls

CELLS = 2048
"""Most cells of a time axis; between half of it and all of it are in use, except on runs of fewer ns."""


class TimeGrid:
    """Integer amounts per row and cell of time.

    Parameters
    ----------
    rows : int
    cells : int
        Most cells of the axis.

    Attributes
    ----------
    level : int
        Binary logarithm of the width of a cell in ns.
    low_ns, high_ns : int or None
        First and last moment of the events so far (the last one is not included); None: no events yet.
    """

    def __init__(self, rows: int, cells: int = CELLS) -> None:
        self.rows = rows
        self.cells = cells
        self.level = 0
        self.low_ns: int | None = None
        self.high_ns: int | None = None
        self._first = 0
        self._values = np.zeros((rows, 0), dtype=np.int64)

    def __getstate__(self) -> dict[str, Any]:
        """Without rows that are empty: of a span of ranks most are, and this goes from worker to worker."""
        rows = np.flatnonzero(self._values.any(axis=1))
        return self.__dict__ | {"_values": (self._values.shape, rows, self._values[rows])}

    def __setstate__(self, state: dict[str, Any]) -> None:
        shape, rows, values = state["_values"]
        self.__dict__.update(state)
        self._values = np.zeros(shape, np.int64)
        self._values[rows] = values

    @property
    def cell_ns(self) -> int:
        """Width of a cell in ns."""
        return 1 << self.level

    @property
    def values(self) -> np.ndarray:
        """Amounts: int64, shape (rows, cells in use); a view, valid until the next `add` or `merge`."""
        return self._values[:, : self._used]

    @property
    def edges_ns(self) -> np.ndarray:
        """Edges of the cells in use, ns since the run's origin: int64, shape (cells in use + 1,)."""
        return (self._first + np.arange(self._used + 1, dtype=np.int64)) << self.level

    @property
    def _used(self) -> int:
        if self.low_ns is None or self.high_ns is None:
            return 0
        return ((self.high_ns - 1) >> self.level) - self._first + 1

    def add(
        self, start_ns: np.ndarray, duration_ns: np.ndarray, row: np.ndarray, amount: np.ndarray | None = None
    ) -> None:
        """Spread amounts evenly over the durations of their events.

        Parameters
        ----------
        start_ns, duration_ns, row, amount : ndarray, shape (n,)
            As for `kernels.spread`.

        Raises
        ------
        EnsioError
            An event has a negative duration, or ends beyond the range of 64-bit nanoseconds.
        """
        if not len(start_ns):
            return
        low, high = extent_ns(start_ns, duration_ns)
        self._cover(low, high)
        kernels.spread(start_ns, duration_ns, row, amount, self.level, self._first, self._values)

    def add_calls(self, chunk: Events, choice: Choice) -> None:
        """Spread the calls of a chunk that are chosen: `spreading.Choice` says what of them.

        Raises
        ------
        EnsioError
            A call has a negative duration, or ends beyond the range of 64-bit nanoseconds.
        """
        self.add_extent(compute_extent(chunk, choice))
        if self.low_ns is not None:
            spread_calls(chunk, choice, self.level, self._first, self._values)

    def add_extent(self, extent_ns: tuple[int, int] | None) -> None:
        """Let the axis hold the time between these moments besides what it holds already; None: no time."""
        if extent_ns is not None:
            self._cover(*extent_ns)

    def merge(self, other: TimeGrid) -> None:
        """Add what another grid with the same rows and the same number of cells holds.

        Raises
        ------
        ValueError
            The other grid has other rows, or another number of cells.
        """
        if (other.rows, other.cells) != (self.rows, self.cells):
            raise ValueError("time grids can be merged only if their numbers of rows and of cells are equal")
        if other.low_ns is None or other.high_ns is None:
            return
        self._cover(other.low_ns, other.high_ns)
        _fold(other.values, other._first, other.level, self._values, self._first, self.level)

    def _cover(self, low_ns: int, high_ns: int) -> None:
        """Let the axis hold the time from `low_ns` to `high_ns` besides what it holds already."""
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
    """First moment of events, and the one after their last; an event of no duration takes up one ns.

    Parameters
    ----------
    start_ns, duration_ns : ndarray of int64, shape (n,), n > 0

    Raises
    ------
    EnsioError
        A duration is negative, or an event ends beyond the range of 64-bit nanoseconds.
    """
    low = int(start_ns.min())
    end = start_ns + np.maximum(duration_ns, 1)
    if duration_ns.min() < 0 or np.any(end <= start_ns):
        raise EnsioError(
            "an event ends before it starts: the time stamps of this run are damaged, record it again"
        )
    return low, int(end.max())


def _fold(
    source: np.ndarray, source_first: int, source_level: int, target: np.ndarray, first: int, level: int
) -> None:
    """Add the cells of `source` to the cells of `target`, which are as wide or wider, and cover them."""
    if not source.shape[1]:
        return
    column = ((source_first + np.arange(source.shape[1])) >> (level - source_level)) - first
    starts = np.flatnonzero(np.diff(column, prepend=column[0] - 1))
    for row in np.flatnonzero(source.any(axis=1)):  # memory that nobody wrote to takes no room
        target[row, column[0] : column[-1] + 1] += np.add.reduceat(source[row], starts)

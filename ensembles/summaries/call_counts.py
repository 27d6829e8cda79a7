"""Numbers of calls over time by operation."""

from __future__ import annotations

import numpy as np

from ensembles.model.events import OPS, Events, op_of_calls
from ensembles.passes.summary import ANY_ORDER, Summary
from ensembles.summaries.timegrid import TimeGrid

CELLS = 512
"""Largest number of cells of time."""


class CallCounts(Summary):
    """A mergeable summary: number of calls that began in each cell of time, by operation.

    Parameters
    ----------
    cells : int
        Largest number of cells of time.

    Examples
    --------
    >>> from ensembles.passes.summary import ignoring_run
    >>> from ensembles.summaries.call_counts import CallCounts
    >>> counts = en.open("ensio-ior").summarize(ignoring_run(CallCounts))
    >>> counts.calls("open"), int(counts.of("open").sum())
    (8, 8)
    """

    columns = ("call", "start")
    requires = ANY_ORDER

    def __init__(self, cells: int = CELLS) -> None:
        self._grid = TimeGrid(len(OPS), cells)

    def add(self, chunk: Events) -> None:
        """Add events."""
        if len(chunk):
            op = op_of_calls(chunk.calls)[chunk.call].astype(np.int32)
            start = np.ascontiguousarray(chunk.start)
            ones = np.ones(len(chunk), np.int64)
            # A call counts where it begins: it takes up one nanosecond.
            self._grid.add(start, ones, op, ones)

    def merge(self, other: CallCounts) -> None:
        """Add other counts.

        Raises
        ------
        ValueError
            The counts differ in their largest number of cells.
        """
        self._grid.merge(other._grid)

    @property
    def edges_ns(self) -> np.ndarray:
        """Edges of the cells in ns since the origin of the run: int64, shape (cells + 1,)."""
        return self._grid.edges_ns

    @property
    def cell_ns(self) -> int:
        """Width of a cell in ns, a power of two."""
        return self._grid.cell_ns

    def of(self, op: str) -> np.ndarray:
        """Return the number of calls of an operation in each cell: int64, shape (cells,)."""
        counts: np.ndarray = self._grid.values[OPS.index(op)]
        return counts

    def calls(self, op: str) -> int:
        """Return the number of all calls of an operation."""
        return int(self.of(op).sum())

    def to_arrays(self) -> dict[str, np.ndarray]:
        """Return ``edges_ns`` and ``calls``, shape (operations, cells), in the order of `OPS`."""
        return {"edges_ns": self.edges_ns, "calls": self._grid.values.copy()}

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
from ensembles.summaries.callsums import carried_bits
from ensembles.summaries.runtotals import DIRECTIONS, direction_of_calls
from ensembles.summaries.spreading import Choice
from ensembles.summaries.timegrid import CELLS, TimeGrid

_FRACTION_BITS = 10
"""Bytes are spread in units of 1/1024: whole bytes would show as ripples if a call moves few a cell."""


class RateCurve(Summary):
    """A mergeable summary: bytes read and written in each cell of time, by all tasks.

    The parts of a call add up to its bytes, so that the area under the curve is exactly the bytes moved.
    `ensembles.summaries.runtotals.direction_of_events` defines which calls count.

    Parameters
    ----------
    cells : int
        Largest number of cells of time.

    Attributes
    ----------
    active : ActiveTime
        When calls moved bytes, and how many.

    Examples
    --------
    >>> from ensembles.passes.summary import ignoring_run
    >>> from ensembles.summaries.rate import RateCurve
    >>> curve = en.open("ensio-ior").summarize(ignoring_run(RateCurve))
    >>> curve.total_bytes("write")
    167772160
    >>> round(curve.rate_bytes_per_s("write").sum() * curve.cell_ns * 1e-9)
    167772160
    """

    columns = ("call", "carried", "moved", "start", "duration", "flight")
    results = ("_grid", "active")

    def __init__(self, cells: int = CELLS) -> None:
        self._grid = TimeGrid(len(DIRECTIONS), cells)
        self.active = ActiveTime()

    def add(self, chunk: Events) -> None:
        """Add events; those that moved no bytes do not count.

        Raises
        ------
        EnsioError
            A call ends before it starts.
        """
        if len(chunk):
            self._grid.add_calls(chunk, _choice(chunk.calls))
            self.active.add(chunk)

    def merge(self, other: RateCurve) -> None:
        """Add another curve.

        Raises
        ------
        ValueError
            The curves differ in their largest number of cells.
        """
        self._grid.merge(other._grid)
        self.active.merge(other.active)

    @property
    def edges_ns(self) -> np.ndarray:
        """Edges of the cells in ns since the origin of the run: int64, shape (cells + 1,).

        There are no cells if no bytes moved.
        """
        return self._grid.edges_ns

    @property
    def cell_ns(self) -> int:
        """Width of a cell in ns, a power of two."""
        return self._grid.cell_ns

    @property
    def moved_bytes(self) -> np.ndarray:
        """Bytes moved in each cell: float64, shape (2, cells).

        Rows are in the order of `DIRECTIONS`.
        """
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

    def to_arrays(self) -> dict[str, np.ndarray]:
        """Return the properties ``moved_bytes`` and ``edges_ns``."""
        return {"moved_bytes": self.moved_bytes, "edges_ns": self.edges_ns}


@of_calls
def _choice(calls: Sequence[Call]) -> Choice:
    """Choose calls as `ensembles.summaries.runtotals.direction_of_events` does."""
    return Choice(direction_of_calls(calls), bits=carried_bits(calls), shift=_FRACTION_BITS)

"""Aggregate data rates over time: the bytes of every read and write, spread evenly over the time that the
call took."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ensembles.model.events import Call, Events, of_calls
from ensembles.passes.summary import Summary
from ensembles.summaries.callsums import carried_bits
from ensembles.summaries.runtotals import DIRECTIONS, direction_of_calls
from ensembles.summaries.spreading import Choice
from ensembles.summaries.timegrid import CELLS, TimeGrid

_FRACTION_BITS = 10
"""Bytes are spread in units of 1/1024: where a call moves few per cell, whole ones would show as ripples."""


class RateCurve(Summary):
    """Bytes read and bytes written per cell of time, over all tasks.

    The parts of a call always add up to its bytes, so the area under a curve is exactly the bytes that
    were moved. `direction_of_events` tells which calls' bytes count.

    Parameters
    ----------
    cells : int
        Most cells of time.
    """

    columns = ("call", "carried", "moved", "start", "duration")

    def __init__(self, cells: int = CELLS) -> None:
        self._grid = TimeGrid(len(DIRECTIONS), cells)

    def add(self, chunk: Events) -> None:
        """Add events; those that moved no bytes do not count.

        Raises
        ------
        EnsioError
            The time stamps are damaged.
        """
        if len(chunk):
            self._grid.add_calls(chunk, _choice(chunk.calls))

    def merge(self, other: RateCurve) -> None:
        """Add what another curve holds.

        Raises
        ------
        ValueError
            The curves differ in their number of cells.
        """
        self._grid.merge(other._grid)

    @property
    def edges_ns(self) -> np.ndarray:
        """Edges of the cells, ns since the run's origin: int64, shape (cells + 1,); no cells if no bytes were
        moved."""
        return self._grid.edges_ns

    @property
    def cell_ns(self) -> int:
        """Width of a cell in ns, a power of two."""
        return self._grid.cell_ns

    @property
    def moved_bytes(self) -> np.ndarray:
        """Bytes per cell: float64, shape (2, cells), in the order of `DIRECTIONS`."""
        return self._grid.values * 2.0**-_FRACTION_BITS

    def rate_bytes_per_s(self, direction: str) -> np.ndarray:
        """Rate in each cell: float64, shape (cells,)."""
        return self.moved_bytes[DIRECTIONS.index(direction)] * (1e9 / self.cell_ns)

    def total_bytes(self, direction: str) -> int:
        """All bytes read, or written: the area under the curve."""
        values = self._grid.values[DIRECTIONS.index(direction)]
        # Whole bytes and fractions apart: together they would leave the 64-bit integers at 8 PiB.
        whole, fractions = values >> _FRACTION_BITS, values & ((1 << _FRACTION_BITS) - 1)
        return int(whole.sum()) + (int(fractions.sum()) >> _FRACTION_BITS)

    def active_s(self, direction: str) -> float:
        """Time in which any bytes were read, or written: all cells with bytes, seconds."""
        return np.count_nonzero(self.moved_bytes[DIRECTIONS.index(direction)]) * self.cell_ns * 1e-9

    def to_arrays(self) -> dict[str, np.ndarray]:
        """``moved_bytes`` and ``edges_ns``, as the properties of these names."""
        return {"moved_bytes": self.moved_bytes, "edges_ns": self.edges_ns}


@of_calls
def _choice(calls: Sequence[Call]) -> Choice:
    """As `runtotals.direction_of_events` has it."""
    return Choice(direction_of_calls(calls), bits=carried_bits(calls), shift=_FRACTION_BITS)

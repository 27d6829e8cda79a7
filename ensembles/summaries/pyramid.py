"""Pyramid: time in calls and their number by task and time, at several resolutions.

The finest level has as many cells of time as a raster of all tasks may have; a run of few tasks has more of
them. Each further level has half the rows and half the cells of the level before. All levels follow from the
finest by sums of integers, so that they agree with the events, and with each other, to the last bit.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from ensembles.passes.group import SummaryRequest
from ensembles.summaries import active_time
from ensembles.summaries.raster import CLASSES, ROWS, Raster
from ensembles.summaries.timegrid import CELLS, TimeGrid

LEVELS = 5
"""Number of levels."""

MOST_CELLS = ROWS * CELLS
"""Largest number of rows × cells of a level."""


class Pyramid(Raster):
    """A mergeable summary: a level of a pyramid, which is a raster with numbers of calls.

    It holds the time in outermost calls, and the number of those that begin, by class of operation, row of
    tasks and cell of time. Classes are those of `ensembles.summaries.raster.CLASSES`.

    `cells`: largest number of cells of time.
    """

    results = ("several_threads", "_grid")

    def __init__(self, tasks: int, level: int = 0) -> None:
        self.tasks, self.level = max(tasks, 1), level
        base = -(-self.tasks // ROWS)
        cells = min(MOST_CELLS // -(-self.tasks // base), active_time.MOST_CELLS)
        self.cells = max((1 << (cells.bit_length() - 1)) >> level, 2)
        self.ranks_per_row = base << level
        self.rows = -(-self.tasks // self.ranks_per_row)
        self.several_threads = False
        self._grid = TimeGrid(2 * len(CLASSES) * self.rows, self.cells)

    @property
    def _counts_from(self) -> int:
        return len(CLASSES) * self.rows

    @property
    def begun(self) -> np.ndarray:
        """Number of outermost calls that begin: int64, shape (classes, rows, cells in use)."""
        return self._grid.values[self._counts_from :].reshape(len(CLASSES), self.rows, -1)

    def coarser(self) -> Pyramid:
        """Return the next level, with half the rows and half the cells."""
        other = Pyramid(self.tasks, self.level + 1)
        other.several_threads = self.several_threads
        other._grid.add_extent(None if self._grid.low_ns is None else self.extent_ns)
        rows = np.arange(2 * len(CLASSES))[:, None] * other.rows + np.arange(self.rows) // 2
        other._grid.add_grid(self._grid, rows.reshape(-1))
        return other

    def raster(self) -> Raster:
        """Return the raster of the run, as a pass makes it; only of the finest level."""
        raster = Raster(self.tasks)
        if (raster.rows, raster.ranks_per_row) != (self.rows, self.ranks_per_row) or self.cells < CELLS:
            raise ValueError("this level of the pyramid has too few cells")
        self._put_into(raster)
        return raster

    def folded(self, cells: int) -> Raster:
        """Return the raster of the run with the rows of this level, and at most so many cells of time."""
        raster = Raster(self.tasks, self.rows, cells, self.ranks_per_row)
        self._put_into(raster)
        return raster

    def window(self, low_ns: int, high_ns: int) -> Raster | None:
        """Return the raster of a window, to whole cells; None: there are no calls."""
        low, high = max(low_ns, self.extent_ns[0]), min(high_ns, self.extent_ns[1])
        if low >= high:
            return None
        raster = Raster(self.tasks, self.rows, self.cells, self.ranks_per_row)
        cell_ns = self._grid.cell_ns
        self._put_into(raster, (low // cell_ns * cell_ns, -(-high // cell_ns) * cell_ns))
        return raster

    def _put_into(self, raster: Raster, window_ns: tuple[int, int] | None = None) -> None:
        extent = window_ns or (None if self._grid.low_ns is None else self.extent_ns)
        raster.put(self._grid, np.arange(self._counts_from), extent, self.several_threads)


def pyramid_request(level: int = 0) -> SummaryRequest:
    """Return the request for a level of the pyramid of a run."""
    return SummaryRequest(partial(_empty_level, level))


def _empty_level(level: int, run: Any) -> Pyramid:
    return Pyramid(run.tasks, level)


def levels_above(finest: Pyramid) -> Iterator[Pyramid]:
    """Yield the coarser levels of a pyramid, the finest of them first."""
    for _ in range(LEVELS - 1):
        finest = finest.coarser()
        yield finest

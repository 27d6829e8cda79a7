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

from ensembles.model.events import Events
from ensembles.passes.group import SummaryRequest
from ensembles.passes.summary import Summary
from ensembles.summaries import active_time
from ensembles.summaries.kernels import Choice
from ensembles.summaries.raster import CLASSES, ROWS, Raster, class_of_calls
from ensembles.summaries.timegrid import CELLS, TimeGrid

LEVELS = 5
"""Number of levels."""

MOST_CELLS = ROWS * CELLS
"""Largest number of rows × cells of a level."""


class Pyramid(Summary):
    """A mergeable summary: a level of a pyramid.

    It holds the time in outermost calls, and the number of those that begin, by class of operation, row of
    tasks and cell of time. Classes are those of `ensembles.summaries.raster.CLASSES`.

    `rows`, `ranks_per_row`: number of rows, and of tasks in each; the last row may have fewer.
    `cells`: largest number of cells of time.
    `several_threads`: whether any task has calls of more than one thread.
    """

    columns = Raster.columns
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
    def _amounts(self) -> int:
        """Number of rows of the grid with times; as many with counts follow."""
        return len(CLASSES) * self.rows

    def add(self, chunk: Events) -> None:
        """Add events."""
        if not len(chunk):
            return
        if int(chunk.rank.max()) >= self.tasks:
            raise ValueError(f"an event is of rank {chunk.rank.max()}, but the run has {self.tasks} tasks")
        self.several_threads |= bool(chunk.thread.any())
        row_of_call = class_of_calls(chunk.calls) * np.int32(self.rows)
        # Inner calls add no time, but extend the time axis.
        self._grid.cover_calls(chunk, Choice(row_of_call))
        choice = Choice(row_of_call, self.ranks_per_row, outermost=True)
        self._grid.add_calls(chunk, choice, counts_from=self._amounts)

    def merge(self, other: Pyramid) -> None:
        """Add another level of the same run."""
        if self.tasks != other.tasks:
            raise ValueError("pyramids can be merged only if they have the same number of tasks")
        self._grid.merge(other._grid)
        self.several_threads |= other.several_threads

    @property
    def edges_ns(self) -> np.ndarray:
        """Edges of the cells in ns since the origin: int64, shape (cells in use + 1,)."""
        return self._grid.edges_ns

    @property
    def extent_ns(self) -> tuple[int, int]:
        """First and last moment of the events in ns since the origin; (0, 0) without events."""
        return self._grid.low_ns or 0, self._grid.high_ns or 0

    @property
    def time_ns(self) -> np.ndarray:
        """Time in outermost calls, ns: int64, shape (classes, rows, cells in use)."""
        return self._grid.values[: self._amounts].reshape(len(CLASSES), self.rows, -1)

    @property
    def begun(self) -> np.ndarray:
        """Number of outermost calls that begin: int64, shape (classes, rows, cells in use)."""
        return self._grid.values[self._amounts :].reshape(len(CLASSES), self.rows, -1)

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
        raster.put(self._grid, np.arange(self._amounts), extent, self.several_threads)


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

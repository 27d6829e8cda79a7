"""Duration cube: calls, and the time in them, by class of operation, duration, rows of tasks and time."""

from __future__ import annotations

import numpy as np

from ensembles.model.events import Events
from ensembles.passes.summary import ANY_ORDER, Summary
from ensembles.summaries.bins import BIN_COUNT, bin_index, bin_low_ns
from ensembles.summaries.histogram import coarse_bins
from ensembles.summaries.raster import CLASSES, Raster, class_of_calls
from ensembles.summaries.timegrid import TimeGrid

ROWS = 64
"""Largest number of rows of tasks."""

CELLS = 256
"""Largest number of cells of time."""


class DurationCube(Summary):
    """A mergeable summary: number of calls, and time in outermost calls, by duration, row and time.

    It answers without another pass when and where the calls of a range of durations were, and which durations
    the calls of a rectangle of the trace diagram had, in whole bins, rows and cells. Its bins are those of
    `LogHistogram.coarse`.

    `rows`, `ranks_per_row`: number of rows, and of tasks in each; the last row may have fewer.
    `edges_ns`, shape (n, 2): the shortest duration of each bin, and that at which it ends.
    """

    columns = ("rank", "call", "depth", "start", "duration")
    requires = ANY_ORDER
    results = ("_calls", "_time")
    added_up = ("_calls", "_time")

    def __init__(self, tasks: int, extent_ns: tuple[int, int], used: np.ndarray) -> None:
        self.tasks = max(tasks, 1)
        self.ranks_per_row = -(-self.tasks // ROWS)
        self.rows = -(-self.tasks // self.ranks_per_row)
        first = coarse_bins(8)
        self.used_bins = first[used]
        low = np.append(bin_low_ns(), np.uint64(1 << 63)).astype(np.int64)
        self.edges_ns = np.stack([low[first[used]], low[np.append(first, BIN_COUNT)[used + 1]]], axis=1)
        self._number = np.full(BIN_COUNT, -1, np.int64)
        for number, each in enumerate(used.tolist()):
            self._number[first[each] : np.append(first, BIN_COUNT)[each + 1]] = number
        self._shape = len(CLASSES), len(used), self.rows
        self._calls, self._time = (TimeGrid(int(np.prod(self._shape)), CELLS) for _ in range(2))
        for grid in (self._calls, self._time):
            grid.add_extent((extent_ns[0], max(extent_ns[1], extent_ns[0] + 1)))

    def add(self, chunk: Events) -> None:
        """Add events."""
        if not len(chunk):
            return
        number = self._number.take(bin_index(chunk.duration))
        if number.min() < 0:
            raise ValueError("a call has a duration that does not occur in the counts of the run")
        row = class_of_calls(chunk.calls).take(chunk.call) * np.int64(self._shape[1])
        row += number
        row *= self.rows
        row += chunk.rank // self.ranks_per_row
        rows = row.astype(np.int32)
        one = np.ones(len(chunk), np.int64)
        self._calls.add(chunk.start, one, rows, one)
        if chunk.depth.any():
            outermost = np.flatnonzero(chunk.depth == 0)
            self._time.add(chunk.start[outermost], chunk.duration[outermost], rows[outermost])
        else:
            self._time.add(chunk.start, chunk.duration, rows)

    @property
    def cell_ns(self) -> int:
        """Width of a cell in ns."""
        return self._time.cell_ns

    @property
    def times_ns(self) -> np.ndarray:
        """Edges of the cells in ns since the origin: int64, shape (cells + 1,)."""
        return self._time.edges_ns

    def calls(self) -> np.ndarray:
        """Return the calls that begin: int64, shape (classes, bins, rows, cells)."""
        return self._calls.values.reshape(*self._shape, -1)

    def time_ns(self) -> np.ndarray:
        """Return the time in outermost calls, ns: int64, shape (classes, bins, rows, cells)."""
        return self._time.values.reshape(*self._shape, -1)

    def bins_of(self, durations_ns: tuple[int, int] | None) -> slice:
        """Return the bins with any duration of a range, whose end is excluded; None: all."""
        if durations_ns is None:
            return slice(0, self._shape[1])
        low, high = durations_ns
        return slice(
            int(np.searchsorted(self.edges_ns[:, 1], low, side="right")),
            int(np.searchsorted(self.edges_ns[:, 0], high, side="left")),
        )

    def raster(
        self, durations_ns: tuple[int, int] | None = None, box: tuple[slice, slice] | None = None
    ) -> Raster:
        """Return the raster of the calls of some durations, in whole bins."""
        raster = Raster(self.tasks, self.rows, CELLS, self.ranks_per_row)
        grid = self._time
        assert grid.low_ns is not None
        assert grid.high_ns is not None
        raster.cover(grid.low_ns, grid.high_ns)
        some = (slice(None), *(box or (slice(None), slice(None))))
        raster.time_ns[some] = self.time_ns()[:, self.bins_of(durations_ns)].sum(axis=1)[some]
        return raster

    def counts(
        self, durations_ns: tuple[int, int] | None = None, box: tuple[slice, slice] | None = None
    ) -> np.ndarray:
        """Count the calls of some durations, in whole bins, which begin in a box."""
        rows, cells = box or (slice(None), slice(None))
        bins = self.bins_of(durations_ns)
        found = self.calls()[:, bins, rows, cells].sum(axis=3)
        counts = np.zeros((len(CLASSES), found.shape[2], BIN_COUNT), np.int64)
        counts[:, :, self.used_bins[bins]] = found.transpose(0, 2, 1)
        return counts

    def box_of(self, times_ns: tuple[int, int] | None, ranks: tuple[int, int] | None) -> tuple[slice, slice]:
        """Return the rows and cells that a rectangle touches."""
        rows, cells = slice(0, self.rows), slice(0, len(self.times_ns) - 1)
        if ranks is not None:
            rows = slice(
                max(ranks[0], 0) // self.ranks_per_row, min(ranks[1] // self.ranks_per_row + 1, self.rows)
            )
        if times_ns is not None:
            edges = self.times_ns
            first = int(np.searchsorted(edges, times_ns[0], side="right")) - 1
            cells = slice(max(first, 0), max(int(np.searchsorted(edges[:-1], times_ns[1], side="left")), 0))
        return rows, cells


def bins_of_counts(counts: np.ndarray) -> np.ndarray:
    """Return the bins of a cube in which there are calls."""
    return np.flatnonzero(np.add.reduceat(counts, coarse_bins(8)))

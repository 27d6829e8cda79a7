"""What windows of a large run show at once: the kept pyramid of the run, held in memory."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from ensembles.run.rasters import kept_levels
from ensembles.run.run import Run
from ensembles.summaries.pyramid import Pyramid
from ensembles.summaries.raster import CLASSES, Raster
from ensembles.viz.common.single_calls import Window
from ensembles.viz.explorer.sums import CELLS, ROWS


@dataclass(frozen=True)
class CellTimes:
    """Time in outermost calls by class, row of tasks and cell of time."""

    # tasks, ranks_per_row: Tasks of the run, and of each row
    tasks: int
    ranks_per_row: int
    # first, level: Number of the first cell from the origin, and the binary logarithm of the width of a cell
    # in ns
    first: int
    level: int
    classes: tuple[int, ...]  # Numbers of the classes that occur, in `CLASSES`
    time_ns: np.ndarray  # In the smallest type that holds them; shape (len(classes), rows, cells)
    several_threads: bool  # Whether any task has calls of more than one thread
    first_task: int = 0  # The rank of the first task

    @classmethod
    def of(cls, source: Pyramid | Raster) -> CellTimes:
        """Take the times of a level of a pyramid, or of a raster."""
        edges_ns, time_ns = source.edges_ns, source.time_ns
        width_ns = int(edges_ns[1] - edges_ns[0]) if len(edges_ns) > 1 else 1
        classes = tuple(np.flatnonzero(time_ns.any(axis=(1, 2))).tolist())
        some = [time_ns[number] for number in classes]
        most = max((int(each.max()) for each in some), default=0)
        kind = np.min_scalar_type(most) if most < 1 << 32 else np.dtype(np.int64)
        held = np.empty((len(classes), *time_ns.shape[1:]), kind)
        for number, each in enumerate(some):
            held[number] = each
        first = int(edges_ns[0]) // width_ns if len(edges_ns) else 0
        return cls(
            source.tasks,
            source.ranks_per_row,
            first,
            width_ns.bit_length() - 1,
            classes,
            held,
            source.several_threads,
        )

    @classmethod
    def of_picture(cls, raster: Raster, first_task: int = 0) -> CellTimes:
        """Take the times of a raster as they are, which is quick."""
        edges_ns = raster.edges_ns
        level = raster.cell_ns.bit_length() - 1
        first = int(edges_ns[0]) >> level if len(edges_ns) else 0
        every = tuple(range(len(CLASSES)))
        return cls(
            raster.tasks,
            raster.ranks_per_row,
            first,
            level,
            every,
            raster.time_ns,
            raster.several_threads,
            first_task,
        )

    def cell_ns_of(self, window: Window) -> int:
        """Return the width of a cell, ns."""
        return 1 << self.level

    def rows_of(self, window: Window) -> int:
        """Return in how many rows the tasks of a window lie."""
        return window.last // self.ranks_per_row - window.first // self.ranks_per_row + 1

    def window(self, window: Window, cells: int = CELLS) -> tuple[Raster, int]:
        """Return the numbers of a window, to whole rows and cells."""
        top = (window.first - self.first_task) // self.ranks_per_row
        bottom = (window.last - self.first_task) // self.ranks_per_row + 1
        tasks = min(bottom * self.ranks_per_row, self.tasks) - top * self.ranks_per_row
        first = top * self.ranks_per_row + self.first_task
        raster = Raster(tasks, bottom - top, max(cells, 2), self.ranks_per_row)
        raster.several_threads = self.several_threads
        low = max(window.low_ns >> self.level, self.first) - self.first
        high = min(-(-window.high_ns >> self.level), self.first + self.time_ns.shape[2]) - self.first
        if low >= high:
            return raster, first
        level = self.level
        low, high = low + self.first, high + self.first
        while ((high - 1) >> (level - self.level)) - (low >> (level - self.level)) >= cells:
            level += 1
        # Whole cells of the picture, so that a cell at an end has all of its time.
        shift = level - self.level
        low = max(low >> shift << shift, self.first)
        high = min(-(-high >> shift) << shift, self.first + self.time_ns.shape[2])
        some = self.time_ns[:, top:bottom, low - self.first : high - self.first]
        if shift:
            places = np.arange(low, high) >> shift
            starts = np.flatnonzero(np.diff(places, prepend=places[0] - 1))
            some = np.add.reduceat(some, starts, axis=2, dtype=np.int64)
        time_ns = np.zeros((len(CLASSES), *some.shape[1:]), np.int64)
        time_ns[list(self.classes)] = some
        raster.put_cells(time_ns, low >> shift, level)
        return raster, first


class Levels:
    """The levels of the pyramid of a run."""

    def __init__(self, sources: Iterable[Pyramid | Raster]) -> None:
        self._levels = [CellTimes.of(each) for each in sources]

    @classmethod
    def of_run(cls, run: Run, whole: Raster) -> Levels:
        """Read the kept levels of a run; `whole` is its coarsest."""
        return cls([*kept_levels(run), whole])

    @property
    def bytes(self) -> int:
        """Memory that they take."""
        return sum(each.time_ns.nbytes for each in self._levels)

    def cell_ns_of(self, window: Window) -> int:
        """Return the width of the cells from which a window is drawn, ns."""
        return 1 << self._level_of(window).level

    def _level_of(self, window: Window) -> CellTimes:
        return next((each for each in self._levels if each.rows_of(window) <= ROWS), self._levels[-1])

    def window(self, window: Window) -> tuple[Raster, int]:
        """Return the numbers of a window from the finest level whose rows are not more than a picture has."""
        return self._level_of(window).window(window)

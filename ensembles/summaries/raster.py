"""Who was inside which kind of call, and when: the picture of a trace, as numbers.

Tasks are put into rows of equally many, time into cells, kinds of operations into classes. What is stored is
the time in ns that the tasks of a row spent inside calls of a class within a cell, so that any pixel can be
drawn with the true share of its area, and the sum of a row is the time of its calls."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ensembles.model.events import Call, Events, of_calls
from ensembles.passes.summary import Summary
from ensembles.summaries.spreading import Choice, compute_extent
from ensembles.summaries.timegrid import CELLS, TimeGrid

ROWS = 1024
"""Most rows."""

CLASSES = {
    "write": ("write",),
    "read": ("read",),
    "metadata": ("open", "close", "seek", "meta"),
    "sync": ("sync",),
    "wait": ("wait",),
}
"""Classes that a picture tells apart, and the operations that belong to each."""


class Raster(Summary):
    """Time in calls by class, row of tasks, and cell of time.

    Calls that were made inside another recorded call of their thread are not counted again: a task that
    writes through a library's write is in one write.

    Parameters
    ----------
    tasks : int
        Number of tasks of the run; ranks are below it.
    rows : int
        Most rows.
    cells : int
        Most cells of time.

    Attributes
    ----------
    tasks : int
    rows : int
        Rows in use.
    ranks_per_row : int
        Tasks in each row; the last row may have fewer.
    several_threads : bool
        Any task has calls of more than one thread: more calls than tasks may be under way at a time.
    """

    columns = ("rank", "thread", "call", "depth", "start", "duration")

    def __init__(self, tasks: int, rows: int = ROWS, cells: int = CELLS) -> None:
        self.tasks = max(tasks, 1)
        self.ranks_per_row = -(-self.tasks // rows)
        self.rows = -(-self.tasks // self.ranks_per_row)
        self.several_threads = False
        self._grid = TimeGrid(len(CLASSES) * self.rows, cells)

    def add(self, chunk: Events) -> None:
        """Add events.

        Raises
        ------
        ValueError
            A rank is not below the number of tasks.
        EnsioError
            The time stamps are damaged.
        """
        if not len(chunk):
            return
        if int(chunk.rank.max()) >= self.tasks:
            raise ValueError(f"an event is of rank {chunk.rank.max()}, but the run has {self.tasks} tasks")
        self.several_threads |= bool(chunk.thread.any())
        row_of_call = class_of_calls(chunk.calls) * np.int32(self.rows)
        # Those inside others leave no time, and are part of the picture's extent all the same.
        self._grid.add_extent(compute_extent(chunk, Choice(row_of_call)))
        self._grid.add_calls(chunk, Choice(row_of_call, self.ranks_per_row, outermost=True))

    def merge(self, other: Raster) -> None:
        """Add what another raster of the same run holds.

        Raises
        ------
        ValueError
            The rasters differ in tasks, rows or cells.
        """
        if self.tasks != other.tasks:
            raise ValueError("rasters can be merged only if they are of the same tasks")
        self._grid.merge(other._grid)
        self.several_threads |= other.several_threads

    @property
    def edges_ns(self) -> np.ndarray:
        """Edges of the cells, ns since the run's origin: int64, shape (cells + 1,); one edge on a run without
        events."""
        return self._grid.edges_ns

    @property
    def cell_ns(self) -> int:
        """Width of a cell in ns, a power of two."""
        return self._grid.cell_ns

    @property
    def extent_ns(self) -> tuple[int, int]:
        """First and last moment of the events, ns since the run's origin; (0, 0) without events."""
        return self._grid.low_ns or 0, self._grid.high_ns or 0

    @property
    def time_ns(self) -> np.ndarray:
        """Time in calls, ns: int64, shape (classes, rows, cells), classes in the order of `CLASSES`."""
        return self._grid.values.reshape(len(CLASSES), self.rows, -1)

    @property
    def tasks_of_row(self) -> np.ndarray:
        """Number of tasks of each row: int64, shape (rows,)."""
        first = np.arange(self.rows) * self.ranks_per_row
        return np.minimum(first + self.ranks_per_row, self.tasks) - first

    def present(self) -> list[str]:
        """Classes in which any time was spent, in the order of `CLASSES`."""
        spent = np.any(self.time_ns, axis=(1, 2)).tolist()
        return [name for name, any_time in zip(CLASSES, spent, strict=True) if any_time]

    def shares(self, name: str) -> np.ndarray:
        """Share of (tasks × time) of each pixel that was spent in calls of the class `name`.

        Returns
        -------
        ndarray of float32, shape (rows, cells)
            0 to 1; more than 1 where several threads of a task were in calls at once.
        """
        area = (self.tasks_of_row * self.cell_ns).astype(np.float32)[:, None]
        return self.time_ns[list(CLASSES).index(name)].astype(np.float32) / area

    def tasks_inside(self, name: str) -> np.ndarray:
        """Average number of tasks inside calls of the class `name`, over time: float64, shape (cells,).

        With several threads to a task, each thread counts.
        """
        return self.time_ns[list(CLASSES).index(name)].sum(axis=0) / self.cell_ns

    def to_arrays(self) -> dict[str, np.ndarray]:
        """``time_ns``, ``edges_ns`` and ``tasks_of_row``, as the properties of these names."""
        return {"time_ns": self.time_ns, "edges_ns": self.edges_ns, "tasks_of_row": self.tasks_of_row}


@of_calls
def class_of_calls(calls: Sequence[Call]) -> np.ndarray:
    """Class of each call, index into `CLASSES`: int32, shape (len(calls),)."""
    number = {op: index for index, ops in enumerate(CLASSES.values()) for op in ops}
    return np.array([number[call.op] for call in calls], dtype=np.int32)

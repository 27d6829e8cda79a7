"""Raster: the numbers of a trace diagram.

Tasks are grouped into rows, time into cells, and operations into classes. The raster holds the time in ns
that the tasks of a row spent in calls of a class within a cell. A pixel can therefore be drawn with the true
share of its area, and the sum over a row is the time of its calls.

Images of a raster, at resolutions that suit a screen and a file, and all that a trace diagram shows of it.

Files keep images (`DrawnRaster`): raise `ensembles.passes.kept.VERSION` if others are made of a raster.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np

from ensembles.model.events import Call, Events, of_calls
from ensembles.model.units import ROWS_AT_ONCE, SCREEN_CELLS
from ensembles.passes.group import SummaryRequest
from ensembles.passes.summary import Summary
from ensembles.summaries.kernels import Choice
from ensembles.summaries.timegrid import CELLS, TimeGrid

ROWS = SCREEN_CELLS
"""Largest number of rows."""

CLASSES = {
    "write": ("write",),
    "read": ("read",),
    "metadata": ("open", "close", "seek", "meta"),
    "sync": ("sync",),
    "io wait": (),
    "wait": ("wait",),
}
"""Classes that a picture distinguishes, and the operations of each. Calls that wait for I/O to complete, and
not for other tasks, are ``io wait``.
"""


class Raster(Summary):
    """A mergeable summary: time in calls by class, row of tasks and cell of time.

    Only outermost calls count: a task that writes through the write call of a library is in one write.

    `ranks_per_row`: tasks in each row. Default: the fewest with which there are not more rows.
    `tasks`: number of tasks.
    `rows`: number of rows in use.
    `ranks_per_row`: tasks in each row; the last row may have fewer.
    `several_threads`: whether any task has calls of more than one thread. Then more calls than tasks may
    overlap.
    """

    columns = ("rank", "thread", "call", "depth", "start", "duration")
    results = ("several_threads", "_grid")

    def __init__(
        self, tasks: int, rows: int = ROWS, cells: int = CELLS, ranks_per_row: int | None = None
    ) -> None:
        self.tasks = max(tasks, 1)
        self.ranks_per_row = ranks_per_row or -(-self.tasks // rows)
        self.rows = -(-self.tasks // self.ranks_per_row)
        self.several_threads = False
        self._grid = TimeGrid(len(CLASSES) * self.rows, cells)

    @property
    def _counts_from(self) -> int | None:
        """First row of the grid that counts calls; None: all have times."""
        return None

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
        self._grid.add_calls(chunk, choice, self._counts_from)

    def merge(self, other: Raster) -> None:
        """Add another raster of the same run."""
        if self.tasks != other.tasks:
            raise ValueError("these can be merged only if they have the same number of tasks")
        self._grid.merge(other._grid)
        self.several_threads |= other.several_threads

    def cover(self, low_ns: int, high_ns: int) -> None:
        """Extend the axis of time to a span, ns since the origin."""
        self._grid.add_extent((low_ns, high_ns))

    def put(
        self, grid: TimeGrid, row: np.ndarray, extent_ns: tuple[int, int] | None, several_threads: bool
    ) -> None:
        """Fill an empty raster with the times of a grid with finer cells.

        `extent_ns`: first moment to show, and the end. None: there are no events.
        """
        self.several_threads = several_threads
        self._grid.level = grid.level  # cells are not finer than those of the grid
        self._grid.add_extent(extent_ns)
        self._grid.add_grid(grid, row)

    def put_cells(self, time_ns: np.ndarray, first: int, level: int) -> None:
        """Fill an empty raster with times."""
        self._grid.put(time_ns.reshape(self._grid.rows, -1), first, level)

    @property
    def edges_ns(self) -> np.ndarray:
        """Edges of the cells, ns since the origin: int64, shape (cells + 1,); one in a run without events."""
        return self._grid.edges_ns

    @property
    def cell_ns(self) -> int:
        """Width of a cell in ns, a power of two."""
        return self._grid.cell_ns

    @property
    def extent_ns(self) -> tuple[int, int]:
        """First and last moment of the events, ns since the origin; (0, 0) without events."""
        return self._grid.low_ns or 0, self._grid.high_ns or 0

    @property
    def time_ns(self) -> np.ndarray:
        """Time in calls, ns: int64, shape (classes, rows, cells), classes as in `CLASSES`."""
        return self._grid.values[: self._counts_from].reshape(len(CLASSES), self.rows, -1)

    @property
    def tasks_of_row(self) -> np.ndarray:
        """Number of tasks in each row: int64, shape (rows,)."""
        first = np.arange(self.rows) * self.ranks_per_row
        return np.minimum(first + self.ranks_per_row, self.tasks) - first

    def present(self) -> list[str]:
        """List the classes in which any time was spent, in the order of `CLASSES`."""
        spent = np.any(self.time_ns, axis=(1, 2)).tolist()
        return [name for name, any_time in zip(CLASSES, spent, strict=True) if any_time]

    def shares(self, name: str) -> np.ndarray:
        """Compute the share of each pixel, an area of tasks × time, that was spent in calls of a class."""
        area = (self.tasks_of_row * self.cell_ns).astype(np.float32)[:, None]
        shares: np.ndarray = self.time_ns[list(CLASSES).index(name)].astype(np.float32) / area
        return shares

    def tasks_inside(self, name: str) -> np.ndarray:
        """Compute the mean number of tasks in calls of a class, over time."""
        tasks: np.ndarray = self.time_ns[list(CLASSES).index(name)].sum(axis=0) / self.cell_ns
        return tasks


@of_calls
def class_of_calls(calls: Sequence[Call]) -> np.ndarray:
    """Return the class of each function: int32, indices into `CLASSES`."""
    number = {op: index for index, ops in enumerate(CLASSES.values()) for op in ops}
    io_wait = list(CLASSES).index("io wait")
    waits_for_io = [call.op == "wait" and not call.waits_for_tasks for call in calls]
    classes = [io_wait if io else number[call.op] for call, io in zip(calls, waits_for_io, strict=True)]
    return np.array(classes, dtype=np.int32)


def raster_request() -> SummaryRequest:
    """Return the request for the raster of a run, or of events, as pictures show it."""
    return SummaryRequest(_empty_raster)


def _empty_raster(data: Any) -> Raster:
    """Make an empty raster; the number of tasks of events is their largest rank plus 1."""
    if isinstance(data, Events):
        return Raster(int(data.rank.max()) + 1 if len(data) else 1)
    return Raster(data.tasks)


# A canvas draws the nearest pixel of an image. With more pixels than the screen, whole tasks would disappear:
# a coarser image of averages is drawn until the reader zooms in.

_MOST_BYTES = 200_000
"""Limit of the compressed fine image: with the coarse image and base64, 0.45 MB of a page."""


@dataclass(frozen=True)
class ShareImage:
    """Shares of (tasks × time) spent in calls, one byte for each pixel and class."""

    # 255 is the whole of the tasks and time of a pixel. A share above zero is at least 1, so that it remains
    # visible. Shape (rows, cells, classes).
    shares: np.ndarray
    ranks_per_row: int  # Tasks in a row
    cell_ns: int  # Width of a pixel, in nanoseconds


def share_images(raster: Raster, present: list[str]) -> list[ShareImage]:
    """Return one image or, if it has more pixels than a screen, a fine and a coarse one."""
    rows_joined = cells_joined = 1
    fine = share_image(raster, present, rows_joined, cells_joined)
    while _is_longer(fine.shares, _MOST_BYTES):
        # A screen shows fewer rows than cells.
        if rows_joined == cells_joined:
            rows_joined *= 2
        else:
            cells_joined *= 2
        fine = share_image(raster, present, rows_joined, cells_joined)
    rows, cells = fine.shares.shape[:2]
    if rows <= SCREEN_CELLS // 2 and cells <= SCREEN_CELLS:
        return [fine]
    rows_joined *= 2 if rows > SCREEN_CELLS // 2 else 1
    cells_joined *= 2 if cells > SCREEN_CELLS else 1
    return [fine, share_image(raster, present, rows_joined, cells_joined)]


def _is_longer(shares: np.ndarray, most_bytes: int) -> bool:
    """Whether an image has more bytes when it is compressed, of which no more than needed are computed."""
    compressor, data = zlib.compressobj(), shares.reshape(-1)
    compressed = 0
    for low in range(0, len(data), ROWS_AT_ONCE):
        compressed += len(compressor.compress(data[low : low + ROWS_AT_ONCE].data))
        if compressed > most_bytes:
            return True
    return compressed + len(compressor.flush()) > most_bytes


def share_image(
    raster: Raster, present: list[str], rows_joined: int = 1, cells_joined: int = 1
) -> ShareImage:
    """Return the image in which a pixel joins `rows_joined` rows and `cells_joined` cells of a raster."""
    tasks = _joined(raster.tasks_of_row, 0, rows_joined)
    cell_ns = raster.cell_ns * cells_joined
    per_byte_ns = (tasks * (cell_ns / 255.0)).astype(np.float32)[:, None]
    time_ns = raster.time_ns
    layers = []
    for name in present:
        of_class = time_ns[list(CLASSES).index(name)]
        scaled = _joined(_joined(of_class, 0, rows_joined), 1, cells_joined) / per_byte_ns
        layers.append(np.where(scaled > 0, np.clip(np.rint(scaled), 1, 255), 0).astype(np.uint8))
    return ShareImage(np.stack(layers, axis=-1), raster.ranks_per_row * rows_joined, cell_ns)


def _joined(values: np.ndarray, axis: int, count: int) -> np.ndarray:
    """Sum groups of `count` neighbours along an axis; the last group may be smaller."""
    if count == 1:
        return values
    return np.add.reduceat(values, np.arange(0, values.shape[axis], count), axis=axis)


class DrawnRaster:
    """What a trace diagram shows of a raster: a twentieth of its bytes, which files keep.

    `raster`: the raster of the whole run. Default: it is filled with what is kept.
    `tasks`, `ranks_per_row`, `several_threads`, `extent_ns`, `edges_ns`: as of the raster.
    `images`: from `share_images`; none if no call took time.

    Examples
    --------
    >>> from ensembles.summaries.raster import raster_request
    >>> from ensembles.summaries.raster import DrawnRaster
    >>> run = en.open("ensio-ior")
    >>> drawn = DrawnRaster(run.tasks, run.summarize({"raster": raster_request()})["raster"])
    >>> drawn.present(), drawn.images[0].shares.shape[0]
    (['write', 'read', 'metadata'], 8)
    """

    results = (
        *("ranks_per_row", "several_threads", "extent_ns", "edges_ns", "images"),
        *("_present", "_inside_ns"),
    )
    result_types = (ShareImage,)

    def __init__(self, tasks: int, raster: Raster | None = None) -> None:
        raster = Raster(tasks) if raster is None else raster
        self.tasks, self.ranks_per_row = raster.tasks, raster.ranks_per_row
        self.several_threads = raster.several_threads
        self.extent_ns, self.edges_ns = raster.extent_ns, raster.edges_ns
        self._present = raster.present()
        chosen = [list(CLASSES).index(name) for name in self._present]
        self._inside_ns: np.ndarray = raster.time_ns[chosen].sum(axis=1)
        self.images = share_images(raster, self._present) if self._present else []

    def present(self) -> list[str]:
        """List the classes in which any time was spent, in the order of `CLASSES`."""
        return list(self._present)

    def tasks_inside(self, name: str) -> np.ndarray:
        """Compute the mean number of tasks in calls of a class, over time, as `Raster.tasks_inside`."""
        cell_ns = int(self.edges_ns[1] - self.edges_ns[0])
        tasks: np.ndarray = self._inside_ns[self._present.index(name)] / cell_ns
        return tasks


def drawn_request() -> SummaryRequest:
    """Return the request by which a drawn raster of a run is kept; no pass makes one."""
    return SummaryRequest(_no_drawing)


def _no_drawing(_: Any) -> NoReturn:
    """Describe a drawing, which is made of a raster."""
    raise NotImplementedError

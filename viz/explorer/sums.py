"""Sums over some calls of a run, from which the explorer draws its pictures and tables.

What windows of a large run show at once: the kept pyramid of the run, held in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from ensembles.model.calls import is_io_of_calls
from ensembles.model.events import Call, Events
from ensembles.model.units import SCREEN_CELLS
from ensembles.passes.group import SummaryRequest
from ensembles.passes.summary import ANY_ORDER, S, Summary
from ensembles.run.rasters import kept_levels
from ensembles.run.run import Run
from ensembles.run.selection import Selection
from ensembles.summaries import kernels
from ensembles.summaries.bins import BIN_COUNT
from ensembles.summaries.duration_cube import DurationCube
from ensembles.summaries.histogram import LogHistogram, LogHistogramPerMib
from ensembles.summaries.longest_calls import LongestCalls
from ensembles.summaries.offset_map import OffsetMap
from ensembles.summaries.pyramid import Pyramid
from ensembles.summaries.ranktable import RankTable
from ensembles.summaries.raster import CLASSES, Raster, class_of_calls
from ensembles.summaries.rate import RateCurve
from ensembles.summaries.runtotals import DIRECTIONS
from ensembles.viz.common.single_calls import Window

ROWS = SCREEN_CELLS // 2
"""Largest number of rows of the trace diagram of a whole run."""

TABLE_ROWS = 50
"""Rows of the tables of calls and of ranks."""

_NONE = np.iinfo(np.int64).max


class RankSums(Summary):
    """A mergeable summary: number, time and extremes of the calls of each rank.

    `calls`, `time_ns`, `slowest_ns`, shape (2, tasks): number of calls, their time without those inside
    others, and the longest not inside another (0: all are): of calls that do not wait for other tasks, and of
    those that do. -1: there are no calls.
    `least_ns`, `longest_ns`, `first_ns`, `end_ns`: shortest and longest duration of all calls (-1: there are
    none), first start and last end.
    `has_inner`: whether any call is inside another one.
    """

    columns = ("rank", "call", "depth", "start", "duration")
    requires = ANY_ORDER

    def __init__(self, tasks: int) -> None:
        self.calls, self.time_ns = (np.zeros((2, max(tasks, 1)), np.int64) for _ in range(2))
        self.slowest_ns = np.full((2, max(tasks, 1)), -1, np.int64)
        self.least_ns, self.longest_ns, self.first_ns, self.end_ns = _NONE, -1, _NONE, -_NONE
        self.has_inner = False

    @classmethod
    def of_table(cls, table: RankTable, tasks: int, least_ns: int, span_ns: tuple[int, int]) -> RankSums:
        """Make the sums of a run from those by rank and function.

        They do not know which calls are inside others: of whole runs, the longest of all is an outermost one,
        because a call lasts at least as long as one inside it.
        """
        sums = cls(tasks)
        kind = np.array([int(call.waits_for_tasks) for call in table.calls], int)[table.call]
        np.add.at(sums.calls, (kind, table.rank), table.count)
        np.add.at(sums.time_ns, (kind, table.rank), table.time_ns - table.inner_ns)
        np.maximum.at(sums.slowest_ns, (kind, table.rank), table.max_ns)
        sums.slowest_ns = np.minimum(sums.slowest_ns, sums.time_ns)
        sums.least_ns, sums.longest_ns = least_ns, int(table.max_ns.max(initial=0))
        sums.first_ns, sums.end_ns = span_ns
        sums.has_inner = bool(table.inner_ns.any())
        return sums

    def add(self, chunk: Events) -> None:
        """Add events."""
        if not len(chunk):
            return
        self.least_ns = min(self.least_ns, int(chunk.duration.min()))
        self.longest_ns = max(self.longest_ns, int(chunk.duration.max()))
        self.first_ns = min(self.first_ns, int(chunk.start.min()))
        self.end_ns = max(self.end_ns, int((chunk.start + chunk.duration).max()))
        self.has_inner |= bool(chunk.depth.any())
        waits = ~is_io_of_calls(chunk.calls)[chunk.call]
        for kind in range(2):
            mine = waits == bool(kind)
            if mine.all():
                self._add(kind, chunk.rank, chunk.duration, chunk.depth)
            elif mine.any():
                places = np.flatnonzero(mine)
                self._add(kind, chunk.rank[places], chunk.duration[places], chunk.depth[places])

    def _add(self, kind: int, rank: np.ndarray, duration: np.ndarray, depth: np.ndarray) -> None:
        first = np.flatnonzero(np.append(True, rank[1:] != rank[:-1]))
        outermost = np.where(depth == 0, duration, 0) if depth.any() else duration
        ranks = rank[first]
        np.add.at(self.calls[kind], ranks, np.diff(np.append(first, len(rank))))
        np.add.at(self.time_ns[kind], ranks, np.add.reduceat(outermost, first))
        np.maximum.at(self.slowest_ns[kind], ranks, np.maximum.reduceat(outermost, first))

    def merge(self, other: RankSums) -> None:
        """Add a summary of other events of the same run."""
        self.calls += other.calls
        self.time_ns += other.time_ns
        self.slowest_ns = np.maximum(self.slowest_ns, other.slowest_ns)
        self.least_ns = min(self.least_ns, other.least_ns)
        self.first_ns = min(self.first_ns, other.first_ns)
        self.end_ns = max(self.end_ns, other.end_ns)
        self.longest_ns = max(self.longest_ns, other.longest_ns)
        self.has_inner |= other.has_inner

    def table(self) -> dict[str, np.ndarray]:
        """Return the columns of the table of ranks, those with most time first.

        Calls that wait for other tasks are left out, unless there are no others.
        """
        kind = 0 if self.calls[0].any() else 1
        ranks = np.flatnonzero(self.calls[kind])
        ranks = ranks[np.lexsort((ranks, -self.time_ns[kind, ranks]))[:TABLE_ROWS]]
        return {
            "rank": ranks,
            "calls": self.calls[kind, ranks],
            "time_s": self.time_ns[kind, ranks] * 1e-9,
            "slowest_s": self.slowest_ns[kind, ranks] * 1e-9,
        }


class FileSums(Summary):
    """A mergeable summary: calls on each file, and the bytes that each layer read and wrote in it."""

    columns = ("call", "file", "moved")
    requires = ANY_ORDER
    added_up = ("_moved", "_calls")

    def __init__(self, layers: tuple[str, ...], files: int) -> None:
        self.layers = layers
        # The last row is of calls that neither read nor write.
        self._moved, self._calls = (np.zeros((len(layers) + 1, files), np.int64) for _ in range(2))

    @property
    def moved(self) -> np.ndarray:
        return self._moved[:-1]

    @property
    def calls(self) -> np.ndarray:
        found: np.ndarray = self._calls.sum(axis=0)
        return found

    def add(self, chunk: Events) -> None:
        """Add events."""
        layers = [self.layers.index(each.layer) if each.op in DIRECTIONS else -1 for each in chunk.calls]
        rows, files = self._moved.shape
        place = (np.array([*layers, -1]) % rows * files)[chunk.call] + chunk.file
        np.add.at(self._calls.reshape(-1), place, 1)
        np.add.at(self._moved.reshape(-1), place, np.maximum(chunk.moved, 0))

    def count(self, call: Call, file: int, moved_bytes: int) -> None:
        """Add the bytes that calls of a function moved in a file."""
        if call.op in DIRECTIONS:
            self.moved[self.layers.index(call.layer), file] += moved_bytes

    @property
    def layer(self) -> str:
        """The layer whose calls an access map shows: posix, or the one with most bytes; empty: none moved."""
        by_layer = dict(zip(self.layers, self.moved.sum(axis=1).tolist(), strict=True))
        if by_layer.get("posix"):
            return "posix"
        most = max(by_layer, key=by_layer.__getitem__, default="")
        return most if by_layer.get(most) else ""

    def of_layer(self, layer: str) -> np.ndarray:
        """Return the bytes of a layer by file: int64, shape (files,)."""
        found: np.ndarray = self.moved[self.layers.index(layer)]
        return found

    def busiest(self) -> int:
        """Return the file with most bytes, or with most calls if no bytes moved."""
        moved = self.moved.sum(axis=0)
        return int((moved if moved.any() else self.calls).argmax())


class ClassBins(Summary):
    """A mergeable summary: numbers of calls by class of operations and bin of durations.

    `counts`, shape (classes, BIN_COUNT): classes are in the order of `ensembles.summaries.raster.CLASSES`.
    """

    columns = ("call", "duration")
    requires = ANY_ORDER
    added_up = ("counts",)

    def __init__(self, counts: np.ndarray | None = None) -> None:
        self.counts = np.zeros((len(CLASSES), BIN_COUNT), np.int64) if counts is None else counts

    @classmethod
    def of_histogram(cls, histogram: LogHistogram) -> ClassBins:
        """Add up the counts of functions."""
        bins = cls()
        classes = class_of_calls(tuple(histogram.counts))
        for number, row in zip(classes.tolist(), histogram.counts.values(), strict=True):
            bins.counts[number] += row
        return bins

    def add(self, chunk: Events) -> None:
        """Add events."""
        classes = class_of_calls(chunk.calls).astype(np.uint16)
        self.counts += kernels.count_bins(classes[chunk.call], chunk.duration, len(CLASSES))


class _Unkept:
    """An argument that no key describes: the cache of the user would fill with parts and windows."""


def not_kept(make: Callable[[], S]) -> Callable[[Any], S]:
    """Make a factory of a summary, as `ensembles.passes.summary.ignoring_run`, whose results are not kept."""
    return partial(_made, _Unkept(), make)


def _made(_: _Unkept, make: Callable[[], S], run: Any) -> S:
    return make()


def _longest(run: Any) -> LongestCalls:
    return LongestCalls(TABLE_ROWS, run.calls, run.files)


def files_of(run: Any) -> FileSums:
    """Make empty sums of the files of a run."""
    return FileSums(tuple(dict.fromkeys(call.layer for call in run.calls)), len(run.files))


def requests_of(
    tasks: int,
    selection: Selection,
    raster: Callable[[int, int, int], Raster],
    offsets: Callable[[], OffsetMap] | None,
) -> dict[str, SummaryRequest]:
    """Return the requests of what pictures and tables show of some calls.

    `selection`: these calls. The time in which any of them moves bytes is only computed of all calls of the
    run.
    """
    makes: dict[str, Callable[[Any], Summary]] = {
        "raster": not_kept(partial(raster, tasks, ROWS, SCREEN_CELLS)),
        "curve": not_kept(partial(RateCurve, knows_active=selection.selects_all)),
        "bins": not_kept(ClassBins),
        "ranks": not_kept(partial(RankSums, tasks)),
        "longest": _longest,
        "files": files_of,
    }
    if selection.per_byte:
        makes["per MiB"] = not_kept(LogHistogramPerMib)
    if offsets is not None:
        makes["offsets"] = not_kept(offsets)
    return {name: SummaryRequest(make) for name, make in makes.items()}


def sums_of_cube(
    cube: DurationCube,
    durations_ns: tuple[int, int] | None,
    times_ns: tuple[int, int] | None,
    ranks: tuple[int, int] | None,
) -> dict[str, Any]:
    """Return sums over marked calls in whole bins, rows and cells; tables, rates and offsets are empty."""
    box = cube.box_of(times_ns, ranks)
    counts = cube.counts(durations_ns, box)
    bins, chosen = counts.sum(axis=1), cube.bins_of(durations_ns)
    edges_ns, times = cube.edges_ns[chosen], cube.times_ns[box[1].start : box[1].stop + 1]
    used = np.flatnonzero(bins.sum(axis=0)[cube.used_bins[chosen]])
    sums = RankSums(cube.tasks)
    rows = np.flatnonzero(counts.any(axis=(0, 2))) + box[0].start
    sums.calls[0] = np.isin(np.arange(cube.tasks) // cube.ranks_per_row, rows)
    if len(used):
        sums.least_ns, sums.longest_ns = int(edges_ns[used[0], 0]), int(edges_ns[used[-1], 1])
    sums.first_ns, sums.end_ns = (int(times[0]), int(times[-1])) if len(times) > 1 else (0, 0)
    return {
        "raster": cube.raster(durations_ns, box),
        "bins": ClassBins(bins),
        "ranks": sums,
        "curve": RateCurve(),
        "longest": LongestCalls(0),
    }


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

    def window(self, window: Window, cells: int = SCREEN_CELLS) -> tuple[Raster, int]:
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

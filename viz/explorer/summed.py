"""Calls that the explorer does not hold: summaries of them, from passes over a collected run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from ensembles.ensemble.ensemble import Ensemble
from ensembles.ensemble.from_run import Per
from ensembles.model.calls import is_io_of_calls
from ensembles.model.events import Events
from ensembles.passes.group import SummaryRequest
from ensembles.passes.summary import ANY_ORDER, S, Summary
from ensembles.summaries.bins import BIN_COUNT, bin_edges_s
from ensembles.summaries.duration_cube import DurationCube
from ensembles.summaries.histogram import LogHistogram
from ensembles.summaries.histogram_per_mib import LogHistogramPerMib
from ensembles.summaries.longest_calls import LongestCalls
from ensembles.summaries.offset_map import OffsetMap
from ensembles.summaries.ranktable import RankTable
from ensembles.summaries.raster import Raster
from ensembles.summaries.rate import RateCurve
from ensembles.summaries.runtotals import DIRECTIONS
from ensembles.viz.explorer.calls import (
    CELLS,
    ROWS,
    TABLE_ROWS,
    Calls,
    Counted,
    by_class,
    counted_by_class,
    rank_columns,
    slowest_columns,
)
from ensembles.viz.single_calls import Window
from ensembles.viz.task_order import ChosenRaster

_NONE = np.iinfo(np.int64).max


class RankSums(Summary):
    """A mergeable summary: number, time and extremes of the calls of each rank.

    Parameters
    ----------
    tasks : int
        Number of tasks of the run; ranks are below it.

    Attributes
    ----------
    calls, time_ns, slowest_ns : ndarray of int64, shape (2, tasks)
        Number of calls, their time without those inside others, and the longest not inside another (0: all
        are): of calls that do not wait for other tasks, and of those that do. -1: there are no calls.
    least_ns, longest_ns, first_ns, end_ns : int
        Shortest and longest duration of all calls (-1: there are none), first start and last end.
    """

    columns = ("rank", "call", "depth", "start", "duration")
    requires = ANY_ORDER

    def __init__(self, tasks: int) -> None:
        self.calls, self.time_ns = (np.zeros((2, max(tasks, 1)), np.int64) for _ in range(2))
        self.slowest_ns = np.full((2, max(tasks, 1)), -1, np.int64)
        self.least_ns, self.longest_ns, self.first_ns, self.end_ns = _NONE, -1, _NONE, -_NONE

    def add(self, chunk: Events) -> None:
        """Add events."""
        if not len(chunk):
            return
        self.least_ns = min(self.least_ns, int(chunk.duration.min()))
        self.longest_ns = max(self.longest_ns, int(chunk.duration.max()))
        self.first_ns = min(self.first_ns, int(chunk.start.min()))
        self.end_ns = max(self.end_ns, int((chunk.start + chunk.duration).max()))
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
        self.least_ns, self.first_ns = (
            min(self.least_ns, other.least_ns),
            min(self.first_ns, other.first_ns),
        )
        self.end_ns = max(self.end_ns, other.end_ns)
        self.longest_ns = max(self.longest_ns, other.longest_ns)

    def to_arrays(self) -> dict[str, np.ndarray]:
        """Return ``calls``, ``time_ns`` and ``slowest_ns``."""
        return {"calls": self.calls, "time_ns": self.time_ns, "slowest_ns": self.slowest_ns}


class FileBytes(Summary):
    """A mergeable summary: bytes that the calls of a layer read and wrote in each file.

    Parameters
    ----------
    layer : str
    files : int
        Number of files of the run.

    Attributes
    ----------
    moved : ndarray of int64, shape (files,)
    """

    columns = ("call", "file", "moved")
    requires = ANY_ORDER

    def __init__(self, layer: str, files: int) -> None:
        self._layer = layer
        self.moved = np.zeros(files, np.int64)

    def add(self, chunk: Events) -> None:
        """Add events."""
        counted = np.array(
            [call.layer == self._layer and call.op in DIRECTIONS for call in chunk.calls], bool
        )
        bytes_moved = np.where(counted[chunk.call], np.maximum(chunk.moved, 0), 0)
        self.moved += np.bincount(chunk.file, bytes_moved, len(self.moved)).astype(np.int64)

    def merge(self, other: FileBytes) -> None:
        """Add a summary of other events of the same run."""
        self.moved += other.moved

    def to_arrays(self) -> dict[str, np.ndarray]:
        """Return ``moved``."""
        return {"moved": self.moved}


@dataclass(frozen=True)
class MapOf:
    """The access map that a run has: arguments of `OffsetMap`, and the path of the file."""

    file: int
    layer: str
    tasks: int
    span_ns: tuple[int, int]
    path: str

    def make(self) -> OffsetMap:
        """Make an empty map."""
        return OffsetMap(self.file, self.layer, self.tasks, self.span_ns)


@dataclass(frozen=True)
class WindowShown:
    """What is known of a window of some calls.

    Attributes
    ----------
    raster : Raster
        Its numbers.
    first : int
        Rank of its first row.
    events : Events
        Its single calls; none, if they are many or have not been read.
    missing : str
        Why the raster has whole rows and cells, and no single calls; empty: its calls have been read.
    """

    raster: Raster
    first: int
    events: Events
    missing: str = ""


class _Unkept:
    """An argument that no key describes: the cache of the user would fill with parts and windows."""


def requests_of(tasks: int, offsets: MapOf | None, *, per_mib: bool = False) -> dict[str, SummaryRequest]:
    """Return the requests of what pictures and tables show of some calls.

    Parameters
    ----------
    tasks : int
    offsets : MapOf or None
        The access map.
    per_mib : bool
        Count durations per MiB too.
    """
    makes: dict[str, Callable[[Any], Summary]] = {
        "raster": not_kept(partial(ChosenRaster, tasks, ROWS, CELLS)),
        "curve": not_kept(RateCurve),
        "histogram": not_kept(LogHistogram),
        "ranks": not_kept(partial(RankSums, tasks)),
        "longest": _longest,
    }
    if per_mib:
        makes["per MiB"] = not_kept(LogHistogramPerMib)
    if offsets is not None:
        makes["offsets"] = not_kept(offsets.make)
    return {name: SummaryRequest(make) for name, make in makes.items()}


def not_kept(make: Callable[[], S]) -> Callable[[Any], S]:
    """Make a factory of a summary, as `ensembles.passes.summary.ignoring_run`, whose results are not kept."""
    return partial(_made, _Unkept(), make)


def _made(_: _Unkept, make: Callable[[], S], run: Any) -> S:
    return make()


def _longest(run: Any) -> LongestCalls:
    return LongestCalls(TABLE_ROWS, run.calls, run.files)


@dataclass
class SummedCalls(Calls):
    """Calls of which there are summaries.

    Attributes
    ----------
    tasks : int
    picture : Raster
        The numbers of the trace diagram.
    bins : ndarray of int64, shape (classes, BIN_COUNT)
        Numbers of calls by class and duration.
    rates : RateCurve
    rank_table, slowest_table : dict
        Columns of the tables.
    span_of_ranks : (int, int, int)
        Number of ranks with calls, the first and the last of them.
    least_ns, longest_ns : int
        Shortest and longest duration.
    span_ns : (int, int)
        First start and last end.
    offsets : OffsetMap or None
    path : str
        File of the map.
    ask : callable
        Gives the numbers of a window and its single calls.
    rates_in : callable
        Gives the rates of a window; None: they have not been read, or are too many to read.
    bytes_of : callable
        Gives the bytes by offset in a window, as `rates_in`.
    durations_of : callable
        Gives the ensemble.
    reading, is_bound, none
        As in `Calls`.
    bins_per_mib : ndarray of int64, shape (classes, BIN_COUNT), or None
        Numbers of calls by class and duration per MiB; None: they were not counted.
    """

    tasks: int
    picture: Raster
    bins: np.ndarray
    rates: RateCurve
    rank_table: dict[str, np.ndarray]
    slowest_table: dict[str, Any]
    span_of_ranks: tuple[int, int, int]
    least_ns: int
    longest_ns: int
    span_ns: tuple[int, int]
    offsets: OffsetMap | None
    path: str
    ask: Callable[[Window], WindowShown]
    rates_in: Callable[[tuple[int, int]], RateCurve | None]
    bytes_of: Callable[[tuple[int, int]], OffsetMap | None]
    durations_of: Callable[[], Ensemble]
    reading: str = ""
    is_bound: bool = False
    bins_per_mib: np.ndarray | None = None
    none: str = ""
    _counted: dict[bool, Counted] = field(default_factory=dict, repr=False)

    @property
    def count(self) -> int:  # as in Calls
        return int(self.bins.sum())

    @property
    def ranks(self) -> tuple[int, int, int]:
        return self.span_of_ranks

    @property
    def extent_ns(self) -> tuple[int, int]:
        return self.span_ns if self.count else (0, 0)

    @property
    def durations_ns(self) -> tuple[int, int, int]:
        """Shortest, median and longest duration in ns; the median is the middle of its bin (3 % wide)."""
        before = np.cumsum(self.bins.sum(axis=0))
        number = int(np.searchsorted(before, (before[-1] - 1) // 2, side="right"))
        edges = bin_edges_s()
        middle = round((edges[number] + edges[number + 1]) / 2 * 1e9) if number + 1 < BIN_COUNT else 0
        return self.least_ns, min(max(middle, self.least_ns), self.longest_ns), self.longest_ns

    def raster(self) -> Raster:
        return self.picture

    def curve(self, span_ns: tuple[int, int] | None = None) -> RateCurve:
        return self.rates if span_ns is None else self.rates_in(span_ns) or self.rates

    def durations(self, per_mib: bool = False) -> Counted:
        if per_mib not in self._counted:
            bins = self.bins_per_mib if per_mib else self.bins
            self._counted[per_mib] = {} if bins is None else counted_by_class(bins)
        return self._counted[per_mib]

    def access_map(self, file: str | None = None) -> tuple[OffsetMap | None, str]:
        return self.offsets, self.path

    def bytes_in(self, whole: OffsetMap) -> OffsetMap | None:
        return self.offsets if self.offsets is not None and self.offsets.calls else None

    def bytes_within(self, whole: OffsetMap, span_ns: tuple[int, int]) -> OffsetMap | None:
        return self.bytes_of(span_ns)

    def by_rank(self) -> dict[str, np.ndarray]:
        return self.rank_table

    def slowest(self) -> dict[str, Any]:
        return self.slowest_table

    def window(self, window: Window) -> tuple[Raster, int]:
        shown = self.ask(window)
        return shown.raster, shown.first

    def missing_in(self, window: Window) -> str:
        return self.ask(window).missing

    def inside(self, window: Window) -> Events:
        return self.ask(window).events

    def ensemble(self, per: Per = "call") -> Ensemble:
        return self.durations_of()


def of_group(found: Any, offsets: MapOf | None, tasks: int, **others: Any) -> SummedCalls:
    """Return calls from a group of summaries of `requests_of`.

    Parameters
    ----------
    found : SummaryGroup
    offsets : MapOf or None
    tasks : int
    **others
        ``ask``, ``rates_in``, ``bytes_of``, ``durations_of`` and ``reading`` of `SummedCalls`.
    """
    sums: RankSums = found["ranks"]
    some = np.flatnonzero(sums.calls.sum(axis=0))
    return SummedCalls(
        tasks,
        found["raster"],
        by_class(found["histogram"]),
        found["curve"],
        table_of(sums),
        slowest_columns(found["longest"].events),
        (len(some), int(some[0]), int(some[-1])) if len(some) else (0, 0, 0),
        sums.least_ns,
        sums.longest_ns,
        (sums.first_ns, sums.end_ns),
        None if offsets is None else found["offsets"],
        "" if offsets is None else offsets.path,
        bins_per_mib=_per_mib(found),
        **others,
    )


def _per_mib(found: Any) -> np.ndarray | None:
    try:
        return by_class(found["per MiB"])
    except KeyError:  # the filters do not ask for it
        return None


def table_of(sums: RankSums) -> dict[str, np.ndarray]:
    """Return the table of ranks: of calls that do not wait, or of all if there are no others."""
    kind = 0 if sums.calls[0].any() else 1
    ranks = np.flatnonzero(sums.calls[kind])
    columns: Sequence[np.ndarray] = [sums.calls[kind], sums.time_ns[kind], sums.slowest_ns[kind]]
    return rank_columns(ranks, *(column[ranks] for column in columns))


def columns_of(table: RankTable) -> dict[str, np.ndarray]:
    """Return the table of ranks from the sums of the run by rank and function.

    The sums do not know which calls are inside others: of whole runs, the longest of all is an outermost one,
    because a call lasts at least as long as one inside it.
    """
    is_io = np.array([not call.waits_for_tasks for call in table.calls], bool)[table.call]
    mine = np.flatnonzero(is_io) if is_io.any() else np.arange(len(table.rank))
    if not len(mine):
        return rank_columns(*(np.zeros(0, np.int64),) * 4)
    rank = table.rank[mine]
    first = np.flatnonzero(np.append(True, rank[1:] != rank[:-1]))
    sums = [np.add.reduceat(values[mine], first) for values in (table.count, table.time_ns - table.inner_ns)]
    slowest_ns = np.minimum(np.maximum.reduceat(table.max_ns[mine], first), sums[1])
    return rank_columns(rank[first], sums[0], sums[1], slowest_ns)


def of_cube(
    cube: DurationCube,
    durations_ns: tuple[int, int] | None,
    times_ns: tuple[int, int] | None,
    ranks: tuple[int, int] | None,
    **others: Any,
) -> SummedCalls:
    """Return the marked calls in whole bins, rows and cells, until they have been read.

    Parameters
    ----------
    cube : DurationCube
    durations_ns, times_ns, ranks
        As in `DurationCube.bins_of` and `DurationCube.box_of`.
    **others
        As for `of_group`.
    """
    box = cube.box_of(times_ns, ranks)
    counts = cube.counts(durations_ns, box)
    rows = np.flatnonzero(counts.any(axis=(0, 2))) + box[0].start
    bins = counts.sum(axis=1)
    edges_ns = cube.edges_ns[cube.bins_of(durations_ns)]
    used = np.flatnonzero(bins.sum(axis=0)[cube.used_bins[cube.bins_of(durations_ns)]])
    times = cube.times_ns[box[1].start : box[1].stop + 1]
    last = min(int(rows[-1] + 1) * cube.ranks_per_row, cube.tasks) - 1 if len(rows) else 0
    first = int(rows[0]) * cube.ranks_per_row if len(rows) else 0
    return SummedCalls(
        cube.tasks,
        cube.raster(durations_ns, box),
        bins,
        RateCurve(),
        rank_columns(*(np.zeros(0, np.int64),) * 4),
        slowest_columns(Events.empty()),
        (min(len(rows) * cube.ranks_per_row, last - first + 1), first, last),
        int(edges_ns[used[0], 0]) if len(used) else 0,
        int(edges_ns[used[-1], 1]) if len(used) else 0,
        (int(times[0]), int(times[-1])) if len(times) > 1 else (0, 0),
        None,
        "",
        **others,
    )

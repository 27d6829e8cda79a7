"""The calls that the explorer shows or marks: what its pictures and tables need of them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import partial
from typing import Any, cast

import numpy as np

from ensembles.ensemble.ensemble import Ensemble
from ensembles.ensemble.from_run import Per
from ensembles.model.calls import is_io_of_calls
from ensembles.model.enclosed import among_themselves, as_outermost
from ensembles.model.error_names import error_name
from ensembles.model.events import Call, Events
from ensembles.summaries.bins import BIN_COUNT, bin_index, bin_low_ns
from ensembles.summaries.histogram import LogHistogram
from ensembles.summaries.histogram_per_mib import LogHistogramPerMib
from ensembles.summaries.offset_map import OffsetMap, PlacedCalls, WindowMap
from ensembles.summaries.raster import CLASSES, Raster, class_of_calls
from ensembles.summaries.rate import RateCurve, WindowRate
from ensembles.summaries.runtotals import DIRECTIONS
from ensembles.viz.access_map import map_of_events
from ensembles.viz.single_calls import MOST_CALLS, Window, calls_inside, raster_of_window

ROWS = 512
"""Largest number of rows of the trace diagram of a whole run."""

CELLS = 1024
"""Largest number of its cells of time."""

MOST_FILES = 100
"""Files that are offered for the offsets, those with most bytes."""

TABLE_ROWS = 50
"""Rows of the tables of calls and of ranks."""

"""Of more calls, those inside others are not drawn, even if these others are not chosen."""

_MOST_SPREAD = 100_000
"""Of more marked calls, the bytes of each are drawn at the middle of the call, and not spread over it."""

_MOST_NESTED = 1_000_000
"""Of more calls of a selection, those inside others are drawn too, which makes their pixels stronger."""


Counted = dict[str, tuple[np.ndarray, np.ndarray]]
"""Edges of bins in s, and numbers of calls, by class of operations."""


class Calls(ABC):
    """Some calls of a run.

    Attributes
    ----------
    tasks : int
        Number of tasks of the run.
    reading : str
        What is still missing, while calls are read in the background; empty: nothing.
    is_bound : bool
        More calls are counted than there are, because parts of bins and cells count as a whole.
    none : str
        Why there is no call, if that has been found out already.
    """

    tasks: int
    reading: str = ""
    is_bound: bool = False
    none: str = ""

    @property
    @abstractmethod
    def count(self) -> int:
        """Number of calls."""

    @property
    @abstractmethod
    def ranks(self) -> tuple[int, int, int]:
        """Number of ranks with calls, the first and the last of them; there are calls."""

    @property
    @abstractmethod
    def extent_ns(self) -> tuple[int, int]:
        """First and last moment in ns since the origin; (0, 0) without calls."""

    @property
    @abstractmethod
    def durations_ns(self) -> tuple[int, float, int]:
        """Shortest, median and longest duration in ns; there are calls."""

    @property
    def hides_inner(self) -> bool:
        """Whether the trace diagram leaves out calls that are inside others, if that is known."""
        return False

    @abstractmethod
    def raster(self) -> Raster:
        """Return the numbers of the trace diagram."""

    @abstractmethod
    def curve(self, span_ns: tuple[int, int] | None = None) -> RateCurve:
        """Return the rates, of all times or of a window, whose end is excluded."""

    @abstractmethod
    def durations(self, per_mib: bool = False) -> Counted:
        """Count durations by class of operations; per MiB, of calls that moved bytes."""

    @abstractmethod
    def access_map(self, file: str | None = None) -> tuple[OffsetMap | None, str]:
        """Return the bytes of a file, or of the busiest one, by offset, with its path; None: none moved."""

    def moves_bytes_in(self, file: int) -> bool:
        """Whether a call may move bytes in a file, which is given by its index."""
        return True

    def busiest_file(self) -> str:
        """Return the file with most bytes, or with most calls if no bytes moved; empty: it is not known."""
        return ""

    def files_by_bytes(self, layer: str) -> dict[str, int]:
        """Return the bytes that calls of a layer move in each file, most first; empty: not known."""
        return {}

    def has_map_of(self, file: str) -> bool:
        """Whether `access_map` can be of a file, in which bytes move at known offsets."""
        return False

    @abstractmethod
    def bytes_in(self, whole: OffsetMap) -> OffsetMap | None:
        """Return the bytes of these calls by offset and time, in the file of another map; None: none."""

    @abstractmethod
    def bytes_within(self, whole: OffsetMap, span_ns: tuple[int, int]) -> OffsetMap | None:
        """Return the bytes that these calls moved in a time, in the file of another map.

        None: they have not been read, or are too many to read.
        """

    @abstractmethod
    def by_rank(self) -> dict[str, np.ndarray]:
        """Return the columns of the table of ranks."""

    @abstractmethod
    def slowest(self) -> dict[str, Any]:
        """Return the columns of the table of the slowest calls."""

    @abstractmethod
    def window(self, window: Window) -> tuple[Raster, int]:
        """Return the numbers of a window of the trace diagram, and the rank of its first row."""

    def missing_in(self, window: Window) -> str:
        """Say why a window is shown in whole rows and cells only; empty: its calls are known."""
        return ""

    @abstractmethod
    def inside(self, window: Window) -> Events:
        """Return the single calls of a window; none, if there are more than `MOST_CALLS`."""

    def count_in(self, window: Window) -> int | None:
        """Return the number of these calls that are in progress in a window; None: it is not known."""
        return None

    @abstractmethod
    def ensemble(self, per: Per = "call") -> Ensemble:
        """Return the durations of those that do not wait for other tasks; of all, if there are no others."""


class HeldCalls(Calls):
    """Calls in memory.

    Parameters
    ----------
    events : Events
        Sorted by rank and start.
    tasks : int
        Number of tasks of the run.
    places : ndarray of int, optional
        Indices of the calls among `events`, rising. Default: all of them.
    is_part : bool
        The `events` are some calls of the run: those that contain them may be missing.
    """

    def __init__(
        self, events: Events, tasks: int, places: np.ndarray | None = None, *, is_part: bool = False
    ) -> None:
        self.tasks, self._is_part = tasks, is_part
        self._of, self._places = events, places
        self._columns: dict[str, np.ndarray] = {}
        self._told: dict[str, Any] = {}

    @property
    def events(self) -> Events:
        """The calls."""
        if self._places is None:
            return self._of
        if "events" not in self._told:
            self._told["events"] = self._of[self._places]
        return cast(Events, self._told["events"])

    def column(self, name: str) -> np.ndarray:
        """Return a column; others are not copied."""
        if name not in self._columns:
            whole: np.ndarray = getattr(self._of, name)
            self._columns[name] = whole if self._places is None else whole.take(self._places)
        return self._columns[name]

    def _some(self, *names: str) -> Events:
        columns = {name: self.column(name) for name in names}
        return Events.partly(columns, self._of.calls, self._of.files, self._of.sites)

    def _once(self, name: str, make: Any) -> Any:
        if name not in self._told:
            self._told[name] = make()
        return self._told[name]

    @property
    def count(self) -> int:  # as in Calls
        return len(self._of) if self._places is None else len(self._places)

    @property
    def _first_of_rank(self) -> np.ndarray:
        """Index of the first call of each rank with calls."""
        rank = self.column("rank")
        found: np.ndarray = self._once(
            "first of rank", lambda: np.flatnonzero(np.append(True, rank[1:] != rank[:-1]))
        )
        return found

    @property
    def ranks(self) -> tuple[int, int, int]:
        rank = self.column("rank")
        return len(self._first_of_rank), int(rank[0]), int(rank[-1])

    @property
    def extent_ns(self) -> tuple[int, int]:
        return self._once("extent", self._extent) if self.count else (0, 0)

    def _extent(self) -> tuple[int, int]:
        start = self.column("start")
        return int(start.min()), int((start + self.column("duration")).max())

    @property
    def durations_ns(self) -> tuple[int, float, int]:
        return cast(tuple[int, float, int], self._once("of durations", self._of_durations))

    def _of_durations(self) -> tuple[int, float, int]:
        duration = self.column("duration")
        # As `np.median`: of an even number of calls, the mean of the two in the middle.
        middle = [self._duration_at((len(duration) - 1) // 2)]
        if len(duration) % 2 == 0:
            middle.append(self._duration_at(len(duration) // 2))
        return int(duration.min()), sum(middle) / len(middle), int(duration.max())

    def _duration_at(self, middle: int) -> int:
        """Return the duration at a place in the order of all."""
        duration = self.column("duration")
        # The bin of the place is known from the histogram; only its calls are sorted.
        before = np.cumsum(self._by_class().sum(axis=0))
        number = int(np.searchsorted(before, middle, side="right"))
        low, high = _ends(number)
        inside = duration[(duration >= low) & (duration < high)]
        place = middle - (int(before[number - 1]) if number else 0)
        return int(np.partition(inside, place)[place])

    def raster(self) -> Raster:
        return cast(Raster, self._once("raster", self._raster))

    def _raster(self) -> Raster:
        raster = Raster(self.tasks, rows=ROWS, cells=CELLS)
        raster.add(self._of_raster())
        return raster

    def curve(self, span_ns: tuple[int, int] | None = None) -> RateCurve:
        if span_ns is None:
            return cast(
                RateCurve,
                self._once("curve", lambda: self._curve(RateCurve(knows_active=self._places is None))),
            )
        if self._told.get("window of rates", (None,))[0] != span_ns:
            self._told["window of rates"] = span_ns, self._curve(WindowRate(*span_ns))
        return cast(RateCurve, self._told["window of rates"][1])

    def _curve(self, curve: RateCurve) -> RateCurve:
        curve.add(self._among())
        return curve

    def _among(self) -> Events:
        """Return the calls with depths among themselves: what a call around them does not count, they do."""
        if self._places is None and not self._is_part:
            return self._of
        return cast(Events, self._once("among", self._find_among))

    def _find_among(self) -> Events:
        if not self.column("depth").any():
            return self._some(*RateCurve.columns, "depth")
        some = self._some(*dict.fromkeys((*RateCurve.columns, "rank", "thread", "depth")))
        if len(some) <= _MOST_NESTED:
            return among_themselves(some)
        layers = {some.calls[number].layer for number in np.flatnonzero(np.bincount(some.call)).tolist()}
        return as_outermost(some) if len(layers) == 1 else some

    def _by_class(self) -> np.ndarray:
        """Count calls by class and bin of the bin law: int64, shape (classes, BIN_COUNT)."""
        return cast(np.ndarray, self._once("by class", self._count_by_class))

    def _count_by_class(self) -> np.ndarray:
        key = self._of.remembered("class and bin", _class_and_bin)
        mine = key if self._places is None else key.take(self._places)
        return np.bincount(mine, minlength=len(CLASSES) * BIN_COUNT).reshape(len(CLASSES), BIN_COUNT)

    def durations(self, per_mib: bool = False) -> Counted:
        if per_mib:
            return cast(Counted, self._once("per MiB", self._count_per_mib))
        return cast(Counted, self._once("durations", lambda: counted_by_class(self._by_class())))

    def _count_per_mib(self) -> Counted:
        histogram = LogHistogramPerMib()
        histogram.add(self._some(*LogHistogramPerMib.columns))
        return counted_by_class(by_class(histogram))

    def access_map(self, file: str | None = None) -> tuple[OffsetMap | None, str]:
        if not self.count:
            return None, ""
        made = partial(self._access_map, file)
        return cast(tuple[OffsetMap | None, str], self._once(f"access map {file or ''}", made))

    @property
    def hides_inner(self) -> bool:
        return cast(bool, self._once("hides inner", lambda: bool(self._of_raster().depth.any())))

    def moves_bytes_in(self, file: int) -> bool:
        return cast(bool, self._once(f"moves bytes in {file}", partial(self._moves_bytes_in, file)))

    def _moves_bytes_in(self, file: int) -> bool:
        return bool(((self.column("file") == file) & (self.column("moved") > 0)).any())

    def busiest_file(self) -> str:
        return cast(str, self._once("busiest file", self._busiest_file))

    def _busiest_file(self) -> str:
        file, moved = self.column("file"), np.maximum(self.column("moved"), 0)
        weight = np.bincount(file, moved if moved.any() else None) if self.count else np.zeros(1)
        return self._of.files[int(weight.argmax())] if weight.any() else ""

    def files_by_bytes(self, layer: str) -> dict[str, int]:
        return cast(dict[str, int], self._once(f"files {layer}", partial(self._files_by_bytes, layer)))

    def _files_by_bytes(self, layer: str) -> dict[str, int]:
        chosen = np.array([each.layer == layer and each.op in DIRECTIONS for each in self._of.calls], bool)
        moved = np.where(chosen[self.column("call")], np.maximum(self.column("moved"), 0), 0)
        sums = np.bincount(self.column("file"), moved)
        order = np.argsort(-sums, kind="stable")[:MOST_FILES].tolist()
        files = self._of.files
        return {files[each]: int(sums[each]) for each in order if sums[each] and files[each]}

    def has_map_of(self, file: str) -> bool:
        if file not in self._of.files:
            return False
        found = self.access_map(file)[0]
        return found is not None and bool(found.calls)

    def _access_map(self, file: str | None) -> tuple[OffsetMap | None, str]:
        found, path = map_of_events(self.events, file, None)
        if self._places is None and found is not None and self.count > _MOST_SPREAD:
            self._placed(found)  # before the first mark needs it
        return found, path

    def _placed(self, whole: OffsetMap) -> PlacedCalls:
        key = ("placed", whole.file, whole.layer, whole.span_ns)
        return self._of.remembered(key, partial(PlacedCalls, whole))

    def bytes_in(self, whole: OffsetMap) -> OffsetMap | None:
        if self.count > _MOST_SPREAD and self._places is not None:
            key = ("placed", whole.file, whole.layer, whole.span_ns)
            found = self._of.remembered(key, partial(PlacedCalls, whole)).map_of(self._places)
        else:
            found = OffsetMap(whole.file, whole.layer, whole.tasks, whole.span_ns)
            found.add(self._some(*OffsetMap.columns))
        return found if found.calls else None

    def bytes_within(self, whole: OffsetMap, span_ns: tuple[int, int]) -> OffsetMap | None:
        key = whole.file, whole.layer, span_ns
        if self._told.get("window of offsets", (None,))[0] != key:
            found = window_of_map(whole, span_ns)
            found.add(self._of if self._places is None else self._some(*OffsetMap.columns))
            self._told["window of offsets"] = key, found
        return cast(OffsetMap, self._told["window of offsets"][1])

    def _io(self) -> np.ndarray | None:
        """Return the indices of the calls that do not wait for other tasks; None: all."""
        return cast("np.ndarray | None", self._once("io", self._find_io))

    def _find_io(self) -> np.ndarray | None:
        is_io = is_io_of_calls(self._of.calls)
        if is_io.all():
            return None
        io = np.flatnonzero(is_io[self.column("call")])
        return io if 0 < len(io) < self.count else None

    def by_rank(self) -> dict[str, np.ndarray]:
        """Return calls and their time by rank, the rank with most time first.

        Returns
        -------
        dict
            ``rank``, ``calls``, ``time_s`` and ``slowest_s`` of at most 50 ranks. Calls inside others count
            as calls, but add no time, and are not the slowest. Calls that wait for other tasks are left out,
            unless there are no others.
        """
        return cast(dict[str, np.ndarray], self._once("by rank", self._by_rank))

    def _by_rank(self) -> dict[str, np.ndarray]:
        if not self.count:
            return rank_columns(*(np.zeros(0, np.int64),) * 4)
        io, depth = self._io(), self._among().depth
        duration, first = self.column("duration"), self._first_of_rank
        if io is not None:
            rank = self.column("rank")[io]
            duration, depth = duration[io], depth[io]
            first = np.flatnonzero(np.append(True, rank[1:] != rank[:-1]))
            ranks = rank[first]
        else:
            ranks = self.column("rank")[first]
        outermost = np.where(depth == 0, duration, 0) if depth.any() else duration
        return rank_columns(
            ranks,
            np.diff(np.append(first, len(duration))),
            np.add.reduceat(outermost, first),
            np.maximum.reduceat(outermost, first),
        )

    def slowest(self) -> dict[str, Any]:
        """Return the columns of the table of the slowest calls, the longest first.

        Calls that wait for other tasks are left out, unless there are no others.
        """
        return cast(dict[str, Any], self._once("slowest", self._slowest))

    def _slowest(self) -> dict[str, Any]:
        io, duration = self._io(), self.column("duration")
        if io is not None:
            duration = duration[io]
        long = np.arange(len(duration))
        if len(duration) > TABLE_ROWS:
            # All bins above one that has the last row of the table, but few calls.
            bins = self._by_class().sum(axis=0) if io is None else _bins_of(duration)
            above = np.cumsum(bins[::-1])
            number = BIN_COUNT - 1 - int(np.searchsorted(above, TABLE_ROWS))
            long = np.flatnonzero(duration >= _ends(number)[0])
            if len(long) > 4 * TABLE_ROWS:
                least = np.partition(duration[long], len(long) - TABLE_ROWS)[len(long) - TABLE_ROWS]
                long = long[duration[long] >= least]
        mine = long if io is None else io[long]
        places = mine if self._places is None else self._places[mine]
        return slowest_columns(self._of[places])

    def window(self, window: Window) -> tuple[Raster, int]:
        return raster_of_window(self._of_raster(), window, ROWS, 2 * CELLS), window.first

    def _of_raster(self) -> Events:
        return cast(Events, self._once("of raster", self._drawn_calls))

    def _drawn_calls(self) -> Events:
        """Return the calls as the trace diagram draws them: each takes time, unless it is inside another."""
        if self._places is None and not self._is_part:
            return self._of
        some = self._some("rank", "thread", "call")
        start, duration = self.column("start"), self.column("duration")
        if self._places is not None:
            duration = np.maximum(duration, 1)
        columns = {name: getattr(some, name) for name in ("rank", "thread", "call")}
        columns |= {"start": start, "duration": duration, "depth": self.column("depth")}
        if len(start) > _MOST_NESTED:
            columns["depth"] = np.zeros(len(start), np.uint8)
        return among_themselves(Events.partly(columns, self._of.calls, self._of.files, self._of.sites))

    def inside(self, window: Window) -> Events:
        if self._places is None:
            found = calls_inside(self._of, window)
        else:
            found = self._places[calls_inside(self._some("rank", "start", "duration"), window)]
        return self._of[found[: 0 if len(found) > MOST_CALLS else None]]

    def count_in(self, window: Window) -> int | None:
        return len(calls_inside(self._of_raster(), window))

    def ensemble(self, per: Per = "call") -> Ensemble:
        io = self._io()
        return (self.events if io is None else self.events[io]).ensemble(per)


def window_of_map(whole: OffsetMap, span_ns: tuple[int, int]) -> WindowMap:
    """Return an empty map of a time, with the offsets of another map."""
    offsets = int(whole.offset_edges[0]), int(whole.offset_edges[-1])
    return WindowMap(whole.file, whole.layer, whole.tasks, span_ns, offsets)


def counted_by_class(counts: np.ndarray) -> Counted:
    """Return the coarse histograms of the classes that occur.

    Parameters
    ----------
    counts : ndarray of int64, shape (classes, BIN_COUNT)
        Numbers of calls, in the order of `ensembles.summaries.raster.CLASSES`.
    """
    histogram = LogHistogram()
    for name, row in zip(CLASSES, counts, strict=True):
        if row.any():
            histogram.counts[Call(name, "", "meta")] = row
    return {call.name: histogram.coarse(call) for call in histogram.counts}


def by_class(histogram: LogHistogram) -> np.ndarray:
    """Return the counts of a histogram by class of operations: int64, shape (classes, BIN_COUNT)."""
    counts = np.zeros((len(CLASSES), BIN_COUNT), np.int64)
    classes = class_of_calls(tuple(histogram.counts))
    for number, row in zip(classes.tolist(), histogram.counts.values(), strict=True):
        counts[number] += row
    return counts


def rank_columns(
    ranks: np.ndarray, calls: np.ndarray, time_ns: np.ndarray, slowest_ns: np.ndarray
) -> dict[str, np.ndarray]:
    """Return the columns of the table of ranks: those with most time, the first of them first."""
    order = np.lexsort((ranks, -time_ns))[:TABLE_ROWS]
    return {
        "rank": ranks[order],
        "calls": calls[order],
        "time_s": time_ns[order] * 1e-9,
        "slowest_s": slowest_ns[order] * 1e-9,
    }


def slowest_columns(events: Events) -> dict[str, Any]:
    """Return the columns of the table of slowest calls, of more calls than it has rows."""
    order = np.lexsort((events.start, events.rank, -events.duration))
    slow = events[order[:TABLE_ROWS]]
    return {
        "rank": slow.rank,
        "thread": slow.thread,
        "call": [slow.calls[number].name for number in slow.call.tolist()],
        "start_s": slow.start * 1e-9,
        "duration_s": slow.duration * 1e-9,
        "moved_bytes": slow.moved,
        "error": [error_name(number) if number else "" for number in slow.error.tolist()],
        "offset_bytes": slow.offset,
        "file": [slow.files[number] for number in slow.file.tolist()],
    }


def _class_and_bin(events: Events) -> np.ndarray:
    """Number the class and the bin of each call: int16, shape (n,)."""
    classes = class_of_calls(events.calls).astype(np.int16) * np.int16(BIN_COUNT)
    return classes[events.call] + bin_index(events.duration).astype(np.int16)


def _bins_of(duration: np.ndarray) -> np.ndarray:
    return np.bincount(bin_index(duration), minlength=BIN_COUNT)


def _ends(number: int) -> tuple[int, int]:
    """Return the ends of a bin in ns."""
    low = bin_low_ns()
    return int(low[number]), int(low[number + 1]) if number + 1 < BIN_COUNT else (1 << 63) - 1

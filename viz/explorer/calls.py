"""The calls that the explorer shows or marks: what its pictures and tables need of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ensembles.model.enclosed import among_themselves, as_outermost
from ensembles.model.error_names import error_name
from ensembles.model.events import COLUMNS, Call, Events
from ensembles.model.units import SCREEN_CELLS
from ensembles.run.selection import Selection
from ensembles.summaries.bins import bin_low_ns
from ensembles.summaries.histogram import LogHistogram
from ensembles.summaries.offset_map import OffsetMap
from ensembles.summaries.raster import CLASSES, Raster
from ensembles.summaries.rate import RateCurve
from ensembles.viz.common.single_calls import MOST_CALLS, Window, calls_inside, raster_of_window
from ensembles.viz.common.task_order import timed
from ensembles.viz.explorer.sums import ROWS, TABLE_ROWS, ClassBins, FileSums, RankSums

Counted = dict[str, tuple[np.ndarray, np.ndarray]]
"""Edges of bins in s, and numbers of calls, by class of operations."""

Span = tuple[int, int]
"""A time in ns since the origin; the end is excluded."""


class Chosen(Events):
    """Calls in memory, by their places in others; a column is copied when it is first needed."""

    def __init__(self, of: Events, places: np.ndarray) -> None:
        self._of, self._places, self._length = of, places, len(places)
        self.calls, self.files, self.sites, self.clock_step_s = of.calls, of.files, of.sites, of.clock_step_s
        self._told, self._remembered = {}, {}
        self._ask = lambda name: None if (known := of._derived(name)) is None else known[places]

    def __getattr__(self, name: str) -> Any:  # a column that has not been copied
        if name not in COLUMNS:
            raise AttributeError(name)
        column = getattr(self._of, name).take(self._places)
        setattr(self, name, column)
        return column

    def __getitem__(self, index: Any) -> Chosen:
        """Select events by a mask, a slice or an array of positions."""
        return Chosen(self._of, np.atleast_1d(self._places[index]))


class HeldCalls:
    """Calls in memory."""

    def __init__(self, events: Events, *, is_part: bool) -> None:
        self.events, self._is_part = events, is_part

    @cached_property
    def alone(self) -> Events:
        """The calls with depths among themselves: what a call around them does not count, they do."""
        events = self.events
        if not self._is_part or not events.depth.any():
            return events
        if len(events) <= 1_000_000:  # of more, calls inside others make their pixels stronger
            return among_themselves(events)
        layers = {events.calls[number].layer for number in np.flatnonzero(np.bincount(events.call)).tolist()}
        return as_outermost(events) if len(layers) == 1 else events

    @cached_property
    def drawn(self) -> Events:
        """The calls as the trace diagram draws them: each takes time, unless it is inside another."""
        return timed(self.alone) if self._is_part else self.events

    def window(self, window: Window) -> WindowShown:
        """Return a window of the calls."""
        found = calls_inside(self.drawn, window)
        single = self.events[found[: 0 if len(found) > MOST_CALLS else None]]
        return WindowShown(lambda: (self.raster(window), window.first), single, len(found))

    def raster(self, window: Window) -> Raster:
        """Return the numbers of a window of the trace diagram."""
        return raster_of_window(self.drawn, window, ROWS, 2 * SCREEN_CELLS)


class WindowShown:
    """What is known of a window of some calls.

    `missing`: why there are whole rows and cells, and no single calls; empty: its calls have been read.
    """

    def __init__(
        self,
        draw: Callable[[], tuple[Raster, int]],
        events: Events,
        count: int | None = None,
        missing: str = "",
    ) -> None:
        self._draw, self.events, self.count, self.missing = draw, events, count, missing

    @cached_property
    def drawn(self) -> tuple[Raster, int]:
        """The numbers of the window, and the rank of their first row."""
        return self._draw()


@dataclass(eq=False)
class Calls:
    """Some calls of a run: sums over them, and what is in a window."""

    tasks: int  # Number of tasks of the run
    sums: Mapping[str, Any]  # Those of `ensembles.viz.explorer.sums.requests_of`
    reader: Any  # Answers questions about these calls that the sums do not
    selection: Selection  # These calls
    files: Any  # Paths of the run, by number
    reading: str = ""  # What is still missing, while calls are read in the background; empty: nothing
    # More calls are counted than there are, because parts of bins and cells count as a whole
    is_bound: bool = False
    none: str = ""  # Why there is no call, if that has been found out already
    held: HeldCalls | None = None  # The calls themselves, if they are in memory

    @cached_property
    def count(self) -> int:
        """Number of calls."""
        return int(self.sums["bins"].counts.sum())

    @cached_property
    def ranks(self) -> tuple[int, int, int]:
        """Number of ranks with calls, the first and the last of them."""
        some = np.flatnonzero(self._of_ranks.calls.any(axis=0))
        return (len(some), int(some[0]), int(some[-1])) if len(some) else (0, 0, 0)

    @property
    def _of_ranks(self) -> RankSums:
        found: RankSums = self.sums["ranks"]
        return found

    @property
    def extent_ns(self) -> Span:
        """First and last moment in ns since the origin; (0, 0) without calls."""
        return (self._of_ranks.first_ns, self._of_ranks.end_ns) if self.count else (0, 0)

    @cached_property
    def durations_ns(self) -> tuple[int, float, int]:
        """Shortest, median and longest duration in ns; there are calls.

        The median of calls that are not in memory is the middle of its bin, which is 3 % wide.
        """
        least, longest = self._of_ranks.least_ns, self._of_ranks.longest_ns
        before = np.append(0, np.cumsum(self.sums["bins"].counts.sum(axis=0)))
        middle = np.array([(before[-1] - 1) // 2, before[-1] // 2])
        first, last = (np.searchsorted(before, middle, side="right") - 1).tolist()
        edges = [*bin_low_ns().tolist(), longest + 1]
        low, high = edges[first], edges[last + 1]
        if self.held is None:
            return least, min(max(round((low + high) / 2), least), longest), longest
        duration = self.held.events.duration
        some, middle = duration[(duration >= low) & (duration < high)], middle - before[first]
        return least, float(np.partition(some, middle)[middle].mean()), longest

    @property
    def hides_inner(self) -> bool:
        """Whether the trace diagram leaves out calls that are inside others."""
        return self._of_ranks.has_inner

    def raster(self) -> Raster:
        """Return the numbers of the trace diagram."""
        found: Raster = self.sums["raster"]
        return found

    def curve(self, span_ns: Span | None = None) -> RateCurve:
        """Return the rates, of all times or of a window, whose end is excluded."""
        whole: RateCurve = self.sums["curve"]
        return whole if span_ns is None else self.reader.rates(self.selection, span_ns) or whole

    def durations(self, per_mib: bool = False) -> Counted:
        """Count durations by class of operations; per MiB, of calls that moved bytes."""
        if not per_mib:
            return counted_by_class(self.sums["bins"].counts)
        histogram = self.sums.get("per MiB")  # the filters may not ask for it
        return {} if histogram is None else counted_by_class(ClassBins.of_histogram(histogram).counts)

    @property
    def _of_files(self) -> FileSums | None:
        return self.sums.get("files")

    def access_map(self, file: str | None = None) -> tuple[OffsetMap | None, str]:
        """Return the bytes of a file, or of the busiest one, by offset, with its path; None: none moved."""
        sums, known = self._of_files, self.sums.get("offsets")
        if file is None and known is not None and self.reading:
            return known, self.files[known.file]
        if sums is None or not sums.layer:
            return None, ""
        number = int(sums.of_layer(sums.layer).argmax()) if file is None else self.files.index(file)
        like = OffsetMap(number, sums.layer, self.tasks, self.extent_ns)
        return self.bytes_in(like), self.files[number]

    def moves_bytes_in(self, file: int) -> bool:
        """Whether a call may move bytes in a file, which is given by its index."""
        return self._of_files is None or bool(self._of_files.moved[:, file].any())

    def busiest_file(self) -> str:
        """Return the file with most bytes, or with most calls if no bytes moved; empty: it is not known."""
        return "" if self._of_files is None else str(self.files[self._of_files.busiest()])

    def files_by_bytes(self, layer: str) -> dict[str, int]:
        """Return the bytes that calls of a layer move in up to 100 files, most first; empty: not known."""
        if self._of_files is None:
            return {}
        moved = self._of_files.of_layer(layer)
        order = np.argsort(-moved, kind="stable")[:100].tolist()
        return {self.files[each]: int(moved[each]) for each in order if moved[each] and self.files[each]}

    def has_map_of(self, file: str) -> bool:
        """Whether `access_map` can be of a file, in which bytes move at known offsets."""
        if file not in self.files:
            return False
        found = self.access_map(file)[0]
        return found is not None and bool(found.calls)

    def bytes_in(self, whole: OffsetMap, span_ns: Span | None = None) -> OffsetMap | None:
        """Return the bytes of these calls by offset, in the file of another map, of all times or of one.

        None: they have not been read, or are too many to read.
        """
        known: OffsetMap | None = self.sums.get("offsets")
        if span_ns is None and known is not None and (known.file, known.layer) == (whole.file, whole.layer):
            return known
        return self.reader.offsets(self.selection, whole, span_ns)  # type: ignore[no-any-return]

    def by_rank(self) -> dict[str, np.ndarray]:
        """Return the columns of the table of ranks: those with most time, the first of them first.

        ``rank``, ``calls``, ``time_s`` and ``slowest_s`` of at most 50 ranks. Calls inside others count as
        calls, but add no time, and are not the slowest. Calls that wait for other tasks are left out, unless
        there are no others.
        """
        return RankSums(0).table() if self.is_bound else self._of_ranks.table()

    @cached_property
    def _slowest(self) -> dict[str, Any]:
        events: Events = self.sums["longest"].events
        return slowest_columns(events if len(events) or self.held is None else self.held.events)

    def slowest(self) -> dict[str, Any]:
        """Return the columns of the table of the slowest calls, the longest first.

        Calls that wait for other tasks are left out, unless there are no others.
        """
        return self._slowest

    def window(self, window: Window) -> WindowShown:
        """Return what is known of a window of the trace diagram."""
        return self.reader.window(self.selection, window)  # type: ignore[no-any-return]


def counted_by_class(counts: np.ndarray) -> Counted:
    """Return the coarse histograms of the classes that occur."""
    histogram = LogHistogram()
    for name, row in zip(CLASSES, counts, strict=True):
        if row.any():
            histogram.counts[Call(name, "", "meta")] = row
    return {call.name: histogram.coarse(call) for call in histogram.counts}


def slowest_columns(events: Events) -> dict[str, Any]:
    """Return the columns of the table of slowest calls, of more calls than it has rows."""
    if len(events) > TABLE_ROWS:
        least = np.partition(events.duration, len(events) - TABLE_ROWS)[len(events) - TABLE_ROWS]
        events = events[np.flatnonzero(events.duration >= least)]
    order = np.lexsort((events.start, events.rank, -events.duration))
    slow = events[order[:TABLE_ROWS]]
    return {
        "rank": slow.rank,
        "thread": slow.thread,
        "call": [slow.calls[number].name for number in slow.call.tolist()],
        "start_s": slow.start * 1e-9,
        "duration_s": slow.duration * 1e-9,
        "moved_bytes": slow.moved,
        "error": [error_name(e) if m < 0 else "" for e, m in zip(slow.error, slow.moved, strict=True)],
        "offset_bytes": slow.offset,
        "file": [slow.files[number] for number in slow.file.tolist()],
    }

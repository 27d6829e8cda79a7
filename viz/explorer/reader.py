"""Sums and windows of the calls of a run: of those in memory at once, of a file's in the background.

Of a run in a file, pictures of all calls come from what `ensio collect` kept. Calls that filters or marks
choose are read in the background, and pictures show what has been read so far; ranges of durations and
rectangles are first shown from a `DurationCube`, in whole bins and cells.

Calls of a window of a run that the explorer does not hold.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache, partial
from itertools import pairwise
from threading import Lock
from typing import Any

import numpy as np

from ensembles.model.enclosed import among_themselves
from ensembles.model.errors import EnsioError
from ensembles.model.events import Events
from ensembles.model.holds import Holds
from ensembles.model.units import HELD_EVENTS, SCREEN_CELLS, share_text
from ensembles.passes.group import SummaryGroup, SummaryRequest
from ensembles.passes.reading import ascending_ranges
from ensembles.passes.spec import summarize_chunks
from ensembles.passes.summary import ignoring_run
from ensembles.run.nothing_selected import why_nothing
from ensembles.run.rasters import whole_raster
from ensembles.run.run import Run
from ensembles.run.selection import Selection
from ensembles.summaries.bins import bin_low_ns
from ensembles.summaries.duration_cube import DurationCube, bins_of_counts
from ensembles.summaries.from_cells import histogram_from_cells
from ensembles.summaries.histogram import LogHistogram
from ensembles.summaries.longest_calls import LongestCalls
from ensembles.summaries.offset_map import OffsetMap, WindowMap
from ensembles.summaries.raster import Raster
from ensembles.summaries.rate import RateCurve, WindowRate
from ensembles.viz.common.data_for import data_for
from ensembles.viz.common.single_calls import Window
from ensembles.viz.common.task_order import PreparedRaster, WindowCount, read_window, timed
from ensembles.viz.explorer.background import Answers, Background, InTurn, Postponed
from ensembles.viz.explorer.calls import Calls, Chosen, HeldCalls, Span, WindowShown
from ensembles.viz.explorer.sums import (
    ROWS,
    CellTimes,
    ClassBins,
    FileSums,
    Levels,
    RankSums,
    files_of,
    not_kept,
    requests_of,
    sums_of_cube,
)
from ensembles.viz.explorer.view import View
from ensembles.viz.pictures.access_map import span_of_table, table_of_run

_MOST_HELD = 4
"""Selections whose calls are remembered, of a run in memory; and windows that have not been read yet."""

_ROUNDED = "Shown in whole bins, rows and cells while the calls are being read."


@dataclass(frozen=True)
class _Asked:
    """What is read of some calls: a `Window`, rates (None) or an access map, hashable; and of which time."""

    selection: Selection
    what: Any
    span_ns: Span | None = None


class CallReader:
    """Sums and windows of the calls of a run.

    `events`: the calls, sorted by rank and start. None: they are read from the file of the run, which has a
    kept pyramid (`can_be_read`).
    `answers`: while they are given, readings rest.
    """

    def __init__(
        self,
        run: Run,
        events: Events | None,
        changed: Callable[[], None],
        failed: Callable[[Exception], None],
        *,
        in_background: bool = False,
    ) -> None:
        self.run, self._events, self._has_failed = run, events, failed
        self.answers = Answers()
        is_threaded = in_background and events is None
        self._changed: Callable[[], None] = changed if is_threaded else lambda: None
        self._background = Background(self._failed, is_threaded, self.answers)
        self._base_in_background = Background(self._failed, is_threaded, self.answers, self._background)
        self._lock = Lock()
        self._found: OrderedDict[Hashable, Any] = OrderedDict()
        self._held = lru_cache(_MOST_HELD)(self._hold)
        # What a window shows before it has been read, and what that was made of.
        self._first: dict[_Asked, tuple[tuple[Any, Any], WindowShown]] = {}
        self._cube: DurationCube | None = None
        self._map: OffsetMap | None = None
        self._base: Calls | None = None
        if events is None:
            self._levels = Levels([self._whole])
            self._base = self._from_kept()
            self._base_in_background.ask("base", self._read_base)

    @cached_property
    def _whole(self) -> Raster:
        """The raster of all of the run, from what is kept."""
        whole = whole_raster(self.run, ROWS, 2 * SCREEN_CELLS)
        assert whole is not None
        return whole

    def wait(self) -> None:
        """Wait until everything that was asked for has been read."""
        self._base_in_background.wait()
        self._background.wait()

    def chosen(self, selection: Selection) -> Events:
        """Return the calls of a selection themselves, sorted by rank and start."""
        held = self._held(selection)
        return self.run.reading.chosen_by(selection) if held is None else held.events

    def _hold(self, selection: Selection) -> HeldCalls | None:
        """Return the calls of a selection, if those of the run are in memory."""
        if self._events is None:
            return None
        if selection.selects_all:
            return HeldCalls(self._events, is_part=False)
        places = np.flatnonzero(selection.mask(self._events))
        return HeldCalls(Chosen(self._events, places), is_part=True)

    def calls(self, selection: Selection, marks: View | None = None) -> Calls:
        """Return the calls of a selection, as far as they have been read."""
        if selection.selects_all and self._base is not None:
            return self._base
        found: Calls | None = self._recall(selection)
        if found is None:
            found = self._first_of(selection, marks)
            self._remember(selection, found)
        if found.reading:
            self._background.ask(selection, partial(self._read_some, selection))
            found = self._found.get(selection, found)
        if selection.selects_all and not found.reading:
            self._base = found
            self._map = found.access_map()[0]
        return found

    def _made(self, selection: Selection, sums: Any, **others: Any) -> Calls:
        held = self._held(selection)
        return Calls(self.run.tasks, sums, self, selection, self.run.files, held=held, **others)

    def _requests(self, selection: Selection) -> dict[str, SummaryRequest]:
        prepare = () if selection.selects_all else (among_themselves if self._events is None else timed,)
        offsets = None
        if self._map is not None:
            known = self._map
            offsets = partial(OffsetMap, known.file, known.layer, known.tasks, known.span_ns)
        return requests_of(self.run.tasks, selection, partial(PreparedRaster, prepare), offsets)

    def _first_of(self, selection: Selection, marks: View | None) -> Calls:
        """Return the calls of a selection before any has been read."""
        if marks is None or self._cube is None:
            empty = SummaryGroup(self._requests(selection), self.run).summaries
            return self._made(selection, empty, reading=_reading(0, "calls"))
        durations_ns = None
        if selection.durations_ns is not None:
            durations_ns = selection.durations_ns[0][0], selection.durations_ns[0][1] + 1
        low_s, high_s = marks.time_s or (0.0, 0.0)
        times_ns = None if marks.time_s is None else (round(low_s * 1e9), round(high_s * 1e9))
        sums = sums_of_cube(self._cube, durations_ns, times_ns, marks.ranks)
        return self._made(selection, sums, reading=_ROUNDED, is_bound=True)

    def _from_kept(self) -> Calls:
        """Return all calls of the run, from what is kept."""
        run = self.run
        kept = run.reading.has_summary and not run.info.summed_calls
        histogram = histogram_from_cells(run.summary) if kept else run.summarize(ignoring_run(LogHistogram))
        bins = ClassBins.of_histogram(histogram)
        used = np.flatnonzero(bins.counts.any(axis=0))
        least_ns = int(bin_low_ns()[used[0]]) if len(used) else 0
        sums = {
            "raster": self._whole,
            "bins": bins,
            "curve": data_for(run, RateCurve),
            "ranks": RankSums.of_table(run.reading.ranks, run.tasks, least_ns, self._whole.extent_ns),
            "longest": LongestCalls(0, run.calls, run.files),
        }
        return self._made(Selection(), sums, reading="The slowest calls and the offsets are being read.")

    def _read_base(self) -> Iterator[None]:
        """Read the levels of the pyramid, and what is not kept: slowest calls, offsets, and the cube."""
        run, base = self.run, self._base
        assert base is not None
        self._levels = Levels.of_run(run, self._whole)
        self._changed()
        yield
        files = self._files_of_run()
        number = int(files.of_layer(files.layer).argmax()) if files.layer else 0
        if files.layer and run.files[number]:
            self._map = OffsetMap(number, files.layer, run.tasks, span_of_table(table_of_run(run)))
        yield
        used = tuple(bins_of_counts(base.sums["bins"].counts.sum(axis=0)).tolist())
        low, high = self._whole.extent_ns
        cube = SummaryRequest(ignoring_run(partial(_cube, run.tasks, low, high, used)))
        known = _cube(run.tasks, low, high, used)
        is_known = run.reading.kept.find(cube, known)
        requests = {
            name: request
            for name, request in self._requests(Selection()).items()
            if name in ("ranks", "longest", "offsets")
        }
        if is_known:
            self._cube = known
        else:
            requests["cube"] = cube
        for share, group in self._portions(requests, Selection(), self._base_in_background):
            if group is None:
                yield
                continue
            if share < 1:
                self._base = replace(base, reading=_reading(share, "slowest calls and offsets"))
                self._changed()
                yield
                continue
            if not is_known:
                self._cube = group.summaries.pop("cube")
                run.reading.kept.put({cube: self._cube})
            self._base = replace(base, sums={**base.sums, **group.summaries, "files": files}, reading="")
        with self._lock:
            # What was read before has no offsets.
            self._found.clear()
        self._changed()

    def _files_of_run(self) -> FileSums:
        """Return the bytes by file, which need no pass if the calls with files are all on one."""
        run = self.run
        files = files_of(run)
        named = [number for number, path in enumerate(run.files) if path]
        if len(named) != 1:
            return run.summarize(files_of)
        cells, calls = run.summary.cells, run.summary.calls
        for number, moved in zip(cells["call"].tolist(), cells["moved"].tolist(), strict=True):
            files.count(calls[number], named[0], moved)
        return files

    def _portions(
        self, requests: dict[str, SummaryRequest], selection: Selection, background: Background
    ) -> Iterator[tuple[float, SummaryGroup | None]]:
        """Fill summaries portion by portion: yield the share of the run that was read, and the group."""
        run = self.run
        count = 1
        if self._events is None:
            count = min(-(-run.reading.most_events // HELD_EVENTS), 32, max(run.tasks, 1))
        edges = np.linspace(0, max(run.tasks, 1), count + 1).astype(int).tolist()
        spans = [ranks_within(selection.ranks, low, high - 1) for low, high in pairwise(edges) if low < high]
        portions: list[Any] = [span for span in spans if span] or [((edges[-1], edges[-1]),)]
        group: SummaryGroup | None = None
        for number, ranks in enumerate(portions, start=1):
            some = selection if count == 1 else replace(selection, ranks=tuple(ranks))
            found = None
            while found is None:
                try:
                    found = self._pass(requests, some, background)
                except Postponed:
                    yield 0, None
            if group is None:
                group = found
            else:
                group.merge(found)
            yield number / len(portions), group

    def _pass(
        self, requests: dict[str, SummaryRequest], selection: Selection, background: Background
    ) -> SummaryGroup:
        """Fill summaries with the calls of a selection; a pass over a file rests while others come first."""
        if self._events is not None:
            held = self._held(replace(selection, under_way_ns=None))
            assert held is not None
            some = held.alone
            size = 1 << 16  # calls that are added at once stay in the caches of a processor
            chunks = (some[low : low + size] for low in range(0, len(some), size))
            return summarize_chunks(requests, chunks, self.run)
        found = self.run.summarize(requests | _in_turn(background), selection=selection)
        found.summaries.pop("turn")
        return found

    def _read_some(self, selection: Selection) -> Iterator[None]:
        for share, group in self._portions(self._requests(selection), selection, self._background):
            if group is None:
                yield
                continue
            before: Calls | None = self._found.get(selection)
            # What the cube showed is of the whole run: parts of it would be a step back.
            if share == 1 or before is None or not before.is_bound:
                found = self._made(selection, group.summaries, reading=_reading(share, "calls"))
                if share == 1 and self._background.is_threaded and not found.count:
                    found.none = why_nothing(self.run, selection)
                self._remember(selection, found)
                self._changed()
            yield

    def offsets(self, selection: Selection, like: OffsetMap, span_ns: Span | None) -> OffsetMap | None:
        """Return the bytes of some calls by offset, as another map has them; None: not read, or too many."""
        edges = like.offset_edges
        ends = (int(edges[0]), int(edges[-1])) if span_ns is not None and len(edges) else None
        key = _Asked(selection, (like.file, like.layer, like.span_ns, ends), span_ns)
        make = (
            partial(OffsetMap, like.file, like.layer, like.tasks, like.span_ns)
            if span_ns is None or ends is None
            else partial(WindowMap, like.file, like.layer, like.tasks, span_ns, ends)
        )
        return self._near(key, make)  # type: ignore[no-any-return]

    def rates(self, selection: Selection, span_ns: Span) -> RateCurve | None:
        """Return the rates of a time once its calls have been read; None: not yet, or there are too many."""
        # Requests move bytes after the calls that post them: no window of a file knows which calls it needs.
        if self._events is None and self.run.info.flights:
            return None
        return self._near(_Asked(selection, None, span_ns), partial(WindowRate, *span_ns))  # type: ignore[no-any-return]

    def _near(self, key: _Asked, make: Callable[[], Any]) -> Any:
        """Return a summary of the calls that are under way in a time, or None."""
        found = self._recall(key)
        if found is None and (key.span_ns is None or self._expected(*key.span_ns) <= HELD_EVENTS):
            self._background.ask(key, partial(self._read_near, key, SummaryRequest(not_kept(make))))
            found = self._found.get(key)
        return found

    def _read_near(self, key: _Asked, request: SummaryRequest) -> Iterator[None]:
        under_way = replace(key.selection, under_way_ns=key.span_ns)
        self._remember(key, self._pass({"near": request}, under_way, self._background)["near"])
        self._changed()
        yield

    def _expected(self, low_ns: int, high_ns: int) -> float:
        """Estimate the number of calls in a time."""
        if self._events is not None:
            return 0
        low, high = self._whole.extent_ns
        part = (min(high_ns, high) - max(low_ns, 0)) / max(high - low, 1)
        return self.run.reading.most_events * max(part, 0)

    def window(self, selection: Selection, window: Window) -> WindowShown:
        """Return a window of some calls: from its calls once these are in memory."""
        key = _Asked(selection, window)
        found: WindowShown | None = self._recall(key)
        if found is not None:
            return found
        held, around = self._held(selection), None
        if held is None:
            around = self._around(key)
            if around is not None and len(around.events):
                held = HeldCalls(around.events, is_part=True)
        if held is not None:
            self._remember(key, found := held.window(window))
            return found
        expected = self._expected(window.low_ns, window.high_ns) * window.tasks / max(self.run.tasks, 1)
        if expected <= HELD_EVENTS:
            self._background.ask(key, partial(self._read_window, key))
            found = self._found.get(key)
        why = "being read" if expected <= HELD_EVENTS else "too many to read"
        return found or self._first_window(key, around, why)

    def _around(self, key: _Asked) -> WindowShown | None:
        """Return the shortest window with the same calls that has been read and holds a window, or None."""
        with self._lock:
            known = [
                (each.what.high_ns - each.what.low_ns, number, shown)
                for number, (each, shown) in enumerate(self._found.items())
                if isinstance(each, _Asked)
                and isinstance(each.what, Window)
                and each.selection == key.selection
                and each.what.holds(key.what)
            ]
        return min(known)[2] if known else None

    def _first_window(self, key: _Asked, around: WindowShown | None, why: str) -> WindowShown:
        """Return a window before it has been read, in whole rows and cells."""
        selection, window = key.selection, key.what
        source: Any = self._levels if selection.selects_all else self._found.get(selection)
        made_of = source, around
        known = self._first.get(key)
        if known is not None and all(mine is other for mine, other in zip(known[0], made_of, strict=True)):
            return known[1]
        if source is not None and not selection.selects_all:
            source = CellTimes.of_picture(source.raster())
        if around is not None:
            raster, first = around.drawn
            if source is None or raster.cell_ns <= source.cell_ns_of(window):
                source = CellTimes.of_picture(raster, first)
        drawn = (Raster(self.run.tasks, ROWS, SCREEN_CELLS), 0) if source is None else source.window(window)
        shown = WindowShown(lambda: drawn, Events.empty(self.run.calls, self.run.files), missing=why)
        while len(self._first) >= _MOST_HELD:
            del self._first[next(iter(self._first))]
        self._first[key] = made_of, shown
        return shown

    def _read_window(self, key: _Asked) -> Iterator[None]:
        selection, window = key.selection, key.what
        ranks = ranks_within(selection.ranks, window.first, window.last)
        some = replace(selection, ranks=ranks or ((self.run.tasks, self.run.tasks),))
        raster, events = read_window(
            self.run, window, np.arange(self.run.tasks), some, not_kept, _in_turn(self._background)
        )
        nothing = Events.empty(self.run.calls, self.run.files)
        self._remember(
            key,
            WindowShown(
                lambda: (raster, window.first),
                nothing if events is None else events,
                None if events is None else len(events),
            ),
        )
        self._changed()
        yield

    def _recall(self, key: Hashable) -> Any:
        """Return what was found, which is then forgotten last, or None."""
        with self._lock:
            if key in self._found:
                self._found.move_to_end(key)
            return self._found.get(key)

    def _remember(self, key: Hashable, value: Any) -> None:
        with self._lock:
            self._found[key] = value
            self._found.move_to_end(key)
            while len(self._found) > 16:
                self._found.popitem(last=False)

    def _failed(self, key: Hashable, error: Exception) -> None:
        if isinstance(key, Selection) and key in self._found:
            self._found[key] = replace(self._found[key], reading="")
        self._has_failed(error)


def _in_turn(background: Background) -> dict[str, SummaryRequest]:
    """Return the request by which a pass rests while something else comes first."""
    return {"turn": SummaryRequest(not_kept(partial(InTurn, background.turn())))}


def _reading(share: float, what: str) -> str:
    return "" if share == 1 else f"Part of the {what}: {share_text(share)} of the run has been read so far."


def _cube(tasks: int, low_ns: int, high_ns: int, used: tuple[int, ...]) -> DurationCube:
    return DurationCube(tasks, (low_ns, high_ns), np.array(used, np.int64))


def can_be_read(run: Run) -> bool:
    """Whether calls of a run can be read when they are needed: all are events, beside a kept pyramid."""
    return run.info.has(Holds.ALL_CALLS) and whole_raster(run, ROWS, 2 * SCREEN_CELLS) is not None


def calls_in_view(run: Run, selection: Selection, window: Window | None, most: int) -> Events:
    """Read the calls of a selection that are in progress in a window."""
    if window is None:
        raise EnsioError(f"these calls are more than {most:,}, or still being read: zoom in, or set a filter")
    ranks = ranks_within(selection.ranks, window.first, window.last)
    if not ranks:
        return Events.empty(run.calls, run.files)
    some = replace(selection, ranks=ranks, under_way_ns=(window.low_ns, window.high_ns))
    row = np.arange(run.tasks)
    count = run.summarize(not_kept(partial(WindowCount, window, row)), selection=some).count
    if count > most:
        raise EnsioError(
            f"{count:,} of these calls are in view, more than {most:,}: zoom in, or set a filter"
        )
    return run.reading.chosen_by(some)


def ranks_within(ranges: Any, first: int, last: int) -> tuple[tuple[int, int], ...]:
    """Intersect ranges of ranks with one; None: all ranks."""
    if ranges is None:
        return ((first, last),)
    cut = [(max(low, first), min(high, last)) for low, high in ranges]
    return tuple(ascending_ranges([(low, high) for low, high in cut if low <= high]))

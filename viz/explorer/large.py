"""A collected run of more calls than the explorer holds: kept summaries first, passes in the background."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from operator import itemgetter
from threading import Lock
from typing import Any

import numpy as np

from ensembles.ensemble.ensemble import Ensemble
from ensembles.ensemble.main_ensemble import main_ensemble
from ensembles.model.enclosed import among_themselves
from ensembles.model.errors import EnsioError
from ensembles.model.events import Events
from ensembles.model.holds import Holds
from ensembles.model.units import share_text
from ensembles.passes.group import SummaryRequest
from ensembles.passes.summary import ignoring_run
from ensembles.run.nothing_selected import why_nothing
from ensembles.run.rasters import whole_raster
from ensembles.run.run import Run
from ensembles.run.selection import Selection
from ensembles.summaries.bins import bin_low_ns
from ensembles.summaries.duration_cube import DurationCube, bins_of_counts
from ensembles.summaries.from_cells import histogram_from_cells
from ensembles.summaries.histogram import LogHistogram
from ensembles.summaries.offset_map import OffsetMap
from ensembles.summaries.raster import Raster
from ensembles.summaries.rate import RateCurve, WindowRate
from ensembles.viz.access_map import layer_of_run, span_of_run
from ensembles.viz.data_for import data_for
from ensembles.viz.explorer.background import Answers, Background, InTurn, Postponed
from ensembles.viz.explorer.calls import (
    CELLS,
    ROWS,
    Calls,
    by_class,
    slowest_columns,
    window_of_map,
)
from ensembles.viz.explorer.in_view import calls_in_view, ranks_within
from ensembles.viz.explorer.levels import CellTimes, Levels
from ensembles.viz.explorer.shown import MOST_EVENTS, QUIET_S, Shown
from ensembles.viz.explorer.structure import Structure, StructuresRead
from ensembles.viz.explorer.summed import (
    FileBytes,
    MapOf,
    SummedCalls,
    WindowShown,
    columns_of,
    not_kept,
    of_cube,
    of_group,
    requests_of,
    table_of,
)
from ensembles.viz.explorer.view import View
from ensembles.viz.single_calls import Window, calls_inside, raster_of_window
from ensembles.viz.task_order import read_window

PORTION = 8_000_000
"""Calls of a step of a pass; after each of them the page shows what has been read."""

_MOST_PORTIONS = 32
_MOST_KEPT = 16
"""Sets of calls, and windows, that are remembered."""

_MOST_FIRST = 4
"""Windows of which is remembered what is shown before they have been read."""

_MOST_FOR_WINDOW = 8_000_000
"""Windows with more calls than about so many are only drawn from the pyramid."""


@dataclass(frozen=True)
class _WindowOf:
    """A window of some calls."""

    selection: Selection
    window: Window


@dataclass(frozen=True)
class _RatesOf:
    """The rates of some calls in a time."""

    selection: Selection
    span_ns: tuple[int, int]


@dataclass(frozen=True)
class _BytesOf:
    """The bytes by offset of some calls in a time."""

    selection: Selection
    span_ns: tuple[int, int]


class LargeRun(Shown):
    """A collected run of which the calls are not held.

    Pictures of the whole run come from what `ensio collect` kept. Calls that filters or marks choose are read
    in the background, and pictures show what has been read so far; ranges of durations and rectangles are
    first shown from a `DurationCube`, in whole bins and cells.

    Parameters
    ----------
    run : Run
        With a kept pyramid (`ensembles.run.rasters.whole_raster`).
    in_background : bool
        Read in a thread, for pages that look whether `version` has grown. Else a call returns when all has
        been read.
    """

    is_growing = is_large = True

    def __init__(self, run: Run, *, in_background: bool = True) -> None:
        self._in_background = in_background
        super().__init__(run)

    def _read(self, most_events: int) -> Events:
        run = self.run
        self.notes.append(
            f"The run has {run.reading.most_events:,} calls, more than are held in memory: what you mark is "
            "read from its file"
            + (" in the background, and shown as it is read." if self._in_background else ".")
        )
        self._answers = Answers()
        self._background = Background(self._failed, self._in_background, self._answers)
        self._base_in_background = Background(
            self._failed, self._in_background, self._answers, self._background
        )
        self._causes_in_background = Background(self._failed, self._in_background)
        self._structures = StructuresRead(run, self._causes_in_background, self._news)
        self._lock = Lock()
        self._found: OrderedDict[Hashable, Any] = OrderedDict()
        self._cube: DurationCube | None = None
        whole = whole_raster(run, ROWS, 2 * CELLS)
        assert whole is not None
        self._whole = whole
        self._levels = Levels([whole])
        # What a window shows before it has been read, and what that was made of.
        self._first: dict[_WindowOf, tuple[tuple[Any, Any], WindowShown]] = {}
        self._map: MapOf | None = None
        self._base = self._first_base()
        self._base_in_background.ask("base", self._read_base)
        return Events.empty(run.calls, run.files)

    @property
    def knows_causes(self) -> bool:
        """Whether `causes` needs no pass."""
        return "causes" in self.__dict__

    def find_causes(self) -> None:
        """Examine the run for causes in the background."""
        if not self.knows_causes:
            self._causes_in_background.ask("causes", self._find_causes)

    def _find_causes(self) -> Iterator[None]:
        assert self.causes is not None
        self._news()
        yield

    def _news(self) -> None:
        self.version += 1

    def structure(self, view: View) -> Structure | None:
        """Return phases and call indices of the calls that the filters select; None: they are being read."""
        selection = self._selection(dict(view.filters))
        return self.causes.structure if selection.selects_all else self._structures.of(selection)

    def calls(self, view: View) -> Calls:
        """Return the calls that the filters of a view select, as far as they have been read."""
        selection = self._selection(dict(view.filters))
        return self._base if selection.selects_all else self._of(selection)

    def marked_calls(self, view: View) -> Calls | None:
        """Return the marked calls, as far as they have been read; None: no mark."""
        if not view.is_marked:
            return None
        selection = self._marked(view)
        of_cube_only = not view.filters and not view.marks and view.offsets is None and view.rates is None
        first = self._from_cube(view, selection) if of_cube_only else None
        return self._of(selection, first)

    def marked(self, view: View) -> Events:
        """Return the marked calls themselves.

        Raises
        ------
        EnsioError
            They are too many.
        """
        selection = self._marked(view) if view.is_marked else self._selection(dict(view.filters))
        return self._events_of(selection)

    def marked_in_view(self, view: View, window: Window | None) -> tuple[Events, bool]:
        """Return the marked calls, or those of a window if they are too many or have not been read."""
        calls = self.marked_calls(view) or self.calls(view)
        if not calls.reading and calls.count <= MOST_EVENTS:
            return self.marked(view), False
        selection = self._marked(view) if view.is_marked else self._selection(dict(view.filters))
        return calls_in_view(self.run, selection, window, MOST_EVENTS), True

    def answering(self, *, quiet_s: float = QUIET_S) -> AbstractContextManager[None]:
        """Let what is read in the background rest while a page is being answered."""
        at_once = super().answering(quiet_s=quiet_s)
        return self._answers.answering(quiet_s) if self._in_background else at_once

    def wait(self) -> None:
        """Wait until everything that was asked for has been read."""
        self._base_in_background.wait()
        self._background.wait()
        self._causes_in_background.wait()

    def _events_of(self, selection: Selection) -> Events:
        self._may_be_held(selection)
        return self.run.reading.chosen_by(selection)

    def _may_be_held(self, selection: Selection) -> None:
        """Raise an error if calls have not been read, or are too many."""
        calls = self._base if selection.selects_all else self._of(selection)
        if calls.reading:
            raise EnsioError("these calls are still being read: ask again when they have been")
        if calls.count > MOST_EVENTS:
            raise EnsioError(
                f"{calls.count:,} calls are more than the {MOST_EVENTS:,} that the explorer holds: mark a "
                "shorter time or fewer ranks, add a filter such as op, or use ensio modes with these filters"
            )

    def _ensemble(self, selection: Selection) -> Ensemble:
        self._may_be_held(selection)
        return main_ensemble(self.run, selection, "MiB" if selection.per_byte else "call")[1]

    def _selection(self, filters: dict[str, Any]) -> Selection:
        given = {
            name: text.split("\n") if name == "file" and "\n" in text else text
            for name, text in filters.items()
        }
        return Selection.parse(**given).for_run(self.run)

    def _marked(self, view: View) -> Selection:
        return self._selection(view.selecting())

    def _first_base(self) -> SummedCalls:
        """Return all calls of the run, from what is kept."""
        run = self.run
        histogram = (
            histogram_from_cells(run.summary)
            if run.reading.has_summary and not run.info.summed_calls
            else run.summarize(ignoring_run(LogHistogram))
        )
        bins = by_class(histogram)
        used = np.flatnonzero(bins.any(axis=0))
        table, columns = run.reading.ranks, columns_of(run.reading.ranks)
        ranks = np.unique(table.rank)
        least = int(bin_low_ns()[used[0]]) if len(used) else 0
        return SummedCalls(
            run.tasks,
            self._whole,
            bins,
            data_for(run, RateCurve),
            columns,
            slowest_columns(Events.empty(run.calls, run.files)),
            (len(ranks), int(ranks[0]), int(ranks[-1])) if len(ranks) else (0, 0, 0),
            least,
            int(table.max_ns.max(initial=0)),
            self._whole.extent_ns,
            None,
            "",
            self._ask(Selection()),
            partial(self._rates, Selection()),
            partial(self._bytes, Selection()),
            partial(self._ensemble, Selection()),
            "The slowest calls and the offsets are being read.",
        )

    def _read_base(self) -> Iterator[None]:
        """Read the levels of the pyramid, and what is not kept: slowest calls, offsets, and the cube."""
        run = self.run
        self._levels = Levels.of_run(run, self._whole)
        self.version += 1
        yield
        self._map = self._busiest_file()
        yield
        used = tuple(bins_of_counts(self._base.bins.sum(axis=0)).tolist())
        low, high = self._whole.extent_ns
        cube = SummaryRequest(ignoring_run(partial(_cube, run.tasks, low, high, used)))
        known = _cube(run.tasks, low, high, used)
        is_known = run.reading.kept.find(cube, known)
        requests = {
            name: request
            for name, request in requests_of(run.tasks, self._map).items()
            if name in ("ranks", "longest", "offsets")
        }
        if is_known:
            self._cube = known
        else:
            requests["cube"] = cube
        group: Any = None
        for share, filled in self._portions(requests, Selection(), self._base_in_background):
            if filled is None:
                yield
                continue
            group = filled
            if share < 1:
                self._base = replace(self._base, reading=_reading(share, "slowest calls and offsets"))
                self.version += 1
            yield
        if group is not None and not is_known:
            self._cube = group["cube"]
            run.reading.kept.put({cube: self._cube})
        if group is not None:
            sums = group["ranks"]
            self._base = replace(
                self._base,
                rank_table=table_of(sums),
                slowest_table=slowest_columns(group["longest"].events),
                least_ns=sums.least_ns,
                longest_ns=sums.longest_ns,
                offsets=None if self._map is None else group["offsets"],
                path="" if self._map is None else self._map.path,
                reading="",
            )
        with self._lock:
            # What was read before has no offsets.
            self._found.clear()
        self.version += 1

    def _busiest_file(self) -> MapOf | None:
        """Return the access map of the file with the most bytes; None: no bytes moved."""
        run = self.run
        layer = layer_of_run(run)
        if layer is None:
            return None
        named = [number for number, path in enumerate(run.files) if path]
        if len(named) != 1:
            moved = run.summarize(not_kept(partial(FileBytes, layer, len(run.files)))).moved
            named = [int(np.argmax(moved))]
        path = run.files[named[0]]
        return MapOf(named[0], layer, run.tasks, span_of_run(run), path) if path else None

    def _portions(
        self, requests: dict[str, SummaryRequest], selection: Selection, background: Background
    ) -> Iterator[tuple[float, Any]]:
        """Fill summaries portion by portion: yield the share of the run that was read, and the group.

        The group is None where a newer work has to be done before the next portion.
        """
        run = self.run
        requests = requests | _in_turn(background)
        count = min(-(-run.reading.most_events // PORTION), _MOST_PORTIONS, max(run.tasks, 1))
        edges = np.linspace(0, max(run.tasks, 1), count + 1).astype(int).tolist()
        spans = [ranks_within(selection.ranks, low, high - 1) for low, high in pairwise(edges) if low < high]
        portions: list[Any] = [span for span in spans if span] or [((edges[-1], edges[-1]),)]
        group: Any = None
        for number, ranks in enumerate(portions, start=1):
            some = selection if count == 1 else replace(selection, ranks=tuple(ranks))
            found = None
            while found is None:
                try:
                    found = run.summarize(requests, selection=some)
                except Postponed:
                    yield 0, None
            if group is None:
                group = found
            else:
                group.merge(found)
            yield number / len(portions), group

    def _of(self, selection: Selection, first: SummedCalls | None = None) -> SummedCalls:
        """Return the calls of a selection, as far as they have been read."""
        found: SummedCalls | None = self._found.get(selection)
        if found is None:
            found = first or self._nothing_yet(selection)
            self._remember(selection, found)
        if found.reading:
            self._background.ask(selection, partial(self._read_some, selection))
            found = self._found.get(selection, found)
        return found

    def _read_some(self, selection: Selection) -> Iterator[None]:
        requests = requests_of(self.run.tasks, self._map, per_mib=selection.per_byte)
        for share, group in self._portions(requests, selection, self._background):
            if group is None:
                yield
                continue
            others: dict[str, Any] = {
                "ask": self._ask(selection),
                "rates_in": partial(self._rates, selection),
                "bytes_of": partial(self._bytes, selection),
                "durations_of": partial(self._ensemble, selection),
                "reading": _reading(share, "calls"),
            }
            if share == 1 and not group["ranks"].calls.any():
                others["none"] = why_nothing(self.run, selection)
            before: SummedCalls | None = self._found.get(selection)
            # What the cube showed is of the whole run: parts of it would be a step back.
            if share == 1 or before is None or not before.is_bound:
                self._remember(selection, of_group(group, self._map, self.run.tasks, **others))
                self.version += 1
            yield

    def _nothing_yet(self, selection: Selection) -> SummedCalls:
        requests = requests_of(self.run.tasks, self._map, per_mib=selection.per_byte)
        empty = {name: request.make(self.run) for name, request in requests.items()}
        return of_group(
            empty,
            self._map,
            self.run.tasks,
            ask=self._ask(selection),
            rates_in=partial(self._rates, selection),
            bytes_of=partial(self._bytes, selection),
            durations_of=partial(self._ensemble, selection),
            reading=_reading(0, "calls"),
        )

    def _from_cube(self, view: View, selection: Selection) -> SummedCalls | None:
        if self._cube is None:
            return None
        # Marks have one range of durations, and there are no filters.
        return of_cube(
            self._cube,
            None if selection.durations_ns is None else _with_end(*selection.durations_ns[0]),
            None if view.time_s is None else tuple(round(end * 1e9) for end in view.time_s),  # type: ignore[arg-type]
            view.ranks,
            ask=self._ask(selection),
            rates_in=partial(self._rates, selection),
            bytes_of=partial(self._bytes, selection),
            durations_of=partial(self._ensemble, selection),
            reading=_ROUNDED,
            is_bound=True,
        )

    def _bytes(self, selection: Selection, span_ns: tuple[int, int]) -> OffsetMap | None:
        """Return the bytes by offset of a time, as `_rates`."""
        key = _BytesOf(selection, span_ns)
        found: OffsetMap | None = self._found.get(key)
        if found is None and self._base.offsets is not None and self._expected(*span_ns) <= _MOST_FOR_WINDOW:
            self._background.ask(key, partial(self._read_bytes, key, self._base.offsets))
            found = self._found.get(key)
        return found

    def _read_bytes(self, key: _BytesOf, whole: OffsetMap) -> Iterator[None]:
        under_way = replace(key.selection, under_way_ns=key.span_ns)
        request = SummaryRequest(not_kept(partial(window_of_map, whole, key.span_ns)))
        requests = {"bytes": request} | _in_turn(self._background)
        self._remember(key, self.run.summarize(requests, selection=under_way)["bytes"])
        self.version += 1
        yield

    def _rates(self, selection: Selection, span_ns: tuple[int, int]) -> RateCurve | None:
        """Return the rates of a time once its calls have been read; None: not yet, or there are too many."""
        key = _RatesOf(selection, span_ns)
        found: RateCurve | None = self._found.get(key)
        # Requests move bytes after the calls that post them, so that no window knows which calls it needs.
        if found is None and not self.run.info.flights and self._expected(*span_ns) <= _MOST_FOR_WINDOW:
            self._background.ask(key, partial(self._read_rates, key))
            found = self._found.get(key)
        return found

    def _read_rates(self, key: _RatesOf) -> Iterator[None]:
        under_way = replace(key.selection, under_way_ns=key.span_ns)
        request = SummaryRequest(not_kept(partial(WindowRate, *key.span_ns)))
        requests = {"curve": request} | _in_turn(self._background)
        self._remember(key, self.run.summarize(requests, selection=under_way)["curve"])
        self.version += 1
        yield

    def _expected(self, low_ns: int, high_ns: int) -> float:
        """Estimate the number of calls in a time."""
        low, high = self._whole.extent_ns
        part = (min(high_ns, high) - max(low_ns, 0)) / max(high - low, 1)
        return self.run.reading.most_events * max(part, 0)

    def _ask(self, selection: Selection) -> Any:
        return partial(self._window, selection)

    def _window(self, selection: Selection, window: Window) -> WindowShown:
        """Return a window of some calls: from its calls once these have been read."""
        key = _WindowOf(selection, window)
        found: WindowShown | None = self._found.get(key)
        if found is not None:
            return found
        around = self._around(key)
        if around is not None and len(around.events):
            mine = around.events[calls_inside(around.events, window)]
            raster = raster_of_window(among_themselves(mine), window, ROWS, 2 * CELLS)
            exact = WindowShown(raster, window.first, mine)
            self._remember(key, exact)
            return exact
        expected = self._expected(window.low_ns, window.high_ns) * window.tasks / max(self.run.tasks, 1)
        if expected <= _MOST_FOR_WINDOW:
            self._background.ask(key, partial(self._read_window, key))
            found = self._found.get(key)
        why = "being read" if expected <= _MOST_FOR_WINDOW else "too many to read"
        return found or self._first_window(key, around, why)

    def _around(self, key: _WindowOf) -> WindowShown | None:
        """Return the shortest window with the same calls that has been read and holds a window, or None."""
        with self._lock:
            known = [
                (each.window.high_ns - each.window.low_ns, shown)
                for each, shown in self._found.items()
                if isinstance(each, _WindowOf)
                and each.selection == key.selection
                and each.window.holds(key.window)
            ]
        return min(known, key=itemgetter(0))[1] if known else None

    def _first_window(self, key: _WindowOf, around: WindowShown | None, why: str) -> WindowShown:
        """Return a window before it has been read, in whole rows and cells.

        They are those of the finest of what there is: a window around it, the pyramid, or the picture of the
        marked calls.
        """
        selection, window = key.selection, key.window
        source: Any = self._levels if selection.selects_all else self._found.get(selection)
        made_of = source, around
        known = self._first.get(key)
        if known is not None and all(mine is other for mine, other in zip(known[0], made_of, strict=True)):
            return known[1]
        if source is not None and not selection.selects_all:
            source = CellTimes.of_picture(source.picture)
        if around is not None and (source is None or around.raster.cell_ns <= source.cell_ns_of(window)):
            source = CellTimes.of_picture(around.raster, around.first)
        raster, first = (Raster(self.run.tasks, ROWS, CELLS), 0) if source is None else source.window(window)
        shown = WindowShown(raster, first, Events.empty(self.run.calls, self.run.files), why)
        while len(self._first) >= _MOST_FIRST:
            del self._first[next(iter(self._first))]
        self._first[key] = made_of, shown
        return shown

    def _read_window(self, key: _WindowOf) -> Iterator[None]:
        selection, window = key.selection, key.window
        row = np.arange(self.run.tasks)
        some = replace(
            selection,
            ranks=ranks_within(selection.ranks, window.first, window.last)
            or ((self.run.tasks, self.run.tasks),),
        )
        raster, events = read_window(self.run, window, row, some, not_kept, _in_turn(self._background))
        nothing = Events.empty(self.run.calls, self.run.files)
        self._remember(key, WindowShown(raster, window.first, nothing if events is None else events))
        self.version += 1
        yield

    def _remember(self, key: Hashable, value: Any) -> None:
        with self._lock:
            self._found[key] = value
            self._found.move_to_end(key)
            while len(self._found) > _MOST_KEPT:
                self._found.popitem(last=False)

    def _failed(self, key: Hashable, error: Exception) -> None:
        if not isinstance(error, EnsioError):
            error = EnsioError(f"reading {self.run.path} failed: {error}")
        if isinstance(key, Selection) and key in self._found:
            self._found[key] = replace(self._found[key], reading="")
        self.notes.append(str(error))
        self.version += 1


_ROUNDED = "Shown in whole bins, rows and cells while the calls are being read."


def _in_turn(background: Background) -> dict[str, SummaryRequest]:
    """Return the request by which a pass rests while something else comes first."""
    return {"turn": SummaryRequest(not_kept(partial(InTurn, background.turn())))}


def _reading(share: float, what: str) -> str:
    return "" if share == 1 else f"Part of the {what}: {share_text(share)} of the run has been read so far."


def _cube(tasks: int, low_ns: int, high_ns: int, used: tuple[int, ...]) -> DurationCube:
    return DurationCube(tasks, (low_ns, high_ns), np.array(used, np.int64))


def can_be_summed(run: Run) -> bool:
    """Whether a run has what a `LargeRun` needs: all calls as events, in a file with a kept pyramid."""
    return run.info.has(Holds.ALL_CALLS) and whole_raster(run, ROWS, 2 * CELLS) is not None


def _with_end(first: int, last: int) -> tuple[int, int]:
    return first, last + 1

"""The single calls of a window of the trace diagram: rectangles, and what each call did.

What single calls have to do with other things: the calls around them, their layers and storage targets.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from bokeh.core.properties import field
from bokeh.models import CategoricalColorMapper, ColumnDataSource
from bokeh.models.renderers import GlyphRenderer
from bokeh.plotting import figure

from ensembles.model.error_names import error_name
from ensembles.model.events import Events
from ensembles.model.layouts import Layouts
from ensembles.model.run_info import RunInfo
from ensembles.model.units import bytes_text, seconds_text
from ensembles.summaries.raster import CLASSES, Raster, class_of_calls
from ensembles.summaries.target_load import LAYERS as LOCATED
from ensembles.viz.common.figures import add_hover
from ensembles.viz.common.mixed import EMPHASIS
from ensembles.viz.common.style import COLOURS, darker

MOST_CALLS = 2000
"""Largest number of calls that are drawn one by one."""

_HEIGHT = 0.86
"""Part of a row that the calls of a task fill."""

_EDGES = {name: darker(colour) for name, colour in COLOURS.items()}
"""Colours of the borders of calls, by class of operations."""


@dataclass(frozen=True)
class Window:
    """A window of the trace diagram."""

    # low_ns, high_ns: Times since the origin of the run, ns; the second is excluded
    low_ns: int
    high_ns: int
    # first, last: Rows of tasks, both included. Rows are ranks unless tasks are ordered otherwise.
    first: int
    last: int

    @property
    def tasks(self) -> int:
        """Number of rows."""
        return self.last - self.first + 1

    def holds(self, other: Window) -> bool:
        """Whether another window lies within this one."""
        return (
            self.low_ns <= other.low_ns
            and other.high_ns <= self.high_ns
            and self.first <= other.first
            and other.last <= self.last
        )

    def wider(self, tasks: int) -> Window:
        """Return the window with a half of its size more on each side, within so many tasks."""
        more_ns, more = (self.high_ns - self.low_ns) // 2, -(-self.tasks // 2)
        return Window(
            self.low_ns - more_ns,
            self.high_ns + more_ns,
            max(self.first - more, 0),
            min(self.last + more, max(tasks - 1, 0)),
        )


def calls_inside(events: Events, window: Window, row: np.ndarray | None = None) -> np.ndarray:
    """Find the calls that are in progress within a window.

    `row`: row of each task. Default: its rank.
    """
    if row is None:
        low, high = np.searchsorted(events.rank, [window.first, window.last + 1])
        some = slice(int(low), int(high))
        inside = np.ones(some.stop - some.start, bool)
    else:
        some = slice(0, len(events))
        mine = (row >= window.first) & (row <= window.last)
        inside = mine[events.rank]
    start, duration = events.start[some], events.duration[some]
    inside &= (start < window.high_ns) & (start + np.maximum(duration, 1) > window.low_ns)
    return np.flatnonzero(inside) + some.start


def cut_to_window(events: Events, window: Window, row: np.ndarray | None = None) -> Events:
    """Return the parts of calls within a window, as a `Raster` of its rows needs them."""
    mine = calls_inside(events, window, row)
    rank, start, duration = (getattr(events, name)[mine] for name in ("rank", "start", "duration"))
    low, high = np.maximum(start, window.low_ns), np.minimum(start + duration, window.high_ns)
    places = rank if row is None else row[rank]
    columns = {
        "rank": (places - window.first).astype(rank.dtype),
        **{name: getattr(events, name)[mine] for name in ("thread", "call", "depth")},
        "start": low,
        "duration": np.maximum(high - low, 0),
    }
    return Events.partly(columns, events.calls, events.files)


def raster_of_window(
    events: Events, window: Window, rows: int, cells: int, row: np.ndarray | None = None
) -> Raster:
    """Return the numbers of the trace diagram of a window: calls count with their part inside of it."""
    raster = Raster(window.tasks, rows=rows, cells=cells)
    raster.add(cut_to_window(events, window, row))
    return raster


def call_columns(
    events: Events,
    alpha: float | np.ndarray = 1.0,
    row: np.ndarray | None = None,
    *,
    layers: Sequence[str] = (),
    info: RunInfo | None = None,
    span_s: float | None = None,
) -> dict[str, Any]:
    """Return the rectangles of calls, and the texts of their hover boxes.

    The calls of several threads of a task lie in lanes of its row, and so do those of several layers. A call
    inside of another one of its lane is drawn on it, and is less high. Calls that are wide enough have dark
    borders: those of one colour that follow each other would else look like one call.

    `row`: row of each task. Default: its rank.
    `span_s`: time that is in view. Default: that of the calls.
    """
    count = len(events)
    inner_last = np.lexsort((events.start, events.depth))
    events = events[inner_last]
    lane, lanes = _lanes(events)
    rows = events.rank.astype(np.float64) if row is None else row[events.rank].astype(np.float64)
    lane_height = _HEIGHT / lanes
    top, height = rows - _HEIGHT / 2 + lane_height * lane, lane_height
    depth = events.depth.astype(np.int64)
    if layers:
        own, several = lanes_of_layers(events, layers)
        top, height = top + lane_height * own / len(layers), lane_height * several / len(layers)
        # A call hides only what is inside another one of its layer.
        around = enclosing_calls(events)
        layer = np.unique([call.layer for call in events.calls], return_inverse=True)[1][events.call]
        depth = ((around >= 0) & (layer[around] == layer)).astype(np.int64)
        height = height * (1 if len(layers) == 1 else 0.88)
    middle, half = top + height / 2, height / 2 * np.maximum(1 - 0.22 * depth, 0.2)
    names = list(CLASSES)
    classes = class_of_calls(events.calls)[events.call].tolist()
    start, duration = events.start * 1e-9, events.duration * 1e-9
    alpha_of_each = np.broadcast_to(np.asarray(alpha, np.float64), (count,))[inner_last]
    if span_s is None:
        span_s = float(np.ptp(np.append(start, start + duration))) if count else 0.0
    pixel_s = span_s / 1000  # of a diagram of usual width
    in_view = float(np.ptp(rows)) + 1 if count else 1.0
    # In a diagram of 400 pixels: borders of calls that are lower or narrower would cover them.
    high = np.broadcast_to(2 * half, (count,)) * 400 / in_view >= 5
    wide = ((duration >= 3 * pixel_s) & high).tolist()
    threaded = lanes > 1 if info is None else (lanes > 1) | (info.most_threads > 1)
    return {
        "left": start,
        "right": start + duration,
        "bottom": middle - half,
        "top": middle + half,
        "colour": [COLOURS[names[number]] for number in classes],
        "edge": [
            (_EDGES if is_wide else COLOURS)[names[number]]
            for number, is_wide in zip(classes, wide, strict=True)
        ],
        "alpha": alpha_of_each,
        "outline": _outlines(rows, start, duration, alpha_of_each, pixel_s),
        "task": [
            f"rank {rank}" + (f", thread {thread}" if several else "")
            for rank, thread, several in zip(
                events.rank.tolist(), events.thread.tolist(), threaded.tolist(), strict=True
            )
        ],
        "call": [
            name + (f", failed: {error_name(error)}" if moved < 0 else "")
            for name, error, moved in zip(names_of_calls(events), events.error, events.moved, strict=True)
        ],
        "file": [events.files[number] or "no file" for number in events.file.tolist()],
        "where": ["none" if offset < 0 else f"{offset:,} B" for offset in events.offset.tolist()],
        "size": [
            _size(requested, moved)
            for requested, moved in zip(events.requested.tolist(), events.moved.tolist(), strict=True)
        ],
        "when": [f"{value:,.9f} s" for value in start.tolist()],
        "took": [seconds_text(value) for value in duration.tolist()],
        "targets": names_of_targets(events, info)
        if info is not None and knows_targets(info)
        else [""] * count,
        "site": _names_of_sites(events, info),
        "layer": [events.calls[number].layer for number in events.call.tolist()],
    }


def knows_sites(info: RunInfo | None) -> bool:
    """Whether boxes of calls can name the place in the program that led to them."""
    return info is not None and len(info.sites) > 1


def _names_of_sites(events: Events, info: RunInfo | None) -> list[str]:
    """Return the place in the program that led to each call; ``""``: no place of the run is known."""
    if info is None or not knows_sites(info) or "site" not in events.columns:
        return [""] * len(events)
    numbers = events.site.tolist()
    names = {number: info.label_of_site(number) for number in set(numbers)}
    return [names[number] for number in numbers]


def only_layer(columns: dict[str, Any], layer: str) -> dict[str, Any]:
    """Return the rectangles of the calls of a layer; ``""``: all."""
    mine = [number for number, name in enumerate(columns["layer"]) if not layer or name == layer]
    return {name: [values[number] for number in mine] for name, values in columns.items()}


def _outlines(
    row: np.ndarray, start_s: np.ndarray, duration_s: np.ndarray, alpha: np.ndarray, pixel_s: float
) -> np.ndarray:
    """Return the opacity of the outlines, which make calls that are shorter than a pixel visible.

    Of many short calls in a row, outlines would fill it as if they were one long call: there, those in a
    pixel have together the opacity of the raster, which enhances small shares of time.
    """
    short = duration_s < pixel_s
    _, place = np.unique(row, return_inverse=True)
    crowded = np.bincount(place, weights=short)[place] > 60
    pixel = np.floor(start_s / max(pixel_s, 1e-12))
    _, cell = np.unique(np.stack([place, pixel]), axis=1, return_inverse=True)
    cell = cell.ravel()
    share = np.minimum(np.bincount(cell, duration_s * short)[cell] / max(pixel_s, 1e-12), 1.0)
    beside = np.maximum(np.bincount(cell, short)[cell], 1.0)
    faint = 1 - (1 - np.minimum(share**EMPHASIS, 0.999)) ** (1 / beside)
    return np.where(short & crowded, alpha * faint, alpha)


def _size(requested: int, moved: int) -> str:
    if not requested and moved <= 0:
        return "none"
    if moved == requested:
        return f"{bytes_text(requested)} ({requested:,} B)"
    done = "none" if moved < 0 else f"{moved:,} B"
    return f"{done} of {requested:,} B"


def _lanes(events: Events) -> tuple[np.ndarray, np.ndarray]:
    """Return the lane of each call among the threads of its task, and the number of these."""
    pairs = events.rank.astype(np.int64) << 16 | events.thread
    kinds, place = np.unique(pairs, return_inverse=True)
    ranks = kinds >> 16
    first = np.searchsorted(ranks, ranks, side="left")
    last = np.searchsorted(ranks, ranks, side="right")
    return (np.arange(len(kinds)) - first)[place], (last - first)[place]


def has_lanes_of_threads(events: Events) -> bool:
    """Return whether calls of several threads of a task are in lanes of its row."""
    return bool((_lanes(events)[1] > 1).any())


def add_calls(fig: figure, source: ColumnDataSource, info: RunInfo | None = None) -> GlyphRenderer[Any]:
    """Add the rectangles of single calls to a figure, with hover boxes."""
    # A mapper, because dark pages change its palette (`ensembles.viz.common.theme`).
    colours = [*COLOURS.values(), *_EDGES.values()]
    mapper = CategoricalColorMapper(factors=colours, palette=colours)
    drawn = fig.quad(
        left="left",
        right="right",
        bottom="bottom",
        top="top",
        fill_color=field("colour", mapper),
        fill_alpha="alpha",
        line_color=field("edge", mapper),
        line_alpha="outline",
        source=source,
        name="single_calls",
    )
    add_boxes(fig, drawn, info)
    return drawn


def add_boxes(fig: figure, drawn: GlyphRenderer[Any], info: RunInfo | None = None) -> None:
    """Add hover boxes of single calls, from the columns of `call_columns`."""
    targets = [("storage targets", "@targets")] if knows_targets(info) else []
    sites = [("call site", "@site")] if knows_sites(info) else []
    add_hover(
        fig,
        drawn,
        [
            ("call", "@call"),
            ("task", "@task"),
            ("file", "@file"),
            ("offset", "@where"),
            ("size", "@size"),
            *targets,
            ("start", "@when"),
            ("duration", "@took"),
            *sites,
        ],
        description="Single calls",
        point_policy="follow_mouse",
    )


LAYERS = ("netcdf", "pnetcdf", "hdf5", "mpiio", "stdio", "posix")
"""Layers of I/O, those that call others first."""


def enclosing_calls(events: Events) -> np.ndarray:
    """Find the call around each call, among the same events.

    Index of the innermost call of the same thread around it; -1: there is none among these events.
    """
    found = np.full(len(events), -1, np.int64)
    thread = events.rank.astype(np.int64) << 16 | events.thread
    for depth in np.unique(events.depth[events.depth > 0]).tolist():
        inner, outer = (np.flatnonzero(events.depth == each) for each in (depth, depth - 1))
        outer = outer[np.lexsort((events.start[outer], thread[outer]))]
        # Calls of one thread and depth do not overlap: the last that began before is the one, or none is.
        order = np.lexsort(
            (
                np.append(np.zeros(len(outer)), np.ones(len(inner))),
                np.append(events.start[outer], events.start[inner]),
                np.append(thread[outer], thread[inner]),
            )
        )
        before = np.cumsum(order < len(outer))[np.argsort(order)][len(outer) :] - 1
        some = np.flatnonzero(before >= 0)
        inner, around = inner[some], outer[before[some]]
        holds = (thread[around] == thread[inner]) & (events.end[around] >= events.end[inner])
        found[inner[holds]] = around[holds]
    return found


def nested_layers(events: Events) -> list[str]:
    """Return the layers of calls whose layers call each other, those that call others first.

    Empty: no call is inside a call of another layer.
    """
    if not len(events) or not events.depth.any():
        return []
    around = enclosing_calls(events)
    layer = np.array([_number(call.layer) for call in events.calls])[events.call]
    inside = np.flatnonzero(around >= 0)
    if not (layer[inside] != layer[around[inside]]).any():
        return []
    present = set(np.unique(layer).tolist())
    found = [name for number, name in enumerate(LAYERS) if number in present]
    return found if len(found) > 1 else []


def lanes_sentence(layers: Sequence[str]) -> str:
    """Say how the lanes of a row are ordered."""
    first, second, *others = layers
    more = "".join(f", and these above those of {layer}" for layer in others)
    return f"In each row, calls of {first} are above those of {second}{more}."


def _number(layer: str) -> int:
    return LAYERS.index(layer) if layer in LAYERS else -1


def lanes_of_layers(events: Events, layers: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
    """Return the lane of each call among those of its layers, and how many lanes it fills."""
    numbers = [layers.index(call.layer) if call.layer in layers else -1 for call in events.calls]
    lane = np.array([*numbers, -1], np.int64)[events.call]
    other, inside = lane < 0, events.depth > 0
    lane = np.where(other, np.where(inside, len(layers) - 1, 0), lane)
    return lane, np.where(other & ~inside, len(layers), 1)


def names_of_calls(events: Events) -> list[str]:
    """Return the name of each call, with those of the calls around it."""
    around = enclosing_calls(events).tolist()
    calls = [events.calls[number].name for number in events.call.tolist()]

    def named(place: int) -> str:
        outer = around[place]
        return calls[place] if outer < 0 else f"{calls[place]}, inside {named(outer)}"

    return [named(place) for place in range(len(calls))]


def knows_targets(info: RunInfo | None) -> bool:
    """Whether the layout of any file of a run is known."""
    return info is not None and any("lustre.lov" in facts for facts in info.file_facts.values())


def names_of_targets(events: Events, info: RunInfo) -> list[str]:
    """Return the names of the storage targets of each call, in the order of its bytes."""
    known = {number: info.striping_of(events.files[number]) for number in np.unique(events.file).tolist()}
    layouts = Layouts({number: each for number, each in known.items() if each is not None})
    located = np.array([*(call.layer in LOCATED for call in events.calls), False])[events.call]
    moved = np.where(located, np.maximum(events.moved, 0), 0)
    reached: list[dict[int, None]] = [{} for _ in range(len(events))]
    found = np.zeros(len(events), np.int64)
    for pieces in layouts.pieces(events.file.astype(np.int64), events.offset, moved):
        np.add.at(found, pieces.number, pieces.bytes)
        for number, target in zip(
            pieces.number.tolist(), layouts.targets[pieces.target].tolist(), strict=True
        ):
            reached[number][target] = None
    return [
        _targets_text(list(mine), some, whole, is_located)
        for mine, some, whole, is_located in zip(
            reached, found.tolist(), events.moved.tolist(), located.tolist(), strict=True
        )
    ]


def _targets_text(targets: list[int], found: int, whole: int, is_located: bool) -> str:
    if whole <= 0:
        return "none"
    if not is_located:
        return "those of the calls inside"
    if not targets:
        return "unknown"
    names = ", ".join(map(str, targets[:6]))
    more = f", … ({len(targets):,} in all)" if len(targets) > 6 else ""
    return f"OST{'s' * (len(targets) > 1)} {names}{more}" + (", and unknown ones" if found < whole else "")

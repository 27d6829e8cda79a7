"""The pictures below the trace diagram of the explorer: rates, durations, and offsets of the busiest file.

Marked calls are drawn over the pale whole; a rectangle, or a range of durations, marks calls."""

from __future__ import annotations

import glob
from collections.abc import Sequence
from copy import deepcopy
from typing import Any

import numpy as np
from bokeh.core.properties import value
from bokeh.models import ColumnDataSource, CustomJSHover, LogAxis, Range1d
from bokeh.models.annotations import BoxAnnotation, LegendItem
from bokeh.plotting import figure

from ensembles.model.units import MIB, bytes_text, seconds_text
from ensembles.summaries.offset_map import OffsetMap
from ensembles.summaries.raster import CLASSES
from ensembles.summaries.rate import RateCurve
from ensembles.summaries.runtotals import DIRECTIONS
from ensembles.viz.common import figures as draw
from ensembles.viz.common.mixed import add_mixed, mixer, opacities, swatches
from ensembles.viz.common.style import COLOURS, time_ticks
from ensembles.viz.explorer.calls import Calls, Counted
from ensembles.viz.explorer.diagram import PALE, add_box_select, marked_alphas, short_label, tell_new_opacity
from ensembles.viz.explorer.view import Interval, View, rounded, rounded_offsets
from ensembles.viz.pictures.access_map import label_offsets, offset_image
from ensembles.viz.pictures.bars import plain_path, shortened
from ensembles.viz.pictures.histogram import add_rate_axis, below_clock, on_log_axis
from ensembles.viz.pictures.rate import (
    add_curve,
    add_rate_hover,
    directions_of,
    label_rates,
    legend_label,
    rate_figure,
    say_nothing_moved,
    scale_to,
    share_axis,
    unit_of,
    with_equal_cells,
)

_WHO = (("", ""), ("marked ", "marked_"))
"""Prefixes of the names, and of the columns, of all calls and of the marked ones."""


class Rates:
    """The aggregate rates of all tasks over time: a picture for each direction, with a suitable scale.

    `beside`: the rates of another run. Both have equal cells of time, one unit and one axis of each
    direction; those beside are drawn with these: `show` is to be called for both.
    `figures`: by direction, writes first; if no bytes moved, one that says so, by the direction ``""``.
    `source`: edges of the cells in s as ``left`` and ``right``, and for each direction the rate of all calls
    in units of its axis, and that of the marked calls, such as ``write`` and ``marked_write``.
    """

    def __init__(
        self,
        calls: Calls,
        times: Range1d,
        name: str = "explorer_rates",
        beside: Rates | None = None,
    ) -> None:
        self._calls, self._name, self._beside = calls, "", beside
        curve = self._whole = calls.curve()
        self._some: RateCurve | None = None
        self._asked: tuple[Calls | None, Interval | None] = None, None
        self._present = directions_of(curve)
        self.figures: dict[str, figure] = {}
        self.source = ColumnDataSource(_columns(curve, None, self._present))
        self._items: dict[str, LegendItem] = {}
        self._pale: list[tuple[Any, Any]] = []
        self._hovers: dict[str, CustomJSHover] = {}
        self._waits = False  # for the rates of the run that is compared, which then draw both
        if not self._present:
            fig = self.figures[""] = rate_figure(_title("", curve), 210, times, name)
            draw.zoom_time_by_wheel(fig, times)
            say_nothing_moved(fig)
        for direction in self._present:
            self._add(direction, curve, times, name)
        if beside is not None:
            beside._waits = True
            for direction in set(self._present) & set(beside._present):
                share_axis([beside.figures[direction], self.figures[direction]])

    def _add(self, direction: str, curve: RateCurve, times: Range1d, name: str) -> None:
        is_one, is_last = len(self._present) == 1, direction == self._present[-1]
        height = 210 if is_one else 150 + (20 if is_last else 0)  # with the label of the axis of time
        more = "" if direction == self._present[0] else f"_{direction}"
        fig = rate_figure(_title(direction, curve), height, times, f"{name}{more}")
        self.figures[direction] = fig
        if not is_last:  # the one below has it
            fig.xaxis.axis_label = None
        draw.zoom_time_by_wheel(fig, times)
        area, line = add_curve(fig, self.source, direction, direction)
        self._pale.append((area, line))
        marked = add_curve(fig, self.source, direction, f"marked_{direction}")
        self._items[direction] = draw.legend_item(legend_label(curve, direction), area, line, *marked)
        draw.horizontal_legend(fig, [self._items[direction]], click_policy="hide")
        scale_to(fig, [line, marked[1]])
        columns = {f"{who}{direction} rate": f"{column}{direction}" for who, column in _WHO}
        self._hovers[direction] = add_rate_hover(fig, self.source, f"top_{direction}", columns, "B")
        self._name_unit([curve], direction)

    def _name_unit(self, curves: Sequence[RateCurve], direction: str) -> float:
        """Name the unit on the axis of a direction; return its size in bytes."""
        size_bytes, unit = unit_of(curves, [direction])
        label_rates(self.figures[direction], unit, "rate" if len(self._present) > 1 else "aggregate rate")
        self._hovers[direction].args = {"unit": unit}
        return size_bytes

    def name_run(self, name: str) -> None:
        """Name the run in the titles, where pictures of several runs are on a page."""
        self._name = name
        for direction, fig in self.figures.items():
            draw.retitle(fig, _title(direction, self._titled, name))

    @property
    def _titled(self) -> RateCurve | None:
        return self._whole if len(self._whole.edges_ns) > 1 else None

    def replace(self, calls: Calls) -> bool:
        """Take other calls of the same run, as while it goes on; `show` draws them."""
        self._calls = calls
        curve = calls.curve()
        return self._present == directions_of(curve)

    def show(self, marked: Calls | None, window_s: Interval | None) -> None:
        """Show a time, and half of its length around it; None: all.

        `marked`: the marked calls; None: no call is marked, and all have their colours.
        """
        span_ns = None if window_s is None else _around(window_s)
        whole = self._calls.curve(span_ns)
        some = None if marked is None else marked.curve(span_ns)
        if some is not None and some.cell_ns > whole.cell_ns and some.moved_bytes.size:
            whole = self._calls.curve()  # until the marked calls of the window have been read
            some = some if some.cell_ns <= whole.cell_ns else None
        self._whole, self._some, self._asked = whole, some, (marked, window_s)
        if self._waits:
            return
        both = [self] if self._beside is None else [self._beside, self]
        curves = with_equal_cells([each._whole for each in both])
        for each, curve in zip(both, curves, strict=True):
            each._whole = curve
        for each in both:
            each._draw(curves)

    def _draw(self, compared: Sequence[RateCurve]) -> None:
        """Draw what is shown, in the units of all curves that are compared."""
        if not self._present:
            return
        whole, some, (marked, window_s) = self._whole, self._some, self._asked
        if len(whole.edges_ns) < 2:
            # Nothing moves in the window. BokehJS paints an area without points in an endless loop.
            columns = _nothing(window_s or (0.0, 1.0), self._present)
        else:
            columns = _columns(whole, some if marked is not None else None, self._present)
        for direction in self._present:
            unit_bytes = self._name_unit(compared, direction)
            for column in (direction, f"marked_{direction}", f"top_{direction}"):
                columns[column] = columns[column] / unit_bytes
        self.source.data = columns
        for direction, fig in self.figures.items():
            draw.retitle(fig, _title(direction, self._titled, self._name))
        for direction, item in self._items.items():
            item.label = value(_label(whole, some, direction, marked, window_s))
        for area, line in self._pale:
            area.glyph.fill_alpha = 0.4 if marked is None else 0.12
            line.glyph.line_alpha = 1.0 if marked is None else 0.3


def _title(direction: str, curve: RateCurve | None, run: str = "") -> str:
    """Return the title of a picture: what a value is the mean of (None: nothing moved), and of which run."""
    whose = f"of all tasks{f' of {run}' if run else ''}"
    if not direction:
        return f"Rate {whose}"
    # In short times between two edges the rate may be higher.
    width = "no bytes in this time" if curve is None else f"mean of each {seconds_text(curve.cell_ns * 1e-9)}"
    return f"{direction.capitalize()} rate {whose}, {width}"


def _nothing(window_s: Interval, present: list[str]) -> dict[str, Any]:
    """Return the columns of a time in which nothing moves."""
    still = {f"{column}{name}": np.zeros(2) for name in present for column in ("", "marked_")}
    tops = {f"top_{name}": np.ones(2) for name in present}
    return {"left": np.array(window_s), "right": np.array([window_s[1], np.nan]), **tops, **still}


def _columns(whole: RateCurve, marked: RateCurve | None, present: list[str]) -> dict[str, Any]:
    edges_s = whole.edges_ns * 1e-9
    cells = len(edges_s) - 1
    per_s = 1e9 / whole.cell_ns
    moved = np.full((len(DIRECTIONS), cells), np.nan) if marked is None else marked.moved_bytes_on(whole)
    columns = {"left": edges_s, "right": np.append(edges_s[1:], np.nan)}
    for direction in present:
        columns[direction] = draw.steps(whole.rate_bytes_per_s(direction))
        columns[f"marked_{direction}"] = draw.steps(moved[DIRECTIONS.index(direction)] * per_s)
        columns[f"top_{direction}"] = np.full(cells + 1, np.nanmax(columns[direction], initial=0.0))
    return columns


def _label(
    whole: RateCurve, some: RateCurve | None, direction: str, marked: Calls | None, window_s: Interval | None
) -> str:
    if marked is None and window_s is None:
        return legend_label(whole, direction)
    where = "" if window_s is None else " in this time"
    of_all = f"{bytes_text(_bytes_in(whole, direction, window_s))}{where}"
    if marked is None:
        return f"{direction}: {of_all}"
    if some is None or marked.is_bound:
        return f"{direction}: the marked calls of {of_all} are being read"
    more = " so far" if marked.reading else ""
    return f"{direction}: {bytes_text(_bytes_in(some, direction, window_s))} marked{more} of {of_all}"


def _bytes_in(curve: RateCurve, direction: str, window_s: Interval | None) -> float:
    """Return the bytes in a time: of cells that it cuts, in proportion."""
    if window_s is None:
        return curve.total_bytes(direction)
    edges_s = curve.edges_ns * 1e-9
    inside = np.minimum(edges_s[1:], window_s[1]) - np.maximum(edges_s[:-1], window_s[0])
    shares = np.clip(inside / (curve.cell_ns * 1e-9), 0, 1)
    return float(curve.moved_bytes[DIRECTIONS.index(direction)] @ shares)


def _around(window_s: Interval) -> tuple[int, int]:
    low, high = window_s
    more = (high - low) / 2
    return int(np.floor((low - more) * 1e9)), int(np.ceil((high + more) * 1e9))


class Durations:
    """The histogram of durations, on logarithmic axes, on which a range of durations marks calls."""

    def __init__(
        self,
        calls: Calls,
        name: str = "explorer_histogram",
        beside: Durations | None = None,
        per_mib: bool = False,
    ) -> None:
        self.per_mib = per_mib
        counted = calls.durations(per_mib)
        shown = on_log_axis(counted)
        low = min((edges[0] for edges, _ in shown.values()), default=1e-6)
        high = max((edges[-1] for edges, _ in shown.values()), default=1.0)
        top = max((int(counts.max()) for _, counts in shown.values()), default=1)
        self.durations: Range1d = _widened(
            None if beside is None else beside.durations, low / 1.5, high * 1.5
        )
        self._counts = Range1d(start=0.5, end=2.0 * max(top, 5))
        self.figure = draw.new_figure(
            self._title(counted, shown),
            320 + (44 if per_mib else 0),
            x_range=self.durations,
            y_range=self._counts,
            x_axis_type="log",
            y_axis_type="log",
            name=name,
        )
        quantity = "duration per MiB" if per_mib else "call duration"
        self.figure.xaxis.axis_label = f"{quantity} (unit at each tick)"
        self.figure.xaxis.formatter = time_ticks()
        if per_mib:
            add_rate_axis(self.figure, LogAxis())
        draw.name_axis(self.figure.yaxis, "calls per bin (9 % wide)", "0,0")
        self._all: dict[str, ColumnDataSource] = {}
        self._marked: dict[str, ColumnDataSource] = {}
        self._items: dict[str, LegendItem] = {}
        self._bars: dict[str, Any] = {}
        more = "" if beside is None else "_beside"
        # Waiting is often as long as the calls that others wait for: behind them, it covers none.
        for op in sorted(CLASSES, key=lambda name: "wait" not in name):
            if op not in counted:
                continue
            self._all[op] = ColumnDataSource(_bars(shown.get(op)))
            self._marked[op] = ColumnDataSource({"left": [], "right": [], "top": []})
            places = {"left": "left", "right": "right", "top": "top", "bottom": 0.5}
            drawn: dict[str, Any] = {**places, "fill_color": COLOURS[op], "line_color": COLOURS[op]}
            self._bars[op], _ = (
                self.figure.quad(source=source, fill_alpha=alpha, name=f"{which}_{op}{more}", **drawn)
                for which, source, alpha in (("all", self._all[op], 0.4), ("marked", self._marked[op], 0.75))
            )
            self._items[op] = draw.legend_item(_label_of(op, counted[op][1]), self._bars[op])
        self._box = BoxAnnotation(
            fill_alpha=0.06, fill_color="black", line_color="black", line_dash="dashed", visible=False
        )
        self.figure.add_layout(self._box)
        add_box_select(self.figure, "width")
        draw.horizontal_legend(self.figure, [self._items[op] for op in CLASSES if op in counted])

    def _title(self, counted: Counted, shown: Counted) -> str:
        below = below_clock(counted, shown)
        return f"{self.name}: drag over a peak to mark calls{f'; {below}' if below else ''}"

    @property
    def name(self) -> str:
        """What the histogram shows."""
        return "Durations per MiB" if self.per_mib else "Durations"

    def range(self, low: float, high: float) -> dict[str, Any]:
        """Return the mark of a part of the axis, in s, as attributes of a `View`."""
        if self.per_mib:
            slowest, fastest = rounded(MIB / max(high, 1e-9), MIB / max(low, 1e-9), is_log=True)
            return {"rates": (int(slowest), max(int(fastest), int(slowest) + 1))}
        return {"durations_s": rounded(max(0.0, low), high, is_log=True)}

    def _marked_range(self, view: View) -> tuple[float, float] | None:
        """Return the part of the axis that a view marks; None: none, or one of the other quantity."""
        if not self.per_mib:
            return view.durations_s
        return None if view.rates is None else (MIB / view.rates[1], MIB / max(view.rates[0], 1e-3))

    def replace(self, calls: Calls) -> bool:
        """Take other calls of the same run, as while it goes on."""
        counted = calls.durations(self.per_mib)
        if not set(counted) <= set(self._all):
            return False
        shown = on_log_axis(counted)
        for name, found in counted.items():
            self._all[name].data = bars = _bars(shown.get(name))
            self._items[name].label = value(_label_of(name, found[1]))
            if len(bars["top"]):
                _widened(self.durations, bars["left"][0] / 1.5, bars["right"][-1] * 1.5)
                _widened(self._counts, 0.5, 2.0 * float(bars["top"].max()))
        draw.retitle(self.figure, self._title(counted, shown))
        return True

    def mark(self, calls: Calls | None, view: View) -> None:
        """Show the durations of the marked calls, filled; None: no call is marked."""
        shown = {} if calls is None else on_log_axis(calls.durations(self.per_mib))
        for name, source in self._marked.items():
            source.data = _bars(shown.get(name))
        fill, line = (0.4, 1.0) if calls is None else (0.1, 0.2)
        for bars in self._bars.values():
            bars.glyph.update(fill_alpha=fill, line_alpha=line)
        box = self._marked_range(view)
        self._box.visible = box is not None
        if box is not None:
            self._box.left, self._box.right = box


def _widened(axis: Range1d | None, low: float, high: float) -> Range1d:
    """Return an axis that covers a range too; None: a new one."""
    if axis is None:
        return Range1d(start=low, end=high)
    start, end = draw.ends(axis)
    axis.update(start=min(start, float(low)), end=max(end, float(high)))
    return axis


def _label_of(name: str, counts: np.ndarray) -> str:
    return f"{short_label(name)} ({int(counts.sum()):,})"


def _bars(found: tuple[np.ndarray, np.ndarray] | None) -> dict[str, Any]:
    if found is None:
        return {"left": [], "right": [], "top": []}
    edges_s, counts = found
    used = np.flatnonzero(counts)
    return {"left": edges_s[used], "right": edges_s[used + 1], "top": counts[used]}


class Offsets:
    """Offset in a file against time, on which a rectangle marks calls.

    `file`: default: the file with the most bytes among the calls.
    `figure`: None: no bytes moved at known offsets.
    `path`: the file.
    """

    def __init__(
        self, calls: Calls, times: Range1d, name: str = "explorer_offsets", file: str | None = None
    ) -> None:
        self._file, self._of, self._what = file, "", ""
        found, self.path = calls.access_map(file)
        self.figure = None
        if found is None or not found.calls:
            return
        self._calls, self._found, self._most = calls, found, 1.0
        self._shown = [op for op in reversed(DIRECTIONS) if found.by_rank(op).any()]
        edges = found.offset_edges
        offsets = Range1d(start=float(edges[0]), end=float(edges[-1]))
        # So high that a cell of offsets has a pixel: of those that share one, a canvas draws one.
        fig = self.figure = draw.new_figure(self._title(), 360, x_range=times, y_range=offsets, name=name)
        draw.label_time_axis(fig)
        label_offsets(fig, 0)
        self._mapper = mixer(self._shown)
        tell_new_opacity(self._mapper)
        data, self._most = offset_image(found, "time", self._shown)
        self._drawn = found
        self._all = ColumnDataSource(data)
        add_mixed(fig, self._all, self._mapper)
        self._marked = ColumnDataSource({name: [] for name in data})
        # Blue and red of few bytes have a contrast of 3 on a dark page, too.
        add_mixed(fig, self._marked, mixer(self._shown, marked_alphas(0.94)))
        self._box = BoxAnnotation(fill_alpha=0, line_color="black", line_dash="dashed", visible=False)
        fig.add_layout(self._box)
        add_box_select(fig, "both")
        draw.zoom_time_by_wheel(fig, times)
        draw.horizontal_legend(fig, swatches(fig, {op: op for op in self._shown}))

    def _title(self) -> str:
        path = shortened(plain_path(self.path), 60)  # of a narrow page; the choice above it has all of it
        return f"Offsets in {path}{self._of}: {self._what or 'drag to mark calls'}"

    def name_run(self, name: str) -> None:
        """Write the name of the run into the title, where there are two."""
        self._of = f", run {name}"
        if self.figure is not None:
            draw.retitle(self.figure, self._title())

    def replace(self, calls: Calls) -> bool:
        """Take other calls of the same run, as while it goes on."""
        found, path = calls.access_map(self._file)
        known = found is not None and found.calls > 0
        if self.figure is None or found is None or not known:
            return (self.figure is None) == (not known)
        if path != self.path or [op for op in reversed(DIRECTIONS) if found.by_rank(op).any()] != self._shown:
            return False
        self._calls, self._found = calls, found
        self._draw(found)
        assert isinstance(self.figure.y_range, Range1d)
        self.figure.y_range.end = float(found.offset_edges[-1])
        return True

    def _draw(self, found: OffsetMap) -> None:
        self._drawn = found
        self._all.data, self._most = offset_image(found, "time", self._shown)

    def show(self, marked: Calls | None, view: View) -> None:
        """Show where calls moved bytes in the window of a view.

        `marked`: the marked calls; None: no call is marked, and all have their colours.
        """
        if self.figure is None:
            return
        # A new model would make Bokeh search the document again.
        self._mapper.alpha_mapper.palette = opacities(1.0 if marked is None else PALE)
        whole, some, is_empty = self._found, None, False
        if view.zoom_s is not None:
            low, high = view.zoom_s
            span_ns = int(np.floor(low * 1e9)), int(np.ceil(high * 1e9))
            within = self._calls.bytes_in(whole, span_ns)
            some = None if marked is None else marked.bytes_in(whole, span_ns)
            # Until both have been read, both are drawn in the cells of the whole run.
            if within is not None and (marked is None or some is not None):
                whole, is_empty = within, not within.calls
        if whole is self._found and marked is not None:
            some = marked.bytes_in(whole) if marked.count else None
        if whole is not self._drawn:
            self._draw(whole)
        if some is None or not some.calls:
            self._marked.data = {name: [] for name in self._marked.data}
        else:
            self._marked.data = offset_image(_in_cells_of(whole, some), "time", self._shown, self._most)[0]
        nothing = marked is not None and not marked.reading and not self._marked.data["image"]
        self._what = "no bytes move in this time" if is_empty else ""
        self._what = "no marked call moves bytes here" if nothing else self._what
        draw.retitle(self.figure, self._title())
        self._box.visible = view.offsets is not None
        if view.offsets is not None:
            self._box.bottom, self._box.top = view.offsets
        if view.offsets is not None and view.time_s is not None:
            self._box.left, self._box.right = view.time_s

    def rectangle(self, view: View, box: dict[str, Any]) -> View:
        """Return the view in which the calls of a rectangle are marked."""
        low, high = sorted((box["x0"], box["x1"]))
        first, end = sorted((box["y0"], box["y1"]))
        return view.marking(
            time_s=rounded(low, high),
            offsets=rounded_offsets(first, end),
            marks={"file": glob.escape(self.path)},
            what="a rectangle of the access map",
        )


def _in_cells_of(whole: OffsetMap, some: OffsetMap) -> OffsetMap:
    """Return a map with cells of offsets that are as high as those of the map of all calls."""
    edges = whole.offset_edges
    if np.array_equal(edges, some.offset_edges):
        return some
    some = deepcopy(some)  # more calls may be added to it in the background
    some.cover(int(edges[0]), int(edges[-1]))
    return some

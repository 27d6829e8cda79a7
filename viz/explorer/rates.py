"""The rates of the explorer: marked calls over the pale whole, computed anew for each window of time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from bokeh.core.properties import value
from bokeh.models import ColumnDataSource, CustomJSHover, Range1d
from bokeh.models.annotations import LegendItem
from bokeh.plotting import figure

from ensembles.model.units import bytes_text, seconds_text
from ensembles.summaries.rate import RateCurve
from ensembles.summaries.runtotals import DIRECTIONS
from ensembles.viz.common.figures import horizontal_legend, legend_item, retitle, steps, zoom_time_by_wheel
from ensembles.viz.common.rate_curves import (
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
from ensembles.viz.explorer.calls import Calls
from ensembles.viz.explorer.view import Interval

_WHO = (("", ""), ("marked ", "marked_"))
"""Prefixes of the names, and of the columns, of all calls and of the marked ones."""


class Rates:
    """The aggregate rates of all tasks over time: a picture for each direction, with a suitable scale.

    Parameters
    ----------
    name : str
        Name of the first figure; a second one, of the reads, has ``_read`` behind it.
    beside : Rates, optional
        The rates of another run. Both have equal cells of time, one unit and one axis of each direction;
        those beside are drawn with these: `show` is to be called for both.

    Attributes
    ----------
    figures : dict of str to figure
        By direction, writes first; if no bytes moved, one that says so, by the direction ``""``.
    source : ColumnDataSource
        Edges of the cells in s as ``left`` and ``right``, and for each direction the rate of all calls in
        units of its axis, and that of the marked calls, such as ``write`` and ``marked_write``.
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
            zoom_time_by_wheel(fig, times)
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
        zoom_time_by_wheel(fig, times)
        area, line = add_curve(fig, self.source, direction, direction)
        self._pale.append((area, line))
        marked = add_curve(fig, self.source, direction, f"marked_{direction}")
        self._items[direction] = legend_item(legend_label(curve, direction), area, line, *marked)
        horizontal_legend(fig, [self._items[direction]], click_policy="hide")
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
            retitle(fig, _title(direction, self._titled, name))

    @property
    def _titled(self) -> RateCurve | None:
        return self._whole if len(self._whole.edges_ns) > 1 else None

    def replace(self, calls: Calls) -> bool:
        """Take other calls of the same run, as while it goes on; `show` draws them."""
        self._calls = calls
        curve = calls.curve()
        return self._present == directions_of(curve)

    def show(self, marked: Calls | None, window_s: Interval | None) -> None:
        """Show a time.

        Parameters
        ----------
        marked : Calls or None
            The marked calls; None: no call is marked, and all have their colours.
        window_s : (float, float) or None
            The time that is in view; None: all. Half of its length around it is drawn too.
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
            retitle(fig, _title(direction, self._titled, self._name))
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
        columns[direction] = steps(whole.rate_bytes_per_s(direction))
        columns[f"marked_{direction}"] = steps(moved[DIRECTIONS.index(direction)] * per_s)
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

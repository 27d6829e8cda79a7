"""The rates of the explorer: marked calls over the pale whole, computed anew for each window of time."""

from __future__ import annotations

from typing import Any

import numpy as np
from bokeh.core.properties import value
from bokeh.models import ColumnDataSource, Range1d
from bokeh.models.annotations import LegendItem

from ensembles.model.units import bytes_text
from ensembles.summaries.rate import RateCurve
from ensembles.summaries.runtotals import DIRECTIONS
from ensembles.viz.explorer.calls import Calls
from ensembles.viz.explorer.diagram import zoom_time_by_wheel
from ensembles.viz.explorer.view import Interval
from ensembles.viz.figures import horizontal_legend, legend_item, steps
from ensembles.viz.rate_curves import (
    add_curve,
    add_rate_hover,
    directions_of,
    label_rates,
    legend_label,
    rate_figure,
    say_nothing_moved,
    scale_to,
    unit_of,
)

_HEIGHT = 210
_WHO = (("", ""), ("marked ", "marked_"))
"""Prefixes of the names, and of the columns, of all calls and of the marked ones."""


class Rates:
    """The aggregate rates of all tasks over time.

    Parameters
    ----------
    calls : Calls
        The calls that the filters select.
    times : Range1d
        The axis of time.
    name : str
        Name of the figure.

    Attributes
    ----------
    figure : figure
    source : ColumnDataSource
        Edges of the cells in s as ``left`` and ``right``, and for each direction the rate of all calls in
        bytes/s, and that of the marked calls, such as ``write`` and ``marked_write``.
    """

    def __init__(self, calls: Calls, times: Range1d, name: str = "explorer_rates") -> None:
        self._calls = calls
        curve = calls.curve()
        self._present = directions_of(curve)
        self.figure = rate_figure("Rate of all tasks", _HEIGHT, times, name)
        zoom_time_by_wheel(self.figure, times)
        self.source = ColumnDataSource(_columns(curve, None, self._present))
        self._items: dict[str, LegendItem] = {}
        self._pale: list[tuple[Any, Any]] = []
        if not self._present:
            say_nothing_moved(self.figure)
            return
        lines = []
        for direction in self._present:
            area, line = add_curve(self.figure, self.source, direction, direction)
            self._pale.append((area, line))
            marked = add_curve(self.figure, self.source, direction, f"marked_{direction}")
            lines += [line, marked[1]]
            self._items[direction] = legend_item(legend_label(curve, direction), area, line, *marked)
        horizontal_legend(self.figure, list(self._items.values()), click_policy="hide")
        scale_to(self.figure, lines)
        columns = {f"{who}{name} rate": f"{column}{name}" for name in self._present for who, column in _WHO}
        self._hover = add_rate_hover(self.figure, self.source, "top", columns, "B")
        self._name_unit(curve)

    def _name_unit(self, curve: RateCurve) -> None:
        self._unit, unit = unit_of(curve, self._present)
        label_rates(self.figure, unit)
        self._hover.args = {"unit": unit}

    def replace(self, calls: Calls) -> bool:
        """Take other calls of the same run, as while it goes on; `show` draws them.

        Returns
        -------
        bool
            False: there is a direction that the picture lacks.
        """
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
        if not self._present:
            return
        span_ns = None if window_s is None else _around(window_s)
        whole = self._calls.curve(span_ns)
        some = None if marked is None else marked.curve(span_ns)
        if some is not None and some.cell_ns > whole.cell_ns and some.moved_bytes.size:
            whole = self._calls.curve()  # until the marked calls of the window have been read
            some = some if some.cell_ns <= whole.cell_ns else None
        self._name_unit(whole)
        if len(whole.edges_ns) < 2:
            # Nothing moves in the window. BokehJS paints an area without points in an endless loop.
            columns = _nothing(window_s or (0.0, 1.0), self._present)
        else:
            columns = _columns(whole, some if marked is not None else None, self._present)
        for column in columns:
            if column not in ("left", "right"):
                columns[column] = columns[column] / self._unit
        self.source.data = columns
        for direction, item in self._items.items():
            item.label = value(_label(whole, some, direction, marked, window_s))
        for area, line in self._pale:
            area.glyph.fill_alpha = 0.4 if marked is None else 0.12
            line.glyph.line_alpha = 1.0 if marked is None else 0.3


def _nothing(window_s: Interval, present: list[str]) -> dict[str, Any]:
    """Return the columns of a time in which nothing moves."""
    still = {f"{column}{name}": np.zeros(2) for name in present for _, column in _WHO}
    return {"left": np.array(window_s), "right": np.array([window_s[1], np.nan]), "top": np.ones(2), **still}


def _columns(whole: RateCurve, marked: RateCurve | None, present: list[str]) -> dict[str, Any]:
    edges_s = whole.edges_ns * 1e-9
    cells = len(edges_s) - 1
    per_s = 1e9 / whole.cell_ns
    moved = np.full((len(DIRECTIONS), cells), np.nan) if marked is None else marked.moved_bytes_on(whole)
    columns = {"left": edges_s, "right": np.append(edges_s[1:], np.nan)}
    for direction in present:
        columns[direction] = steps(whole.rate_bytes_per_s(direction))
        columns[f"marked_{direction}"] = steps(moved[DIRECTIONS.index(direction)] * per_s)
    columns["top"] = np.full(
        cells + 1, max((float(np.max(columns[each], initial=0.0)) for each in present), default=1.0)
    )
    return columns


def _label(
    whole: RateCurve, some: RateCurve | None, direction: str, marked: Calls | None, window_s: Interval | None
) -> str:
    if marked is None and window_s is None:
        return legend_label(whole, direction)
    where = "" if window_s is None else " in view"
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

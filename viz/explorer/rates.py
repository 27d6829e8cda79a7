"""The rates of the explorer: marked calls over the pale whole, computed anew for each window of time."""

from __future__ import annotations

from typing import Any

import numpy as np
from bokeh.core.properties import value
from bokeh.models import (
    ColumnDataSource,
    CustomJSHover,
    DataRange1d,
    HoverTool,
    NumeralTickFormatter,
    Range1d,
)
from bokeh.models.annotations import LegendItem

from ensembles.model.units import bytes_text
from ensembles.summaries.rate import RateCurve
from ensembles.summaries.runtotals import DIRECTIONS
from ensembles.viz.explorer.calls import Calls
from ensembles.viz.explorer.view import Interval
from ensembles.viz.figures import (
    annotate_empty,
    horizontal_legend,
    label_time_axis,
    legend_item,
    new_figure,
    steps,
)
from ensembles.viz.rate import legend_label
from ensembles.viz.style import COLOURS, byte_unit, time_hover

_HEIGHT = 210


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
        self._present = [each for each in reversed(DIRECTIONS) if curve.total_bytes(each)]
        self.figure = new_figure("Rate of all tasks", _HEIGHT, x_range=times, name=name, window_axis="x")
        label_time_axis(self.figure)
        self.source = ColumnDataSource(_columns(curve, None, self._present))
        self._items: dict[str, LegendItem] = {}
        self._pale: list[tuple[Any, Any]] = []
        if not self._present:
            self.figure.y_range = Range1d(start=0, end=1)
            self.figure.yaxis.axis_label = "rate (MiB/s)"
            annotate_empty(self.figure, "no bytes were read or written")
            return
        lines = []
        for direction in self._present:
            area, line = self._add(direction, direction)
            self._pale.append((area, line))
            marked = self._add(direction, f"marked_{direction}")
            lines += [line, marked[1]]
            self._items[direction] = legend_item(legend_label(curve, direction), area, line, *marked)
        horizontal_legend(self.figure, list(self._items.values()), click_policy="hide")
        # The axis adapts to the visible curves, so that hiding a fast direction enlarges the slow one.
        self.figure.y_range = DataRange1d(start=0, only_visible=True, range_padding=0.08, renderers=lines)
        self._hover = CustomJSHover(args={"unit": 1.0, "name": "B"}, code=_VALUE)
        self.figure.yaxis.formatter = NumeralTickFormatter(format="0,0.[000]")
        self._name_unit(curve)
        self._add_hover()

    def _add(self, direction: str, column: str) -> tuple[Any, Any]:
        colour = COLOURS[direction]
        area = self.figure.varea_step(
            x="left",
            y1=0,
            y2=column,
            source=self.source,
            step_mode="after",
            fill_color=colour,
            fill_alpha=0.4,
        )
        line = self.figure.step(
            x="left", y=column, source=self.source, mode="after", line_color=colour, line_width=1.3
        )
        return area, line

    def _add_hover(self) -> None:
        target = self.figure.quad(
            left="left", right="right", bottom=0, top="top", source=self.source, fill_alpha=0, line_alpha=0
        )
        rates = [(name, column) for name in self._present for column in (name, f"marked_{name}")]
        self.figure.add_tools(
            HoverTool(
                renderers=[target],
                mode="vline",
                point_policy="follow_mouse",
                description="Values of the rate curves",
                tooltips=[
                    ("from", "@left{0}"),
                    ("to", "@right{0}"),
                    *((column.replace("_", " "), f"@{column}{{0}}") for _, column in rates),
                ],
                formatters={
                    "@left": time_hover(),
                    "@right": time_hover(),
                    **{f"@{column}": self._hover for _, column in rates},
                },
            )
        )

    def _name_unit(self, curve: RateCurve) -> None:
        top = max(
            (float(curve.rate_bytes_per_s(each).max(initial=0.0)) for each in self._present), default=0.0
        )
        self._unit, unit = byte_unit(max(top, 1024.0))
        self.figure.yaxis.axis_label = f"rate ({unit}/s)"
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
        return self._present == [each for each in reversed(DIRECTIONS) if curve.total_bytes(each)]

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


_VALUE = """
    return Number.isNaN(value) ? 'none' : Number(value.toPrecision(4)).toLocaleString('en-US') + ` ${unit}/s`;
"""


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

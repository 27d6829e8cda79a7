"""Curves of a data rate over time, with their axis and hover box: of `viz.rate`, and of the explorer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from bokeh.models import (
    ColumnDataSource,
    CustomJSHover,
    DataRange1d,
    NumeralTickFormatter,
    Range1d,
)
from bokeh.models.renderers import GlyphRenderer
from bokeh.plotting import figure

from ensembles.model.units import bytes_text, seconds_text
from ensembles.summaries.rate import RateCurve
from ensembles.summaries.runtotals import DIRECTIONS
from ensembles.viz.common.figures import add_hover, annotate_empty, label_time_axis, new_figure
from ensembles.viz.common.style import COLOURS, byte_unit

LEAST_CELL_NS = 128
"""Least width of the cells of a curve: narrower ones show how times are rounded."""

_VALUE_JS = """
    const digits = {minimumSignificantDigits: 3, maximumSignificantDigits: 3};
    return Number.isNaN(value) ? 'none' : value.toLocaleString('en-US', digits) + ` ${unit}/s`;
"""


def directions_of(curve: RateCurve) -> list[str]:
    """Return the directions in which bytes moved, writes first."""
    return [each for each in reversed(DIRECTIONS) if curve.total_bytes(each)]


def with_equal_cells(curves: Sequence[RateCurve]) -> list[RateCurve]:
    """Return curves that can be compared: their cells are as wide as the widest.

    The mean of a longer time hides peaks.
    """
    widest = max((each.cell_ns for each in curves if directions_of(each)), default=0)
    return [each.with_cells_of(widest) for each in curves]


def unit_of(curves: Sequence[RateCurve], directions: Sequence[str]) -> tuple[float, str]:
    """Return size in bytes and name of the unit of an axis that holds these rates of all curves."""
    tops = (float(one.rate_bytes_per_s(each).max(initial=0.0)) for one in curves for each in directions)
    return byte_unit(max([*tops, 1024.0]))


def share_axis(figures: Sequence[figure]) -> None:
    """Let figures that are compared have one vertical axis: that of all visible curves."""
    adapting = [each for each in figures if isinstance(each.y_range, DataRange1d)]
    ranges = [each.y_range for each in adapting if isinstance(each.y_range, DataRange1d)]
    for fig in adapting[1:]:
        fig.y_range = ranges[0]
    if ranges:
        lines = [line for each in ranges for line in each.renderers or ()]
        ranges[0].renderers = [line for line in lines if isinstance(line, GlyphRenderer)]


def rate_figure(title: str, height: int, x_range: Range1d, name: str) -> figure:
    """Create a figure of rates; a zoom scales them to those in view."""
    fig = new_figure(title, height, x_range=x_range, name=name, window_axis="x")
    label_time_axis(fig)
    fig.yaxis.formatter = NumeralTickFormatter(format="0,0.[000]")
    return fig


def say_nothing_moved(fig: figure) -> None:
    """Complete a figure without a curve."""
    fig.y_range = Range1d(start=0, end=1)
    label_rates(fig, "MiB")
    annotate_empty(fig, "no bytes were read or written", x_axis=True)


def label_rates(fig: figure, unit: str, name: str = "aggregate rate") -> None:
    """Name the unit of the rates; a low figure has room for a short name."""
    fig.yaxis.axis_label = f"{name} ({unit}/s)"


def add_curve(
    fig: figure, source: ColumnDataSource, direction: str, column: str
) -> tuple[GlyphRenderer[Any], GlyphRenderer[Any]]:
    """Draw area and line of a column of rates over the edges of its cells, ``left``."""
    colour = COLOURS[direction]
    area = fig.varea_step(
        x="left", y1=0, y2=column, source=source, step_mode="after", fill_color=colour, fill_alpha=0.4
    )
    line = fig.step(x="left", y=column, source=source, mode="after", line_color=colour, line_width=1.3)
    return area, line


def scale_to(fig: figure, lines: Sequence[GlyphRenderer[Any]]) -> None:
    """Let the axis adapt to the visible curves, so that hiding a fast direction enlarges the slow one."""
    fig.y_range = DataRange1d(start=0, only_visible=True, range_padding=0.08, renderers=list(lines))


def add_rate_hover(
    fig: figure, source: ColumnDataSource, top: float | str, columns: Mapping[str, str], unit: str
) -> CustomJSHover:
    """Add the box with the rates of a cell of time."""
    target = fig.quad(
        left="left", right="right", bottom=0, top=top, source=source, fill_alpha=0, line_alpha=0
    )
    rates = CustomJSHover(args={"unit": unit}, code=_VALUE_JS)
    add_hover(
        fig,
        target,
        [
            ("time interval", "@left{at} – @right{at}"),
            *((name, f"@{column}{{0}}") for name, column in columns.items()),
        ],
        formatters={f"@{column}": rates for column in columns.values()},
        mode="vline",
        point_policy="follow_mouse",
        description="Values of the rate curves",
    )
    return rates


def legend_label(curve: RateCurve, direction: str) -> str:
    """Return the bytes of a direction, and their mean rate while some moved.

    Of calls that are short compared with the cells of the curve, this rate is above the whole curve: then the
    label has the time that it refers to.
    """
    total = curve.total_bytes(direction)
    active_s = curve.active_s(direction)
    text = f"{direction}: {bytes_text(total)}"
    if not active_s:
        return text
    mean = total / active_s
    text += f", {bytes_text(mean)}/s while data moved"
    is_above = mean > float(curve.rate_bytes_per_s(direction).max(initial=0.0))
    return text + (f" (in {seconds_text(active_s)} of short calls)" if is_above else "")

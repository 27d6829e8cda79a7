"""Aggregate read and write rates over time."""

from __future__ import annotations

from typing import Any, Literal, overload

import numpy as np
from bokeh.layouts import column
from bokeh.models import (
    Column,
    ColumnDataSource,
    CustomJSHover,
    DataRange1d,
    HoverTool,
    Model,
    NumeralTickFormatter,
    Range1d,
)
from bokeh.plotting import figure

from ensembles.model.units import bytes_text, seconds_text
from ensembles.summaries.rate import RateCurve
from ensembles.summaries.runtotals import DIRECTIONS
from ensembles.viz.data_for import data_for, partial_sentence
from ensembles.viz.figures import (
    annotate_empty,
    horizontal_legend,
    label_time_axis,
    legend_item,
    new_figure,
    steps,
    subtitle,
    time_range,
)
from ensembles.viz.style import COLOURS, byte_unit, time_hover


@overload
def rate(
    data: Any,
    *,
    title: str | None = None,
    x_range: Range1d | None = None,
    separate: Literal[False] = False,
) -> figure: ...


@overload
def rate(
    data: Any, *, title: str | None = None, x_range: Range1d | None = None, separate: Literal[True]
) -> Column: ...


def rate(
    data: Any, *, title: str | None = None, x_range: Range1d | None = None, separate: bool = False
) -> figure | Column:
    """Draw the aggregate read and write rates of all tasks over time.

    The bytes of a call are spread evenly over its duration. The area under a curve is exactly the number of
    bytes moved.

    Parameters
    ----------
    data : Run, Events or RateCurve
    title : str, optional
    x_range : Range1d, optional
        Time axis in seconds, to share with another figure.
    separate : bool
        Draw writes and reads in two figures, each with a suitable scale.

    Returns
    -------
    figure or Column
        A column if `separate` is true, with the figures ``rate_write`` and ``rate_read``.

    Raises
    ------
    TypeError
        `data` has another type.
    EnsioError
        The run was recorded without events.

    Examples
    --------
    >>> from ensembles import viz
    >>> figure = viz.rate(en.open("ensio-ior"))
    >>> figure.yaxis.axis_label
    'aggregate rate (GiB/s)'
    """
    curve = data_for(data, RateCurve)
    present = [direction for direction in reversed(DIRECTIONS) if curve.total_bytes(direction)]
    low_ns, high_ns = (int(curve.edges_ns[0]), int(curve.edges_ns[-1])) if present else (0, 0)
    shared = x_range or time_range(low_ns, high_ns)
    words = title or "Aggregate rate of all tasks; the area under a curve is the bytes moved"
    if not separate or len(present) < 2:
        fig = _rates(curve, present, words, shared, "rate")
        drawn = [fig]
    else:
        first, second = present
        drawn = [
            _rates(curve, [first], _of_direction(first, title), shared, f"rate_{first}"),
            _rates(curve, [second], _of_direction(second, title), shared, f"rate_{second}"),
        ]
    if partial := partial_sentence(data):
        subtitle(drawn[0], partial)
    return column(drawn, sizing_mode="stretch_width", name="rate") if separate else drawn[0]


def _of_direction(direction: str, title: str | None) -> str:
    name = {"write": "Write", "read": "Read"}[direction]
    return f"{title} ({direction})" if title else f"{name} rate of all tasks; the area is the bytes moved"


def _rates(curve: RateCurve, present: list[str], title: str, x_range: Range1d, name: str) -> figure:
    edges_s = curve.edges_ns * 1e-9
    # A zoom scales the rates to those in view.
    fig = new_figure(title, height=260, x_range=x_range, name=name, window_axis="x")
    label_time_axis(fig)
    if not present:
        fig.y_range = Range1d(start=0, end=1)
        fig.yaxis.axis_label = "aggregate rate (MiB/s)"
        annotate_empty(fig, "no bytes were read or written")
        return fig
    rates = {direction: curve.rate_bytes_per_s(direction) for direction in present}
    top = max(float(values.max()) for values in rates.values())
    unit_bytes, unit = byte_unit(max(top, 1024.0))
    items = []
    # Areas, lines and values share the edges, which are most of the data.
    columns = {"left": edges_s, "right": np.append(edges_s[1:], np.nan)}
    columns |= {direction: steps(rates[direction]) / unit_bytes for direction in present}
    source = ColumnDataSource(columns)
    for direction in present:
        area = fig.varea_step(
            x="left",
            y1=0,
            y2=direction,
            source=source,
            step_mode="after",
            fill_color=COLOURS[direction],
            fill_alpha=0.4,
        )
        line = fig.step(
            x="left", y=direction, source=source, mode="after", line_color=COLOURS[direction], line_width=1.3
        )
        items.append(legend_item(legend_label(curve, direction), area, line))
    horizontal_legend(fig, items, click_policy="hide")
    # The axis adapts to the visible curves, so that hiding a fast direction enlarges the slow one.
    lines: list[Model] = [item.renderers[1] for item in items]
    fig.y_range = DataRange1d(start=0, only_visible=True, range_padding=0.08, renderers=lines)
    fig.yaxis.axis_label = f"aggregate rate ({unit}/s)"
    fig.yaxis.formatter = NumeralTickFormatter(format="0,0.[000]")
    _add_hover(fig, source, present, seconds_text(edges_s[1] - edges_s[0]), top / unit_bytes, unit)
    return fig


def legend_label(curve: RateCurve, direction: str) -> str:
    total = curve.total_bytes(direction)
    active_s = curve.active_s(direction)
    mean = f", mean {bytes_text(total / active_s)}/s while active" if active_s else ""
    return f"{direction}: {bytes_text(total)}{mean}"


def _add_hover(
    fig: figure, source: ColumnDataSource, present: list[str], width: str, top: float, unit: str
) -> None:
    target = fig.quad(
        left="left", right="right", bottom=0, top=top, source=source, fill_alpha=0, line_alpha=0
    )
    value = CustomJSHover(
        args={"unit": unit},
        code="return Number(value.toPrecision(4)).toLocaleString('en-US') + ` ${unit}/s`;",
    )
    fig.add_tools(
        HoverTool(
            renderers=[target],
            mode="vline",
            point_policy="follow_mouse",
            description="Values of the rate curves",
            tooltips=[
                ("time interval", f"@left{{0}}, width {width}"),
                *((f"{name} rate", f"@{name}{{0}}") for name in present),
            ],
            formatters={"@left": time_hover(), **{f"@{name}": value for name in present}},
        )
    )

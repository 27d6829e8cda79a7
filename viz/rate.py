"""Aggregate read and write rates over time."""

from __future__ import annotations

from typing import Any, Literal, overload

from bokeh.layouts import column
from bokeh.models import Column, ColumnDataSource, Range1d
from bokeh.plotting import figure

from ensembles.model.units import seconds_text
from ensembles.summaries.rate import RateCurve
from ensembles.viz.data_for import data_for, partial_sentence
from ensembles.viz.figures import cells_of_time, horizontal_legend, legend_item, steps, subtitle, time_range
from ensembles.viz.legend_buttons import add_legend_buttons
from ensembles.viz.rate_by_layer import draw_rates_of_layers
from ensembles.viz.rate_curves import (
    LEAST_CELL_NS,
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
from ensembles.viz.several import of_several


@overload
def rate(
    data: Any,
    *,
    title: str | None = None,
    x_range: Range1d | None = None,
    separate: Literal[False] = False,
    by: Literal["layer"] | None = None,
) -> figure: ...


@overload
def rate(
    data: Any,
    *,
    title: str | None = None,
    x_range: Range1d | None = None,
    separate: Literal[True],
    by: Literal["layer"] | None = None,
) -> Column: ...


@of_several
def rate(
    data: Any,
    *,
    title: str | None = None,
    x_range: Range1d | None = None,
    separate: bool = False,
    by: Literal["layer"] | None = None,
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
    by : {"layer"}, optional
        Draw a curve for each layer, such as MPI-IO and POSIX: what a program asked a library for beside what
        became of it. A layer's curve has its calls that are inside of no other call of the layer.

    Returns
    -------
    figure or Column
        A column if `separate` is true, with the figures ``rate_write`` and ``rate_read``.

    Raises
    ------
    TypeError
        `data` has another type.
    ValueError
        `by` is something else.
    EnsioError
        The run was recorded without events.

    Examples
    --------
    >>> from ensembles import viz
    >>> figure = viz.rate(en.open("ensio-ior"))
    >>> figure.yaxis.axis_label
    'aggregate rate (GiB/s)'
    """
    if by is not None:
        if by != "layer":
            raise ValueError(f'rates are drawn by "layer", not by "{by}"')
        return _by_layer(data, title, x_range, separate)
    curve = data_for(data, RateCurve).with_cells_of(LEAST_CELL_NS)
    present = directions_of(curve)
    low_ns, high_ns = (int(curve.edges_ns[0]), int(curve.edges_ns[-1])) if present else (0, 0)
    shared = x_range or time_range(low_ns, high_ns)
    # In short times between two edges the rate may be higher: the width says what a value is the mean of.
    step = f"mean of each {seconds_text(curve.cell_ns * 1e-9)}" if present else ""
    what = f", {step}; the area under a curve is the bytes moved" if present else ": no bytes moved"
    words = title or f"Aggregate rate of all tasks{what}"
    if not separate or len(present) < 2:
        fig = _rates(curve, present, words, shared, "rate")
        drawn = [fig]
    else:
        first, second = present
        drawn = [
            _rates(curve, [first], _of_direction(first, title, step), shared, f"rate_{first}"),
            _rates(curve, [second], _of_direction(second, title, step), shared, f"rate_{second}"),
        ]
    if partial := partial_sentence(data):
        subtitle(drawn[0], partial)
    return column(drawn, sizing_mode="stretch_width", name="rate") if separate else drawn[0]


def _by_layer(data: Any, title: str | None, x_range: Range1d | None, separate: bool) -> figure | Column:
    if not separate:
        return draw_rates_of_layers(data, title, x_range, ("write", "read"), "rate")
    drawn: list[figure] = []
    for each in ("write", "read"):
        words = f"{title} ({each})" if title else None
        drawn.append(draw_rates_of_layers(data, words, x_range, (each,), f"rate_{each}"))
    drawn[1].x_range = drawn[0].x_range
    return column(drawn, sizing_mode="stretch_width", name="rate")


def _of_direction(direction: str, title: str | None, step: str) -> str:
    name = {"write": "Write", "read": "Read"}[direction]
    return (
        f"{title} ({direction})"
        if title
        else f"{name} rate of all tasks, {step}; the area is the bytes moved"
    )


def _rates(curve: RateCurve, present: list[str], title: str, x_range: Range1d, name: str) -> figure:
    fig = rate_figure(title, 260, x_range, name)
    if not present:
        say_nothing_moved(fig)
        return fig
    unit_bytes, unit = unit_of(curve, present)
    # Areas, lines and values share the edges, which are most of the data.
    columns = cells_of_time(curve.edges_ns)
    columns |= {each: steps(curve.rate_bytes_per_s(each)) / unit_bytes for each in present}
    source = ColumnDataSource(columns)
    drawn = {each: add_curve(fig, source, each, each) for each in present}
    items = [legend_item(legend_label(curve, each), *renderers) for each, renderers in drawn.items()]
    horizontal_legend(fig, items, click_policy="hide")
    add_legend_buttons(fig)
    scale_to(fig, [line for _, line in drawn.values()])
    label_rates(fig, unit)
    top = max(float(columns[each].max()) for each in present)
    add_rate_hover(fig, source, top, {f"{each} rate": each for each in present}, unit)
    return fig

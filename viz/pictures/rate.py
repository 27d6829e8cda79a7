"""Aggregate read and write rates over time, of all calls and of each layer.

The curves of rates with their axis and hover box, of which the explorer draws its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
from bokeh.layouts import column
from bokeh.models import Column, ColumnDataSource, CustomJSHover, DataRange1d, NumeralTickFormatter, Range1d
from bokeh.models.renderers import GlyphRenderer
from bokeh.plotting import figure

from ensembles.model.enclosed import among_themselves
from ensembles.model.events import COLUMNS, Events
from ensembles.model.units import bytes_text, seconds_text
from ensembles.run.run import Run
from ensembles.summaries.rate import RateCurve
from ensembles.summaries.runtotals import DIRECTIONS
from ensembles.viz.common import figures as draw
from ensembles.viz.common.data_for import below_each_other, data_for, named, partial_sentence
from ensembles.viz.common.style import COLOURS, byte_unit, shade

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
    fig = draw.new_figure(title, height, x_range=x_range, name=name, window_axis="x")
    draw.label_time_axis(fig)
    fig.yaxis.formatter = NumeralTickFormatter(format="0,0.[000]")
    return fig


def say_nothing_moved(fig: figure) -> None:
    """Complete a figure without a curve."""
    fig.y_range = Range1d(start=0, end=1)
    label_rates(fig, "MiB")
    draw.annotate_empty(fig, "no bytes were read or written", x_axis=True)


def label_rates(fig: figure, unit: str, name: str = "aggregate rate") -> None:
    """Name the unit of the rates; a low figure has room for a short name."""
    fig.yaxis.axis_label = f"{name} ({unit}/s)"


def add_curve(
    fig: figure, source: ColumnDataSource, direction: str, column: str
) -> tuple[GlyphRenderer[Any], GlyphRenderer[Any]]:
    """Draw area and line of a column of rates over the edges of its cells, ``left``."""
    return draw.add_steps(fig, source, COLOURS[direction], column, x="left", alpha=0.4, width=1.3)


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
    draw.add_hover(
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
    bytes moved. Several runs have one axis of rates, and equal cells of time: the widest.

    Parameters
    ----------
    data : Run, Events or RateCurve
        Or a list or mapping of runs or events.
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
    if by not in (None, "layer"):
        raise ValueError(f'rates are drawn by "layer", not by "{by}"')
    several = named(data)
    runs = [data] if several is None else list(several.values())
    drawn = (
        _by_layer(runs, title, x_range, separate)
        if by is not None
        else rates_alike(
            [data_for(each, RateCurve) for each in runs],
            [title] * len(runs),
            x_range,
            separate,
            [partial_sentence(each) for each in runs],
        )
    )
    parts = [
        column(list(each.values()), sizing_mode="stretch_width", name="rate")
        if separate
        else next(iter(each.values()))
        for each in drawn
    ]
    return parts[0] if several is None else below_each_other(dict(zip(several, parts, strict=True)), "rate")


def rates_alike(
    curves: Sequence[RateCurve],
    titles: Sequence[str | None],
    x_range: Range1d | None = None,
    separate: bool = False,
    partial: Sequence[str] = (),
) -> list[dict[str, figure]]:
    """Draw rates that are compared: with equal cells of time, one unit and one axis.

    Of each curve: by direction if `separate` is true, else one figure by the direction ``""``.
    """
    # Cells of less than 128 ns would show how times are rounded.
    cells = with_equal_cells([each.with_cells_of(128) for each in curves])
    drawn = [
        _figures_of(curve, cells, title, x_range, separate)
        for curve, title in zip(cells, titles, strict=True)
    ]
    for figures, text in zip(drawn, partial, strict=False):
        if text:
            draw.subtitle(next(iter(figures.values())), text)
    _share_axes(drawn)
    return drawn


def _share_axes(drawn: Sequence[dict[str, figure]]) -> None:
    if len(drawn) > 1:
        for direction in dict.fromkeys(direction for each in drawn for direction in each):
            share_axis([each[direction] for each in drawn if direction in each])


def _figures_of(
    curve: RateCurve,
    all_curves: Sequence[RateCurve],
    title: str | None,
    x_range: Range1d | None,
    separate: bool,
) -> dict[str, figure]:
    present = directions_of(curve)
    low_ns, high_ns = (int(curve.edges_ns[0]), int(curve.edges_ns[-1])) if present else (0, 0)
    shared = x_range or draw.time_range(low_ns, high_ns)
    # In short times between two edges the rate may be higher: the width says what a value is the mean of.
    step = f"mean of each {seconds_text(curve.cell_ns * 1e-9)}" if present else ""
    if not separate or len(present) < 2:
        what = f", {step}; the area under a curve is the bytes moved" if present else ": no bytes moved"
        words = title or f"Aggregate rate of all tasks{what}"
        directions = present if separate else [each for each in DIRECTIONS if _moves(all_curves, each)]
        fig = _rates(curve, present, words, shared, "rate", unit_of(all_curves, directions))
        return {present[0] if separate and present else "": fig}
    return {
        each: _rates(
            curve,
            [each],
            _of_direction(each, title, step),
            shared,
            f"rate_{each}",
            unit_of(all_curves, [each]),
        )
        for each in present
    }


def _moves(curves: Sequence[RateCurve], direction: str) -> bool:
    return any(direction in directions_of(each) for each in curves)


def _by_layer(
    runs: Sequence[Any], title: str | None, x_range: Range1d | None, separate: bool
) -> list[dict[str, figure]]:
    found = _layers_alike(runs)
    drawn: list[dict[str, figure]] = []
    for each in found:
        if not separate:
            figures = {"": _draw_layers(each, found, title, x_range, ("write", "read"), "rate")}
        else:
            figures = {
                one: _draw_layers(
                    each, found, f"{title} ({one})" if title else None, x_range, (one,), f"rate_{one}"
                )
                for one in ("write", "read")
            }
            figures["read"].x_range = figures["write"].x_range
        drawn.append(figures)
    _share_axes(drawn)
    return drawn


def _of_direction(direction: str, title: str | None, step: str) -> str:
    name = {"write": "Write", "read": "Read"}[direction]
    return (
        f"{title} ({direction})"
        if title
        else f"{name} rate of all tasks, {step}; the area is the bytes moved"
    )


def _rates(
    curve: RateCurve,
    present: list[str],
    title: str,
    x_range: Range1d,
    name: str,
    axis: tuple[float, str],
) -> figure:
    fig = rate_figure(title, 260, x_range, name)
    if not present:
        say_nothing_moved(fig)
        return fig
    unit_bytes, unit = axis
    # Areas, lines and values share the edges, which are most of the data.
    columns = draw.cells_of_time(curve.edges_ns)
    columns |= {each: draw.steps(curve.rate_bytes_per_s(each)) / unit_bytes for each in present}
    source = ColumnDataSource(columns)
    drawn = {each: add_curve(fig, source, each, each) for each in present}
    items = [draw.legend_item(legend_label(curve, each), *renderers) for each, renderers in drawn.items()]
    draw.horizontal_legend(fig, items, click_policy="hide")
    draw.add_legend_buttons(fig)
    scale_to(fig, [line for _, line in drawn.values()])
    label_rates(fig, unit)
    top = max(float(columns[each].max()) for each in present)
    add_rate_hover(fig, source, top, {f"{each} rate": each for each in present}, unit)
    return fig


_DASHES = ("solid", "dashed", "dotted", "dotdash", "dashdot")
"""Look of the lines of successive layers."""


class LayerRate(NamedTuple):
    """The rate of a layer in one direction."""

    layer: str
    direction: str
    curve: RateCurve  # Of the calls of the layer that are inside of no other call of it
    bytes_per_s: np.ndarray  # Its rate in the cells of the curve of all layers; shape (cells,)


class RatesOfLayers(NamedTuple):
    """The rates of the layers of some calls."""

    whole: RateCurve  # Of the outermost calls of all layers
    rates: list[LayerRate]


def _layers_alike(data: Sequence[Any]) -> list[RatesOfLayers]:
    """Compute the rates of the layers of several runs, with equal cells of time."""
    for each in data:
        if not isinstance(each, Run | Events):
            raise TypeError(f"rates by layer need a run or events, not {type(each).__name__}")
    found = [_curves_of_layers(each) for each in data]
    wholes = with_equal_cells([whole for whole, _ in found])
    alike = []
    for whole, (_, curves) in zip(wholes, found, strict=True):
        rates = [
            LayerRate(layer, direction, curve, moved[DIRECTIONS.index(direction)] * (1e9 / whole.cell_ns))
            for layer, curve in curves.items()
            for moved in [curve.moved_bytes_on(whole)]
            for direction in directions_of(curve)
        ]
        alike.append(RatesOfLayers(whole, rates))
    return alike


def _curves_of_layers(data: Run | Events) -> tuple[RateCurve, dict[str, RateCurve]]:
    """Return the rates of the outermost calls, and of each layer, those that call others first."""
    events = data.select(op=["read", "write"]) if isinstance(data, Run) else data
    whole = RateCurve(knows_active=False)
    whole.add(among_themselves(events))
    names = np.array([call.layer for call in events.calls])
    layer_of = names[events.call] if len(events) else np.empty(0, names.dtype)
    layers = sorted(set(layer_of.tolist()), key=lambda name: float(events.depth[layer_of == name].mean()))
    curves = {}
    for layer in layers:
        curves[layer] = RateCurve()
        curves[layer].add(_outermost_of(events[layer_of == layer]))
    return whole, curves


def _outermost_of(events: Events) -> Events:
    """Return the calls of a layer with depths among themselves, though some are in calls of other layers."""
    columns = {name: getattr(events, name) for name in COLUMNS}
    columns["depth"] = np.ones(len(events), np.uint8)
    return among_themselves(Events(columns, events.calls, events.files, events.sites))


def _draw_layers(
    found: RatesOfLayers,
    beside: Sequence[RatesOfLayers],
    title: str | None,
    x_range: Range1d | None,
    directions: tuple[str, ...],
    name: str,
) -> figure:
    """Draw a curve for each layer and direction: `ensembles.viz.pictures.rate` with ``by="layer"``."""
    whole, every = found
    rates = [each for each in every if each.direction in directions]
    edges_ns = whole.edges_ns
    shared = x_range or (
        draw.time_range(int(edges_ns[0]), int(edges_ns[-1])) if every else draw.time_range(0, 0)
    )
    what = f"{directions[0]} rate" if len(directions) == 1 else "rate"
    step = f", mean of each {seconds_text(whole.cell_ns * 1e-9)}" if every else ""
    words = f"Aggregate {what} of each layer{step}; a layer has the bytes of the calls inside it, too"
    fig = rate_figure(title or words, 280, shared, name)
    if not rates:
        say_nothing_moved(fig)
        return fig
    tops = [
        float(each.bytes_per_s.max()) for one in beside for each in one.rates if each.direction in directions
    ]
    unit_bytes, unit = byte_unit(max([1024.0, *tops]))
    columns = draw.cells_of_time(edges_ns)
    names = {f"{each.layer} {each.direction}": f"{each.layer}_{each.direction}" for each in rates}
    columns |= {
        key: draw.steps(each.bytes_per_s) / unit_bytes
        for key, each in zip(names.values(), rates, strict=True)
    }
    source = ColumnDataSource(columns)
    layers = list(dict.fromkeys(each.layer for each in every))
    lines, items = [], []
    for key, each in zip(names.values(), rates, strict=True):
        at = layers.index(each.layer)
        line = fig.step(
            x="left",
            y=key,
            source=source,
            mode="after",
            line_color=shade(COLOURS[each.direction], at),
            line_dash=_DASHES[at % len(_DASHES)],
            line_width=1.6,
            name=key,
        )
        lines.append(line)
        items.append(draw.legend_item(f"{each.layer} {legend_label(each.curve, each.direction)}", line))
    draw.horizontal_legend(fig, items, click_policy="hide")
    scale_to(fig, lines)
    label_rates(fig, unit)
    top = max(float(columns[key].max()) for key in names.values())
    add_rate_hover(fig, source, top, names, unit)
    return fig

"""Aggregate read and write rates over time.

Aggregate rates over time of each layer: what a program asked a library for, and what became of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple, overload

import numpy as np
from bokeh.layouts import column
from bokeh.models import Column, ColumnDataSource, Range1d
from bokeh.plotting import figure

from ensembles.model.enclosed import among_themselves
from ensembles.model.events import COLUMNS, Events
from ensembles.model.units import seconds_text
from ensembles.run.run import Run
from ensembles.summaries.rate import RateCurve
from ensembles.summaries.runtotals import DIRECTIONS
from ensembles.viz.common.data_for import below_each_other, data_for, named, partial_sentence
from ensembles.viz.common.figures import (
    add_legend_buttons,
    cells_of_time,
    horizontal_legend,
    legend_item,
    steps,
    subtitle,
    time_range,
)
from ensembles.viz.common.rate_curves import (
    LEAST_CELL_NS,
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
from ensembles.viz.common.style import COLOURS, byte_unit, shade


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
    cells = with_equal_cells([each.with_cells_of(LEAST_CELL_NS) for each in curves])
    drawn = [
        _figures_of(curve, cells, title, x_range, separate)
        for curve, title in zip(cells, titles, strict=True)
    ]
    for figures, text in zip(drawn, partial, strict=False):
        if text:
            subtitle(next(iter(figures.values())), text)
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
    shared = x_range or time_range(low_ns, high_ns)
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
    found = layers_alike(runs)
    drawn: list[dict[str, figure]] = []
    for each in found:
        if not separate:
            figures = {"": draw_rates_of_layers(each, found, title, x_range, ("write", "read"), "rate")}
        else:
            figures = {
                one: draw_rates_of_layers(
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


_DASHES = ("solid", "dashed", "dotted", "dotdash", "dashdot")
"""Look of the lines of successive layers."""


class LayerRate(NamedTuple):
    """The rate of a layer in one direction."""

    layer: str
    direction: str
    curve: RateCurve  # Of the calls of the layer that are inside of no other call of it
    bytes_per_s: np.ndarray  # Its rate in the cells of the curve of all layers; shape (cells,)


def rates_of_layers(data: Run | Events) -> tuple[RateCurve, list[LayerRate]]:
    """Compute the rates of each layer, on the same cells of time."""
    events = data.select(op=["read", "write"]) if isinstance(data, Run) else data
    whole = RateCurve(knows_active=False)
    whole.add(among_themselves(events))
    names = np.array([call.layer for call in events.calls])
    layer_of = names[events.call] if len(events) else np.empty(0, names.dtype)
    layers = sorted(set(layer_of.tolist()), key=lambda name: float(events.depth[layer_of == name].mean()))
    rates = []
    for layer in layers:
        curve = RateCurve()
        curve.add(_outermost_of(events[layer_of == layer]))
        found = curve.moved_bytes_on(whole) * (1e9 / whole.cell_ns)
        rates += [
            LayerRate(layer, direction, curve, found[DIRECTIONS.index(direction)])
            for direction in directions_of(curve)
        ]
    return whole, rates


class RatesOfLayers(NamedTuple):
    """The rates of the layers of some calls."""

    whole: RateCurve  # Of the outermost calls of all layers
    rates: list[LayerRate]


def layers_alike(data: Sequence[Any]) -> list[RatesOfLayers]:
    """Compute the rates of the layers of several runs, with equal cells of time."""
    for each in data:
        if not isinstance(each, Run | Events):
            raise TypeError(f"rates by layer need a run or events, not {type(each).__name__}")
    found = [rates_of_layers(each) for each in data]
    wholes = with_equal_cells([whole for whole, _ in found])
    alike = []
    for whole, (_, rates) in zip(wholes, found, strict=True):
        per_s = 1e9 / whole.cell_ns
        on_cells = [
            each._replace(
                bytes_per_s=each.curve.moved_bytes_on(whole)[DIRECTIONS.index(each.direction)] * per_s
            )
            for each in rates
        ]
        alike.append(RatesOfLayers(whole, on_cells))
    return alike


def _outermost_of(events: Events) -> Events:
    """Return the calls of a layer with depths among themselves, though some are in calls of other layers."""
    columns = {name: getattr(events, name) for name in COLUMNS}
    columns["depth"] = np.ones(len(events), np.uint8)
    return among_themselves(Events(columns, events.calls, events.files, events.sites))


def draw_rates_of_layers(
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
    shared = x_range or (time_range(int(edges_ns[0]), int(edges_ns[-1])) if every else time_range(0, 0))
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
    columns = cells_of_time(edges_ns)
    names = {f"{each.layer} {each.direction}": f"{each.layer}_{each.direction}" for each in rates}
    columns |= {
        key: steps(each.bytes_per_s) / unit_bytes for key, each in zip(names.values(), rates, strict=True)
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
        items.append(legend_item(f"{each.layer} {legend_label(each.curve, each.direction)}", line))
    horizontal_legend(fig, items, click_policy="hide")
    scale_to(fig, lines)
    label_rates(fig, unit)
    top = max(float(columns[key].max()) for key in names.values())
    add_rate_hover(fig, source, top, names, unit)
    return fig

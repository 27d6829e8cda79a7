"""Aggregate rates over time of each layer: what a program asked a library for, and what became of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from bokeh.models import ColumnDataSource, Range1d
from bokeh.plotting import figure

from ensembles.model.enclosed import among_themselves
from ensembles.model.events import COLUMNS, Events
from ensembles.model.units import seconds_text
from ensembles.run.run import Run
from ensembles.summaries.rate import RateCurve
from ensembles.summaries.runtotals import DIRECTIONS
from ensembles.viz.common.figures import cells_of_time, horizontal_legend, legend_item, steps, time_range
from ensembles.viz.common.rate_curves import (
    add_rate_hover,
    directions_of,
    label_rates,
    legend_label,
    rate_figure,
    say_nothing_moved,
    scale_to,
    with_equal_cells,
)
from ensembles.viz.common.style import COLOURS, byte_unit, shade

_DASHES = ("solid", "dashed", "dotted", "dotdash", "dashdot")
"""Look of the lines of successive layers."""

_HEIGHT = 280


class LayerRate(NamedTuple):
    """The rate of a layer in one direction."""

    layer: str
    direction: str
    curve: RateCurve  # Of the calls of the layer that are inside of no other call of it
    bytes_per_s: np.ndarray  # Its rate in the cells of the curve of all layers; shape (cells,)


def rates_of_layers(data: Run | Events) -> tuple[RateCurve, list[LayerRate]]:
    """Compute the rates of each layer, on the same cells of time.

    Examples
    --------
    >>> from ensembles.viz.pictures.rate_by_layer import rates_of_layers
    >>> whole, rates = rates_of_layers(en.open("ensio-ior"))
    >>> [(each.layer, each.direction) for each in rates]
    [('posix', 'write'), ('posix', 'read')]
    """
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
    """Compute the rates of the layers of several runs, with equal cells of time.

    Examples
    --------
    >>> from ensembles.viz.pictures.rate_by_layer import layers_alike
    >>> found = layers_alike([en.open("ensio-ior"), en.open("ensio-ior-2")])
    >>> len({each.whole.cell_ns for each in found})
    1
    """
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
    fig = rate_figure(title or words, _HEIGHT, shared, name)
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
        column: steps(each.bytes_per_s) / unit_bytes
        for column, each in zip(names.values(), rates, strict=True)
    }
    source = ColumnDataSource(columns)
    layers = list(dict.fromkeys(each.layer for each in every))
    lines, items = [], []
    for column, each in zip(names.values(), rates, strict=True):
        at = layers.index(each.layer)
        line = fig.step(
            x="left",
            y=column,
            source=source,
            mode="after",
            line_color=shade(COLOURS[each.direction], at),
            line_dash=_DASHES[at % len(_DASHES)],
            line_width=1.6,
            name=column,
        )
        lines.append(line)
        items.append(legend_item(f"{each.layer} {legend_label(each.curve, each.direction)}", line))
    horizontal_legend(fig, items, click_policy="hide")
    scale_to(fig, lines)
    label_rates(fig, unit)
    top = max(float(columns[column].max()) for column in names.values())
    add_rate_hover(fig, source, top, names, unit)
    return fig

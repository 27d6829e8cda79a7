"""The slowest of N calls for several N: density and cumulative distribution."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from bokeh.layouts import column
from bokeh.models import Column, ColumnDataSource, HoverTool, NumeralTickFormatter, Range1d
from bokeh.models.annotations import LegendItem
from bokeh.plotting import figure

from ensembles.ensemble.ensemble import Ensemble
from ensembles.model.errors import EnsioError
from ensembles.model.units import count_text, seconds_text
from ensembles.statistics.extremes.order_statistics import maximum_distribution
from ensembles.statistics.extremes.slowest_of_n import check_tasks
from ensembles.statistics.extremes.tail import Tail
from ensembles.summaries.histogram import coarse_bins
from ensembles.viz.common.figures import (
    annotate_empty,
    ends,
    horizontal_legend,
    label_log_durations,
    legend_item,
    new_figure,
    plain,
    subtitle,
)
from ensembles.viz.common.style import NEUTRAL, SERIES, time_hover

_MOST = 6
_LEAST_S = 0.5e-9
_LEAST_BINS = 48
_LEAST_SHARE = 0.0005
_MOST_BEYOND = 4
"""Of a prediction beyond so many times the longest call, the end is outside of the figure."""


def order_statistic(ensemble: Ensemble, tasks: Iterable[int], title: str | None, level: float) -> Column:
    """Draw the slowest of N calls for several N: curves, and predictions below them."""
    numbers = _numbers(tasks)
    of = f" of {plain(ensemble.name)}" if ensemble.name else ""
    head = title or f"Slowest of N calls{of}: density"
    if not ensemble.n or float(ensemble.sample.max_s.max()) <= 0:
        fig = new_figure(
            head,
            200,
            x_range=Range1d(start=1e-6, end=1.0),
            y_range=Range1d(start=0, end=1),
            x_axis_type="log",
            name="order_statistic_density",
        )
        label_log_durations(fig, ensemble)
        annotate_empty(fig, "no calls with a duration")
        return column([fig], sizing_mode="stretch_width", name="order_statistic")
    colours = dict(zip(numbers, SERIES, strict=False))
    tails = {number: ensemble.tail(number, level) for number in numbers}
    shared = _range(ensemble, tails)
    parts = [
        _density(ensemble, colours, shared, head),
        _cumulative(ensemble, colours, shared),
        *_predictions(ensemble, tails, colours, shared, level),
    ]
    return column(parts, sizing_mode="stretch_width", name="order_statistic")


def _numbers(tasks: Iterable[int]) -> list[int]:
    given = list(tasks)
    if not 1 <= len(given) <= _MOST:
        raise EnsioError(f"{len(given)} numbers of tasks were given: choose 1 to {_MOST}")
    return sorted({check_tasks(number) for number in given})


def _range(ensemble: Ensemble, tails: dict[int, Tail]) -> Range1d:
    """Return the durations of curves and predictions, without the shortest of many calls."""
    edges_s, one = maximum_distribution(ensemble.sample, 1)
    low = edges_s[max(int(np.searchsorted(one, _LEAST_SHARE)) - 1, 0)]
    seen_s = float(ensemble.sample.max_s.max())
    high = max([seen_s, *(min(tail.high_s or 0.0, _MOST_BEYOND * seen_s) for tail in tails.values())])
    return Range1d(start=max(float(low), _LEAST_S) / 1.1, end=max(high, 2 * _LEAST_S) * 1.25)


def _curve(ensemble: Ensemble, number: int, edges: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return F_N at coarser edges in s, and these edges, where it rises."""
    edges_s, chance = maximum_distribution(ensemble.sample, number)
    edges_s, chance = edges_s[edges], chance[edges]
    rises = np.flatnonzero(np.diff(chance) > 1e-9)
    used = slice(int(rises[0]), int(rises[-1]) + 2)
    return np.maximum(edges_s[used], _LEAST_S), chance[used]


def _edges(shared: Range1d) -> np.ndarray:
    """Return bins of the bin law: finer ones if the axis covers few octaves."""
    low, high = ends(shared)
    octaves = float(np.log2(high / low))
    per_octave = next((each for each in (8, 16) if each * octaves >= _LEAST_BINS), 32)
    return coarse_bins(per_octave)


def _density(
    ensemble: Ensemble,
    colours: dict[int, str],
    shared: Range1d,
    title: str,
) -> figure:
    fig = new_figure(title, 290, x_range=shared, x_axis_type="log", name="order_statistic_density")
    fig.yaxis.axis_label = "probability per e-fold of duration"
    fig.xaxis.visible = False
    edges = _edges(shared)
    edges_s, chance = _curve(ensemble, 1, edges)
    one = _steps_of(edges_s, chance)
    area = fig.varea_step(
        x="t", y1=0, y2="density", step_mode="after", source=one, fill_color=NEUTRAL["line"], fill_alpha=0.25
    )
    top = float(np.max(one.data["density"]))
    items: list[LegendItem] = [legend_item("one call", area)]
    lines = []
    for number, colour in colours.items():
        source = _steps_of(*_curve(ensemble, number, edges))
        line = fig.step(x="t", y="density", mode="after", source=source, line_color=colour, line_width=2.2)
        line.name = f"density_{number}"
        lines.append(line)
        items.append(legend_item(f"slowest of {number:,}", line))
        top = max(top, float(np.max(source.data["density"])))
    fig.y_range = Range1d(start=0, end=1.06 * top)
    items += _observed(fig, ensemble, 1.06 * top)
    horizontal_legend(fig, items)
    fig.add_tools(
        HoverTool(
            renderers=[*lines],
            visible=False,
            tooltips=[("slowest", "@t{0}"), ("density", "@density{0.000}")],
            formatters={"@t": time_hover()},
        )
    )
    return fig


def _steps_of(edges_s: np.ndarray, chance: np.ndarray) -> ColumnDataSource:
    density = np.diff(chance) / np.diff(np.log(edges_s))
    t = np.concatenate([edges_s[:1], edges_s])
    return ColumnDataSource({"t": t, "density": np.concatenate([[0.0], density, [0.0]])})


def _predictions(
    ensemble: Ensemble, tails: dict[int, Tail], colours: dict[int, str], shared: Range1d, level: float
) -> list[figure]:
    """Draw median and interval of each prediction below each other, if there are any."""
    refused = {number: tail.refused for number, tail in tails.items() if tail.refused and number > 1}
    known = {number: tail for number, tail in tails.items() if tail.median_s is not None}
    if not known and not refused:
        return []
    rows = max(len(known), 1)
    fig = new_figure(
        "Slowest of N calls: prediction",
        110 + 24 * rows,
        x_range=shared,
        y_range=Range1d(start=rows - 0.4, end=-0.6),
        x_axis_type="log",
        name="order_statistic_predictions",
    )
    label_log_durations(fig, ensemble)
    fig.yaxis.axis_label = "N"
    fig.ygrid.visible = False
    if refused:
        first = min(refused)
        others = f"; nor of {', '.join(f'{number:,}' for number in refused if number > first)}"
        more = others if len(refused) > 1 else ""
        subtitle(fig, f"No prediction for the slowest of {first:,}: {refused[first]}{more}.")
    if not known:
        annotate_empty(fig, "no prediction", x_axis=True)
        return [fig]
    fig.yaxis.ticker = list(range(rows))
    fig.yaxis.major_label_overrides = {place: f"{number:,}" for place, number in enumerate(known)}
    source = ColumnDataSource(
        {
            "y": list(range(rows)),
            "tasks": [f"{number:,}" for number in known],
            "low": [max(tail.low_s or 0.0, _LEAST_S) for tail in known.values()],
            "median": [max(tail.median_s or 0.0, _LEAST_S) for tail in known.values()],
            "high": [tail.high_s for tail in known.values()],
            "colour": [colours[number] for number in known],
        }
    )
    bar = fig.segment(
        x0="low", x1="high", y0="y", y1="y", source=source, line_color="colour", line_width=5, line_alpha=0.55
    )
    point = fig.scatter(
        x="median",
        y="y",
        source=source,
        size=9,
        fill_color="colour",
        line_color=NEUTRAL["text"],
        name="predictions",
    )
    _observed(fig, ensemble, rows - 0.4, -0.6)
    fig.add_tools(
        HoverTool(
            renderers=[bar, point],
            visible=False,
            tooltips=[("slowest of", "@tasks"), ("median", "@median{0}"), ("interval", "@low{0} – @high{0}")],
            formatters={name: time_hover() for name in ("@low", "@median", "@high")},
        )
    )
    horizontal_legend(fig, [legend_item(f"median and {100 * level:g} % interval", point, bar)])
    return [fig]


def _observed(fig: figure, ensemble: Ensemble, top: float, bottom: float = 0) -> list[LegendItem]:
    seen_s = float(ensemble.sample.max_s.max())
    line = fig.segment(
        x0=[max(seen_s, _LEAST_S)],
        x1=[max(seen_s, _LEAST_S)],
        y0=[bottom],
        y1=[top],
        line_color=NEUTRAL["text"],
        line_width=1.6,
        line_dash="dotted",
        name="seen",
    )
    return [legend_item(f"slowest of all {count_text(ensemble.n, 'call')}: {seconds_text(seen_s)}", line)]


def _cumulative(ensemble: Ensemble, colours: dict[int, str], shared: Range1d) -> figure:
    fig = new_figure(
        "Slowest of N calls: cumulative distribution",
        250,
        x_range=shared,
        y_range=Range1d(start=0, end=1.04),
        x_axis_type="log",
        name="order_statistic_cdf",
    )
    fig.xaxis.visible = False
    fig.yaxis.axis_label = "probability"
    fig.yaxis.formatter = NumeralTickFormatter(format="0 %")
    edges = coarse_bins(32)
    edges_s, chance = _curve(ensemble, 1, edges)
    fig.line(x=edges_s, y=chance, line_color=NEUTRAL["line"], line_width=2)
    lines = []
    for number, colour in colours.items():
        edges_s, chance = _curve(ensemble, number, edges)
        source = ColumnDataSource({"t": edges_s, "p": chance, "tasks": [f"{number:,}"] * len(chance)})
        line = fig.line(x="t", y="p", source=source, line_color=colour, line_width=2.2)
        line.name = f"cdf_{number}"
        lines.append(line)
    _observed(fig, ensemble, 1.04)
    fig.add_tools(
        HoverTool(
            renderers=[*lines],
            visible=False,
            tooltips=[("slowest of", "@tasks"), ("at most", "@t{0}"), ("probability", "@p{0.0 %}")],
            formatters={"@t": time_hover()},
        )
    )
    return fig

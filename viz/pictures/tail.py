"""The maximum of N calls: predicted distribution, Equation 1 of the paper, observed maxima.

The slowest of N calls for several N: density and cumulative distribution.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from bokeh.layouts import column
from bokeh.models import Column, ColumnDataSource, Range1d
from bokeh.models.annotations import LegendItem
from bokeh.plotting import figure

from ensembles.ensemble.ensemble import Ensemble
from ensembles.model.errors import EnsioError
from ensembles.model.units import count_text, seconds_text
from ensembles.statistics.extremes.order_statistics import maximum_distribution
from ensembles.statistics.extremes.slowest_of_n import check_tasks, predict_curve
from ensembles.statistics.extremes.tail import METHODS, Tail
from ensembles.summaries.histogram import coarse_bins
from ensembles.viz.common import figures as draw
from ensembles.viz.common.data_for import of_several
from ensembles.viz.common.style import NEUTRAL, SERIES, SHORTEST_S, op_colour


@of_several
def tail(
    data: Any,
    tasks: int | Iterable[int] | None = None,
    *,
    title: str | None = None,
    level: float = 0.9,
) -> figure | Column:
    """Draw the predicted cumulative distribution function (CDF) of the slowest of N calls.

    The figure also shows the distribution for independent, identically distributed (i.i.d.) calls, which is
    F(t)^N (Equation 1 of the paper), and the observed maxima. For several N, it is Equation 1 as density and
    CDF, ``f_N(t) = N F(t)**(N - 1) f(t)``, with the predictions below: one that is wide or lies far from its
    curve says that calls are not independent.

    Parameters
    ----------
    data : Ensemble, Events or Run
        For events or a run, all calls are one ensemble.
    tasks : int or iterable of int, optional
        N, one call per task, or at most 6 numbers N; default: the tasks of the run, or those of the
        ensemble's calls.
    title : str, optional
    level : float
        Probability of the shaded prediction interval.

    Returns
    -------
    figure or Column
        Without a prediction, the figure states the reason and shows Equation 1. Of several N, the names of
        the figures are ``order_statistic_density``, ``order_statistic_cdf`` and
        ``order_statistic_predictions``.

    Raises
    ------
    EnsioError
        The number of tasks is neither given nor known, or out of range.
    TypeError
        `data` has another type.

    References
    ----------
    Uselton et al., "Parallel I/O Performance: From Events to Ensembles", IPDPS 2010, Equation 1.

    Examples
    --------
    >>> from ensembles import viz
    >>> figure = viz.tail(en.open("ensio-ior").ensemble(op="write"), tasks=8)
    >>> figure.yaxis.axis_label
    'CDF of the maximum of 8 calls'
    """
    ensemble = draw.ensemble_from(data)
    if isinstance(tasks, Iterable):
        return order_statistic(ensemble, tasks, title, level)
    tasks = tasks_of(data, ensemble) if tasks is None else tasks
    answer, duration_s, chance = predict_curve(ensemble.sample, tasks, level, calls=ensemble.calls)
    x_range = _range_of_durations(ensemble, answer.tasks, duration_s)
    fig = draw.new_figure(
        title or _title(ensemble, answer),
        360,
        x_range=x_range,
        y_range=Range1d(start=0, end=1.08),
        x_axis_type="log",
        name="tail",
    )
    draw.label_log_durations(fig, ensemble)
    draw.name_axis(fig.yaxis, f"CDF of the maximum of {count_text(answer.tasks, 'call')}", "0 %")
    if not ensemble.n:
        draw.annotate_empty(fig, "no calls")
        return fig
    method = f"No prediction: {answer.refused}." if answer.refused else f"Method: {METHODS[answer.method]}."
    draw.subtitle(fig, method)
    draw.say_what_is_left_out(fig, ensemble)
    items = _predicted(fig, answer, duration_s, chance, op_colour(ensemble.op))
    items += _equation1(fig, ensemble, answer)
    items += _observed_maximum(fig, ensemble, answer)
    draw.horizontal_legend(fig, items)
    return fig


def tasks_of(data: Any, ensemble: Ensemble) -> int:
    """Return the tasks of a run, or those that made the calls of an ensemble."""
    return max(int(getattr(data, "tasks", None) or ensemble.tasks), 1)


def _title(ensemble: Ensemble, answer: Tail) -> str:
    of = f" of {draw.plain(ensemble.name)}" if ensemble.name else ""
    what = "Any call" if answer.tasks == 1 else f"Slowest of {count_text(answer.tasks, 'call')}"
    what += of
    if answer.refused or answer.low_s is None or answer.high_s is None:
        return what
    between = f"{seconds_text(answer.low_s)} to {seconds_text(answer.high_s)}"
    return f"{what}: {100 * answer.level:g} % prediction interval {between}"


def _range_of_durations(ensemble: Ensemble, tasks: int, duration_s: np.ndarray) -> Range1d:
    if not ensemble.n:
        return Range1d(start=1e-6, end=1.0)
    shown = [float(ensemble.sample.max_s.max()), *duration_s.tolist()]
    edges_s, chance = maximum_distribution(ensemble.sample, tasks)
    shown += [
        float(edges_s[min(int(np.searchsorted(chance, level)), len(edges_s) - 1)]) for level in (0.001, 0.999)
    ]
    return Range1d(start=max(min(shown), SHORTEST_S) / 1.25, end=max(max(shown), 2 * SHORTEST_S) * 1.25)


def _predicted(
    fig: figure, answer: Tail, duration_s: np.ndarray, chance: np.ndarray, colour: str
) -> list[LegendItem]:
    if answer.refused or answer.low_s is None or answer.high_s is None or answer.median_s is None:
        return []
    level = f"{100 * answer.level:g} %"
    band = fig.quad(
        left=[answer.low_s],
        right=[answer.high_s],
        bottom=[0],
        top=[1],
        fill_color=colour,
        fill_alpha=0.18,
        line_alpha=0,
        name="interval",
    )
    source = ColumnDataSource({"t": np.maximum(duration_s, SHORTEST_S), "p": chance})
    line = fig.line(x="t", y="p", source=source, line_color=colour, line_width=2.4, name="ours")
    points = fig.scatter(x="t", y="p", source=source, size=5, fill_color=colour, line_color=colour)
    _box(fig, points, "maximum at most")
    return [
        draw.legend_item("prediction", line, points),
        draw.legend_item(f"{level} prediction interval", band),
    ]


def _equation1(fig: figure, ensemble: Ensemble, answer: Tail) -> list[LegendItem]:
    if answer.equation1 is None:
        return []
    edges_s, chance = maximum_distribution(ensemble.sample, answer.tasks)
    used = np.flatnonzero((chance > 1e-6) & (np.append(True, chance[:-1]) < 1))
    used = np.arange(max(used[0] - 1, 0), used[-1] + 1) if len(used) else np.arange(1)
    # Equation 1 is bounded by the observed durations.
    seen_s = np.clip(edges_s[used], ensemble.sample.min_s.min(), ensemble.sample.max_s.max())
    source = ColumnDataSource({"t": np.maximum(seen_s, SHORTEST_S), "p": chance[used]})
    line = fig.line(
        x="t",
        y="p",
        source=source,
        line_color=NEUTRAL["line"],
        line_width=2,
        line_dash="dashed",
        name="equation1",
    )
    _box(fig, line, "Equation 1: maximum at most")
    return [draw.legend_item(f"Equation 1 (i.i.d. calls): {answer.equation1}", line)]


def _observed_maximum(fig: figure, ensemble: Ensemble, answer: Tail) -> list[LegendItem]:
    if answer.observed_max_s is None:
        return []
    line = draw.add_marks(fig, [max(answer.observed_max_s, SHORTEST_S)], 1.05, **_SEEN)
    label = f"observed maximum: {seconds_text(answer.observed_max_s)}"
    items = [draw.legend_item(label, line)]
    phases = ensemble.sample
    # In phases with about N calls, the maximum is a sample of the maximum of N.
    alike = len(phases.n) and answer.tasks / 1.5 <= np.median(phases.n) <= answer.tasks * 1.5
    if phases.phases_known and 1 < len(phases.phase) <= 2000 and alike:
        slowest = np.sort(np.maximum(phases.max_s, SHORTEST_S))
        chance = (np.arange(len(slowest)) + 0.5) / len(slowest)
        marks = fig.scatter(
            x=slowest, y=chance, marker="x", size=6, line_color=NEUTRAL["text"], line_alpha=0.7, name="phases"
        )
        items.append(draw.legend_item("observed maximum of each phase", marks))
    return items


def _box(fig: figure, drawn: Any, what: str) -> None:
    draw.add_hover(fig, drawn, [(what, "@t{s}"), ("probability", "@p{0.0 %}")], visible=False)


_SEEN: dict[str, Any] = {
    "line_color": NEUTRAL["text"],
    "line_width": 1.6,
    "line_dash": "dotted",
    "name": "seen",
}


def order_statistic(ensemble: Ensemble, tasks: Iterable[int], title: str | None, level: float) -> Column:
    """Draw the slowest of N calls for several N: curves, and predictions below them."""
    numbers = _numbers(tasks)
    of = f" of {draw.plain(ensemble.name)}" if ensemble.name else ""
    head = title or f"Slowest of N calls{of}: density"
    if not ensemble.n or float(ensemble.sample.max_s.max()) <= 0:
        why = "no calls with a duration"
        return draw.empty_picture(head, why, "order_statistic", "order_statistic_density")
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
    if not 1 <= len(given) <= len(SERIES):
        raise EnsioError(f"{len(given)} numbers of tasks were given: choose 1 to {len(SERIES)}")
    return sorted({check_tasks(number) for number in given})


def _range(ensemble: Ensemble, tails: dict[int, Tail]) -> Range1d:
    """Return the durations of curves and predictions, without the shortest of many calls."""
    edges_s, one = maximum_distribution(ensemble.sample, 1)
    low = edges_s[max(int(np.searchsorted(one, 0.0005)) - 1, 0)]
    seen_s = float(ensemble.sample.max_s.max())
    high = max([seen_s, *(min(tail.high_s or 0.0, 4 * seen_s) for tail in tails.values())])
    return Range1d(start=max(float(low), SHORTEST_S) / 1.1, end=max(high, 2 * SHORTEST_S) * 1.25)


def _curve(ensemble: Ensemble, number: int, edges: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return F_N at coarser edges in s, and these edges, where it rises."""
    edges_s, chance = maximum_distribution(ensemble.sample, number)
    edges_s, chance = edges_s[edges], chance[edges]
    rises = np.flatnonzero(np.diff(chance) > 1e-9)
    used = slice(int(rises[0]), int(rises[-1]) + 2)
    return np.maximum(edges_s[used], SHORTEST_S), chance[used]


def _edges(shared: Range1d) -> np.ndarray:
    """Return bins of the bin law: finer ones if the axis covers few octaves."""
    low, high = draw.ends(shared)
    octaves = float(np.log2(high / low))
    per_octave = next((each for each in (8, 16) if each * octaves >= 48), 32)
    return coarse_bins(per_octave)


def _density(
    ensemble: Ensemble,
    colours: dict[int, str],
    shared: Range1d,
    title: str,
) -> figure:
    fig = draw.new_figure(title, 290, x_range=shared, x_axis_type="log", name="order_statistic_density")
    fig.yaxis.axis_label = "probability per e-fold of duration"
    fig.xaxis.visible = False
    edges = _edges(shared)
    edges_s, chance = _curve(ensemble, 1, edges)
    one = _steps_of(edges_s, chance)
    area = fig.varea_step(
        x="t", y1=0, y2="density", step_mode="after", source=one, fill_color=NEUTRAL["line"], fill_alpha=0.25
    )
    top = float(np.max(one.data["density"]))
    items: list[LegendItem] = [draw.legend_item("one call", area)]
    lines = []
    for number, colour in colours.items():
        source = _steps_of(*_curve(ensemble, number, edges))
        line = fig.step(x="t", y="density", mode="after", source=source, line_color=colour, line_width=2.2)
        line.name = f"density_{number}"
        lines.append(line)
        items.append(draw.legend_item(f"slowest of {number:,}", line))
        top = max(top, float(np.max(source.data["density"])))
    fig.y_range = Range1d(start=0, end=1.06 * top)
    items += _observed(fig, ensemble, 1.06 * top)
    draw.horizontal_legend(fig, items)
    draw.add_hover(fig, lines, [("slowest", "@t{s}"), ("density", "@density{0.000}")], visible=False)
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
    fig = draw.new_figure(
        "Slowest of N calls: prediction",
        110 + 24 * rows,
        x_range=shared,
        y_range=Range1d(start=rows - 0.4, end=-0.6),
        x_axis_type="log",
        name="order_statistic_predictions",
    )
    draw.label_log_durations(fig, ensemble)
    fig.yaxis.axis_label = "N"
    fig.ygrid.visible = False
    if refused:
        first = min(refused)
        others = f"; nor of {', '.join(f'{number:,}' for number in refused if number > first)}"
        more = others if len(refused) > 1 else ""
        draw.subtitle(fig, f"No prediction for the slowest of {first:,}: {refused[first]}{more}.")
    if not known:
        draw.annotate_empty(fig, "no prediction", x_axis=True)
        return [fig]
    fig.yaxis.ticker = list(range(rows))
    fig.yaxis.major_label_overrides = {place: f"{number:,}" for place, number in enumerate(known)}
    columns = {
        "y": list(range(rows)),
        "label": [f"{number:,}" for number in known],
        "low": [max(tail.low_s or 0.0, SHORTEST_S) for tail in known.values()],
        "median": [max(tail.median_s or 0.0, SHORTEST_S) for tail in known.values()],
        "high": [tail.high_s for tail in known.values()],
        "colour": [colours[number] for number in known],
    }
    draw.add_intervals(fig, columns, "slowest of", level)
    _observed(fig, ensemble, rows - 0.4, -0.6)
    return [fig]


def _observed(fig: figure, ensemble: Ensemble, top: float, bottom: float = 0) -> list[LegendItem]:
    seen_s = float(ensemble.sample.max_s.max())
    line = draw.add_marks(fig, [max(seen_s, SHORTEST_S)], top, bottom, **_SEEN)
    return [
        draw.legend_item(f"slowest of all {count_text(ensemble.n, 'call')}: {seconds_text(seen_s)}", line)
    ]


def _cumulative(ensemble: Ensemble, colours: dict[int, str], shared: Range1d) -> figure:
    fig = draw.new_figure(
        "Slowest of N calls: cumulative distribution",
        250,
        x_range=shared,
        y_range=Range1d(start=0, end=1.04),
        x_axis_type="log",
        name="order_statistic_cdf",
    )
    fig.xaxis.visible = False
    draw.name_axis(fig.yaxis, "probability", "0 %")
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
    draw.add_hover(
        fig,
        lines,
        [("slowest of", "@tasks"), ("at most", "@t{s}"), ("probability", "@p{0.0 %}")],
        visible=False,
    )
    return fig

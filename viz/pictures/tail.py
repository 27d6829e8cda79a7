"""The maximum of N calls: predicted distribution, Equation 1 of the paper, observed maxima."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from bokeh.models import Column, ColumnDataSource, HoverTool, NumeralTickFormatter, Range1d
from bokeh.models.annotations import LegendItem
from bokeh.plotting import figure

from ensembles.ensemble.ensemble import Ensemble
from ensembles.model.units import count_text, seconds_text
from ensembles.statistics.extremes.order_statistics import maximum_distribution
from ensembles.statistics.extremes.predictive_cdf import PredictiveCdf
from ensembles.statistics.extremes.tail import METHODS, Tail
from ensembles.viz.common.figures import (
    annotate_empty,
    ensemble_from,
    horizontal_legend,
    label_log_durations,
    legend_item,
    new_figure,
    plain,
    say_what_is_left_out,
    subtitle,
)
from ensembles.viz.common.several import of_several
from ensembles.viz.common.style import NEUTRAL, op_colour, time_hover
from ensembles.viz.pictures.order_statistic import order_statistic

_HEIGHT = 360
_MOST_PHASES = 2000
_LEAST_S = 0.5e-9
_SHOWN = (0.001, 0.999)


@of_several
def tail(
    data: Any,
    tasks: int | Iterable[int] | None = None,
    *,
    title: str | None = None,
    level: float = 0.9,
    curve: PredictiveCdf | None = None,
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
    curve : PredictiveCdf, optional
        Result of ``PredictiveCdf.from_sample(...)``, if it is already computed.

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
    ensemble = ensemble_from(data)
    if isinstance(tasks, Iterable):
        return order_statistic(ensemble, tasks, title, level)
    tasks = tasks_of(data, ensemble) if tasks is None else tasks
    curve = curve or PredictiveCdf.from_sample(ensemble.sample, ensemble.calls, tasks, level)
    answer = curve.answer
    x_range = _range(ensemble, curve)
    fig = new_figure(
        title or _title(ensemble, answer),
        _HEIGHT,
        x_range=x_range,
        y_range=Range1d(start=0, end=1.08),
        x_axis_type="log",
        name="tail",
    )
    label_log_durations(fig, ensemble)
    fig.yaxis.axis_label = f"CDF of the maximum of {count_text(answer.tasks, 'call')}"
    fig.yaxis.formatter = NumeralTickFormatter(format="0 %")
    if not ensemble.n:
        annotate_empty(fig, "no calls")
        return fig
    method = f"No prediction: {answer.refused}." if answer.refused else f"Method: {METHODS[answer.method]}."
    subtitle(fig, method)
    say_what_is_left_out(fig, ensemble)
    items = _predicted(fig, curve, op_colour(ensemble.op))
    items += _equation1(fig, ensemble, answer)
    items += _observed(fig, ensemble, answer)
    horizontal_legend(fig, items)
    return fig


def tasks_of(data: Any, ensemble: Ensemble) -> int:
    """Return the tasks of a run, or those that made the calls of an ensemble."""
    return max(int(getattr(data, "tasks", None) or ensemble.tasks), 1)


def _title(ensemble: Ensemble, answer: Tail) -> str:
    of = f" of {plain(ensemble.name)}" if ensemble.name else ""
    what = "Any call" if answer.tasks == 1 else f"Slowest of {count_text(answer.tasks, 'call')}"
    what += of
    if answer.refused or answer.low_s is None or answer.high_s is None:
        return what
    between = f"{seconds_text(answer.low_s)} to {seconds_text(answer.high_s)}"
    return f"{what}: {100 * answer.level:g} % prediction interval {between}"


def _range(ensemble: Ensemble, curve: PredictiveCdf) -> Range1d:
    if not ensemble.n:
        return Range1d(start=1e-6, end=1.0)
    shown = [float(ensemble.sample.max_s.max()), *curve.duration_s.tolist()]
    edges_s, chance = maximum_distribution(ensemble.sample, curve.answer.tasks)
    shown += [float(edges_s[min(int(np.searchsorted(chance, level)), len(edges_s) - 1)]) for level in _SHOWN]
    return Range1d(start=max(min(shown), _LEAST_S) / 1.25, end=max(max(shown), 2 * _LEAST_S) * 1.25)


def _predicted(fig: figure, curve: PredictiveCdf, colour: str) -> list[LegendItem]:
    answer = curve.answer
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
    source = ColumnDataSource({"t": np.maximum(curve.duration_s, _LEAST_S), "p": curve.chance})
    line = fig.line(x="t", y="p", source=source, line_color=colour, line_width=2.4, name="ours")
    points = fig.scatter(x="t", y="p", source=source, size=5, fill_color=colour, line_color=colour)
    fig.add_tools(_hover(points, "maximum at most"))
    return [
        legend_item("prediction", line, points),
        legend_item(f"{level} prediction interval", band),
    ]


def _equation1(fig: figure, ensemble: Ensemble, answer: Tail) -> list[LegendItem]:
    if answer.equation1 is None:
        return []
    edges_s, chance = maximum_distribution(ensemble.sample, answer.tasks)
    used = np.flatnonzero((chance > 1e-6) & (np.append(True, chance[:-1]) < 1))
    used = np.arange(max(used[0] - 1, 0), used[-1] + 1) if len(used) else np.arange(1)
    # Equation 1 is bounded by the observed durations.
    seen_s = np.clip(edges_s[used], ensemble.sample.min_s.min(), ensemble.sample.max_s.max())
    source = ColumnDataSource({"t": np.maximum(seen_s, _LEAST_S), "p": chance[used]})
    line = fig.line(
        x="t",
        y="p",
        source=source,
        line_color=NEUTRAL["line"],
        line_width=2,
        line_dash="dashed",
        name="equation1",
    )
    fig.add_tools(_hover(line, "Equation 1: maximum at most"))
    return [legend_item(f"Equation 1 (i.i.d. calls): {answer.equation1}", line)]


def _observed(fig: figure, ensemble: Ensemble, answer: Tail) -> list[LegendItem]:
    if answer.observed_max_s is None:
        return []
    place = max(answer.observed_max_s, _LEAST_S)
    line = fig.segment(
        x0=[place],
        x1=[place],
        y0=[0],
        y1=[1.05],
        line_color=NEUTRAL["text"],
        line_width=1.6,
        line_dash="dotted",
        name="seen",
    )
    label = f"observed maximum: {seconds_text(answer.observed_max_s)}"
    items = [legend_item(label, line)]
    phases = ensemble.sample
    # In phases with about N calls, the maximum is a sample of the maximum of N.
    alike = len(phases.n) and answer.tasks / 1.5 <= np.median(phases.n) <= answer.tasks * 1.5
    if phases.phases_known and 1 < len(phases.phase) <= _MOST_PHASES and alike:
        slowest = np.sort(np.maximum(phases.max_s, _LEAST_S))
        chance = (np.arange(len(slowest)) + 0.5) / len(slowest)
        marks = fig.scatter(
            x=slowest, y=chance, marker="x", size=6, line_color=NEUTRAL["text"], line_alpha=0.7, name="phases"
        )
        items.append(legend_item("observed maximum of each phase", marks))
    return items


def _hover(renderer: Any, what: str) -> HoverTool:
    return HoverTool(
        renderers=[renderer],
        visible=False,
        tooltips=[(what, "@t{0}"), ("probability", "@p{0.0 %}")],
        formatters={"@t": time_hover()},
    )

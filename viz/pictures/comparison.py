"""Two runs or ensembles, before and after: both distributions, and the ratio of each quantile."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Unpack

import numpy as np
from bokeh.layouts import column
from bokeh.models import Column, ColumnDataSource, FixedTicker, Range1d
from bokeh.plotting import figure

from ensembles.comparison.compare import compare
from ensembles.comparison.report import Comparison
from ensembles.ensemble.ensemble import Ensemble
from ensembles.ensemble.from_run import ensemble_from_run
from ensembles.model.units import number_text, ratio_text, seconds_text
from ensembles.run.filter_arguments import with_filters
from ensembles.run.run import Run
from ensembles.run.selection import Filters, Selection
from ensembles.viz.common import figures as draw
from ensembles.viz.common.style import NEUTRAL, OVERLAID
from ensembles.viz.pictures.histogram import below_clock, on_log_axis

QUANTILES = (0.01, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99)
"""Probabilities of the quantiles whose ratios are drawn."""

_COLOURS = OVERLAID[:2]


@with_filters
def comparison(
    a: Any,
    b: Any,
    *,
    names: tuple[str, str] = ("before", "after"),
    title: str | None = None,
    level: float = 0.9,
    **filters: Unpack[Filters],
) -> Column:
    """Draw the distributions of two runs or ensembles, and by what factor each quantile moved.

    Parameters
    ----------
    a, b : Run, Events or Ensemble
        The first one is the baseline.
    names : (str, str)
        Names of both.
    title : str, optional
        Title of the first figure. Default: the verdict of `ensembles.compare`.
    level : float
        Level of the intervals of the ratios. The ends are those of both quantiles at the level
        ``sqrt(level)``, so that the interval is at least as likely to contain the ratio.
    **filters
        As for `Run.select`, for runs. Without filters, the kind of calls that takes the most time in both is
        compared.

    Returns
    -------
    Column
        The names of its figures are ``comparison_density`` and ``comparison_ratio``.

    Raises
    ------
    EnsioError
        A filter is malformed or matches no call, or no kind of calls occurs in both.
    TypeError
        `a` or `b` has another type.
    ValueError
        One is an ensemble per call, the other per MiB.

    Examples
    --------
    >>> from ensembles import viz
    >>> layout = viz.comparison(en.open("ensio-ior"), en.open("ensio-ior-2"), op="write")
    >>> layout.children[0].title.text.split(":")[0]
    'pwrite'
    """
    verdict, mine = _ensembles(a, b, filters, names)
    if mine[0].per != mine[1].per:
        raise ValueError("durations per call and per MiB cannot be compared: use one of them")
    reason = "" if verdict is None else verdict.reason
    return _drawn(mine, names, title or _title(mine[0], verdict), reason, level)


def comparison_of_kind(
    found: Comparison, runs: Sequence[Run], names: tuple[str, str], verdict: str, level: float = 0.9
) -> Column:
    """Draw the calls of two runs that were compared already, for a page that has the reason in words."""
    before, after = (_calls_of(run, found, {}) for run in runs)
    what = draw.plain(before.name or before.op or "calls")
    return _drawn((before, after), names, f"{what}: {verdict}", "", level)


def _drawn(
    mine: tuple[Ensemble, Ensemble], names: tuple[str, str], head: str, reason: str, level: float
) -> Column:
    empty = [name for name, ensemble in zip(names, mine, strict=True) if not ensemble.n]
    if empty:
        why = f"no calls {' and '.join(empty)}"
        return draw.empty_picture(head, why, "comparison", "comparison_density")
    parts = [_density(mine, names, head, reason), _ratio(mine, names, level)]
    return column(parts, sizing_mode="stretch_width", name="comparison")


def _ensembles(
    a: Any, b: Any, filters: Filters, names: tuple[str, str]
) -> tuple[Comparison | None, tuple[Ensemble, Ensemble]]:
    """Return the verdict, and the ensembles of the kind of calls that was compared."""
    if isinstance(a, Run) and isinstance(b, Run):
        verdict = compare(a, b, names=names, **filters)
        return verdict, (_calls_of(a, verdict, filters), _calls_of(b, verdict, filters))
    first, second = draw.ensemble_from(a), draw.ensemble_from(b)
    return (compare(first, second, names=names) if first.n and second.n else None), (first, second)


def _calls_of(run: Run, verdict: Comparison, filters: Filters) -> Ensemble:
    """Return the calls of a run that the verdict is about."""
    selection = Selection.parse(**filters).for_run(run, from_summary=True)
    if verdict.op is not None and verdict.layer is not None:
        selection = replace(selection, layers=(verdict.layer,), ops=(verdict.op,))
    return ensemble_from_run(run, selection, per="MiB" if selection.per_byte else "call")


def _title(ensemble: Ensemble, verdict: Comparison | None) -> str:
    what = draw.plain(ensemble.name or ensemble.op or "calls")
    if verdict is None:
        return what
    shift = verdict.shift
    if shift is None or shift.median_ratio is None:
        return f"{what}: {verdict.verdict}"
    between = (
        f" ({number_text(shift.low)} to {number_text(shift.high)})"
        if shift.low is not None and shift.high is not None
        else ""
    )
    return f"{what}: {verdict.verdict}, median {ratio_text(shift.median_ratio)}{between}"


def _density(mine: tuple[Ensemble, Ensemble], names: tuple[str, str], title: str, reason: str) -> figure:
    found = [ensemble.histogram("log") for ensemble in mine]
    counted = {at: (each.edges_s, each.amounts) for at, each in enumerate(found)}
    shown = on_log_axis(counted)
    low = min(float(edges_s[0]) for edges_s, _ in shown.values())
    high = max(float(edges_s[-1]) for edges_s, _ in shown.values())
    fig = draw.new_figure(
        title,
        300,
        x_range=Range1d(start=low / 1.2, end=high * 1.2),
        x_axis_type="log",
        name="comparison_density",
    )
    if reason:
        draw.subtitle(fig, reason[0].upper() + reason[1:].rstrip(".") + ".")
    if below := below_clock(counted, shown):
        draw.subtitle(fig, f"{below}.")
    draw.label_log_durations(fig, mine[0])
    draw.name_axis(fig.yaxis, "share of the calls", "0.[0] %")
    items, top = [], 0.0
    for at, (ensemble, name, colour) in enumerate(zip(mine, names, _COLOURS, strict=True)):
        if at not in shown:  # all its calls took 0 ns
            continue
        edges_s, amounts = shown[at]
        share = amounts / counted[at][1].sum()
        source = ColumnDataSource(
            {
                "t": np.concatenate([edges_s[:1], edges_s]),
                "share": np.concatenate([[0.0], share, [0.0]]),
            }
        )
        area, line = draw.add_steps(fig, source, colour, "share")
        median_s = ensemble.quantiles([0.5])[0.5].value
        items.append(
            draw.legend_item(
                f"{draw.plain(name)} ({ensemble.n:,}), median {seconds_text(median_s)}", area, line
            )
        )
        top = max(top, float(share.max()))
    fig.y_range = Range1d(start=0, end=1.08 * top)
    draw.horizontal_legend(fig, items, click_policy="hide")
    draw.add_legend_buttons(fig)
    return fig


def _ratio(mine: tuple[Ensemble, Ensemble], names: tuple[str, str], level: float) -> figure:
    fig = draw.new_figure(
        f"Ratio of each quantile, {draw.plain(names[1])} to {draw.plain(names[0])}",
        260,
        x_range=Range1d(start=-0.02, end=1.02),
        y_axis_type="log",
        name="comparison_ratio",
    )
    draw.name_axis(fig.xaxis, "share of the calls that are shorter", "0 %")
    draw.name_axis(fig.yaxis, "ratio of durations", "0,0.[000]")
    before, after = (ensemble.quantiles(QUANTILES, level**0.5) for ensemble in mine)
    rows = [
        (quantile, one, other)
        for quantile, one, other in zip(QUANTILES, before.estimates, after.estimates, strict=True)
        if one.value > 0 and other.value > 0
    ]
    ratio = np.array([other.value / one.value for _, one, other in rows])
    # An end that the data do not bound is drawn to the edge of the figure.
    low = np.array([_divided(other.low, one.high) for _, one, other in rows])
    high = np.array([_divided(other.high, one.low) for _, one, other in rows])
    ends = [each for each in (*ratio, *low, *high) if 0 < each < np.inf]
    near = [each for each in ends if min(ratio) / 3 <= each <= max(ratio) * 3]  # others end beyond the frame
    bottom, top = min([0.8, *(each / 1.2 for each in near)]), max([1.25, *(1.2 * each for each in near)])
    fig.y_range = Range1d(start=bottom, end=top)
    fig.yaxis.ticker = FixedTicker(ticks=_ratio_ticks(bottom, top))
    if np.any((low < bottom) | (high > top) | np.isnan(low) | np.isnan(high)):
        draw.subtitle(fig, "Bars that reach the frame end beyond it: these quantiles are not known better.")
    same = fig.line(x=[-0.02, 1.02], y=[1, 1], line_color=NEUTRAL["line"], line_dash="dashed")
    source = ColumnDataSource(
        {
            "quantile": [quantile for quantile, _, _ in rows],
            "ratio": ratio,
            "low": np.maximum(np.nan_to_num(low, nan=0.0), bottom),
            "high": np.minimum(np.nan_to_num(high, nan=np.inf), top),
            "before": [one.value for _, one, _ in rows],
            "after": [other.value for _, _, other in rows],
        }
    )
    bars = fig.segment(
        x0="quantile",
        x1="quantile",
        y0="low",
        y1="high",
        source=source,
        line_color=_COLOURS[1],
        line_width=4,
        line_alpha=0.45,
    )
    points = fig.scatter(x="quantile", y="ratio", source=source, size=8, color=_COLOURS[1])
    draw.horizontal_legend(
        fig,
        [
            draw.legend_item(f"ratio with {100 * level:g} % interval", points, bars),
            draw.legend_item("no change", same),
        ],
    )
    draw.add_hover(
        fig,
        points,
        [
            ("calls that are shorter", "@quantile{0 %}"),
            (draw.plain(names[0]), "@before{s}"),
            (draw.plain(names[1]), "@after{s}"),
            ("ratio", "@ratio{0.000} (@low{0.000} to @high{0.000})"),
        ],
    )
    return fig


def _ratio_ticks(bottom: float, top: float) -> list[float]:
    """Return round ratios with 1, at least four in a range: Bokeh's own on short logarithmic axes are few."""
    powers = 10.0 ** np.arange(np.floor(np.log10(bottom)), np.ceil(np.log10(top)) + 1)
    ticks = np.empty(0)
    for factors in ((1,), (1, 2, 5), (1, 1.5, 2, 3, 5, 7)):
        ticks = np.outer(powers, factors).ravel()
        ticks = ticks[(ticks >= bottom) & (ticks <= top)]
        if len(ticks) >= 4:
            break
    if top < 4 * bottom:
        steps = (0.5, 0.25, 0.1, 0.05, 0.02, 0.01)
        step = next(step for step in steps if (top - bottom) / step >= 4)
        ticks = step * np.arange(np.ceil(bottom / step), np.floor(top / step) + 1)
    return [float(tick) for tick in ticks]


def _divided(end: float, by: float) -> float:
    with np.errstate(divide="ignore", invalid="ignore"):
        return float(np.float64(end) / np.float64(by))

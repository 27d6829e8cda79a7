"""Whether the fitted tail of an ensemble is right: quantile plot and threshold stability."""

from __future__ import annotations

from typing import Any

import numpy as np
from bokeh.layouts import column
from bokeh.models import Column, ColumnDataSource, HoverTool, Range1d
from bokeh.plotting import figure

from ensembles.ensemble.ensemble import Ensemble
from ensembles.model.units import count_text, seconds_text
from ensembles.statistics.extremes.slowest_of_n import SlowestOfN
from ensembles.statistics.extremes.tail_diagnostics import TailDiagnostics
from ensembles.viz.figures import (
    annotate_empty,
    ensemble_from,
    horizontal_legend,
    legend_item,
    new_figure,
    plain,
    subtitle,
)
from ensembles.viz.several import of_several
from ensembles.viz.style import NEUTRAL, op_colour, scaled_ticks, time_hover, time_ticks, time_unit

_MOST_POINTS = 500


@of_several
def tail_diagnostics(data: Any, *, title: str | None = None) -> Column:
    """Draw the calls of the tail against those that the fitted tail expects, and its shape by threshold.

    If the points of the first figure lie on the diagonal, the fitted tail is right. In the second one, the
    shape is about constant above a threshold that is high enough; a negative shape has a longest possible
    call, a positive one a heavy tail.

    Parameters
    ----------
    data : Ensemble, Events or Run
        For events or a run, all calls are one ensemble.
    title : str, optional
        Title of the first figure.

    Returns
    -------
    Column
        The names of its figures are ``tail_quantiles`` and ``tail_thresholds``.

    Raises
    ------
    TypeError
        `data` has another type.

    References
    ----------
    S. Coles, "An Introduction to Statistical Modeling of Extreme Values", 2001, section 4.3.

    Examples
    --------
    >>> from ensembles import viz
    >>> ensemble = en.Ensemble(np.random.default_rng(1).exponential(1.0, 5000))
    >>> [figure.name for figure in viz.tail_diagnostics(ensemble).children]
    ['tail_quantiles', 'tail_thresholds']
    """
    ensemble = ensemble_from(data)
    of = f" of {plain(ensemble.name)}" if ensemble.name else ""
    head = title or f"Slowest calls{of}: observed, and expected by the fitted tail"
    found = SlowestOfN.fit(ensemble.sample, calls=ensemble.calls).diagnostics if ensemble.n else None
    if found is None:
        axis = Range1d(start=0, end=1)
        fig = new_figure(head, 200, x_range=axis, y_range=Range1d(start=0, end=1), name="tail_quantiles")
        annotate_empty(fig, f"no tail can be fitted to {count_text(ensemble.n, 'call')}")
        return column([fig], sizing_mode="stretch_width", name="tail_diagnostics")
    return column(
        [_quantiles(found, ensemble, head), _thresholds(found)],
        sizing_mode="stretch_width",
        name="tail_diagnostics",
    )


def _quantiles(found: TailDiagnostics, ensemble: Ensemble, title: str) -> figure:
    count = len(found.observed_s)
    # The longest calls are all drawn; of the others some, evenly spaced on the logarithmic scale of ranks.
    places = np.unique(np.geomspace(1, count, min(count, _MOST_POINTS)).astype(int) - 1)
    expected_s, observed_s = found.expected_s[places], found.observed_s[places]
    low = float(min(expected_s.min(), observed_s.min())) / 1.03
    high = float(max(expected_s.max(), observed_s.max())) * 1.03
    fig = new_figure(
        title,
        340,
        x_range=Range1d(start=low, end=high),
        y_range=Range1d(start=low, end=high),
        x_axis_type="log",
        y_axis_type="log",
        name="tail_quantiles",
    )
    subtitle(
        fig,
        f"The {count_text(count, 'call')} longer than {seconds_text(float(observed_s.min()))}, of "
        f"{ensemble.n:,}. On the diagonal, the fitted tail is right.",
    )
    fig.xaxis.axis_label = "expected (unit at each tick)"
    fig.yaxis.axis_label = "observed"
    fig.xaxis.formatter = fig.yaxis.formatter = time_ticks()
    diagonal = fig.line(x=[low, high], y=[low, high], line_color=NEUTRAL["line"], line_dash="dashed")
    source = ColumnDataSource({"expected": expected_s, "observed": observed_s, "rank": places + 1})
    points = fig.scatter(
        x="expected", y="observed", source=source, size=6, color=op_colour(ensemble.op), alpha=0.7
    )
    horizontal_legend(fig, [legend_item("calls", points), legend_item("fitted tail", diagonal)])
    fig.add_tools(
        HoverTool(
            renderers=[points],
            tooltips=[("n-th longest", "@rank"), ("observed", "@observed{0}"), ("expected", "@expected{0}")],
            formatters={"@observed": time_hover(), "@expected": time_hover()},
        )
    )
    return fig


def _thresholds(found: TailDiagnostics) -> figure:
    low, high = float(found.threshold_s.min()), float(found.threshold_s.max())
    pad = 0.05 * (high - low) or 0.1 * high
    fig = new_figure(
        "Shape of the tail by threshold: about constant if the threshold is high enough",
        240,
        x_range=Range1d(start=low - pad, end=high + pad),
        name="tail_thresholds",
    )
    unit_s, unit = time_unit(high)
    fig.xaxis.axis_label = f"threshold ({unit})"
    fig.xaxis.formatter = scaled_ticks(unit_s)
    fig.yaxis.axis_label = "shape"
    reach = max(0.5, 1.1 * float(np.abs(found.shape).max()))
    fig.y_range = Range1d(start=-reach, end=reach)
    fig.line(x=[low - pad, high + pad], y=[0, 0], line_color=NEUTRAL["line"], line_dash="dashed")
    order = np.argsort(found.threshold_s)
    source = ColumnDataSource(
        {
            "threshold": found.threshold_s[order],
            "shape": found.shape[order],
            "above": found.exceedances[order],
        }
    )
    fig.line(x="threshold", y="shape", source=source, line_color=NEUTRAL["text"], line_width=1.5)
    points = fig.scatter(x="threshold", y="shape", source=source, size=8, color=NEUTRAL["text"])
    fig.add_tools(
        HoverTool(
            renderers=[points],
            tooltips=[("threshold", "@threshold{0}"), ("calls above", "@above"), ("shape", "@shape{0.00}")],
            formatters={"@threshold": time_hover()},
        )
    )
    return fig

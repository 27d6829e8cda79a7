"""Cumulative distribution functions of ensembles, on one axis."""

from __future__ import annotations

from typing import Any

import numpy as np
from bokeh.models import ColumnDataSource, HoverTool, NumeralTickFormatter, Range1d
from bokeh.plotting import figure

from ensembles.ensemble.ensemble import Ensemble
from ensembles.viz.common.data_for import labelled_ensembles
from ensembles.viz.common.figures import (
    annotate_empty,
    horizontal_legend,
    label_log_durations,
    legend_item,
    new_figure,
    plain,
    sentence_of,
    subtitle,
)
from ensembles.viz.common.style import OVERLAID, op_colour, shade, time_hover

_MOST_POINTS = 1000
_LEAST_S = 0.5e-9


def cdf(data: Any, *, title: str | None = None) -> figure:
    """Draw the share of calls up to each duration, one curve for each ensemble."""
    ensembles = labelled_ensembles(data)
    curves = {label: _points(ensemble) for label, ensemble in ensembles.items() if len(ensemble)}
    low = min((float(points["time_s"][0]) for points in curves.values()), default=1e-6)
    high = max((float(points["time_s"][-1]) for points in curves.values()), default=1.0)
    fig = new_figure(
        title or "Share of calls up to a duration",
        360,
        x_range=Range1d(start=low / 1.2, end=high * 1.2),
        y_range=Range1d(start=0, end=1.02),
        x_axis_type="log",
        name="cdf",
    )
    fig.yaxis.axis_label = "share of calls"
    fig.yaxis.formatter = NumeralTickFormatter(format="0 %")
    if not curves:
        annotate_empty(fig, "there are no calls")
        return fig
    label_log_durations(fig, next(iter(ensembles.values())))
    items = []
    used: dict[str, int] = {}
    operations = [ensembles[label].op for label in curves]
    alike = len(set(operations)) < len(operations) <= len(OVERLAID)
    for place, (label, points) in enumerate(curves.items()):
        ensemble = ensembles[label]
        own = op_colour(ensemble.op or "meta")
        number = used.get(own, 0)
        used[own] = number + 1
        colour = OVERLAID[place] if alike else shade(own, number)
        line = fig.step(
            "time_s",
            "share",
            source=ColumnDataSource({**points, "label": [plain(label)] * len(points["share"])}),
            mode="after",
            color=colour,
            line_width=2,
            line_dash=("solid", "dashed", "dotted")[number % 3],
        )
        items.append(legend_item(f"{plain(label)} ({ensemble.n:,})", line))
    horizontal_legend(fig, items)
    for label, ensemble in ensembles.items():
        for note in ensemble.left_out:
            subtitle(fig, f"{label}: {note}." if len(ensembles) > 1 else sentence_of(note))
    fig.add_tools(
        HoverTool(
            tooltips=[("", "@label"), ("up to", "@time_s{0}"), ("calls", "@share{0.0 %}")],
            formatters={"@time_s": time_hover()},
        )
    )
    return fig


def _points(ensemble: Ensemble) -> dict[str, np.ndarray]:
    """Return the durations at which the distribution steps, and the share of calls up to each."""
    atoms = ensemble.atoms
    counts = np.bincount(atoms.atom, weights=atoms.count, minlength=len(atoms.value_s))
    share = np.cumsum(counts) / counts.sum()
    places = np.unique(np.linspace(0, len(share) - 1, min(len(share), _MOST_POINTS)).astype(int))
    # A bin is counted at its end: its value is moved for the mean of the ensemble, and may be 0.
    first_s, time_s = np.maximum(atoms.low_s[:1], _LEAST_S), np.maximum(atoms.high_s[places], _LEAST_S)
    return {"time_s": np.append(first_s, time_s), "share": np.append(0.0, share[places])}

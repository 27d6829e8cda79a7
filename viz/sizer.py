"""SiZer of an ensemble: where its density of log duration rises and falls significantly, by smoothing."""

from __future__ import annotations

from typing import Any

import numpy as np
from bokeh.models import FixedTicker, LogScale, Range1d
from bokeh.plotting import figure

from ensembles.viz.figures import (
    annotate_empty,
    ensemble_from,
    horizontal_legend,
    label_log_durations,
    legend_item,
    new_figure,
    plain,
    say_what_is_left_out,
)
from ensembles.viz.several import of_several
from ensembles.viz.style import READS_AND_WRITES

_HEIGHT = 300
_COLOURS = {
    1: ("rises", "#1f77b4"),
    -1: ("falls", "#d62728"),
    0: ("neither", READS_AND_WRITES),
    -2: ("few calls", "#bdbdbd"),
}


@of_several
def sizer(data: Any, *, title: str | None = None) -> figure:
    """Draw where the density of log duration rises and falls significantly, by bandwidth.

    Parameters
    ----------
    data : Ensemble, Events or Run
        For events or a run, all calls are one ensemble.
    title : str, optional

    Returns
    -------
    figure
        A mode is a rise followed by a fall in a row.

    Raises
    ------
    TypeError
        `data` has another type.
    """
    ensemble = ensemble_from(data)
    of = f" of {plain(ensemble.name)}" if ensemble.name else ""
    empty = not ensemble.n or float(ensemble.counted.max_s.max()) <= 0
    found = None if empty else ensemble.sizer()
    low, high = (1e-6, 1.0) if found is None else (found.t_s[0], found.t_s[-1])
    fig = new_figure(
        title or f"Significant slopes of the density{of}",
        _HEIGHT,
        x_range=Range1d(start=low, end=high),
        x_axis_type="log",
        name="sizer",
    )
    label_log_durations(fig, ensemble)
    fig.yaxis.axis_label = "bandwidth (of log duration)"
    if found is None:
        annotate_empty(fig, "no calls")
        return fig
    say_what_is_left_out(fig, ensemble)
    edges_s = np.exp(_edges(np.log(found.t_s)))
    edges = np.exp(_edges(np.log(found.bandwidth)))
    fig.y_scale = LogScale()
    fig.y_range = Range1d(start=edges[0], end=edges[-1])
    fig.yaxis.ticker = FixedTicker(
        ticks=[round(10.0**power * step, 6) for power in range(-5, 3) for step in (1, 2, 5)]
    )
    items = []
    for sign, (what, colour) in _COLOURS.items():
        row, place = np.nonzero(found.slope == sign)
        if len(row):
            cells = fig.quad(
                left=edges_s[place],
                right=edges_s[place + 1],
                bottom=edges[row],
                top=edges[row + 1],
                fill_color=colour,
                line_color=None,
            )
            items.append(legend_item(what, cells))
    horizontal_legend(fig, items)
    return fig


def _edges(middle: np.ndarray) -> np.ndarray:
    half = np.diff(middle) / 2
    return np.concatenate([[middle[0] - half[0]], middle[:-1] + half, [middle[-1] + half[-1]]])

"""The modes of an ensemble: its histogram of log duration with modes and harmonics."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from bokeh.models import AdaptiveTicker, ColumnDataSource, HoverTool, NumeralTickFormatter, Range1d
from bokeh.models.annotations import LegendItem
from bokeh.plotting import figure

from ensembles.ensemble.ensemble import Ensemble
from ensembles.model.units import count_text, seconds_text, share_text
from ensembles.statistics.modes.modes import Mode, Modes
from ensembles.viz.figures import (
    LABEL_GROUND,
    annotate_empty,
    ends,
    ensemble_from,
    horizontal_legend,
    label_log_durations,
    legend_item,
    new_figure,
    plain,
    steps,
    subtitle,
)
from ensembles.viz.several import of_several
from ensembles.viz.style import NEUTRAL, op_colour, time_hover

_HEIGHT = 360
_BELOW_1_NS_S = 0.5e-9
_CURVE_POINTS = 121
_CURVE_WIDTHS = 4.0
_LEAST_WIDTH = 0.01
_NARROW, _LABEL_WIDTH = 520, 90
"""Width in pixels of a narrow figure and of the label of a mode."""
_LABEL_HEIGHTS = (0.9, 0.81, 0.72, 0.63)
_HARMONIC_HEIGHT = 0.5
_DASHES = [6, 4]
_SEEN_MISFIT = 0.1
"""Largest difference of distribution functions that a reader of the picture need not know of."""
_OF_FEW_CALLS = 1.63
"""Times 1 / sqrt(n): the difference that n calls of the same distribution exceed with probability 0.01
(A. Kolmogorov, 1933)."""


@of_several
def modes(data: Any, *, title: str | None = None, found: Modes | None = None) -> figure:
    """Draw the histogram of log duration with its modes and harmonics.

    Each mode is drawn with its confidence interval and the log-normal curve of its weight and width. The
    curve is dashed, and the legend says so, if it does not fit the calls of the mode.

    Parameters
    ----------
    data : Ensemble, Events or Run
        For events or a run, all calls are one ensemble.
    title : str, optional
    found : Modes, optional
        Result of ``ensemble.modes(...)``, if it is already computed or needs other options.

    Returns
    -------
    figure
        If modes cannot be estimated, the figure states the reason.

    Raises
    ------
    TypeError
        `data` has another type.

    Examples
    --------
    >>> from ensembles import viz
    >>> figure = viz.modes(en.open("ensio-ior").ensemble(op="write"))
    >>> figure.title.text
    'Modes of pwrite: 2 modes in 160 calls'
    """
    ensemble = ensemble_from(data)
    found = ensemble.modes() if found is None else found
    counts = ensemble.histogram("log")
    edges_s = np.where(counts.edges_s == 0, _BELOW_1_NS_S, counts.edges_s)
    top = 1.18 * max(float(counts.amounts.max(initial=0)), 1.0)
    empty = not ensemble.n
    low, high = (1e-6, 1.0) if empty else (edges_s[0] / 1.5, edges_s[-1] * 1.5)
    fig = new_figure(
        title or _title(ensemble, found),
        _HEIGHT,
        x_range=Range1d(start=low, end=high),
        y_range=Range1d(start=0, end=top),
        x_axis_type="log",
        name="modes",
    )
    label_log_durations(fig, ensemble)
    fig.yaxis.axis_label = "calls per bin (9 % wide)"
    fig.yaxis.formatter = NumeralTickFormatter(format="0,0")
    fig.yaxis.ticker = AdaptiveTicker(mantissas=[1, 2, 5], min_interval=1)  # calls are whole
    if empty:
        annotate_empty(fig, "no calls")
        return fig
    if found.refused:
        subtitle(fig, str(found))
    colour = op_colour(ensemble.op)
    area = fig.varea_step(
        x=edges_s,
        y1=np.zeros(len(edges_s)),
        y2=steps(counts.amounts),
        step_mode="after",
        fill_color=colour,
        fill_alpha=0.35,
    )
    items = [legend_item(f"{count_text(ensemble.n, 'call')}", area)]
    if len(found):
        bins_per_e = len(counts.amounts) / math.log(edges_s[-1] / edges_s[0])
        misfits = [log_normal_misfit(mode, edges_s, counts.amounts) for mode in found.modes]
        items += _draw_modes(fig, ensemble, found, misfits, top, bins_per_e, colour)
    if found.harmonics is not None:
        items.append(_draw_harmonics(fig, found, top))
    horizontal_legend(fig, items)
    return fig


def _title(ensemble: Ensemble, found: Modes) -> str:
    of = f" of {plain(ensemble.name)}" if ensemble.name else ""
    if found.refused:
        return f"Modes{of}"
    if not len(found):
        return f"Modes{of}: none can be determined in {count_text(found.n, 'call')}"
    return f"Modes{of}: {count_text(len(found), 'mode')} in {count_text(found.n, 'call')}"


def log_normal_misfit(mode: Mode, edges_s: np.ndarray, amounts: np.ndarray) -> float:
    """Return the share of the calls of a mode that lie elsewhere than its log-normal curve has them.

    It is the largest difference of the distribution functions, at the edges of the bins that are drawn; 0
    where it is small, or as large as few calls give by themselves.

    Parameters
    ----------
    mode : Mode
    edges_s : ndarray, shape (bins + 1,)
    amounts : ndarray, shape (bins,)
        Calls in each bin.

    Examples
    --------
    >>> import ensembles as en
    >>> import numpy as np
    >>> from ensembles.viz.modes import log_normal_misfit
    >>> ensemble = en.Ensemble(np.random.default_rng(1).lognormal(0.0, 0.3, 2000))
    >>> counts = ensemble.histogram("log")
    >>> log_normal_misfit(ensemble.modes().modes[0], counts.edges_s, counts.amounts)
    0.0
    """
    below = np.concatenate([[0.0], np.cumsum(amounts)])
    ends = np.interp([mode.from_s, mode.to_s], edges_s, below)
    calls = float(ends[1] - ends[0])
    inner = (edges_s > mode.from_s) & (edges_s < mode.to_s)
    if calls < 1 or not inner.any():
        return 0.0
    share = (below[inner] - ends[0]) / calls
    scale = max(mode.width, _LEAST_WIDTH) * math.sqrt(2)
    curve = [0.5 + 0.5 * math.erf(math.log(edge / mode.t_s) / scale) for edge in edges_s[inner].tolist()]
    misfit = float(np.abs(share - curve).max())
    return misfit if misfit > max(_SEEN_MISFIT, _OF_FEW_CALLS / math.sqrt(calls)) else 0.0


def _draw_modes(
    fig: figure,
    ensemble: Ensemble,
    found: Modes,
    misfits: Sequence[float],
    top: float,
    bins_per_e: float,
    colour: str,
) -> list[LegendItem]:
    level = f"{100 * found.level:g} %"
    curves_s, curves_y = [], []
    for mode in found.modes:
        width = max(mode.width, _LEAST_WIDTH)
        beyond = np.linspace(-_CURVE_WIDTHS, _CURVE_WIDTHS, _CURVE_POINTS)
        density = np.exp(-(beyond**2) / 2) / (math.sqrt(2 * math.pi) * width)
        curves_s.append(mode.t_s * np.exp(width * beyond))
        curves_y.append(np.minimum(ensemble.n * mode.weight * density / bins_per_e, top))
    curve = fig.multi_line(
        xs="xs",
        ys="ys",
        source=ColumnDataSource(
            {"xs": curves_s, "ys": curves_y, "dash": [_DASHES if misfit else [] for misfit in misfits]}
        ),
        line_color=colour,
        line_width=2,
        line_dash="dash",
        name="log_normals",
    )
    heights, align = _label_places([mode.t_s for mode in found.modes], *ends(fig.x_range))
    source = ColumnDataSource(
        {
            "low": [mode.low_s for mode in found.modes],
            "high": [mode.high_s for mode in found.modes],
            "t": [mode.t_s for mode in found.modes],
            "y": top * heights,
            "peak": [float(curve.max()) for curve in curves_y],
            "align": align,
            "text": [f"{seconds_text(mode.t_s)}, {share_text(mode.weight, None)}" for mode in found.modes],
            "share": [
                f"{share_text(mode.weight, 1)} ({share_text(mode.weight_low, 1)} – "
                f"{share_text(mode.weight_high, 1)})"
                for mode in found.modes
            ],
            "width": [f"{mode.width:.3g} (standard deviation of log duration)" for mode in found.modes],
            "fit": [
                f"does not fit: {share_text(misfit)} of the calls lie elsewhere" if misfit else "fits"
                for misfit in misfits
            ],
        }
    )
    band = fig.quad(
        left="low",
        right="high",
        bottom=0,
        top=top,
        source=source,
        fill_color=NEUTRAL["text"],
        fill_alpha=0.18,
        line_alpha=0,
    )
    # The point is on the curve: at the label it would look like a peak that is not there.
    fig.segment(
        x0="t", x1="t", y0="peak", y1="y", source=source, line_color=NEUTRAL["text"], line_dash="dotted"
    )
    line = fig.segment(
        x0="t", x1="t", y0=0, y1="peak", source=source, line_color=NEUTRAL["text"], line_width=1.4
    )
    point = fig.scatter(
        x="t", y="peak", source=source, size=8, fill_color=NEUTRAL["text"], line_color=NEUTRAL["text"]
    )
    fig.text(
        x="t",
        y="y",
        text="text",
        source=source,
        y_offset=-7,
        text_align="align",
        text_font_size="9.5pt",
        text_color=NEUTRAL["text"],
        **LABEL_GROUND,
        name="mode_labels",
    )
    fig.add_tools(
        HoverTool(
            renderers=[point, line],
            visible=False,
            tooltips=[
                ("mode", "@t{0}"),
                (f"{level} confidence interval", "@low{0} – @high{0}"),
                ("share of calls", "@share"),
                ("width", "@width"),
                ("log-normal", "@fit"),
            ],
            formatters={name: time_hover() for name in ("@t", "@low", "@high")},
        )
    )
    label = "log-normal with the weight and width of a mode"
    if any(misfits):
        label = f"log-normal of a mode (dashed: {share_text(max(misfits))} of its calls lie elsewhere)"
    return [
        legend_item(label, curve),
        legend_item(f"mode with {level} confidence interval", point, band),
    ]


def _label_places(times_s: Sequence[float], low_s: float, high_s: float) -> tuple[np.ndarray, list[str]]:
    """Return the places of labels on a logarithmic axis, where they touch neither each other nor the edge.

    Returns
    -------
    heights : ndarray
        Shares of the height of the figure.
    align : list of str
        Side of the label that is at its mode.
    """
    places = _NARROW * np.log(np.array(times_s) / low_s) / math.log(high_s / low_s)
    align = [
        "left" if place < _LABEL_WIDTH / 2 else "right" if place > _NARROW - _LABEL_WIDTH / 2 else "center"
        for place in places.tolist()
    ]
    shift = {"left": 0.0, "center": -0.5, "right": -1.0}
    starts = places + _LABEL_WIDTH * np.array([shift[side] for side in align])
    heights = np.zeros(len(places))
    ends = dict.fromkeys(_LABEL_HEIGHTS, -math.inf)
    for number in np.argsort(starts).tolist():
        # The highest row with room, else the one that is free first.
        free = [row for row, end in ends.items() if end <= starts[number]]
        heights[number] = free[0] if free else min(ends, key=lambda row: ends[row])
        ends[float(heights[number])] = starts[number] + _LABEL_WIDTH
    return heights, align


def _draw_harmonics(fig: figure, found: Modes, top: float) -> LegendItem:
    harmonics = found.harmonics
    assert harmonics is not None
    places = [harmonics.fundamental_s / order for order in harmonics.orders]
    names = ["R" if order == 1 else f"R/{order}" for order in harmonics.orders]
    line = fig.segment(
        x0=places,
        x1=places,
        y0=0,
        y1=top,
        line_color="#2ca02c",
        line_width=1.4,
        line_dash="dashed",
        name="harmonics",
    )
    fig.text(
        x=places,
        y=[_HARMONIC_HEIGHT * top] * len(places),
        text=names,
        name="harmonic_labels",
        x_offset=5,
        text_font_size="10pt",
        text_font_style="bold",
        text_color="#207a20",
        **LABEL_GROUND,
    )
    of = seconds_text(harmonics.fundamental_s)
    label = f"harmonics of R = {of} (p = {harmonics.chance:.2g})"
    return legend_item(label, line)

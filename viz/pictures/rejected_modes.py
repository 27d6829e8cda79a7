"""Peaks of a histogram that are not modes: where they are, how many calls they have, and why."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from bokeh.models import ColumnDataSource, HoverTool
from bokeh.models.annotations import LegendItem
from bokeh.plotting import figure

from ensembles.model.units import seconds_text, share_text
from ensembles.statistics.modes.kinds import Bump, time_text
from ensembles.statistics.modes.modes import Modes
from ensembles.viz.common.figures import LABEL_GROUND, legend_item
from ensembles.viz.common.style import NEUTRAL, time_hover

_MOST_NAMED = 3
"""Of more calls outside of modes, the two largest are named above the figure."""

_ONE_PHASE = 1.5
"""Fewer effective phases than this are one."""


class Rejected(NamedTuple):
    """Calls that are in no mode."""

    t_s: float  # Where they are marked
    # low_s, high_s: Range of their durations; of a shoulder, `t_s`
    low_s: float
    high_s: float
    calls: float  # Height of the histogram at the mark
    label: str
    short: str  # Why they are not a mode, in few words, for the line above the figure
    why: str  # A sentence: that of ``ensio modes``
    has_peak: bool
    share: float  # Of all calls, 0 to 1


_MUCH_TIME, _MORE_THAN_CALLS = 0.1, 2.0


def mode_label(name: str, share: str, weight: float, time_share: float | None) -> str:
    """Return the label of a mode, with its share of the time where that is large and the other is small.

    Examples
    --------
    >>> from ensembles.viz.pictures.rejected_modes import mode_label
    >>> mode_label("31.6 ms", "3 %", 0.03, 0.64)
    '31.6 ms, 3 % (64 % of the time)'
    >>> mode_label("77.5 µs", "54 %", 0.54, 0.04)
    '77.5 µs, 54 %'
    """
    much = time_share is not None and time_share >= max(_MUCH_TIME, _MORE_THAN_CALLS * weight)
    return f"{name}, {share}{time_text(time_share) if much else ''}"


def rejected_modes(found: Modes, edges_s: np.ndarray, amounts: np.ndarray) -> list[Rejected]:
    """Return the clusters of few phases, the calls without a peak, and the shoulders.

    Examples
    --------
    >>> from ensembles.statistics.modes.kinds import Bump
    >>> from ensembles.statistics.modes.modes import Modes
    >>> from ensembles.viz.pictures.rejected_modes import rejected_modes
    >>> bump = Bump(2.0, 8.0, 0.3, 13, 1.0)
    >>> edges_s, amounts = np.array([1.0, 2.0, 4.0, 8.0]), np.array([7, 1, 2])
    >>> (one,) = rejected_modes(Modes(10, (), bumps=(bump,)), edges_s, amounts)
    >>> round(one.t_s, 1), one.calls, one.label
    (5.7, 2.0, 'no mode, 30.0 %')
    """
    rejected = []
    for bump in found.bumps:
        t_s = bump.peak_s or _fullest_s(edges_s, amounts, bump.low_s, bump.high_s)
        label = mode_label("no mode", share_text(bump.share, 1), bump.share, bump.time_share)
        place = (t_s, bump.low_s, bump.high_s, _at(edges_s, amounts, t_s))
        rejected.append(Rejected(*place, label, _of_few(bump), _sentence(bump), True, bump.share))
    for part in found.spread:
        t_s = (max(part.low_s, float(edges_s[0])) * part.high_s) ** 0.5
        label = mode_label("no peak", share_text(part.share, 1), part.share, part.time_share)
        place = (t_s, part.low_s, part.high_s, _at(edges_s, amounts, t_s))
        short = f"no peak from {seconds_text(part.low_s)} to {seconds_text(part.high_s)}"
        rejected.append(Rejected(*place, label, short, _sentence(part), False, part.share))
    for shoulder in found.shoulders:
        t_s, label = shoulder.t_s, f"shoulder, {share_text(shoulder.share)}"
        place = (t_s, t_s, t_s, _at(edges_s, amounts, t_s))
        short = f"a shoulder of mode {shoulder.mode + 1} near {seconds_text(t_s)}"
        rejected.append(Rejected(*place, label, short, _sentence(shoulder), True, shoulder.share))
    return rejected


def reasons(rejected: list[Rejected]) -> str:
    """Return the sentence above the figure: of many calls outside of modes, it names the two largest.

    Examples
    --------
    >>> from ensembles.viz.pictures.rejected_modes import Rejected, reasons
    >>> one = Rejected(1.0, 1.0, 1.0, 5.0, "no mode, 5.0 %", "no peak at 1 s", "Spread.", True, 0.05)
    >>> reasons([one])
    'Not a mode: no peak at 1 s. Its box says more.'
    >>> reasons([one] * 4)
    'Not modes: no peak at 1 s; no peak at 1 s; 2 others, 10 % of the calls. Their boxes say more.'
    """
    if len(rejected) == 1:
        return f"Not a mode: {rejected[0].short}. Its box says more."
    said, others = list(rejected), []
    if len(rejected) > _MOST_NAMED:
        largest = sorted(rejected, key=lambda each: -each.share)
        said, others = largest[: _MOST_NAMED - 1], largest[_MOST_NAMED - 1 :]
    share = share_text(sum(each.share for each in others), None)
    of_others = [f"{len(others)} others, {share} of the calls"] if others else []
    return f"Not modes: {'; '.join([*(each.short for each in said), *of_others])}. Their boxes say more."


def _of_few(bump: Bump) -> str:
    """Return which calls a cluster of few phases has."""
    where = f"from {seconds_text(bump.low_s)} to {seconds_text(bump.high_s)}"
    one = f"phase {bump.phase}" if bump.phase >= 0 else "no phase"
    if bump.effective_phases < _ONE_PHASE:
        return f"{where}, calls of {one} only"
    return f"{where}, calls of about {bump.effective_phases:.0f} phases, most of {one}"


def _sentence(what: object) -> str:
    text = str(what)
    return f"{text[0].upper()}{text[1:]}."


def _fullest_s(edges_s: np.ndarray, amounts: np.ndarray, low_s: float, high_s: float) -> float:
    """Return the middle of the fullest bin of a range of durations."""
    middles_s = np.sqrt(edges_s[1:] * edges_s[:-1])
    inside = (edges_s[1:] > low_s) & (edges_s[:-1] < high_s)
    if not inside.any():
        return float((max(low_s, float(edges_s[0])) * high_s) ** 0.5)
    return float(np.clip(middles_s[np.where(inside, amounts, -1).argmax()], low_s, high_s))


def _at(edges_s: np.ndarray, amounts: np.ndarray, t_s: float) -> float:
    return float(amounts[np.clip(np.searchsorted(edges_s, t_s, side="right") - 1, 0, len(amounts) - 1)])


def draw_rejected(
    fig: figure, rejected: list[Rejected], heights: list[float], align: list[str], least_s: float
) -> LegendItem:
    """Draw hollow points, dotted lines over the ranges, and labels."""
    source = ColumnDataSource(
        {
            "t": [each.t_s for each in rejected],
            "low": [max(each.low_s, least_s) for each in rejected],
            "high": [each.high_s for each in rejected],
            "calls": [each.calls for each in rejected],
            "size": [9 if each.has_peak else 0 for each in rejected],
            "text": [each.label for each in rejected],
            "why": [each.why for each in rejected],
            "y": heights,
            "align": align,
        }
    )
    dotted: dict[str, Any] = {"line_color": NEUTRAL["weak"], "line_dash": "dotted", "source": source}
    fig.segment(x0="t", x1="t", y0="calls", y1="y", **dotted)
    span = fig.segment(x0="low", x1="high", y0="calls", y1="calls", line_width=1.6, **dotted)
    point = fig.scatter(
        x="t",
        y="calls",
        size="size",
        source=source,
        fill_color="#ffffff",
        line_color=NEUTRAL["text"],
        line_width=1.4,
        name="rejected",
    )
    fig.text(
        x="t",
        y="y",
        text="text",
        source=source,
        text_align="align",
        text_font_size="9.5pt",
        text_font_style="italic",
        text_color=NEUTRAL["weak"],
        **LABEL_GROUND,
        name="rejected_labels",
    )
    fig.add_tools(
        HoverTool(
            renderers=[point, span],
            visible=False,
            tooltips=[("duration", "@low{0} – @high{0}"), ("not a mode", "@why")],
            formatters={name: time_hover() for name in ("@low", "@high")},
        )
    )
    return legend_item("calls that are not a mode", span, point)

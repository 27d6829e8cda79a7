"""The modes of an ensemble: its histogram of log duration with modes and harmonics.

Places of labels above marks: no label touches another one, the line of another one, or the frame.

Peaks of a histogram that are not modes: where they are, how many calls they have, and why.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from bokeh.models import AdaptiveTicker, ColumnDataSource, Range1d
from bokeh.models.annotations import LegendItem
from bokeh.plotting import figure

from ensembles.ensemble.ensemble import Ensemble
from ensembles.faces.words import sentence
from ensembles.model.statement import Statement
from ensembles.model.units import count_text, number_text, seconds_text, share_text
from ensembles.statistics.modes.harmonics import slice_text
from ensembles.statistics.modes.kinds import Bump, time_text
from ensembles.statistics.modes.modes import Mode, Modes
from ensembles.viz.common import figures as draw
from ensembles.viz.common.data_for import of_several
from ensembles.viz.common.style import NEUTRAL, SHORTEST_S, op_colour


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


def _mode_label(name: str, share: str, weight: float, time_share: float | None) -> str:
    """Return the label of a mode, with its share of the time where only that is large."""
    much = time_share is not None and time_share >= max(0.1, 2.0 * weight)
    return f"{name}, {share}{time_text(time_share) if much else ''}"


def _rejected_modes(found: Modes, edges_s: np.ndarray, amounts: np.ndarray) -> list[Rejected]:
    """Return the clusters of few phases, the calls without a peak, and the shoulders."""
    rejected = []
    for bump in found.bumps:
        t_s = _fullest_s(edges_s, amounts, bump.low_s, bump.high_s)
        label = _mode_label("no mode", share_text(bump.share, 1), bump.share, bump.time_share)
        place = (t_s, bump.low_s, bump.high_s, _at(edges_s, amounts, t_s))
        rejected.append(Rejected(*place, label, _of_few(bump), _sentence(bump), True, bump.share))
    for part in found.spread:
        t_s = (max(part.low_s, float(edges_s[0])) * part.high_s) ** 0.5
        label = _mode_label("no peak", share_text(part.share, 1), part.share, part.time_share)
        place = (t_s, part.low_s, part.high_s, _at(edges_s, amounts, t_s))
        short = f"no peak from {seconds_text(part.low_s)} to {seconds_text(part.high_s)}"
        rejected.append(Rejected(*place, label, short, _sentence(part), False, part.share))
    for shoulder in found.shoulders:
        t_s, label = shoulder.t_s, f"shoulder, {share_text(shoulder.share)}"
        place = (t_s, t_s, t_s, _at(edges_s, amounts, t_s))
        short = f"a shoulder of mode {shoulder.mode + 1} near {seconds_text(t_s)}"
        rejected.append(Rejected(*place, label, short, _sentence(shoulder), True, shoulder.share))
    return rejected


def _reasons(rejected: list[Rejected]) -> str:
    """Return the sentence above the figure: of many calls outside of modes, it names the two largest."""
    if len(rejected) == 1:
        return f"Not a mode: {rejected[0].short}. Its box says more."
    said, others = list(rejected), []
    if len(rejected) > 3:
        largest = sorted(rejected, key=lambda each: -each.share)
        said, others = largest[:2], largest[2:]
    share = share_text(sum(each.share for each in others), None)
    of_others = [f"{len(others)} others, {share} of the calls"] if others else []
    return f"Not modes: {'; '.join([*(each.short for each in said), *of_others])}. Their boxes say more."


def _of_few(bump: Bump) -> str:
    """Return which calls a cluster of few phases has."""
    where = f"from {seconds_text(bump.low_s)} to {seconds_text(bump.high_s)}"
    one = f"phase {bump.phase}" if bump.phase >= 0 else "no phase"
    if bump.effective_phases < 1.5:
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


def _draw_rejected(
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
    style: dict[str, Any] = {"text_font_style": "italic", "text_color": NEUTRAL["weak"]}
    fig.text(source=source, name="rejected_labels", **_LABELS, **style)
    draw.add_hover(
        fig, [point, span], [("duration", "@low{s} – @high{s}"), ("not a mode", "@why")], visible=False
    )
    return draw.legend_item("calls that are not a mode", span, point)


_LEAST_WIDTH = 0.01
_LABELS: dict[str, Any] = {
    **{"x": "t", "y": "y", "text": "text", "text_align": "align", "text_font_size": "9.5pt"},
    **draw.LABEL_GROUND,
}


@of_several
def modes(data: Any, *, title: str | None = None, found: Modes | None = None) -> figure:
    """Draw the histogram of log duration with its modes, harmonics and multiples of a time slice.

    Each mode is drawn with its confidence interval and the log-normal curve of its weight and width, averaged
    over the width of a bin as the bars are. The curve is dashed, and the legend says so, if it does not fit
    the calls of the mode. Calls that are in no mode have hollow points and dotted lines, and a sentence above
    the figure says why they are none.

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
    'Modes of pwrite: none can be determined in 160 calls'
    """
    ensemble = draw.ensemble_from(data)
    found = ensemble.modes() if found is None else found
    counts = ensemble.histogram("log")
    edges_s = np.where(counts.edges_s == 0, SHORTEST_S, counts.edges_s)
    empty = not ensemble.n
    low, high = (1e-6, 1.0) if empty else (edges_s[0] / 1.5, edges_s[-1] * 1.5)
    fig = draw.new_figure(
        title or _title(ensemble, found),
        360,
        x_range=Range1d(start=low, end=high),
        y_range=Range1d(start=0, end=1),
        x_axis_type="log",
        name="modes",
    )
    draw.label_log_durations(fig, ensemble)
    draw.name_axis(fig.yaxis, "calls per bin (9 % wide)", "0,0")
    fig.yaxis.ticker = AdaptiveTicker(mantissas=[1, 2, 5], min_interval=1)  # calls are whole
    if empty:
        draw.annotate_empty(fig, "no calls")
        return fig
    draw.say_what_is_left_out(fig, ensemble)
    if found.refused:
        draw.subtitle(fig, sentence(Statement("modes.refused", {"why": found.refused})))
    colour = op_colour(ensemble.op)
    area = fig.varea_step(
        x=edges_s,
        y1=np.zeros(len(edges_s)),
        y2=draw.steps(counts.amounts),
        step_mode="after",
        fill_color=colour,
        fill_alpha=0.35,
    )
    items = [draw.legend_item(f"{count_text(ensemble.n, 'call')}", area)]
    bin_width = math.log(edges_s[-1] / edges_s[0]) / len(counts.amounts)
    curves = [_log_normal(mode, ensemble.n, bin_width) for mode in found.modes]
    highest = [float(curve.max()) for _, curve in curves]
    top = 1.06 * max(float(counts.amounts.max(initial=0)), 1.0, *highest)
    rejected = _rejected_modes(found, edges_s, counts.amounts)
    heights, align = _places_of_labels(fig, found, rejected, top)
    if len(found):
        misfits = [log_normal_misfit(mode, edges_s, counts.amounts) for mode in found.modes]
        items += _draw_modes(fig, found, curves, misfits, top, heights, align, colour)
    if rejected:
        after = len(found)
        items.append(_draw_rejected(fig, rejected, heights[after:], align[after:], float(edges_s[0])))
        draw.subtitle(fig, _reasons(rejected))
    if found.harmonics is not None or found.time_slices is not None:
        items.append(_draw_rhythm(fig, found, top))
    draw.horizontal_legend(fig, items)
    return fig


def _places_of_labels(
    fig: figure, found: Modes, rejected: Sequence[Rejected], top: float
) -> tuple[list[float], list[str]]:
    """Place the labels of modes, then of calls in no mode, above the drawing; make room for them."""
    low_s, high_s = draw.ends(fig.x_range)
    times_s = [*(mode.t_s for mode in found.modes), *(each.t_s for each in rejected)]
    texts = [*map(_label, found.modes), *(each.label for each in rejected)]
    frame_px = 520  # of a narrow figure
    marks = [frame_px * math.log(max(t_s, low_s) / low_s) / math.log(high_s / low_s) for t_s in times_s]
    places = label_places(marks, [label_width(text) for text in texts], frame_px)
    rows = 1 + max(places.rows, default=-1)
    row_px = 17
    row = top * row_px / 240
    fig.y_range = Range1d(start=0, end=top + row * rows)
    assert fig.height is not None
    fig.height += row_px * rows
    return [top + row * (rows - 1 - each) for each in places.rows], places.align


def _label(mode: Mode) -> str:
    return _mode_label(seconds_text(mode.t_s), share_text(mode.weight, None), mode.weight, mode.time_share)


def _log_normal(mode: Mode, calls: int, bin_width: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the log-normal curve of a mode: durations, and the calls of a bin around each."""
    width = max(mode.width, _LEAST_WIDTH)
    end = 4.0 * width + bin_width / 2
    beyond = np.linspace(-end, end, 121)
    scale = width * math.sqrt(2)
    above, below = (
        np.array([math.erf((at + half) / scale) for at in beyond.tolist()])
        for half in (bin_width / 2, -bin_width / 2)
    )
    return mode.t_s * np.exp(beyond), calls * mode.weight * (above - below) / 2


def _title(ensemble: Ensemble, found: Modes) -> str:
    of = f" of {draw.plain(ensemble.name)}" if ensemble.name else ""
    if found.refused:
        return f"Modes{of}"
    if not len(found):
        return f"Modes{of}: none can be determined in {count_text(found.n, 'call')}"
    return f"Modes{of}: {count_text(len(found), 'mode')} in {count_text(found.n, 'call')}"


def log_normal_misfit(mode: Mode, edges_s: np.ndarray, amounts: np.ndarray) -> float:
    """Return the share of the calls of a mode that lie elsewhere than its log-normal curve has them.

    It is the largest difference of the distribution functions, at the edges of the bins that are drawn; 0
    where it is small, or as large as few calls give by themselves.
    """
    below = np.concatenate([[0.0], np.cumsum(amounts)])
    first, last = np.interp([mode.from_s, mode.to_s], edges_s, below).tolist()
    calls = last - first
    inner = (edges_s > mode.from_s) & (edges_s < mode.to_s)
    if calls < 1 or not inner.any():
        return 0.0
    share = (below[inner] - first) / calls
    scale = max(mode.width, _LEAST_WIDTH) * math.sqrt(2)
    curve = [0.5 + 0.5 * math.erf(math.log(edge / mode.t_s) / scale) for edge in edges_s[inner].tolist()]
    misfit = float(np.abs(share - curve).max())
    # Few calls exceed 1.63 / sqrt(n) with probability 0.01 (A. Kolmogorov, 1933).
    return misfit if misfit > max(0.1, 1.63 / math.sqrt(calls)) else 0.0


def _draw_modes(
    fig: figure,
    found: Modes,
    curves: Sequence[tuple[np.ndarray, np.ndarray]],
    misfits: Sequence[float],
    top: float,
    heights: Sequence[float],
    align: Sequence[str],
    colour: str,
) -> list[LegendItem]:
    level = f"{100 * found.level:g} %"
    count = len(found)
    has_times = any(mode.time_share is not None for mode in found.modes)
    curve = fig.multi_line(
        xs="xs",
        ys="ys",
        source=ColumnDataSource(
            {
                "xs": [durations_s for durations_s, _ in curves],
                "ys": [calls for _, calls in curves],
                "dash": [[6, 4] if misfit else [] for misfit in misfits],
            }
        ),
        line_color=colour,
        line_width=2,
        line_dash="dash",
        name="log_normals",
    )
    source = ColumnDataSource(
        {
            "low": [mode.low_s for mode in found.modes],
            "high": [mode.high_s for mode in found.modes],
            "t": [mode.t_s for mode in found.modes],
            "y": list(heights[:count]),
            "peak": [float(calls.max()) for _, calls in curves],
            "align": list(align[:count]),
            "text": [_label(mode) for mode in found.modes],
            "share": [
                f"{share_text(mode.weight, 1)} ({share_text(mode.weight_low, 1)} – "
                f"{share_text(mode.weight_high, 1)})"
                for mode in found.modes
            ],
            "time": ["" if mode.time_share is None else share_text(mode.time_share) for mode in found.modes],
            "width": [
                f"{number_text(mode.width)} (standard deviation of log duration)" for mode in found.modes
            ],
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
    fig.text(source=source, name="mode_labels", text_color=NEUTRAL["text"], **_LABELS)
    draw.add_hover(
        fig,
        [point, line],
        [
            ("mode", "@t{s}"),
            (f"{level} confidence interval", "@low{s} – @high{s}"),
            ("share of calls", "@share"),
            *([("share of the time", "@time")] if has_times else []),
            ("width", "@width"),
            ("log-normal", "@fit"),
        ],
        visible=False,
    )
    label = "log-normal with the weight and width of a mode"
    if any(misfits):
        label = f"log-normal of a mode (dashed: {share_text(max(misfits))} of its calls are off the curve)"
    return [
        draw.legend_item(label, curve),
        draw.legend_item(f"mode with {level} confidence interval", point, band),
    ]


def _draw_rhythm(fig: figure, found: Modes, top: float) -> LegendItem:
    """Draw where harmonics, or multiples of a time slice, are expected."""
    harmonics, slices = found.harmonics, found.time_slices
    if slices is not None:
        places = [slices.slice_s * count for count in slices.multiples]
        names = [slice_text(place) for place in places]
        what = "time slice" if slices.crowded else "tick"
        label = f"multiples of a {what} of {slice_text(slices.slice_s)} (p = {slices.chance:.2g})"
    else:
        assert harmonics is not None
        places = [harmonics.fundamental_s / order for order in harmonics.orders]
        names = ["R" if order == 1 else f"R/{order}" for order in harmonics.orders]
        of = seconds_text(harmonics.fundamental_s)
        label = f"harmonics of R = {of} (p = {harmonics.chance:.2g})"
    look: dict[str, Any] = {"line_color": "#2ca02c", "line_width": 1.4, "line_dash": "dashed"}
    line = draw.add_marks(fig, places, top, name="harmonics", **look)
    fig.text(
        x=places,
        y=[0.5 * top] * len(places),
        text=names,
        name="harmonic_labels",
        x_offset=5,
        text_font_size="10pt",
        text_font_style="bold",
        text_color="#207a20",
        **draw.LABEL_GROUND,
    )
    return draw.legend_item(label, line)


_SIDES = {"left": 0.0, "center": -0.5, "right": -1.0}


class Places(NamedTuple):
    """Where labels are."""

    rows: list[int]  # Row of each label, from the highest, 0
    align: list[str]  # Side of each label that is at its mark: ``left``, ``center`` or ``right``


def label_width(text: str) -> float:
    """Return the width of a label in pixels, roughly."""
    return round(6.4 * len(text) + 8, 1)  # of 9.5 points, with margins


def label_places(marks: Sequence[float], widths: Sequence[float], frame: float) -> Places:
    """Place labels in rows above their marks, each of which a vertical line connects with its label."""
    order = sorted(range(len(marks)), key=lambda number: marks[number])
    rows, align = [0] * len(marks), ["center"] * len(marks)
    for chain in _chains(order, marks, widths):
        mine, its = [marks[number] for number in chain], [widths[number] for number in chain]
        best = min(
            ((_placed(mine, its, sides, frame), sides) for sides in _choices(len(chain))),
            key=lambda choice: choice[0][0],
        )
        for number, row, side in zip(chain, best[0][1], best[1], strict=True):
            rows[number], align[number] = row, side
    return Places(rows, align)


def _chains(order: Sequence[int], marks: Sequence[float], widths: Sequence[float]) -> Iterator[list[int]]:
    """Yield the labels that may touch each other, from the left."""
    chain: list[int] = []
    for number in order:
        if chain and marks[number] - marks[chain[-1]] >= widths[number] + max(widths[each] for each in chain):
            yield chain
            chain = []
        chain.append(number)
    if chain:
        yield chain


def _choices(count: int) -> Iterator[list[str]]:
    yield ["center"] * count
    for first in range(count, -1, -1):
        yield ["left"] * first + ["right"] * (count - first)
    for first in range(1, count):
        yield ["right"] * first + ["left"] * (count - first)


def _placed(
    marks: Sequence[float], widths: Sequence[float], sides: Sequence[str], frame: float
) -> tuple[float, list[int]]:
    """Return the cost of labels at these sides of their marks, and their rows."""
    starts = [mark + width * _SIDES[side] for mark, width, side in zip(marks, widths, sides, strict=True)]
    ends = [start + width for start, width in zip(starts, widths, strict=True)]
    every = range(len(marks))
    # The line to a label that is higher would cross this one.
    below = [[i != j and starts[j] < marks[i] < ends[j] for j in every] for i in every]
    rows: dict[int, int] = {}
    cost = sum(max(-start, 0) + max(end - frame, 0) for start, end in zip(starts, ends, strict=True))
    while len(rows) < len(marks):
        left = [i for i in every if i not in rows]
        free = [i for i in left if not any(below[i][j] for j in left)]
        cost += 0 if free else 1000.0  # worse than any pixels beyond the frame
        one = (free or left)[0]
        over = [
            row
            for j, row in rows.items()
            if below[one][j] or (starts[j] < ends[one] and starts[one] < ends[j])
        ]
        rows[one] = 1 + max(over, default=-1)
    return cost + max(rows.values()), [rows[i] for i in every]

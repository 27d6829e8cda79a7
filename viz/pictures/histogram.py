"""Distributions of call durations, one per function, on linear and on logarithmic axes.

Calls divided by operation and request size.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Literal, NamedTuple, TypeVar

import numpy as np
from bokeh.models import (
    AdaptiveTicker,
    BasicTicker,
    ColumnDataSource,
    CustomJSHover,
    CustomJSTickFormatter,
    DataRange1d,
    FixedTicker,
    LinearAxis,
    LogAxis,
    NoOverlap,
    NumeralTickFormatter,
    Range1d,
    TabPanel,
    Tabs,
)
from bokeh.models.annotations import Legend, LegendItem
from bokeh.plotting import figure

from ensembles.ensemble.ensemble import Ensemble
from ensembles.model.events import Call, Events
from ensembles.model.units import bytes_text, count_text, seconds_text
from ensembles.run.run import Run
from ensembles.summaries.histogram import LogHistogram
from ensembles.viz.common import figures as draw
from ensembles.viz.common.data_for import data_for, labelled_ensembles
from ensembles.viz.common.style import COLOURS, OVERLAID, SERIES, SHORTEST_S, class_of_call, shade, time_ticks
from ensembles.viz.common.theme import widget_colours
from ensembles.viz.pictures.progress import cdf

_TITLE = "Durations of calls"
_MOST_CALLS = 13
_OTHERS, _OTHER_WAITS, _OF_OTHERS = " other functions", " other waits", SERIES[1]
"""Names of those that are taken together, and a colour that no class of operations has."""
_FEW_CALLS = 6
"""Up to this number, the legend is above the figure; else at its side."""

K = TypeVar("K")
Bins = tuple[np.ndarray, np.ndarray]
"""Edges of bins in s, and calls in each."""


def histogram(
    data: Any,
    *,
    title: str | None = None,
    scale: Literal["linear", "log"] | None = None,
    by: Literal["size"] | None = None,
    per: Literal["call", "MiB"] = "call",
    cumulative: bool = False,
) -> Tabs | figure:
    """Draw histograms of call durations, one per function.

    On two tabs, logarithmic axes come first if the durations of the functions with much time span more than
    two decades. On linear axes, bins have equal width; functions with little time, and those that wait for
    other tasks, are hidden until they are clicked in the legend. On logarithmic axes, bins have nearly equal
    ratio. If there are many functions, those with little time are one curve; at most three share a colour.

    Parameters
    ----------
    data : Run, Events, Ensemble or LogHistogram, or a list or mapping of ensembles
        Several ensembles (or events, or runs) share the axes, one curve for each. The keys of a mapping are
        their labels.
    title : str, optional
    scale : {"linear", "log"}, optional
        Axes; default: both, on two tabs.
    by : {"size"}, optional
        Draw a curve for the reads, and for the writes, of each request size of a run or of events. More than
        6 sizes are divided at powers of two, and the 6 classes that took the most time are drawn.
    per : {"call", "MiB"}
        Unit of work of the durations, with `by`. Per MiB, an axis above has the rates of calls.
    cumulative : bool
        Draw the share of calls up to each duration instead, a curve for each ensemble, run or events.

    Returns
    -------
    Tabs or figure
        A figure if `scale` is given, or with `cumulative`.

    Raises
    ------
    TypeError
        `data` has another type.
    ValueError
        `by` is something else, or `per` is given without it.
    EnsioError
        The run was recorded without events, and `by` needs them.

    Examples
    --------
    >>> from ensembles import viz
    >>> figure = viz.histogram(en.open("ensio-ior"), scale="log")
    >>> figure.xaxis.axis_label
    'call duration (unit at each tick)'
    """
    every: list[Call] | None = None
    if cumulative:
        return cdf(data, title=title)
    if by is not None:
        if by != "size":
            raise ValueError(f'histograms are divided by "size", not by "{by}"')
        data, count = ensembles_by_size(data, per)
        if count > len(data):
            title = f"{title or _TITLE}: the {len(data)} of {count} sizes that took the most time"
    elif per != "call":
        raise ValueError('per="MiB" needs by="size": else give ensembles per MiB')
    if isinstance(data, list | tuple | Mapping):
        ensembles = labelled_ensembles(data)
        counts = _overlaid(ensembles)
        every = list(counts.counts)
        per = next((each.per for each in ensembles.values()), "call")
        look = _Look(_series(counts), per == "MiB")
    else:
        whole = data_for(data, LogHistogram)
        counts = with_others(whole)
        others = [draw.plain(call.name) for call in _by_time(whole) if call not in counts.counts]
        look = _Look(_colours(counts), isinstance(data, Ensemble) and data.per == "MiB", others)
    linear = partial(_linear, look=look, shown=every, tabs=scale is None)
    if scale is not None:
        return linear(counts, title) if scale == "linear" else _logarithmic(counts, title, look)
    figures = [linear(counts, title), _logarithmic(counts, title, look)]
    highest = max(fig.height or 0 for fig in figures)  # the tabs are as high as the higher one
    for fig in figures:
        fig.height = highest
    panels = [
        TabPanel(child=fig, title=name) for fig, name in zip(figures, ("linear", "log–log"), strict=True)
    ]
    if _spans_decades(counts, _calls_that_matter(counts) if every is None else every):
        panels.reverse()
    return Tabs(tabs=panels, sizing_mode="stretch_width", name="histogram", stylesheets=[widget_colours()])


def with_others(histogram: LogHistogram) -> LogHistogram:
    """Take functions with little time together, so that eyes can distinguish those that are left.

    At most three functions of a class of operations are left, whose shades differ clearly. The others are
    counted as "N other functions", and those that wait for other tasks as "N other waits".
    """
    kept: list[Call] = []
    others: dict[bool, list[Call]] = {False: [], True: []}
    used: dict[str, int] = {}
    for call in _by_time(histogram):
        name, waits = class_of_call(call), call.waits_for_tasks
        alike = [each for each in histogram.counts if each.waits_for_tasks == waits]
        share = histogram.time_s(call) / max(sum(histogram.time_s(each) for each in alike), 1e-9)
        if len(histogram.counts) <= _FEW_CALLS or (used.get(name, 0) < 3 and share >= 0.01):
            kept.append(call)
            used[name] = used.get(name, 0) + 1
        else:
            others[waits].append(call)
    found = LogHistogram()
    found.counts = {call: histogram.counts[call] for call in kept}
    for waits, calls in others.items():
        if len(calls) == 1:
            found.counts[calls[0]] = histogram.counts[calls[0]]
        elif calls:
            name = f"{len(calls)}{_OTHER_WAITS if waits else _OTHERS}"
            merged = Call(name, calls[0].layer, calls[0].op) if waits else Call(name, "", "meta")
            found.counts[merged] = np.sum([histogram.counts[call] for call in calls], axis=0)
    return found


def _by_time(histogram: LogHistogram) -> list[Call]:
    """Return the functions, those that took the most time first, I/O before waiting, others last."""
    ends = (_OTHERS, _OTHER_WAITS)
    return sorted(
        histogram.counts,
        key=lambda call: (call.waits_for_tasks, call.name.endswith(ends), -histogram.time_s(call)),
    )


class _Look(NamedTuple):
    """Colour of each function that is drawn, whether durations are per MiB, and names of the others."""

    colours: dict[Call, str]
    per_mib: bool
    others: Sequence[str] = ()


def _overlaid(ensembles: Mapping[str, Ensemble]) -> LogHistogram:
    """Count the durations of each ensemble as those of a function with its label."""
    histogram = LogHistogram()
    units = {ensemble.per for ensemble in ensembles.values()}  # the axis names one
    for label, ensemble in ensembles.items():
        if len(ensemble):
            name = f"{label} per MiB" if len(units) > 1 and ensemble.per == "MiB" else label
            histogram.counts[Call(name, "", ensemble.op or "meta")] = ensemble.sample.counts.copy()
    return histogram


def _series(histogram: LogHistogram) -> dict[Call, str]:
    """Return the colours of ensembles: those of their operations, or a series if these are the same."""
    if len({call.op for call in histogram.counts}) == len(histogram.counts) or len(histogram.counts) > len(
        OVERLAID
    ):
        return _colours(histogram)
    return dict(zip(histogram.counts, OVERLAID, strict=False))


def _linear(
    histogram: LogHistogram,
    title: str | None,
    *,
    look: _Look,
    shown: Sequence[Call] | None = None,
    tabs: bool = True,
) -> figure:
    shown = _calls_that_matter(histogram) if shown is None else shown
    end_s = _linear_end_s(histogram, shown)
    edges_s = np.linspace(0, end_s, _linear_bins(histogram, shown) + 1)
    shown_counts = DataRange1d(start=0, only_visible=True, range_padding=0.08)
    fig = draw.new_figure(
        title or _TITLE,
        380,
        x_range=Range1d(start=0, end=end_s),
        y_range=shown_counts if shown else Range1d(start=0, end=1),
        name="histogram_linear",
    )
    fig.yaxis.axis_label = f"calls per bin of {seconds_text(edges_s[1])}"
    fig.yaxis.ticker = AdaptiveTicker(mantissas=[1, 2, 5], min_interval=1)  # calls are whole
    fig.yaxis.formatter = NumeralTickFormatter(format="0,0")
    draw.label_duration_axis(fig)
    if look.per_mib:
        fig.xaxis.axis_label = str(fig.xaxis.axis_label).replace("call duration", "duration per MiB")
        add_rate_axis(fig, LinearAxis(ticker=BasicTicker(desired_num_ticks=8)))
    items = []
    for call, colour in look.colours.items():
        counts = histogram.rebinned(call, edges_s)
        renderers = _draw(fig, call, colour, edges_s, counts, base=0.0)
        for renderer in renderers:
            renderer.visible = call in shown
        items.append(LegendItem(label=_label(histogram, call), renderers=renderers))
    _finish(fig, histogram, items)
    _name_others(fig, look)
    notes = _left_out(histogram)
    hidden = [_label(histogram, call) for call in look.colours if call not in shown]
    if hidden:
        why = "waiting, or less than 5 % of the I/O time; click to show"
        draw.subtitle(fig, f"Hidden ({why}): {', '.join(hidden)}.")
    beyond = sum(histogram.n(call) - histogram.rebinned(call, edges_s).sum() for call in shown)
    if beyond >= 0.5:
        verb = "is" if round(beyond) == 1 else "are"
        longer = f"{round(beyond):,} of the calls shown {verb} longer than {seconds_text(end_s)}"
        notes.append(f"{longer}: see the tab log–log" if tabs else longer)
    draw.retitle(fig, _with_notes(title, notes))
    return fig


def _logarithmic(histogram: LogHistogram, title: str | None, look: _Look) -> figure:
    counted = {call: histogram.coarse(call) for call in look.colours}
    coarse = on_log_axis(counted)
    low = min((edges_s[0] for edges_s, _ in coarse.values()), default=1e-6) / 1.5
    high = max((edges_s[-1] for edges_s, _ in coarse.values()), default=1.0) * 1.5
    top = max((int(counts.max()) for _, counts in coarse.values()), default=1)
    fig = draw.new_figure(
        title or _TITLE,
        380,
        x_range=Range1d(start=low, end=high),
        y_range=Range1d(start=0.5, end=2.0 * max(top, 5)),
        x_axis_type="log",
        y_axis_type="log",
        name="histogram_log",
    )
    fig.xaxis.axis_label = f"{'duration per MiB' if look.per_mib else 'call duration'} (unit at each tick)"
    fig.xaxis.formatter = time_ticks()
    if look.per_mib and coarse:
        add_rate_axis(fig, LogAxis())
    draw.name_axis(fig.yaxis, "calls per bin (9 % wide)", "0,0")
    fig.yaxis.ticker = FixedTicker(ticks=[10.0**power for power in range(19)])
    items = []
    for call, colour in look.colours.items():
        if call not in coarse:  # all its calls took 0 ns
            continue
        renderers = _draw(fig, call, colour, *coarse[call], base=0.5)
        items.append(LegendItem(label=_label(histogram, call), renderers=renderers))
    notes = _left_out(histogram)
    if below := below_clock(counted, coarse):
        notes.append(below)
    draw.retitle(fig, _with_notes(title, notes))
    _name_others(fig, look)
    _finish(fig, histogram, items)
    return fig


def _name_others(fig: figure, look: _Look) -> None:
    if look.others:
        more = len(look.others) - 12
        listed = ", ".join(look.others[:12]) + (f" and {more} more" if more > 0 else "")
        draw.subtitle(fig, f"Taken together: {listed}.")


def on_log_axis(counted: Mapping[K, Bins]) -> dict[K, Bins]:
    """Return the bins that a logarithmic axis can show: calls of 0 ns would be three empty decades away."""
    shown = {}
    for key, (edges_s, counts) in counted.items():
        used = np.flatnonzero(counts[1:]) + 1 if edges_s[0] == 0 else np.arange(len(counts))
        if len(used):
            shown[key] = edges_s[used[0] :], counts[used[0] :]
    if shown:
        return shown
    return {
        key: (np.where(edges_s == 0, SHORTEST_S, edges_s), counts)
        for key, (edges_s, counts) in counted.items()
    }


def below_clock(counted: Mapping[K, Bins], shown: Mapping[K, Bins]) -> str:
    """Say how many calls took 0 ns, and whether they are drawn; "": none did."""
    zero = sum(int(counts[0]) for edges_s, counts in counted.values() if edges_s[0] == 0)
    if not zero:
        return ""
    drawn = sum(int(counts.sum()) for _, counts in shown.values())
    every = sum(int(counts.sum()) for _, counts in counted.values())
    one = zero == 1
    left_out = f", and {'is' if one else 'are'} not drawn" if drawn < every else ""
    return f"{count_text(zero, 'call')} took 0 ns, below the clock{left_out}"


def add_rate_axis(fig: figure, axis: LinearAxis | LogAxis) -> None:
    """Add an axis of rates above: a duration per MiB is the inverse of a rate."""
    code = "return tick > 0 ? (1 / tick).toLocaleString('en-US', {maximumSignificantDigits: 3}) : '';"
    axis.update(
        axis_label="rate of a call (MiB/s)",
        axis_label_text_font_style="normal",
        minor_tick_line_color=None,
        major_label_policy=NoOverlap(min_distance=4),
    )
    axis.formatter = CustomJSTickFormatter(code=code)  # type: ignore[assignment] # any formatter is right
    fig.add_layout(axis, "above")


def _left_out(histogram: LogHistogram) -> list[str]:
    count = len(histogram.counts)
    return [f"the {_MOST_CALLS} of {count} functions with most time"] if count > _MOST_CALLS else []


def _with_notes(title: str | None, notes: Sequence[str]) -> str:
    """Return the title with all notes in one pair of brackets."""
    return f"{title or _TITLE} ({'; '.join(notes)})" if notes else title or _TITLE


def _draw(
    fig: figure, call: Call, colour: str, edges_s: np.ndarray, counts: np.ndarray, base: float
) -> list[Any]:
    """Draw outline and area of one distribution, and the invisible bars for the hover tool."""
    heights = np.maximum(counts, base)
    outline = ColumnDataSource(
        {
            "x": np.concatenate([edges_s[:1], edges_s, edges_s[-1:]]),
            "y": np.concatenate([[base], draw.steps(heights), [base]]),
        }
    )
    area, line = draw.add_steps(fig, outline, colour, "y", x="x", base=base, alpha=0.25, width=1.6)
    columns = {"left": edges_s[:-1], "right": edges_s[1:], "top": heights, "n": counts.astype(np.float64)}
    columns = {name: values[counts > 0] for name, values in columns.items()}
    source = ColumnDataSource(columns)
    target = fig.quad(
        left="left", right="right", bottom=base, top="top", source=source, fill_alpha=0, line_alpha=0
    )
    number = CustomJSHover(code="return Number(value.toFixed(1)).toLocaleString('en-US');")
    draw.add_hover(
        fig,
        target,
        [
            ("call", _unmarked(call.name)),
            ("duration", "@left{s} – @right{s}"),
            ("calls in the bin", "@n{0}"),
        ],
        formatters={"@n": number},
        visible=False,
    )
    return [area, line, target]


def _finish(fig: figure, histogram: LogHistogram, items: list[LegendItem]) -> None:
    if not items:
        draw.annotate_empty(fig, "no durations were recorded")
        return
    if len(items) <= _FEW_CALLS:
        draw.horizontal_legend(fig, items, click_policy="hide")
    else:
        fig.add_layout(
            Legend(
                items=items,
                click_policy="hide",
                border_line_color=None,
                background_fill_alpha=0,
                title="click to show or hide",
                title_text_font_style="normal",
                title_text_font_size="9pt",
                label_text_font_size="10pt",
                location="top_left",
                margin=14,
                padding=2,  # type: ignore[arg-type] # Bokeh's stubs lack plain numbers
            ),
            "right",
        )
    draw.add_legend_buttons(fig)


def _label(histogram: LogHistogram, call: Call) -> str:
    names = [other.name for other in histogram.counts]
    name = call.name if names.count(call.name) == 1 else f"{call.layer} {call.name}"
    return f"{draw.plain(name)} (n = {histogram.n(call):,})"


def _colours(histogram: LogHistogram) -> dict[Call, str]:
    """Return the colour of each function that is drawn, in shades of the colour of its class."""
    used: dict[str, int] = {}
    colours = {}
    for call in _by_time(histogram)[:_MOST_CALLS]:
        if call.name.endswith(_OTHERS):
            colours[call] = _OF_OTHERS
            continue
        name = class_of_call(call)
        colours[call] = shade(COLOURS[name], used.get(name, 0))
        used[name] = used.get(name, 0) + 1
    return colours


def _calls_that_matter(histogram: LogHistogram) -> list[Call]:
    """Return the functions with at least 5 % of the I/O time or, without I/O, of the time of all calls."""
    times_s = {call: histogram.time_s(call) for call in histogram.counts if not call.waits_for_tasks}
    times_s = times_s or {call: histogram.time_s(call) for call in histogram.counts}
    least = 0.05 * sum(times_s.values())
    return [call for call, time_s in times_s.items() if time_s >= least]


def _spans_decades(histogram: LogHistogram, shown: Sequence[Call]) -> bool:
    """Whether the longest of these calls took more than a hundred times as long as the shortest."""
    ends_s = [histogram.quantile_s(call, [0.0, 1.0]) for call in shown if histogram.n(call)]
    if not ends_s:
        return False
    least_s, most_s = min(low for low, _ in ends_s), max(high for _, high in ends_s)
    return bool(most_s > 100.0 * max(least_s, SHORTEST_S))


def _linear_end_s(histogram: LogHistogram, shown: Sequence[Call]) -> float:
    """Return the end of the linear axis: the longest call, unless a few are much longer than all others."""
    ends = [24e-9]  # as many bins, at least
    for call in shown:
        level, largest = histogram.quantile_s(call, [0.995, 1.0])
        ends.append(1.3 * level if largest > 2.5 * level else 1.08 * largest)
    return float(max(ends))


def _linear_bins(histogram: LogHistogram, shown: Sequence[Call]) -> int:
    """Return the number of linear bins, which grows with the square root of the calls."""
    most = max((histogram.n(call) for call in shown), default=0)
    return int(np.clip(3 * most**0.5, 24, 120))


def _unmarked(name: str) -> str:
    """Replace what a hover box would take for a tag, a field or mathematics: its words are HTML."""
    return re.sub(r"[^\w .,:+–-]", "?", name)


def ensembles_by_size(data: Any, per: Literal["call", "MiB"] = "call") -> tuple[dict[str, Ensemble], int]:
    """Return an ensemble of the reads, and of the writes, of each size.

    With more sizes than a series has colours, classes are octaves: from a power of two to less than the next.
    """
    if not isinstance(data, Run | Events):
        raise TypeError(f"sizes of calls need a run or events, not {type(data).__name__}")
    events = data.select(op=["read", "write"]) if isinstance(data, Run) else data
    ops = np.array([call.op for call in events.calls] or [""])
    moves = np.isin(ops, ("read", "write"))[events.call] & (events.requested > 0)
    events = events[moves]
    op_of, size_of = ops[events.call], events.requested.astype(np.float64)
    octave_of = np.exp2(np.floor(np.log2(size_of))) if len(events) else size_of
    pairs = {(op, size) for op, size in zip(op_of.tolist(), size_of.tolist(), strict=True)}
    is_octave = len(pairs) > len(SERIES)
    class_of = octave_of if is_octave else size_of
    found = []
    for op, size in sorted(set(zip(op_of.tolist(), class_of.tolist(), strict=True))):
        part = events[(op_of == op) & (class_of == size)]
        text = bytes_text(int(size))
        label = f"{op} {text} – {bytes_text(int(2 * size))}" if is_octave else f"{op} {text}"
        found.append((label, op, part))
    shown = sorted(found, key=lambda one: -int(one[2].duration.sum()))[: len(SERIES)]
    ensembles = {}
    for label, op, part in found:
        if any(part is other for _, _, other in shown):
            ensemble = Ensemble.from_events(part, per)
            ensemble.name, ensemble.op = label, op
            ensembles[label] = ensemble
    return ensembles, len(found)

"""Splitting: how the time of a task narrows, and the slowest task gains, when a call is split into k."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from bokeh.layouts import column
from bokeh.models import Column, ColumnDataSource, Range1d
from bokeh.models.annotations import LegendItem
from bokeh.plotting import figure

from ensembles.ensemble.ensemble import Ensemble
from ensembles.ensemble.splitting import consecutive_calls
from ensembles.model.errors import EnsioError
from ensembles.model.units import count_text, seconds_text
from ensembles.statistics.samples.counted_durations import CountedDurations
from ensembles.statistics.samples.histogram import compute_histogram
from ensembles.statistics.sums.split import Split, SplitTime, check_calls, times_of_tasks
from ensembles.viz.common import figures as draw
from ensembles.viz.common.style import NEUTRAL, SERIES, SHORTEST_S, time_ticks
from ensembles.viz.pictures.tail import tasks_of


def splitting(
    data: Any,
    calls: Iterable[int] = (1, 2, 4, 8),
    tasks: int | None = None,
    *,
    title: str | None = None,
    level: float = 0.9,
) -> Column:
    """Draw what splitting each call into k smaller ones would do: Figure 2 of the paper.

    The first figure has the distribution of the time in which a task makes its k calls: it narrows as k
    grows. Where the longest time is many times the usual one, axes of time are logarithmic. The second one
    has the time of the slowest of N tasks, with its interval.

    Measured runs can be drawn too: give a mapping from the number of calls to the run or its ensemble. The
    time of a task is then the sum of each k consecutive calls of a task in a phase.

    Parameters
    ----------
    data : Ensemble, Events or Run, or a mapping from k to these
        A single one is split by `Ensemble.split`; a mapping has runs that made k calls.
    calls : iterable of int
        Numbers k of calls to predict for, at most 6. Not used for measured runs.
    tasks : int, optional
        Number N of tasks that wait for each other. Default: the tasks of the data. Not used for measured
        runs.
    title : str, optional
        Title of the first figure.
    level : float
        Level of the prediction intervals.

    Returns
    -------
    Column
        The names of its figures are ``splitting_times`` and, for a prediction, ``splitting_slowest``.

    Raises
    ------
    EnsioError
        A number is out of range, the number of tasks is neither given nor known, or the task that made each
        call of a measured run is unknown.
    TypeError
        `data` has another type.

    References
    ----------
    Uselton et al., "Parallel I/O Performance: From Events to Ensembles", IPDPS 2010, Figure 2.

    Examples
    --------
    >>> from ensembles import viz
    >>> layout = viz.splitting(en.open("ensio-ior").ensemble(op="write"), calls=[1, 2])
    >>> [item.label.value for item in layout.children[0].above[0].items]
    ['1 call', '2 calls']
    """
    if isinstance(data, Mapping):
        return _measured(data, title)
    ensemble = draw.ensemble_from(data)
    numbers = _few(check_calls(calls))
    tasks = tasks_of(data, ensemble) if tasks is None else tasks
    of = f" of {draw.plain(ensemble.name)}" if ensemble.name else ""
    head = title or f"Time of one task, if each call{of} is split into k"
    if not ensemble.n:
        return draw.empty_picture(head, "no calls", "splitting", "splitting_times")
    known = consecutive_calls(ensemble)
    times = times_of_tasks(ensemble.sample, numbers, tasks, known, attributes=ensemble.calls)
    found = ensemble.split(numbers, tasks, level)
    top_s = [float(sample.max_s.max()) for sample in times.values()]
    top_s += [split.high_s or 0.0 for split in found.splits]
    low_s = [split.low_s for split in found.splits if split.low_s]
    shared, is_log = _axis(times, max(top_s), low_s)
    first = _times(times, shared, head, ensemble.unit, is_log)
    draw.say_what_is_left_out(first, ensemble)
    second = _slowest(found, shared, ensemble.unit, is_log)
    first.xaxis.visible = False
    return column([first, second], sizing_mode="stretch_width", name="splitting")


def _few(numbers: list[int]) -> list[int]:
    if len(numbers) > len(SERIES):
        raise EnsioError(f"{len(numbers)} numbers of calls were given: choose at most {len(SERIES)}")
    return sorted(set(numbers))


def _measured(data: Mapping[int, Any], title: str | None) -> Column:
    numbers = _few(check_calls(list(data)))
    times = {k: _sums(draw.ensemble_from(data[k]), k) for k in numbers}
    times = {k: sample for k, sample in times.items() if sample.total}
    head = title or "Measured time of one task in k calls"
    if not times:
        return draw.empty_picture(head, "no calls", "splitting", "splitting_times")
    shared, is_log = _axis(times, max(float(sample.max_s.max()) for sample in times.values()))
    return column([_times(times, shared, head, "s", is_log)], sizing_mode="stretch_width", name="splitting")


def _axis(
    times: Mapping[int, CountedDurations], top_s: float, low_s: Sequence[float] = ()
) -> tuple[Range1d, bool]:
    """Return the axis of times, and whether it is logarithmic, because curves would be at its left end."""
    middle_s = min(float(sample.quantile_s([0.5])[0]) for sample in times.values())
    if not 0 < 30 * middle_s < top_s:
        return Range1d(start=0.0, end=1.03 * top_s or 1.0), False
    least_s = min([float(sample.quantile_s([0.005])[0]) for sample in times.values()] + [*low_s])
    return Range1d(start=max(least_s, SHORTEST_S) / 1.3, end=1.3 * top_s), True


def _sums(ensemble: Ensemble, k: int) -> CountedDurations:
    """Add up each k consecutive calls of a task in a phase; of an incomplete rest nothing is known."""
    if not ensemble.n:
        return CountedDurations.from_durations(np.zeros(0))
    calls = ensemble.successive
    place = np.arange(len(calls.duration_s)) - np.repeat(calls.begin[:-1], np.diff(calls.begin))
    whole = place < np.repeat(np.diff(calls.begin) // k * k, np.diff(calls.begin))
    return CountedDurations.from_durations(calls.duration_s[whole].reshape(-1, k).sum(axis=1))


def _times(
    times: dict[int, CountedDurations], shared: Range1d, title: str, unit: str, is_log: bool
) -> figure:
    fig = draw.new_figure(title, 300, x_range=shared, name="splitting_times", **_scale(is_log))
    _label(fig, shared, "time of a task", unit, is_log)
    draw.name_axis(fig.yaxis, "density (share per s)" if unit == "s" else "density", "0,0.[000]")
    if is_log:
        draw.name_axis(fig.yaxis, "share of the times (bins 9 % wide)", "0.[0] %")
    items: list[LegendItem] = []
    lines, top = [], 0.0
    for (k, sample), colour in zip(times.items(), SERIES, strict=False):
        found = compute_histogram(sample, "log" if is_log else "linear", None if is_log else 60)
        height = found.amounts / max(found.amounts.sum(), 1.0) if is_log else found.density
        edges_s = np.maximum(
            np.concatenate([found.edges_s[:1], found.edges_s]), SHORTEST_S if is_log else 0.0
        )
        density = np.concatenate([[0.0], height, [0.0]])
        source = ColumnDataSource(
            {"t": edges_s, "density": density, "calls": [count_text(k, "call")] * len(density)}
        )
        line = fig.step(x="t", y="density", mode="after", source=source, line_color=colour, line_width=2.2)
        line.name = f"times_{k}"
        fig.varea_step(x="t", y1=0, y2="density", step_mode="after", source=source, color=colour, alpha=0.12)
        lines.append(line)
        items.append(draw.legend_item(count_text(k, "call"), line))
        top = max(top, float(density.max()))
    fig.y_range = Range1d(start=0, end=1.08 * top)
    draw.horizontal_legend(fig, items)
    draw.add_hover(fig, lines, [("", "@calls"), ("time of a task", "@t{s}")])
    return fig


def _scale(is_log: bool) -> dict[str, Any]:
    return {"x_axis_type": "log"} if is_log else {}


def _label(fig: figure, shared: Range1d, what: str, unit: str, is_log: bool) -> None:
    if is_log:
        fig.xaxis.axis_label = f"{what}{f', per {unit[2:]}' if unit[1:] else ''} (unit at each tick)"
        fig.xaxis.formatter = time_ticks()
        return
    draw.name_times(fig.xaxis, what, draw.ends(shared)[1], unit[1:])


def _slowest(found: Split, shared: Range1d, unit: str, is_log: bool) -> figure:
    rows = max(len(found.splits), 1)
    fig = draw.new_figure(
        f"Predicted time of the slowest of {count_text(found.tasks, 'task')}",
        120 + 32 * rows,
        x_range=shared,
        y_range=Range1d(start=rows - 0.4, end=-0.7),
        name="splitting_slowest",
        **_scale(is_log),
    )
    _label(fig, shared, "time until the last task is done", unit, is_log)
    fig.yaxis.axis_label = "calls"
    fig.ygrid.visible = False
    refused = [
        f"{count_text(one.calls, 'call')}: {one.refused}" for one in found.splits if one.refused is not None
    ]
    if any(one.speedup is not None and one.mean_s is not None for one in found.splits):
        draw.subtitle(
            fig, "Speedup: ratio of the means, which few very slow phases raise more than the medians."
        )
    for sentence in [found.refused, *refused] if found.refused else refused:
        draw.subtitle(fig, f"No prediction: {sentence}.")
    if not found.splits:
        fig.yaxis.visible = False
        draw.annotate_empty(fig, "no prediction", x_axis=True)
        return fig
    fig.yaxis.ticker = list(range(rows))
    fig.yaxis.major_label_overrides = {number: str(one.calls) for number, one in enumerate(found.splits)}
    known = [
        (number, one, SERIES[number % len(SERIES)])
        for number, one in enumerate(found.splits)
        if one.median_s is not None
    ]
    places = [_place(one, _text(one, unit), draw.ends(fig.x_range), is_log) for _, one, _ in known]
    columns: dict[str, Any] = {
        "y": [number for number, _, _ in known],
        "label": [one.calls for _, one, _ in known],
        "low": [one.low_s for _, one, _ in known],
        "median": [one.median_s for _, one, _ in known],
        "high": [one.high_s for _, one, _ in known],
        "colour": [colour for _, _, colour in known],
    }
    columns |= {
        "label_y": [number - 0.2 for number, _, _ in known],
        "text": [_text(one, unit) for _, one, _ in known],
        "text_x": [at_s for at_s, _ in places],
        "align": [side for _, side in places],
    }
    fig.text(
        x="text_x",
        y="label_y",
        text="text",
        text_align="align",
        source=draw.add_intervals(fig, columns, "calls", found.level),
        text_font_size="9.5pt",
        text_baseline="bottom",
        text_color=NEUTRAL["text"],
    )
    return fig


def _place(one: SplitTime, text: str, axis_s: tuple[float, float], is_log: bool) -> tuple[float, str]:
    """Return where a text begins, or ends if it would be cut by the right side of a narrow frame."""
    to, back = (np.log10, lambda place: 10.0**place) if is_log else (float, float)
    start, end = (float(to(each)) for each in axis_s)
    low, high = (float(to(max(each or 0.0, axis_s[0]))) for each in (one.low_s, one.high_s))
    width = (end - start) * 6.4 * len(text) / 510  # pixels of a character, of a narrow frame
    if low + width <= end:
        return back(low), "left"
    return back(min(max(high, start + width), end)), "right"


def _text(one: SplitTime, unit: str) -> str:
    text = f"median {seconds_text(one.median_s or 0.0)}{unit[1:]}"
    if one.mean_s is not None:
        text += f", mean {seconds_text(one.mean_s)}{unit[1:]}"
    if one.speedup is None or one.calls == 1:
        return text
    return f"{text}, speedup {one.speedup:.2f}" + (" (of medians)" if one.mean_s is None else "")

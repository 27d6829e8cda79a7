"""Progress of each call index: how many of its calls have ended, against the time since the first began.

Cumulative distribution functions of ensembles, on one axis.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from bokeh.models import ColumnDataSource, Range1d
from bokeh.plotting import figure

from ensembles.ensemble.ensemble import Ensemble
from ensembles.model.errors import EnsioError
from ensembles.model.events import OPS, Events
from ensembles.model.filters import FILTERS, within_ranges
from ensembles.run.run import Run
from ensembles.structure.ordinals.numbering import compute_ordinals
from ensembles.viz.common import figures as draw
from ensembles.viz.common.data_for import labelled_ensembles, of_several
from ensembles.viz.common.style import OVERLAID, SHORTEST_S, op_colour, shade

_COLOURS = ("#3b52b8", "#56b4e9", "#009e73", "#9bb82c", "#e69f00", "#d55e00", "#cc79a7", "#7d4a9e")
"""In the order of the spectrum, as the call indices rise; neighbours are solid and dashed."""


@of_several
def progress(
    data: Any,
    *,
    op: str = "read",
    ordinal: str | int | None = None,
    size: str | int | None = None,
    layer: str | Sequence[str] | None = None,
    title: str | None = None,
) -> figure:
    """Draw the share of calls that have ended, one curve for each call index.

    Time begins for each curve when the first call of this index begins: on each file that several tasks use,
    and, on files of single tasks, in each phase, if phases are known. If later calls of a task take longer,
    the curves rise later and later.

    Parameters
    ----------
    data : Run or Events
    op : str
        Operation.
    ordinal : str or int, optional
        Call indices, such as ``"4-8"``. Default: all, or 8 that are evenly spaced among those with at least
        half as many calls as the index with most.
    size : str or int, optional
        Request sizes, such as ``"1MiB..4MiB"``. Default: all. Calls are numbered among those of all sizes.
    layer : str or sequence of str, optional
        Layers. Default: all, of whose calls the outermost are drawn.
    title : str, optional

    Returns
    -------
    figure

    Raises
    ------
    TypeError
        `data` has another type.
    EnsioError
        Call indices are unknown, or `op` or `ordinal` is malformed.

    Examples
    --------
    >>> from ensembles import viz
    >>> figure = viz.progress(en.open("ensio-ior"), op="read", ordinal="4-5")
    >>> [item.label.value for item in figure.legend[0].items]
    ['read 4 (8)', 'read 5 (8)']
    """
    calls = _calls(data, op, ordinal, size, layer)
    group = _groups(calls)
    curves = _curves(calls, group)
    left_out = len(curves)
    if ordinal is None and len(curves) > len(_COLOURS):
        # The thousandth call of one task does not show how a thousand tasks go on.
        most = max(len(elapsed) for elapsed in curves.values())
        common = [index for index, elapsed in curves.items() if len(elapsed) >= 0.5 * most]
        chosen = np.unique(np.linspace(0, len(common) - 1, len(_COLOURS)).astype(int)).tolist()
        curves = {index: curves[index] for index in (common[place] for place in chosen)}
    left_out -= len(curves)
    end_s = max((float(elapsed[-1]) for elapsed in curves.values()), default=1.0)
    words = title or f"Progress of each {op}, by call index"
    fig = draw.new_figure(
        words + (f" ({len(curves)} of {len(curves) + left_out:,})" if left_out else ""),
        360,
        x_range=Range1d(start=0, end=1.02 * max(end_s, 1e-9)),
        y_range=Range1d(start=0, end=1.02),
        name="progress",
    )
    if group is not None and len(np.unique(group)) > 1:
        draw.subtitle(fig, "Calls on another file, or in another phase, begin at 0 again.")
    draw.name_times(fig.xaxis, "time since the first call of this index began", end_s)
    draw.name_axis(fig.yaxis, "calls that have ended", "0 %")
    if not curves:
        draw.annotate_empty(fig, f"no {op} was selected")
        return fig
    items = []
    for number, (index, elapsed) in enumerate(curves.items()):
        source = ColumnDataSource(_steps(elapsed, index))
        line = fig.step(
            "time_s",
            "share",
            source=source,
            mode="after",
            color=_COLOURS[number % len(_COLOURS)],
            line_width=2,
            line_dash=("solid", "dashed")[number % 2],
        )
        items.append(draw.legend_item(f"{op} {index} ({len(elapsed):,})", line))
    draw.horizontal_legend(fig, items)
    draw.add_hover(
        fig, None, [("call index", "@ordinal"), ("after", "@time_s{s}"), ("ended", "@share{0.0 %}")]
    )
    return fig


def _calls(
    data: Any,
    op: str,
    ordinal: str | int | None,
    size: str | int | None,
    layer: str | Sequence[str] | None,
) -> Events:
    if op not in OPS:
        raise EnsioError(f'there is no operation "{op}": choose one of {", ".join(OPS)}')
    ranges = None if ordinal is None else FILTERS["ordinal"].parse(ordinal)
    sizes = None if size is None else FILTERS["size"].parse(size)
    layers = (layer,) if isinstance(layer, str) else layer
    if isinstance(data, Run):
        found = data.select(op=op)
        outermost = np.flatnonzero(found.outermost)
        if 0 < len(outermost) < len(found):
            # Calls inside of others are not further calls of the program and do not count, as in
            # `Run.ordinals`.
            phase = found.phase
            known = {"phase": None if phase is None else phase[outermost]}
            found = found[outermost]
            known["ordinal"] = compute_ordinals(found)
            found = found.with_derived(known.get)
        if layers is not None:
            found = found[np.flatnonzero(_of_layers(found, layers))]
        if ranges is not None and found.ordinal is not None:
            found = found[np.flatnonzero(within_ranges(found.ordinal, ranges))]
        return found if sizes is None else found[np.flatnonzero(within_ranges(found.requested, sizes))]
    if not isinstance(data, Events):
        raise TypeError(f"a run or events are needed, not {type(data).__name__}")
    of_op = np.array([call.op == op for call in data.calls])
    chosen = of_op[data.call] if len(data) else np.zeros(0, bool)
    if ranges is not None and data.ordinal is not None:
        chosen &= within_ranges(data.ordinal, ranges)
    if layers is not None:
        chosen &= _of_layers(data, layers)
    if sizes is not None:
        chosen &= within_ranges(data.requested, sizes)
    return data[np.flatnonzero(chosen)]


def _of_layers(events: Events, layers: Sequence[str]) -> np.ndarray:
    """Return which calls are of some layers: bool, shape (n,)."""
    return np.array([call.layer in layers for call in events.calls], bool)[events.call]


def _groups(events: Events) -> np.ndarray | None:
    """Return the group of each call within which time begins at 0: int64, shape (n,); None: there is one.

    Tasks make a call of one index together on a file that they share. On files of single tasks, the same
    index may come back hours later: phases separate these.
    """
    if not len(events):
        return None
    pairs = np.unique(events.file.astype(np.int64) << 32 | events.rank)
    files, tasks = np.unique(pairs >> 32, return_counts=True)
    is_shared = np.isin(events.file, files[tasks > 1])
    phase = None if is_shared.all() else events.phase
    alone = np.full(len(events), -1, np.int64) if phase is None else -2 - phase
    return np.where(is_shared, events.file.astype(np.int64), alone)


def _curves(events: Events, group: np.ndarray | None) -> dict[int, np.ndarray]:
    """Return for each call index the increasing times in s at which its calls ended."""
    if not len(events):
        return {}
    index = events.ordinal
    if index is None:
        raise EnsioError("the call index of these events is unknown: select them from a run")
    assert group is not None
    order = np.lexsort((group, index))
    index, group, start, end = index[order], group[order], events.start[order], events.end[order]
    of_group = np.flatnonzero(np.append(True, (np.diff(index) != 0) | (np.diff(group) != 0)))
    began = np.minimum.reduceat(start, of_group)
    elapsed = end - np.repeat(began, np.diff(np.append(of_group, len(end))))
    firsts = np.flatnonzero(np.append(True, np.diff(index) != 0))
    parts = zip(index[firsts].tolist(), np.split(elapsed, firsts[1:]), strict=True)
    return {number: np.sort(ends) * 1e-9 for number, ends in parts}


def _steps(elapsed_s: np.ndarray, index: int) -> dict[str, np.ndarray]:
    """Return the points of a curve; of many calls, evenly spaced ones with the first and the last."""
    count = len(elapsed_s)
    places = np.unique(np.linspace(0, count - 1, min(count, 200)).astype(int))
    time_s = np.concatenate([[0.0], elapsed_s[places]])
    share = np.concatenate([[0.0], (places + 1) / count])
    return {"time_s": time_s, "share": share, "ordinal": np.full(len(share), index)}


def cdf(data: Any, *, title: str | None = None) -> figure:
    """Draw the share of calls up to each duration, one curve for each ensemble."""
    ensembles = labelled_ensembles(data)
    curves = {label: _points(ensemble) for label, ensemble in ensembles.items() if len(ensemble)}
    low = min((float(points["time_s"][0]) for points in curves.values()), default=1e-6)
    high = max((float(points["time_s"][-1]) for points in curves.values()), default=1.0)
    fig = draw.new_figure(
        title or "Share of calls up to a duration",
        360,
        x_range=Range1d(start=low / 1.2, end=high * 1.2),
        y_range=Range1d(start=0, end=1.02),
        x_axis_type="log",
        name="cdf",
    )
    draw.name_axis(fig.yaxis, "share of calls", "0 %")
    if not curves:
        draw.annotate_empty(fig, "there are no calls")
        return fig
    draw.label_log_durations(fig, next(iter(ensembles.values())))
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
            source=ColumnDataSource({**points, "label": [draw.plain(label)] * len(points["share"])}),
            mode="after",
            color=colour,
            line_width=2,
            line_dash=("solid", "dashed", "dotted")[number % 3],
        )
        items.append(draw.legend_item(f"{draw.plain(label)} ({ensemble.n:,})", line))
    draw.horizontal_legend(fig, items)
    for label, ensemble in ensembles.items():
        for note in ensemble.left_out:
            draw.subtitle(fig, f"{label}: {note}." if len(ensembles) > 1 else draw.sentence_of(note))
    draw.add_hover(fig, None, [("", "@label"), ("up to", "@time_s{s}"), ("calls", "@share{0.0 %}")])
    return fig


def _points(ensemble: Ensemble) -> dict[str, np.ndarray]:
    """Return the durations at which the distribution steps, and the share of calls up to each."""
    atoms = ensemble.atoms
    counts = np.bincount(atoms.atom, weights=atoms.count, minlength=len(atoms.value_s))
    share = np.cumsum(counts) / counts.sum()
    places = np.unique(np.linspace(0, len(share) - 1, min(len(share), 1000)).astype(int))
    # A bin is counted at its end: its value is moved for the mean of the ensemble, and may be 0.
    first_s, time_s = np.maximum(atoms.low_s[:1], SHORTEST_S), np.maximum(atoms.high_s[places], SHORTEST_S)
    return {"time_s": np.append(first_s, time_s), "share": np.append(0.0, share[places])}

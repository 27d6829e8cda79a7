"""Bars with a text above each: files by time, bytes and longest call; layers by exclusive time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Unpack

import numpy as np
from bokeh.layouts import column
from bokeh.models import Column, ColumnDataSource, Range1d
from bokeh.plotting import figure

from ensembles.model.sanitize_text import sanitize_text
from ensembles.model.units import S_PER_NS, bytes_text, count_text, seconds_text, share_text
from ensembles.run.filter_arguments import with_filters
from ensembles.run.selection import Filters
from ensembles.run.tables import FileTotals, totals_by_file
from ensembles.summaries.runtotals import RunTotals
from ensembles.viz.common import figures as draw
from ensembles.viz.common.data_for import data_for, of_several, rows_from
from ensembles.viz.common.style import COLOURS, NEUTRAL, SERIES, byte_unit

_NO_FILE = "(no file)"
_WAITING = {"mpisync": " (waiting in MPI)"}
"""What layers without I/O are, of whose names readers may not know that."""


def _labelled_bars(
    title: str,
    name: str,
    labels: Sequence[str],
    lengths: Mapping[str, tuple[Sequence[float], Any]],
    columns: Mapping[str, Any],
    tooltips: Sequence[tuple[str, str]],
) -> figure:
    """Draw a row for each label: a text, and below it bars one behind the other."""
    rows = len(labels)
    top = max(np.sum([values for values, _ in lengths.values()], axis=0), default=0.0)
    fig = draw.new_figure(
        title,
        96 + 34 * max(rows, 1) + 26 * (len(lengths) > 1),
        x_range=Range1d(start=0, end=1.04 * float(top) or 1.0),
        y_range=Range1d(start=max(rows, 1) - 0.45, end=-0.62),
        name=name,
    )
    fig.min_border_left = 24
    fig.yaxis.visible = False
    fig.ygrid.visible = False
    places = np.arange(rows)
    columns = {**columns, "label": list(labels), "y": places + 0.12, "label_y": places - 0.06}
    below, bars = np.zeros(rows), []
    for values, colour in lengths.values():
        above = below + np.asarray(values)
        source = ColumnDataSource({**columns, "left": below, "right": above})
        if not isinstance(colour, str):
            source.data["colour"] = colour
            colour = "colour"
        look: dict[str, Any] = {"fill_color": colour, "line_color": None}
        bars.append(fig.hbar(y="y", height=0.34, left="left", right="right", source=source, **look))
        below = above
    fig.text(
        x=0,
        y="label_y",
        text="label",
        source=ColumnDataSource(columns),
        text_font_size="9.5pt",
        text_baseline="bottom",
        x_offset=3,
        text_color=NEUTRAL["text"],
        name="labels",
    )
    if len(lengths) > 1:
        draw.horizontal_legend(
            fig, [draw.legend_item(part, bar) for part, bar in zip(lengths, bars, strict=True)]
        )
    draw.add_hover(fig, bars, list(tooltips))
    return fig


@of_several
@with_filters
def files(data: Any, *, title: str | None = None, most: int = 8, **filters: Unpack[Filters]) -> Column:
    """Draw the files with the most time in I/O, with the most bytes, and with the longest calls.

    Parameters
    ----------
    data : Run, Events, or list of FileTotals
        For a run, the numbers of `Run.by_file`.
    title : str, optional
        Title of the first figure.
    most : int
        Largest number of files in a figure.
    **filters
        As for `Run.select`.

    Returns
    -------
    Column
        The names of its figures are ``file_time``, ``file_bytes`` and ``file_longest``.

    Raises
    ------
    TypeError
        `data` has another type.
    EnsioError
        Not every call is an event, or a filter is malformed.

    Examples
    --------
    >>> from ensembles import viz
    >>> layout = viz.files(en.open("ensio-ior"))
    >>> layout.select_one({"name": "file_time"}).title.text
    'Time in I/O: 1 file'
    """
    totals = rows_from(data, FileTotals, totals_by_file, filters)
    if not totals:
        return draw.empty_picture(title or "Time in I/O by file", "no file was used", "files", "file_time")
    parts = [
        _figure("Time in I/O", title, "file_time", _time_rows(totals), most),
        _figure("Bytes moved", None, "file_bytes", _byte_rows(totals), most),
        _figure("Longest call", None, "file_longest", _longest_rows(totals), most),
    ]
    return column([part for part in parts if part], sizing_mode="stretch_width", name="files")


_Row = tuple[FileTotals, dict[str, float], str]
"""A file, the lengths of its bars by label, and the text of the row."""


def _time_rows(totals: Sequence[FileTotals]) -> list[_Row]:
    shown = sorted(totals, key=lambda row: (-row.io_time_s, row.path))
    return [
        (row, {"time": row.io_time_s}, f"{seconds_text(row.io_time_s)}, {share_text(row.share, None)}")
        for row in shown
        if row.io_time_s
    ]


def _byte_rows(totals: Sequence[FileTotals]) -> list[_Row]:
    shown = sorted(totals, key=lambda row: (-row.order("bytes"), row.path))
    return [
        (
            row,
            {"written": row.bytes_written or 0, "read": row.bytes_read or 0},
            " · ".join(
                f"{what} {bytes_text(moved)}"
                for what, moved in (("written", row.bytes_written), ("read", row.bytes_read))
                if moved
            ),
        )
        for row in shown
        if row.order("bytes")
    ]


def _longest_rows(totals: Sequence[FileTotals]) -> list[_Row]:
    shown = sorted(totals, key=lambda row: (-(row.longest_s or 0.0), row.path))
    return [(row, {"longest": row.longest_s}, seconds_text(row.longest_s)) for row in shown if row.longest_s]


_COLOUR_OF = {"written": COLOURS["write"], "read": COLOURS["read"]}


def _figure(what: str, title: str | None, name: str, rows: list[_Row], most: int) -> figure | None:
    if not rows:
        return None
    shown = count_text(len(rows), "file")
    if len(rows) > most:
        rows, shown = rows[:most], f"{most:,} of {shown}"
    is_bytes = name == "file_bytes"
    longest = max(sum(lengths.values()) for _, lengths, _ in rows)
    unit, unit_name = byte_unit(longest)
    # Ticks at round numbers of MiB need an axis in MiB.
    scale = unit if is_bytes else 1.0
    paths = [plain_path(row.path) for row, _, _ in rows]
    fig = _labelled_bars(
        title or f"{what}: {shown}",
        name,
        [f"{shortened(path)}: {text}" for path, (_, _, text) in zip(paths, rows, strict=True)],
        {
            part: ([lengths[part] / scale for _, lengths, _ in rows], _COLOUR_OF.get(part, SERIES[1]))
            for part in rows[0][1]
        },
        {
            "path": paths,
            "tasks": [f"{row.tasks:,}" for row, _, _ in rows],
            "calls": [f"{row.calls:,}" for row, _, _ in rows],
            "text": [text for _, _, text in rows],
        },
        [("file", "@path"), ("tasks", "@tasks"), ("calls", "@calls"), ("", "@text")],
    )
    of_axis = f"{what[0].lower()}{what[1:]}"
    if is_bytes:
        fig.xaxis.axis_label = f"{of_axis} ({unit_name})"
    else:
        draw.label_summed_time(fig, of_axis, longest)
    return fig


def plain_path(path: str) -> str:
    """Return a path as it may stand in a figure; characters that Bokeh would interpret are replaced."""
    return draw.plain(sanitize_text(path)) or _NO_FILE


def shortened(path: str, most: int = 56) -> str:
    """Return a path that fits into a line, or its end."""
    return path if len(path) <= most else f"…{path[1 - most :]}"


@of_several
def layers(data: Any, *, title: str | None = None) -> figure:
    """Draw the time of each layer: exclusive, and inside recorded calls that its calls made.

    Exclusive times add up to the time in calls; whole times overlap, because a layer's calls contain those of
    the layers below.

    Parameters
    ----------
    data : Run, Events or RunTotals
    title : str, optional

    Returns
    -------
    figure

    Raises
    ------
    TypeError
        `data` has another type.

    Examples
    --------
    >>> from ensembles import viz
    >>> figure = viz.layers(en.open("ensio-ior"))
    >>> figure.renderers[0].data_source.data["layer"]
    ['posix']
    """
    found = data_for(data, RunTotals).layers.layers
    rows = sorted(found.items(), key=lambda item: -item[1].time_ns)
    whole_s = [layer.time_ns * S_PER_NS for _, layer in rows]
    exclusive_s = [layer.exclusive_ns * S_PER_NS for _, layer in rows]
    inner_s = [whole - own for whole, own in zip(whole_s, exclusive_s, strict=True)]
    colours = [COLOURS["wait"] if name in _WAITING else SERIES[2] for name, _ in rows]
    lengths: dict[str, tuple[Sequence[float], Any]] = {"exclusive": (exclusive_s, colours)}
    if any(inner_s):
        lengths["in recorded calls of layers below"] = inner_s, SERIES[5]
    fig = _labelled_bars(
        title or "Time in the calls of each layer, summed over tasks",
        "layers",
        [
            f"{draw.plain(name)}{_WAITING.get(name, '')}: {count_text(layer.calls, 'call')}, "
            f"{seconds_text(own)} exclusive"
            for (name, layer), own in zip(rows, exclusive_s, strict=True)
        ],
        lengths,
        {
            "layer": [draw.plain(name) for name, _ in rows],
            "calls": [f"{layer.calls:,}" for _, layer in rows],
            "exclusive_s": exclusive_s,
            "inner_s": inner_s,
            "whole_s": whole_s,
        },
        [
            ("layer", "@layer"),
            ("calls", "@calls"),
            ("exclusive", "@exclusive_s{s}"),
            ("inside other calls", "@inner_s{s}"),
        ],
    )
    draw.label_summed_time(fig, "time", max(whole_s, default=0.0))
    if not rows:
        draw.annotate_empty(fig, "no call was recorded")
    return fig

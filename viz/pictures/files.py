"""Bars of files: most time in I/O, most bytes, longest call."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Unpack

from bokeh.layouts import column
from bokeh.models import Column, ColumnDataSource, HoverTool, Range1d
from bokeh.plotting import figure

from ensembles.model.events import Events
from ensembles.model.sanitize_text import sanitize_text
from ensembles.model.units import bytes_text, count_text, seconds_text, share_text
from ensembles.run.filter_arguments import with_filters
from ensembles.run.run import Run
from ensembles.run.selection import Filters
from ensembles.run.tables import FileTotals, totals_by_file
from ensembles.viz.common.data_for import of_several
from ensembles.viz.common.figures import (
    annotate_empty,
    horizontal_legend,
    label_summed_time,
    legend_item,
    new_figure,
    plain,
)
from ensembles.viz.common.style import COLOURS, NEUTRAL, SERIES, byte_unit

_MOST_PATH = 56
_NO_FILE = "(no file)"


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
    totals = _totals(data, filters)
    if not totals:
        fig = new_figure(
            title or "Time in I/O by file",
            160,
            x_range=Range1d(start=0, end=1),
            y_range=Range1d(start=0, end=1),
            name="file_time",
        )
        annotate_empty(fig, "no file was used")
        return column([fig], sizing_mode="stretch_width", name="files")
    parts = [
        _figure("Time in I/O", title, "file_time", _time_rows(totals), most),
        _figure("Bytes moved", None, "file_bytes", _byte_rows(totals), most),
        _figure("Longest call", None, "file_longest", _longest_rows(totals), most),
    ]
    return column([part for part in parts if part], sizing_mode="stretch_width", name="files")


def _totals(data: Any, filters: Filters) -> list[FileTotals]:
    if isinstance(data, Run | Events):
        return totals_by_file(data, **filters)
    if isinstance(data, list) and all(isinstance(row, FileTotals) for row in data):
        return data
    raise TypeError(f"a run, events or a list of FileTotals is needed, not {type(data).__name__}")


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
    parts = list(rows[0][1])
    is_bytes = name == "file_bytes"
    longest = max(sum(lengths.values()) for _, lengths, _ in rows)
    unit, unit_name = byte_unit(longest)
    # Ticks at round numbers of MiB need an axis in MiB.
    scale = unit if is_bytes else 1.0
    fig = new_figure(
        title or f"{what}: {shown}",
        96 + 34 * len(rows) + 26 * is_bytes,
        x_range=Range1d(start=0, end=1.04 * longest / scale),
        y_range=Range1d(start=len(rows) - 0.45, end=-0.62),
        name=name,
    )
    fig.min_border_left = 24
    fig.yaxis.visible = False
    fig.ygrid.visible = False
    of_axis = f"{what[0].lower()}{what[1:]}"
    if is_bytes:
        fig.xaxis.axis_label = f"{of_axis} ({unit_name})"
    else:
        label_summed_time(fig, of_axis, longest)
    below = [0.0] * len(rows)
    bars, items = [], []
    columns = _columns(rows)
    for part in parts:
        above = [low + lengths[part] / scale for low, (_, lengths, _) in zip(below, rows, strict=True)]
        source = ColumnDataSource(columns | {"left": below, "right": above})
        bar = fig.hbar(
            y="y",
            height=0.34,
            left="left",
            right="right",
            source=source,
            color=_COLOUR_OF.get(part, SERIES[1]),
            line_color=None,
        )
        bars.append(bar)
        items.append(legend_item(part, bar))
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
    if len(parts) > 1:
        horizontal_legend(fig, items)
    hover = [("file", "@path"), ("tasks", "@tasks"), ("calls", "@calls"), ("", "@text")]
    fig.add_tools(HoverTool(renderers=[*bars], tooltips=hover))
    return fig


def _columns(rows: list[_Row]) -> dict[str, list[Any]]:
    return {
        "y": [number + 0.12 for number in range(len(rows))],
        "label_y": [number - 0.06 for number in range(len(rows))],
        "path": [plain_path(row.path) for row, _, _ in rows],
        "tasks": [f"{row.tasks:,}" for row, _, _ in rows],
        "calls": [f"{row.calls:,}" for row, _, _ in rows],
        "text": [text for _, _, text in rows],
        "label": [f"{_short(plain_path(row.path))}: {text}" for row, _, text in rows],
    }


def plain_path(path: str) -> str:
    """Return a path as it may stand in a figure; characters that Bokeh would interpret are replaced."""
    return plain(sanitize_text(path)) or _NO_FILE


def _short(path: str) -> str:
    return path if len(path) <= _MOST_PATH else f"…{path[1 - _MOST_PATH :]}"

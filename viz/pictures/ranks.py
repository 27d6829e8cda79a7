"""Bars of ranks: time in I/O and waiting, bytes, and the longest call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Unpack

import numpy as np
from bokeh.layouts import column
from bokeh.models import Column, ColumnDataSource, Quad, Range1d
from bokeh.models.renderers import GlyphRenderer
from bokeh.plotting import figure

from ensembles.model.units import bytes_text, seconds_text
from ensembles.run.filter_arguments import with_filters
from ensembles.run.run import Run
from ensembles.run.selection import Filters
from ensembles.run.tables import RankTotals, totals_by_rank
from ensembles.viz.common import figures as draw
from ensembles.viz.common.data_for import of_several, rows_from
from ensembles.viz.common.mixed import MOVED
from ensembles.viz.common.style import COLOURS, NEUTRAL, SERIES, byte_unit

_SEPARATE = 64
"""Up to this number of ranks, there is a gap between bars."""
_TITLE = "Time in I/O of each rank"


@of_several
@with_filters
def ranks(data: Any, *, title: str | None = None, **filters: Unpack[Filters]) -> Column:
    """Draw time in I/O and waiting, bytes moved, and the longest call of each rank.

    With more than 512 ranks, several share a bar: it shows their mean, and a line their largest value.

    Parameters
    ----------
    data : Run, Events, or list of RankTotals
        For a run, the numbers of `Run.by_rank`.
    title : str, optional
        Title of the first figure.
    **filters
        As for `Run.select`.

    Returns
    -------
    Column
        The names of its figures are ``rank_time``, ``rank_bytes`` and ``rank_longest``. Figures of values
        that are not known are left out.

    Raises
    ------
    TypeError
        `data` has another type.
    EnsioError
        A filter is malformed, or the run does not record what it needs.

    Examples
    --------
    >>> from ensembles import viz
    >>> layout = viz.ranks(en.open("ensio-ior"))
    >>> [figure.name for figure in layout.children]
    ['rank_time', 'rank_bytes', 'rank_longest']
    """
    totals = rows_from(data, RankTotals, totals_by_rank, filters)
    count = max([row.rank for row in totals], default=0) + 1
    if isinstance(data, Run):
        count = max(count, data.tasks)
    per_bar = -(-count // 512)
    margin = max(0.5, 0.012 * count)  # marks of the first and the last rank are not cut by the frame
    ends = (-margin, count - 1 + margin)
    shared = Range1d(start=ends[0], end=ends[1], bounds=ends)
    head = title or _TITLE + (f" (bars: mean of {per_bar} ranks, line: their largest)" if per_bar > 1 else "")
    if not totals:
        return draw.empty_picture(head, "no rank made a call", "ranks", "rank_time")
    bars = _Bars(totals, count, per_bar, shared, _places(count, per_bar))
    parts = [_time(bars, head), _bytes(bars), _longest(bars)]
    drawn = [part for part in parts if part is not None]
    for part in drawn[:-1]:
        part.xaxis.visible = False
    if count > _SEPARATE:
        for each in (each for part in drawn for each in part.renderers):
            if isinstance(each, GlyphRenderer) and isinstance(each.glyph, Quad):
                each.glyph.line_color = each.glyph.fill_color  # else the page shines through between bars
    draw.count_along(drawn[-1].xaxis)
    return column(drawn, sizing_mode="stretch_width", name="ranks")


class _Bars(NamedTuple):
    """Bars that the figures share, each of one rank or of several successive ones."""

    totals: Sequence[RankTotals]
    all_ranks: int  # Number of ranks
    per_bar: int
    x_range: Range1d
    source: ColumnDataSource

    def of(self, values: Sequence[float]) -> tuple[np.ndarray, np.ndarray]:
        """Return mean and largest value of the ranks of each bar; ranks without calls count as 0."""
        of_rank = np.zeros(-(-self.all_ranks // self.per_bar) * self.per_bar)
        of_rank[[row.rank for row in self.totals]] = values
        grouped = of_rank.reshape(-1, self.per_bar)
        first = np.arange(len(grouped)) * self.per_bar
        return grouped.sum(axis=1) / np.minimum(self.per_bar, self.all_ranks - first), grouped.max(axis=1)

    def draw(self, fig: figure, parts: Mapping[str, tuple[np.ndarray, str]]) -> tuple[list[Any], float]:
        """Draw the parts of the bars on each other."""
        return draw.stack(fig.quad, self.source, parts, left="left", right="right")


def _places(count: int, per_bar: int) -> ColumnDataSource:
    first = np.arange(0, count, per_bar)
    last = np.minimum(first + per_bar, count) - 1
    names = [
        f"rank {low}" if low == high else f"ranks {low}–{high}"
        for low, high in zip(first.tolist(), last.tolist(), strict=True)
    ]
    gap = 0.1 if count <= _SEPARATE else 0.0
    return ColumnDataSource({"left": first - 0.5 + gap, "right": last + 0.5 - gap, "name": names})


def _time(bars: _Bars, title: str) -> figure:
    totals, source = bars.totals, bars.source
    io, io_most = bars.of([row.io_time_s for row in totals])
    wait, _ = bars.of([row.wait_s for row in totals])
    fig = draw.new_figure(title, 230, x_range=bars.x_range, name="rank_time")
    slowest = max(totals, key=lambda row: row.io_time_s)
    median_s = float(np.median([row.io_time_s for row in totals]))
    draw.subtitle(
        fig,
        f"Rank {slowest.rank} was longest in I/O: {seconds_text(slowest.io_time_s)}; "
        f"median {seconds_text(median_s)}.",
    )
    known = {"io": ("in I/O", io, SERIES[1]), "wait": ("waiting for other tasks", wait, COLOURS["wait"])}
    parts = {name: part for name, part in known.items() if name == "io" or part[1].any()}
    source.data.update({name: values for name, (_, values, _) in parts.items()})
    drawn, top = bars.draw(fig, {name: (values, colour) for name, (_, values, colour) in parts.items()})
    items = [draw.legend_item(label, each) for (label, *_), each in zip(parts.values(), drawn, strict=True)]
    if bars.per_bar > 1:
        source.data["most"] = io_most
        items.append(_largest(fig, source, "most"))
        top = max(top, float(io_most.max()))
    mark = fig.scatter(
        x=[slowest.rank],
        y=[slowest.io_time_s],
        marker="inverted_triangle",
        size=10,
        fill_color=NEUTRAL["text"],
        line_color=None,
        name="slowest",
    )
    items.append(draw.legend_item("longest in I/O", mark))
    _label_seconds(fig, 1.04 * max(top, slowest.io_time_s))
    draw.horizontal_legend(fig, items)
    waiting = [("waiting", "@wait{s}")] if "wait" in parts else []
    draw.add_hover(fig, drawn[0], [("", "@name"), ("in I/O", "@io{s}"), *waiting], mode="vline")
    return fig


def _largest(fig: figure, source: ColumnDataSource, name: str) -> Any:
    # One line over all bars: a piece for each of five hundred would be dust.
    left, most = source.data["left"], source.data[name]
    ends = {"x": [*left, source.data["right"][-1]], name: [*most, most[-1]]}
    line = fig.step(
        x="x", y=name, source=ColumnDataSource(ends), mode="after", line_color=SERIES[3], line_width=1.2
    )
    return draw.legend_item("largest of the ranks of a bar", line)


def _label_seconds(fig: figure, top_s: float) -> None:
    fig.y_range = Range1d(start=0, end=1.06 * top_s or 1.0)
    draw.name_times(fig.yaxis, "time", top_s)


def _bytes(bars: _Bars) -> figure | None:
    known = {
        "write": [row.bytes_written for row in bars.totals],
        "read": [row.bytes_read for row in bars.totals],
    }
    moved = {
        name: bars.of([each or 0 for each in values])[0]
        for name, values in known.items()
        if any(values) and None not in values
    }
    if not moved:
        return None
    unit_bytes, unit = byte_unit(float(sum(moved.values(), np.zeros(1)).max()))
    fig = draw.new_figure("Bytes moved by each rank", 200, x_range=bars.x_range, name="rank_bytes")
    drawn, top = bars.draw(fig, {op: (values / unit_bytes, COLOURS[op]) for op, values in moved.items()})
    for (op, values), each in zip(moved.items(), drawn, strict=True):
        bars.source.data[f"{op}_text"] = [bytes_text(value) for value in values.tolist()]
        draw.add_hover(fig, each, [("", "@name"), (op, f"@{op}_text")])
    fig.y_range = Range1d(start=0, end=1.06 * top)
    fig.yaxis.axis_label = f"bytes ({unit})"
    draw.horizontal_legend(
        fig, [draw.legend_item(MOVED[op], each) for op, each in zip(moved, drawn, strict=True)]
    )
    return fig


def _longest(bars: _Bars) -> figure | None:
    values = [row.longest_s for row in bars.totals]
    if None in values:
        return None
    _, most = bars.of([value or 0.0 for value in values])
    fig = draw.new_figure("Longest I/O call of each rank", 200, x_range=bars.x_range, name="rank_longest")
    bars.source.data["longest"] = most
    (drawn,), top = bars.draw(fig, {"longest": (most, SERIES[1])})
    _label_seconds(fig, top)
    draw.add_hover(fig, drawn, [("", "@name"), ("longest call", "@longest{s}")], mode="vline")
    return fig

"""Numbers of calls by size and duration, on logarithmic axes."""

from __future__ import annotations

from typing import Any

import numpy as np
from bokeh.layouts import column
from bokeh.models import (
    Column,
    ColumnDataSource,
    HoverTool,
    LogColorMapper,
    NumeralTickFormatter,
    Range1d,
)
from bokeh.models.annotations import ColorBar
from bokeh.models.tickers import FixedTicker
from bokeh.palettes import Blues256
from bokeh.plotting import figure

from ensembles.model.errors import EnsioError
from ensembles.model.events import Events
from ensembles.model.units import size_text
from ensembles.run.run import Run
from ensembles.summaries.bins import bin_edges_s
from ensembles.summaries.cells import CellSummary
from ensembles.summaries.classes import ALL_SIZES, size_range_bytes
from ensembles.summaries.histogram import coarse_bins
from ensembles.summaries.runtotals import DIRECTIONS
from ensembles.viz.figures import LABEL_GROUND, annotate_empty, ends, new_figure
from ensembles.viz.several import of_several
from ensembles.viz.style import byte_unit, time_hover, time_ticks
from ensembles.viz.theme import TURNED

_PER_OCTAVE = 4
_LEAST_S = 0.5e-9
_RATES = tuple(float(1 << (10 * power)) for power in range(5))
_HEIGHT = 300
_FEW = 100
"""With fewer calls in a cell, the colour bar has ticks between powers of ten."""
_DARKEST, _PALEST = 40, 160
"""Part of the palette whose ends differ from a dark and from a white page."""


@of_several
def size_duration(data: Any, *, title: str | None = None) -> Column:
    """Draw how many reads and writes there are of each size and duration, on logarithmic axes.

    Sizes are requested bytes, in octaves; durations have four bins an octave. Dashed lines join sizes and
    durations of equal rate.

    Parameters
    ----------
    data : Run, Events or CellSummary
        Runs that were recorded without events have these numbers too.
    title : str, optional
        Title of the first figure.

    Returns
    -------
    Column
        The names of its figures are ``size_duration_write`` and ``size_duration_read``; an operation that
        does not occur is left out.

    Raises
    ------
    TypeError
        `data` has another type.
    EnsioError
        Only sums of the durations are known.

    Examples
    --------
    >>> from ensembles import viz
    >>> layout = viz.size_duration(en.open("ensio-ior"))
    >>> int(layout.children[0].renderers[0].data_source.data["calls"].sum())
    160
    """
    cells = _cells(data)
    counted = {op: _counts(cells, op) for op in reversed(DIRECTIONS)}
    present = {op: counts for op, counts in counted.items() if len(counts["calls"])}
    head = "Calls by size and duration"
    if not present:
        fig = new_figure(
            title or head,
            200,
            x_range=Range1d(start=1, end=1 << 20),
            y_range=Range1d(start=1e-6, end=1),
            x_axis_type="log",
            y_axis_type="log",
            name="size_duration_write",
        )
        annotate_empty(fig, "no reads and no writes")
        return column([fig], sizing_mode="stretch_width", name="size_duration")
    joined = {name: np.concatenate([each[name] for each in present.values()]) for name in counted["read"]}
    x_range = Range1d(start=float(joined["left"].min()) / 1.5, end=float(joined["right"].max()) * 1.5)
    y_range = Range1d(start=float(joined["bottom"].min()) / 1.5, end=float(joined["top"].max()) * 1.5)
    mapper = LogColorMapper(
        # Of one hue, so that many calls are what stands out: few ones of another hue did.
        palette=list(reversed(Blues256[_DARKEST:_PALEST])),
        low=1,
        high=max(int(joined["calls"].max()), 2),
        tags=[TURNED],
    )
    parts = []
    for number, (op, counts) in enumerate(present.items()):
        words = f"{op.capitalize()}s by size and duration"
        parts.append(
            _figure(op, counts, (title or words) if not number else words, (x_range, y_range), mapper)
        )
    return column(parts, sizing_mode="stretch_width", name="size_duration")


def _cells(data: Any) -> CellSummary:
    if isinstance(data, CellSummary):
        found = data
    elif isinstance(data, Run):
        found = data.summary
    elif isinstance(data, Events):
        found = CellSummary(data.calls, data.files)
        found.add(data, ordinals_known=False)
    else:
        raise TypeError(f"a run, events or a CellSummary is needed, not {type(data).__name__}")
    if not found.durations_known:
        raise EnsioError("only sums of the durations are known: no call has a duration to draw")
    return found


def _counts(cells: CellSummary, op: str) -> dict[str, np.ndarray]:
    """Return the rectangles with calls of an operation: their edges, and the number of calls."""
    cell, fine, count = cells.histogram
    starts = coarse_bins(_PER_OCTAVE)
    is_op = np.array([call.op == op for call in cells.calls], bool)
    size = cells.cells["size_class"]
    mine = is_op[cells.cells["call"]][cell] if len(cell) else np.zeros(0, bool)
    mine &= size[cell] != ALL_SIZES
    number = np.searchsorted(starts, fine[mine], side="right") - 1
    key, place = np.unique(size[cell[mine]] * len(starts) + number, return_inverse=True)
    calls = np.bincount(place.reshape(-1), count[mine], len(key)).astype(np.int64)
    edges_s = np.append(bin_edges_s()[starts], bin_edges_s()[-1])
    spans = np.array([size_range_bytes(each) for each in (key // len(starts)).tolist()], float).reshape(-1, 2)
    low_s, high_s = edges_s[key % len(starts)], edges_s[key % len(starts) + 1]
    return {
        # Calls that ask for no bytes stand below one byte.
        "left": np.where(spans[:, 1] == 0, 0.5, spans[:, 0]),
        "right": spans[:, 1] + 1,
        "bottom": np.maximum(low_s, _LEAST_S),
        "top": np.maximum(high_s, 2 * _LEAST_S),
        "calls": calls,
    }


def _figure(
    op: str,
    counts: dict[str, np.ndarray],
    title: str,
    ranges: tuple[Range1d, Range1d],
    mapper: LogColorMapper,
) -> figure:
    fig = new_figure(
        title,
        _HEIGHT,
        x_range=ranges[0],
        y_range=ranges[1],
        x_axis_type="log",
        y_axis_type="log",
        name=f"size_duration_{op}",
    )
    sizes = [
        "0 B"
        if right == 1
        else f"{size_text(int(left))} – {size_text(int(right) - 1)}"
        if int(left) != int(right) - 1
        else size_text(int(left))
        for left, right in zip(counts["left"].tolist(), counts["right"].tolist(), strict=True)
    ]
    source = ColumnDataSource({**counts, "size": sizes})
    cells = fig.quad(
        left="left",
        right="right",
        bottom="bottom",
        top="top",
        source=source,
        fill_color={"field": "calls", "transform": mapper},
        line_color=None,
    )
    _rates(fig, counts, ranges)
    _label_sizes(fig, ranges[0])
    fig.yaxis.axis_label = "call duration"
    fig.yaxis.formatter = time_ticks()
    top = float(mapper.high)  # type: ignore[arg-type] # set by `size_duration`
    steps = (1, 2, 5) if top < _FEW else (1,)
    ticks = [float(step * 10**power) for power in range(19) for step in steps if step * 10**power <= top]
    bar = ColorBar(
        color_mapper=mapper,
        ticker=FixedTicker(ticks=ticks),
        formatter=NumeralTickFormatter(format="0,0"),
        width=14,
        title="calls",
        padding=4,
    )
    fig.add_layout(bar, "right")
    fig.add_tools(
        HoverTool(
            renderers=[cells],
            tooltips=[("size", "@size"), ("duration", "@bottom{0} – @top{0}"), ("calls", "@calls{0,0}")],
            formatters={"@bottom": time_hover(), "@top": time_hover()},
        )
    )
    return fig


def _label_sizes(fig: figure, x_range: Range1d) -> None:
    low, high = ends(x_range)
    step = max(1, round(np.log2(high / low) / 9))
    powers = range(0, 64, step)
    ticks = [float(1 << power) for power in powers if low <= 1 << power <= high]
    fig.xaxis.ticker = FixedTicker(ticks=ticks)
    fig.xaxis.major_label_overrides = {tick: size_text(int(tick)) for tick in ticks}
    fig.xaxis.axis_label = "requested bytes"


def _rates(fig: figure, counts: dict[str, np.ndarray], ranges: tuple[Range1d, Range1d]) -> None:
    """Draw lines of equal rate, where there are calls of about that rate."""
    rates = np.concatenate([counts["left"] / counts["top"], counts["right"] / counts["bottom"]])
    shown = [rate for rate in _RATES if rates.min() <= rate <= rates.max()]
    (left, right), (bottom, top) = (ends(one) for one in ranges)
    for rate in shown:
        first, last = max(left, bottom * rate), min(right, top * rate)
        if first >= last:
            continue
        fig.line(x=[first, last], y=[first / rate, last / rate], line_color="#d55e00", line_dash="dashed")
        size, unit = byte_unit(rate)
        middle = first**0.7 * last**0.3
        fig.text(
            x=[middle],
            y=[middle / rate],
            text=[f"{rate / size:g} {unit}/s"],
            text_baseline="top",
            x_offset=8,
            y_offset=4,
            text_font_size="9pt",
            text_color="#d55e00",
            **LABEL_GROUND,
        )

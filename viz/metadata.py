"""Metadata calls over time, by operation."""

from __future__ import annotations

from typing import Any

import numpy as np
from bokeh.models import ColumnDataSource, CustomJSHover, HoverTool, NumeralTickFormatter, Range1d
from bokeh.plotting import figure

from ensembles.model.units import seconds_text
from ensembles.summaries.call_counts import CallCounts
from ensembles.viz.data_for import data_for, partial_sentence
from ensembles.viz.figures import (
    annotate_empty,
    horizontal_legend,
    label_time_axis,
    legend_item,
    new_figure,
    subtitle,
    time_range,
)
from ensembles.viz.several import of_several
from ensembles.viz.style import COLOURS, moment_hover

_OPS = {"open": "open", "close": "close", "seek": "seek", "meta": "other (stat, unlink, …)", "sync": "sync"}
_COLOURS = (COLOURS["metadata"], "#b34a0f", "#ffd5a8", "#65331a", COLOURS["sync"])
"""Those of the operations in all pictures: metadata with shades, and sync."""


@of_several
def metadata(data: Any, *, title: str | None = None, x_range: Range1d | None = None) -> figure:
    """Draw how many metadata calls begin per second, over time and by operation.

    Parameters
    ----------
    data : Run, Events or CallCounts
    title : str, optional
    x_range : Range1d, optional
        Time axis in seconds, to share with another figure.

    Returns
    -------
    figure
        The area under a curve is the number of calls.

    Raises
    ------
    TypeError
        `data` has another type.
    EnsioError
        The run was recorded without events.

    Examples
    --------
    >>> from ensembles import viz
    >>> figure = viz.metadata(en.open("ensio-ior"))
    >>> [item.label.value for item in figure.above[0].items]
    ['open (8)', 'close (8)']
    """
    counts = data_for(data, CallCounts)
    present = [op for op in _OPS if counts.calls(op)]
    edges_s = counts.edges_ns * 1e-9
    low_ns, high_ns = (int(counts.edges_ns[0]), int(counts.edges_ns[-1])) if present else (0, 0)
    width_s = counts.cell_ns * 1e-9
    fig = new_figure(
        title or "Metadata calls of all tasks over time",
        260,
        x_range=x_range or time_range(low_ns, high_ns),
        name="metadata",
    )
    label_time_axis(fig)
    fig.yaxis.axis_label = "calls per second"
    fig.yaxis.formatter = NumeralTickFormatter(format="0,0.[00]")
    if partial := partial_sentence(data):
        subtitle(fig, partial)
    if not present:
        fig.y_range = Range1d(start=0, end=1)
        annotate_empty(fig, "no metadata call was recorded")
        return fig
    below = np.zeros(len(edges_s) - 1)
    items = []
    for op, colour in zip(_OPS, _COLOURS, strict=True):
        if op not in present:
            continue
        above = below + counts.of(op) / width_s
        some = np.flatnonzero(counts.of(op))
        columns = {
            "left": edges_s[some],
            "right": edges_s[some + 1],
            "bottom": below[some],
            "top": above[some],
        }
        # A cell may be narrower than a pixel: its outline is not.
        cells = fig.quad(
            left="left",
            right="right",
            bottom="bottom",
            top="top",
            source=ColumnDataSource(columns),
            fill_color=colour,
            line_color=colour,
            name=op,
        )
        items.append(legend_item(f"{_OPS[op]} ({counts.calls(op):,})", cells))
        below = above
    top = float(below.max())
    fig.y_range = Range1d(start=0, end=1.06 * top)
    every = {"left": edges_s[:-1], "right": edges_s[1:], **{op: counts.of(op) for op in present}}
    target = fig.quad(
        left="left",
        right="right",
        bottom=0,
        top=1.06 * top,
        source=ColumnDataSource(every),
        fill_alpha=0,
        line_alpha=0,
        name="cells",
    )
    horizontal_legend(fig, items)
    number = CustomJSHover(code="return Number(value).toLocaleString('en-US');")
    fig.add_tools(
        HoverTool(
            renderers=[target],
            mode="vline",
            point_policy="follow_mouse",
            tooltips=[
                ("time interval", f"@left{{0}}, width {seconds_text(width_s)}"),
                *((op, f"@{op}{{0}}") for op in present),
            ],
            formatters={"@left": moment_hover(), **{f"@{op}": number for op in present}},
        )
    )
    return fig

"""What is drawn over a trace diagram: phases, nodes, and outlined calls.

What the title of a trace diagram says: which tasks and calls, and what one would overlook.

Number of tasks, or calls, in progress over time: the curve below the trace diagram.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from bokeh.models import ColumnDataSource, CustomJSHover, HoverTool, NumeralTickFormatter, Range1d
from bokeh.models.annotations import LegendItem
from bokeh.plotting import figure

from ensembles.model.errors import EnsioError
from ensembles.model.events import Events
from ensembles.model.run_info import RunInfo
from ensembles.model.units import count_text, seconds_text, share_text
from ensembles.run.run import Run
from ensembles.structure.phases.detect import Phases
from ensembles.structure.phases.table import PhaseTable
from ensembles.summaries.longest_calls import DiagramCalls
from ensembles.summaries.raster import DrawnRaster, Raster
from ensembles.viz.common.figures import (
    annotate_empty,
    cells_of_time,
    ends,
    label_time_axis,
    legend_item,
    new_figure,
    plain,
    retitle,
    steps,
    subtitle,
)
from ensembles.viz.common.single_calls import Window, add_boxes, add_calls, call_columns
from ensembles.viz.common.style import COLOURS, NEUTRAL, moment_hover

BANDS = ("phases", "nodes")
"""What can be drawn over a trace diagram."""

_MOST_PHASES = 60
_MOST_NODES = 64
_LEAST_SHARE, _NAME_SHARE = 0.03, 0.12
"""Labels that are nearer than this part of the axis are left out, and names in less than this part."""

_OUTLINED_ROWS = 100
"""With more rows, each is lower than 5 pixels."""

_LINE: dict[str, Any] = {
    "line_color": NEUTRAL["text"],
    "line_alpha": 0.7,
    "line_dash": [4, 3],
    "line_width": 1,
}
# Bokeh's stubs lack the properties of boxes around texts.
_BOX: dict[str, Any] = {"background_fill_color": "white", "background_fill_alpha": 0.75}


def phase_bands(fig: figure, run: Any) -> None:
    """Draw where the phases of a run begin and end, with their numbers and names."""
    phases = run.reading.phases_of_calls if isinstance(run, Run) else None
    if phases is None:
        raise EnsioError("phases are not known: they need a run that keeps every call as an event")
    totals = run.summarize(partial(_table_of, phases)).totals()
    shown = sorted(sorted(totals, key=lambda row: -row.time_s)[:_MOST_PHASES], key=lambda row: row.phase)
    if len(shown) < len(totals):
        subtitle(fig, f"Dashed: the {len(shown)} longest phases of {len(totals):,}.")
    fig.vspan(x=[row.start_s for row in shown], name="phase_bands", **_LINE)
    low, high = ends(fig.x_range)
    bottom, top = ends(fig.y_range)
    inside = [row for row in shown if low <= row.start_s <= high]
    last, places, words = -np.inf, [], []
    for row, after in zip(inside, [*(each.start_s for each in inside[1:]), high], strict=True):
        if min(row.start_s - last, high - row.start_s) < _LEAST_SHARE * (high - low):
            continue
        last = row.start_s
        is_wide = after - last >= _NAME_SHARE * (high - low)
        places.append(last)
        words.append(f"{row.phase} {plain(row.name)[:12]}" if row.name and is_wide else str(row.phase))
    _label(fig, places, [bottom - 0.005 * (bottom - top)] * len(places), words, "phase_labels", "bottom")


def _table_of(found: Phases, _: Any) -> PhaseTable:
    return PhaseTable(found)


def node_bands(fig: figure, nodes: Sequence[tuple[str, int]], data: Any) -> None:
    """Draw the first task of each node, with the name of the node."""
    if not nodes:
        path = getattr(data, "path", "these events")
        raise EnsioError(f"{path}: nodes are not known, or are not neighbours: draw them with order=node")
    if len(nodes) > _MOST_NODES:
        subtitle(fig, f"{len(nodes):,} nodes are too many to draw each.")
        return
    fig.hspan(y=[first - 0.5 for _, first in nodes[1:]], name="node_bands", **_LINE)
    bottom, top = ends(fig.y_range)
    low, _ = ends(fig.x_range)
    last, places, words = -np.inf, [], []
    for name, first in nodes:
        if top <= first <= bottom and first - last >= 1.5 * _LEAST_SHARE * (bottom - top):
            last = first
            places.append(first - 0.4)
            words.append(plain(name)[:24])
    _label(fig, [low] * len(places), places, words, "node_labels", "top")


def _label(fig: figure, x: list[float], y: list[float], words: list[str], name: str, side: str) -> None:
    fig.text(
        x=x,
        y=y,
        text=words,
        x_offset=3,
        text_font_size="8.5pt",
        text_baseline=side,
        text_color=NEUTRAL["text"],
        name=name,
        **_BOX,
    )


def outline_calls(
    fig: figure, calls: Events, row: np.ndarray | None = None, info: RunInfo | None = None
) -> LegendItem:
    """Mark some calls in a trace diagram, with hover boxes.

    They are outlined; where rows are so low that outlines would cover them, they are circled.

    `row`: row of each task. Default: its rank.
    """
    columns = call_columns(calls, 0.0, row, info=info)
    bottom, top = ends(fig.y_range)
    many = "slowest call" if len(calls) == 1 else count_text(len(calls), "slowest call")
    look: dict[str, Any] = {"line_color": NEUTRAL["text"], "line_alpha": 0.9}
    if abs(bottom - top) <= _OUTLINED_ROWS:
        drawn = add_calls(fig, ColumnDataSource(columns), info)
        drawn.name = "outlined_calls"
        drawn.glyph.update(line_width=0.7, **look)
        return legend_item(f"outlined: the {many}", drawn)
    middles = {"x": ("left", "right"), "y": ("bottom", "top")}
    columns |= {
        axis: (np.asarray(columns[low]) + np.asarray(columns[high])) / 2
        for axis, (low, high) in middles.items()
    }
    circles = fig.scatter(
        "x", "y", size=7, fill_alpha=0, source=ColumnDataSource(columns), name="outlined_calls", **look
    )
    add_boxes(fig, circles, info)
    return legend_item(f"circled: the {many}", circles)


_SHORT_IO = 0.1
"""Part of the time: if all I/O is in less, a sentence says where."""

_MOST_OF_TASKS = 0.8
"""Part of the tasks: a selection with more has the rows of all."""


def rows_with_calls(raster: Raster | DrawnRaster) -> tuple[int, int] | None:
    """Return the first and the last rank of the rows that have calls; None: nearly all, or none."""
    if not isinstance(raster, Raster):
        return None
    rows = np.flatnonzero(raster.time_ns.any(axis=(0, 2)))
    if not len(rows):
        return None
    first = int(rows[0]) * raster.ranks_per_row
    last = min((int(rows[-1]) + 1) * raster.ranks_per_row, raster.tasks) - 1
    return (first, last) if last - first + 1 <= _MOST_OF_TASKS * raster.tasks else None


def is_nested(data: Any, zoomed: DiagramCalls | None) -> bool:
    """Whether calls inside of others are known, which are not drawn."""
    known = zoomed.events if zoomed is not None else data if isinstance(data, Events) else None
    return known is not None and bool((known.depth > 0).any())


def where_io_is(raster: Raster | DrawnRaster) -> str:
    """Return a sentence on the part of the time that has I/O, if it is so short that one may overlook it."""
    classes = [name for name in raster.present() if name != "wait"]
    inside = sum((raster.tasks_inside(name) for name in classes), np.zeros(len(raster.edges_ns) - 1))
    found = np.flatnonzero(inside)
    if not len(found):
        return ""
    low_ns, high_ns = int(raster.edges_ns[found[0]]), int(raster.edges_ns[found[-1] + 1])
    share = (high_ns - low_ns) / max(raster.extent_ns[1] - raster.extent_ns[0], 1)
    if share > _SHORT_IO:
        return ""
    when = f"from {seconds_text(low_ns * 1e-9)} to {seconds_text(high_ns * 1e-9)}"
    return f"All I/O is {when}, {share_text(share, None)} of the time: drag over it to enlarge it."


def title_of_whole(
    raster: Raster | DrawnRaster, blank: str, is_nested: bool, view: tuple[int, int] | None = None
) -> str:
    """Return the title of the diagram of a run, or of the ranks of a selection.

    Events do not say how many tasks their run has.
    """
    tasks = count_text(raster.tasks, "task")
    if view is not None:
        low, high = view
        tasks = f"rank {low}" if low == high else f"ranks {low} to {high}"
    tasks += ", outermost calls" * is_nested
    if raster.ranks_per_row == 1:
        return f"Trace diagram of {tasks}; blank: {blank}"
    return (
        f"Trace diagram of {tasks}, {raster.ranks_per_row} per row; colour: share of their time in an "
        f"operation, blank: {blank}"
    )


def title_of_part(part: Window, single: Events | None, blank: str) -> str:
    """Return the title of a window."""
    tasks = f"{part.tasks:,} task" + "s" * (part.tasks != 1)
    when = f"{seconds_text(part.low_ns * 1e-9)} to {seconds_text(part.high_ns * 1e-9)}"
    which = "" if single is None else f": {len(single):,} calls"
    return f"Trace diagram of {tasks} from {when}{which}; blank: {blank}"


_TASKS_JS = """
    const number = Number(value.toPrecision(4)).toLocaleString('en-US');
    const percent = Number((100 * value / tasks).toPrecision(3));
    return `${number} of ${tasks.toLocaleString('en-US')} tasks (${percent} %)`;
"""

_CALLS_JS = """
    return Number(value.toPrecision(4)).toLocaleString('en-US') + (value == 1 ? ' call' : ' calls');
"""


def tasks_inside(raster: Raster | DrawnRaster, present: list[str], x_range: Range1d) -> figure:
    """Draw the number of tasks inside a call over time, stacked by class of operations.

    If tasks have several threads, the curve is the number of calls in progress, which has no upper bound.
    """
    title = "Calls in progress" if raster.several_threads else "Tasks inside a call"
    fig = new_figure(f"{title} over time", height=200, x_range=x_range, name="tasks_inside")
    fig.yaxis.axis_label = "calls" if raster.several_threads else "tasks"
    fig.yaxis.formatter = NumeralTickFormatter(format="0,0.[00]")
    label_time_axis(fig)
    if not present:
        fig.y_range = Range1d(start=0, end=max(raster.tasks, 1))
        annotate_empty(fig, "", x_axis=True)
        return fig
    inside = {name: raster.tasks_inside(name) for name in present}
    # Areas and values share the edges, which are most of the data.
    columns = cells_of_time(raster.edges_ns)
    above = np.zeros(len(columns["left"]), np.float32)
    for name in present:
        columns[f"n_{name}"] = steps(inside[name])
        above = above + columns[f"n_{name}"]
        columns[f"above_{name}"] = above
    source = ColumnDataSource(columns)
    below: float | str = 0.0
    for name in present:
        fig.varea_step(
            x="left",
            y1=below,
            y2=f"above_{name}",
            source=source,
            step_mode="after",
            fill_color=COLOURS[name],
            fill_alpha=0.85,
        )
        below = f"above_{name}"
    top = float(above.max())
    fig.y_range = Range1d(start=0, end=1.08 * top)
    target = fig.quad(left="left", right="right", bottom=0, top=1.08 * top, source=source, alpha=0)
    code = _CALLS_JS if raster.several_threads else _TASKS_JS
    counts = CustomJSHover(args={"tasks": raster.tasks}, code=code)
    fig.add_tools(
        HoverTool(
            renderers=[target],
            mode="vline",
            point_policy="follow_mouse",
            description="Values of the curve",
            tooltips=[
                ("time interval", "@left{0} – @right{0}"),
                *((name, f"@n_{name}{{0}}") for name in present),
            ],
            formatters={
                "@left": moment_hover(),
                "@right": moment_hover(),
                **{f"@n_{name}": counts for name in present},
            },
        )
    )
    most = f"{top:,.0f}" if top >= 10 else f"{top:.2g}"
    of_tasks = "" if raster.several_threads else f" of {raster.tasks:,}"
    retitle(fig, f"{title} over time (maximum {most}{of_tasks})")
    return fig

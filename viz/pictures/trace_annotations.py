"""What is drawn over a trace diagram: phases, nodes, and outlined calls.

What the title of a trace diagram says: which tasks and calls, and what one would overlook.

Number of tasks, or calls, in progress over time: the curve below the trace diagram.

Single calls in a page without a server: those in the window are drawn when a zoom leaves few enough.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from bokeh.models import ColumnDataSource, CustomJS, CustomJSHover, HoverTool, Range1d
from bokeh.models.annotations import LegendItem
from bokeh.models.renderers import GlyphRenderer
from bokeh.plotting import figure

from ensembles.model.errors import EnsioError
from ensembles.model.events import Events
from ensembles.model.run_info import RunInfo
from ensembles.model.units import HALF_INT64, count_text, seconds_text, share_text
from ensembles.passes.group import SummaryRequest
from ensembles.run.rasters import expected_calls
from ensembles.run.run import Run
from ensembles.structure.phases.detect import Phases
from ensembles.structure.phases.table import PhaseTable
from ensembles.summaries.longest_calls import DiagramCalls
from ensembles.summaries.raster import DrawnRaster, Raster
from ensembles.viz.common import figures as draw
from ensembles.viz.common.single_calls import MOST_CALLS, Window, add_boxes, add_calls, call_columns
from ensembles.viz.common.style import COLOURS, NEUTRAL

BANDS = ("phases", "nodes")
"""What can be drawn over a trace diagram."""

_LEAST_SHARE = 0.03
"""Labels that are nearer than this part of the axis are left out, and names in less than this part."""

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
    shown = sorted(sorted(totals, key=lambda row: -row.time_s)[:60], key=lambda row: row.phase)
    if len(shown) < len(totals):
        draw.subtitle(fig, f"Dashed: the {len(shown)} longest phases of {len(totals):,}.")
    fig.vspan(x=[row.start_s for row in shown], name="phase_bands", **_LINE)
    low, high = draw.ends(fig.x_range)
    bottom, top = draw.ends(fig.y_range)
    inside = [row for row in shown if low <= row.start_s <= high]
    last, places, words = -np.inf, [], []
    for row, after in zip(inside, [*(each.start_s for each in inside[1:]), high], strict=True):
        if min(row.start_s - last, high - row.start_s) < _LEAST_SHARE * (high - low):
            continue
        last = row.start_s
        is_wide = after - last >= 0.12 * (high - low)
        places.append(last)
        words.append(f"{row.phase} {draw.plain(row.name)[:12]}" if row.name and is_wide else str(row.phase))
    _label(fig, places, [bottom - 0.005 * (bottom - top)] * len(places), words, "phase_labels", "bottom")


def _table_of(found: Phases, _: Any) -> PhaseTable:
    return PhaseTable(found)


def node_bands(fig: figure, nodes: Sequence[tuple[str, int]], data: Any) -> None:
    """Draw the first task of each node, with the name of the node."""
    if not nodes:
        path = getattr(data, "path", "these events")
        raise EnsioError(f"{path}: nodes are not known, or are not neighbours: draw them with order=node")
    if len(nodes) > 64:
        draw.subtitle(fig, f"{len(nodes):,} nodes are too many to draw each.")
        return
    fig.hspan(y=[first - 0.5 for _, first in nodes[1:]], name="node_bands", **_LINE)
    bottom, top = draw.ends(fig.y_range)
    low, _ = draw.ends(fig.x_range)
    last, places, words = -np.inf, [], []
    for name, first in nodes:
        if top <= first <= bottom and first - last >= 1.5 * _LEAST_SHARE * (bottom - top):
            last = first
            places.append(first - 0.4)
            words.append(draw.plain(name)[:24])
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
    bottom, top = draw.ends(fig.y_range)
    many = "slowest call" if len(calls) == 1 else count_text(len(calls), "slowest call")
    look: dict[str, Any] = {"line_color": NEUTRAL["text"], "line_alpha": 0.9}
    if abs(bottom - top) <= 100:  # each row has 5 pixels at least
        drawn = add_calls(fig, ColumnDataSource(columns), info)
        drawn.name = "outlined_calls"
        drawn.glyph.update(line_width=0.7, **look)
        return draw.legend_item(f"outlined: the {many}", drawn)
    middles = {"x": ("left", "right"), "y": ("bottom", "top")}
    columns |= {
        axis: (np.asarray(columns[low]) + np.asarray(columns[high])) / 2
        for axis, (low, high) in middles.items()
    }
    circles = fig.scatter(
        "x", "y", size=7, fill_alpha=0, source=ColumnDataSource(columns), name="outlined_calls", **look
    )
    add_boxes(fig, circles, info)
    return draw.legend_item(f"circled: the {many}", circles)


def rows_with_calls(raster: Raster | DrawnRaster) -> tuple[int, int] | None:
    """Return the first and the last rank of the rows that have calls; None: nearly all, or none."""
    if not isinstance(raster, Raster):
        return None
    rows = np.flatnonzero(raster.time_ns.any(axis=(0, 2)))
    if not len(rows):
        return None
    first = int(rows[0]) * raster.ranks_per_row
    last = min((int(rows[-1]) + 1) * raster.ranks_per_row, raster.tasks) - 1
    return (first, last) if last - first + 1 <= 0.8 * raster.tasks else None


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
    if share > 0.1:
        return ""
    when = f"from {seconds_text(low_ns * 1e-9)} to {seconds_text(high_ns * 1e-9)}"
    return f"All I/O is {when}, {share_text(share, None)} of the time: drag over it to enlarge it."


def head_of_whole(raster: Raster | DrawnRaster, is_nested: bool, view: tuple[int, int] | None = None) -> str:
    """Return what the title of the diagram of a run, or of the ranks of a selection, begins with.

    Events do not say how many tasks their run has.
    """
    tasks = count_text(raster.tasks, "task")
    if view is not None:
        low, high = view
        tasks = f"rank {low}" if low == high else f"ranks {low} to {high}"
    per_row = "" if raster.ranks_per_row == 1 else f", {raster.ranks_per_row} per row"
    return f"Trace diagram of {tasks}{', outermost calls' * is_nested}{per_row}"


def title_of_part(part: Window, single: Events | None, blank: str) -> str:
    """Return the title of a window."""
    tasks = f"{part.tasks:,} task" + "s" * (part.tasks != 1)
    when = f"{seconds_text(part.low_ns * 1e-9)} to {seconds_text(part.high_ns * 1e-9)}"
    which = "" if single is None else f": {len(single):,} calls"
    return f"Trace diagram of {tasks} from {when}{which}; {blank}"


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
    fig = draw.new_figure(f"{title} over time", height=200, x_range=x_range, name="tasks_inside")
    draw.name_axis(fig.yaxis, "calls" if raster.several_threads else "tasks", "0,0.[00]")
    draw.label_time_axis(fig)
    if not present:
        fig.y_range = Range1d(start=0, end=max(raster.tasks, 1))
        draw.annotate_empty(fig, "", x_axis=True)
        return fig
    inside = {name: raster.tasks_inside(name) for name in present}
    # Areas and values share the edges, which are most of the data.
    columns = draw.cells_of_time(raster.edges_ns)
    above = np.zeros(len(columns["left"]), np.float32)
    for name in present:
        columns[f"n_{name}"] = draw.steps(inside[name])
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
    draw.add_hover(
        fig,
        target,
        [
            ("time interval", "@left{at} – @right{at}"),
            *((name, f"@n_{name}{{0}}") for name in present),
        ],
        formatters={
            **{f"@n_{name}": counts for name in present},
        },
        mode="vline",
        point_policy="follow_mouse",
        description="Values of the curve",
    )
    most = f"{top:,.0f}" if top >= 10 else f"{top:.2g}"
    of_tasks = "" if raster.several_threads else f" of {raster.tasks:,}"
    draw.retitle(fig, f"{title} over time (maximum {most}{of_tasks})")
    return fig


_ZOOM_JS = """
    const [low, high] = [x_range.start, x_range.end].sort((a, b) => a - b);
    const [top, bottom] = [y_range.start, y_range.end].sort((a, b) => a - b);
    const zoomed = (share) => high - low <= share * span_s || bottom - top <= share * tasks;
    const {left, right, bottom: under, top: above} = calls.data;
    const inside = [];
    if (zoomed(zoom)) {
        for (let i = 0; i < left.length; i++) {
            const within = left[i] <= high && right[i] >= low;
            const [first, last] = [Math.min(under[i], above[i]), Math.max(under[i], above[i])];
            if (within && last >= top && first <= bottom) inside.push(i);  // also a part of a row
        }
    }
    const drawn = inside.length <= most ? inside : [];
    const hides = complete && (drawn.length > 0 || (zoomed(zoom) && !inside.length));
    if (images.length > 1) {
        images[0].visible = !hides && zoomed(0.6);
        images[1].visible = !hides && !images[0].visible;
    } else {
        for (const image of images) image.visible = !hides;
    }
    // One box at the mouse. A tool without renderers removes the box that it shows.
    const answer = (tool, renderers) => {
        if (tool.renderers.length !== renderers.length) tool.setv({renderers}, {sync: false});
    };
    boxes.forEach((tool, i) => answer(tool, images[i].visible ? [images[i]] : []));
    outlines.forEach((tool) => answer(tool, drawn.length ? [] : outlined));
    // Outlines make calls visible that are shorter than a pixel; of many in a row, they would fill it.
    const short = (i) => right[i] - left[i] < (high - low) / 1000;
    const crowd = new Map();
    for (const i of drawn) if (short(i)) crowd.set(under[i], (crowd.get(under[i]) ?? 0) + 1);
    const columns = Object.entries(calls.data).map(([name, values]) => [name, drawn.map((i) => values[i])]);
    const outline = drawn.map((i) => short(i) && crowd.get(under[i]) > 60 ? 0 : 1);
    shown.data = {...Object.fromEntries(columns), outline};
    const wrapped = (text) => {
        const lines = [''];
        for (const word of text.split(' ')) {
            const last = lines[lines.length - 1];
            if (last && last.length + word.length >= 62) lines.push(word);
            else lines[lines.length - 1] = last ? `${last} ${word}` : word;
        }
        return lines.join('\\n');
    };
    const many = inside.length.toLocaleString('en-US');
    let text = words;
    if (zoomed(zoom) && complete) {
        text = drawn.length || !inside.length
            ? `${head}: ${many} call${inside.length == 1 ? '' : 's'} in view, each a rectangle; ${blank}`
            : `${head}: ${many} calls in view, as shares of time; ` +
                `zoom in to ${most.toLocaleString('en-US')} for rectangles`;
    } else if (zoomed(zoom) && inside.length) {
        text = drawn.length
            ? `${head}; rectangles: ${many} ${which}`
            : `${head}; zoom in for rectangles of the ${kept}`;
    }
    const [before, now] = [title.text, text == words ? text : wrapped(text)];
    const lines = (some) => some.split('\\n').length;
    title.text = now;
    // Bokeh gives a longer title no more room: its first line would be under the tabs above. Until the title
    // has been drawn, it measures the one before.
    const more = line_height * (lines(now) - lines(before));
    // The figure is not an argument: figures that share an axis would find its models as theirs.
    const [view] = globalThis.Bokeh?.index.query((each) => each.model.title === title) ?? [];
    if (more !== 0 && view) setTimeout(() => { view.model.height += more; }, 50);
"""


def calls_for_zooms(run: Run) -> SummaryRequest:
    """Return the request for the calls that a page about a run has, as input of a pass."""
    return SummaryRequest(_calls_with_sites)


def _calls_with_sites(run: Run | Events) -> DiagramCalls:
    return DiagramCalls(8000, run.calls, run.files)


def calls_of(data: Any) -> DiagramCalls | None:
    """Return the calls that a picture of data can draw one by one.

    None: the data have no single calls, or a run has so many that they are not read for this.
    """
    if isinstance(data, Events):
        found = _calls_with_sites(data)
        found.add(data)
        return found
    if not isinstance(data, Run) or (expected_calls(data, 0, HALF_INT64) or 0) > 200_000:
        return None
    kept: DiagramCalls | None = data.summarize(_calls_with_sites)
    return kept


def add_zoomed_calls(
    fig: figure,
    kept: DiagramCalls,
    images: Sequence[GlyphRenderer[Any]],
    words: tuple[str, str],
    row: np.ndarray | None = None,
    info: RunInfo | None = None,
    outlined: GlyphRenderer[Any] | None = None,
) -> None:
    """Draw the calls of a window one by one when a zoom leaves few enough; the whole stays as it is.

    `words`: what the title begins with, and what it says of blank parts.
    `row`: row of each task. Default: its rank.
    """
    events, which = kept.events, f"{len(kept.events):,} longest calls"
    calls = ColumnDataSource(call_columns(events, row=row, info=info), name="kept_calls")
    shown = ColumnDataSource(call_columns(Events.empty()))
    boxes = [_box_of(fig, image) for image in images]
    drawn = add_calls(fig, shown, info)
    drawn.name = "zoomed_calls"
    box = _box_of(fig, drawn)
    box.update(visible=False, attachment="above")
    if outlined is not None:
        fig.renderers = [*(each for each in fig.renderers if each is not outlined), outlined]
    if not kept.is_complete:  # both boxes are shown
        for tool in boxes:
            tool.attachment = "below"
    bottom, top = draw.ends(fig.y_range)
    source = images[0].data_source
    assert isinstance(source, ColumnDataSource)
    least = seconds_text(float(events.duration.min()) * 1e-9) if len(events) else ""
    zoom = CustomJS(
        args={
            "calls": calls,
            "shown": shown,
            "images": list(images),
            "boxes": boxes,
            "outlined": [] if outlined is None else [outlined],
            "outlines": [] if outlined is None else [_box_of(fig, outlined)],
            "title": fig.title,
            "line_height": 18,
            "x_range": fig.x_range,
            "y_range": fig.y_range,
            "span_s": float(source.data["dw"][0]),
            "tasks": abs(bottom - top),
            "zoom": 0.9,
            "most": MOST_CALLS,
            "complete": kept.is_complete,
            "words": getattr(fig.title, "text", ""),
            "head": words[0],
            "blank": words[1],
            "which": f"of the {which} (from {least} on) of {kept.count:,}, the others as shares of time",
            "kept": which,
        },
        code=_ZOOM_JS,
    )
    for axis_range in (fig.x_range, fig.y_range):
        axis_range.js_on_change("start", zoom)
        axis_range.js_on_change("end", zoom)


def _box_of(fig: figure, drawn: GlyphRenderer[Any]) -> HoverTool:
    """Return the tool that has the boxes of a renderer."""
    tools = (each for each in fig.tools if isinstance(each, HoverTool) and isinstance(each.renderers, list))
    return next(each for each in tools if drawn in each.renderers)

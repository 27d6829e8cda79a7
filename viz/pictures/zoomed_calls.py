"""Single calls in a page without a server: those in the window are drawn when a zoom leaves few enough."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from bokeh.core.properties import field
from bokeh.models import CategoricalColorMapper, ColumnDataSource, CustomJS, CustomJSHover, HoverTool
from bokeh.models.renderers import GlyphRenderer
from bokeh.plotting import figure

from ensembles.model.events import Events
from ensembles.model.run_info import RunInfo
from ensembles.model.units import seconds_text
from ensembles.passes.group import SummaryRequest
from ensembles.run.rasters import expected_calls
from ensembles.run.run import Run
from ensembles.summaries.longest_calls import DiagramCalls
from ensembles.viz.common.figures import ends
from ensembles.viz.common.single_calls import MOST_CALLS, call_columns, knows_sites, knows_targets
from ensembles.viz.common.style import NUMBERS_JS

EMBEDDED_CALLS = 8000
"""Most calls in a page: they take 10 to 20 bytes each."""

_READ_CALLS = 200_000
"""Most calls of a collected run that are read for the zooms of one picture, else it needs no event. A report
reads them anyway."""

_END_NS = 1 << 62
"""Later than the end of any run."""

_LINE = 18
"""Pixels of a line of a title."""

_ZOOM = 0.9
"""A window of at most this part of the whole time, or of all tasks, is a zoom."""

_TEXTS = ("call", "file", "targets", "site")
_LABELS = {"targets": "storage targets", "site": "call site"}
_NUMBERS = (np.uint8, np.uint16, np.uint32, np.int32, np.float64)

_HOVER_JS = (
    NUMBERS_JS
    + """
    const of = (name) => calls.data[name][value];
    switch (format) {
        case 'task': return `rank ${of('rank')}` + (of('thread') ? `, thread ${of('thread') - 1}` : '');
        case 'offset': return of('offset') < 0 ? 'none' : whole(of('offset')) + ' B';
        case 'size': {
            const [asked, moved] = [of('requested'), of('moved')];
            if (!asked && moved <= 0) return 'none';
            if (asked == moved) return `${bytes_text(asked)} (${whole(asked)} B)`;
            return `${moved < 0 ? 'none' : whole(moved) + ' B'} of ${whole(asked)} B`;
        }
        case 'start': {
            const digits = {minimumFractionDigits: 9, maximumFractionDigits: 9};
            return (of('start') * 1e-9).toLocaleString('en-US', digits) + ' s';
        }
        case 'duration': return time_text(of('duration') * 1e-9);
        default: return texts[format][of(format)];
    }
"""
)

_ZOOM_JS = """
    const [low, high] = [x_range.start, x_range.end].sort((a, b) => a - b);
    const [top, bottom] = [y_range.start, y_range.end].sort((a, b) => a - b);
    const zoomed = (share) => high - low <= share * span_s || bottom - top <= share * tasks;
    const {start, duration, bottom: under, top: above, rank, colour} = calls.data;
    const inside = [];
    if (zoomed(zoom)) {
        for (let i = 0; i < start.length; i++) {
            const left = start[i] * 1e-9;
            const within = left <= high && left + duration[i] * 1e-9 >= low;
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
    const short = (i) => duration[i] * 1e-9 < (high - low) / 1000;
    const crowd = new Map();
    for (const i of drawn) if (short(i)) crowd.set(rank[i], (crowd.get(rank[i]) ?? 0) + 1);
    shown.data = {
        left: drawn.map((i) => start[i] * 1e-9),
        right: drawn.map((i) => (start[i] + duration[i]) * 1e-9),
        bottom: drawn.map((i) => under[i]),
        top: drawn.map((i) => above[i]),
        colour: drawn.map((i) => String(colour[i])),
        outline: drawn.map((i) => short(i) && crowd.get(rank[i]) > 60 ? 0 : 1),
        number: drawn,
    };
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


def _calls_with_sites(run: Run) -> DiagramCalls:
    return DiagramCalls(EMBEDDED_CALLS, run.calls, run.files)


def calls_of(data: Any) -> DiagramCalls | None:
    """Return the calls that a picture of data can draw one by one.

    None: the data have no single calls, or a run has so many that they are not read for this.
    """
    if isinstance(data, Events):
        found = DiagramCalls(EMBEDDED_CALLS, data.calls, data.files)
        found.add(data)
        return found
    if not isinstance(data, Run) or (expected_calls(data, 0, _END_NS) or 0) > _READ_CALLS:
        return None
    kept: DiagramCalls | None = data.summarize(_calls_with_sites)
    return kept


def add_zoomed_calls(
    fig: figure,
    kept: DiagramCalls,
    images: Sequence[GlyphRenderer[Any]],
    row: np.ndarray | None = None,
    info: RunInfo | None = None,
    outlined: GlyphRenderer[Any] | None = None,
) -> None:
    """Draw the calls of a window one by one when a zoom leaves few enough; the whole stays as it is.

    `row`: row of each task. Default: its rank.
    """
    events = kept.events[np.lexsort((kept.events.start, kept.events.rank, kept.events.depth))]
    columns, texts, colours = _columns(events, row, info)
    calls = ColumnDataSource(columns, name="kept_calls")
    empty: dict[str, list[float]] = {
        name: [] for name in ("left", "right", "bottom", "top", "colour", "outline", "number")
    }
    shown = ColumnDataSource(empty)
    # A mapper, because dark pages change its palette (`ensembles.viz.common.theme`).
    by_number = CategoricalColorMapper(factors=[str(each) for each in range(len(colours))], palette=colours)
    drawn = fig.quad(
        left="left",
        right="right",
        bottom="bottom",
        top="top",
        fill_color=field("colour", by_number),
        line_color=field("colour", by_number),
        line_alpha="outline",
        source=shown,
        name="zoomed_calls",
    )
    if outlined is not None:
        fig.renderers = [*(each for each in fig.renderers if each is not outlined), outlined]
    boxes = [_box_of(fig, image) for image in images]
    targets = ["targets"] if knows_targets(info) else []
    sites = ["site"] if knows_sites(info) else []
    lines = ["call", "task", "file", "offset", "size", *targets, "start", "duration", *sites]
    says = CustomJSHover(args={"calls": calls, "texts": texts}, code=_HOVER_JS)
    fig.add_tools(
        HoverTool(
            renderers=[drawn],
            description="Single calls",
            visible=False,
            point_policy="follow_mouse",
            attachment="above",
            tooltips=[(_LABELS.get(line, line), f"@number{{{line}}}") for line in lines],
            formatters={"@number": says},
        )
    )
    if not kept.is_complete:  # both boxes are shown
        for tool in boxes:
            tool.attachment = "below"
    bottom, top = ends(fig.y_range)
    source = images[0].data_source
    assert isinstance(source, ColumnDataSource)
    words = " ".join(str(getattr(fig.title, "text", "")).split())
    least = seconds_text(float(events.duration.min()) * 1e-9) if len(events) else ""
    which = f"{len(events):,} longest calls"
    zoom = CustomJS(
        args={
            "calls": calls,
            "shown": shown,
            "images": list(images),
            "boxes": boxes,
            "outlined": [] if outlined is None else [outlined],
            "outlines": [] if outlined is None else [_box_of(fig, outlined)],
            "title": fig.title,
            "line_height": _LINE,
            "x_range": fig.x_range,
            "y_range": fig.y_range,
            "span_s": float(source.data["dw"][0]),
            "tasks": abs(bottom - top),
            "zoom": _ZOOM,
            "most": MOST_CALLS,
            "complete": kept.is_complete,
            "words": getattr(fig.title, "text", ""),
            "head": words.partition(";")[0],
            "blank": words.partition("; ")[2] or "blank: no recorded call",
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


def _columns(
    events: Events, row: np.ndarray | None, info: RunInfo | None
) -> tuple[dict[str, np.ndarray], dict[str, list[str]], list[str]]:
    """Return what is known about calls as short columns, with the texts and colours that they number."""
    drawn = call_columns(events[np.lexsort((events.start, events.depth))], row=row, info=info)
    # In the order of `events` again, in which neighbours are alike.
    place = np.argsort(np.lexsort((events.start, events.depth)), kind="stable")
    threaded = np.array([", thread " in text for text in drawn["task"]], bool)[place]
    columns = {
        name: _shortest(getattr(events, name))
        for name in ("start", "duration", "rank", "offset", "requested", "moved")
    }
    columns["thread"] = _shortest(np.where(threaded, events.thread.astype(np.int64) + 1, 0))
    columns |= {name: np.asarray(drawn[name], np.float32)[place] for name in ("bottom", "top")}
    texts = {}
    for name in _TEXTS if knows_sites(info) else _TEXTS[:-1]:
        kinds, numbers = np.unique(np.asarray(drawn[name], dtype=object), return_inverse=True)
        texts[name] = kinds.tolist()
        columns[name] = _shortest(numbers[place])
    colours, numbers = np.unique(np.asarray(drawn["colour"], dtype=object), return_inverse=True)
    columns["colour"] = _shortest(numbers[place])
    return columns, texts, colours.tolist()


def _shortest(values: np.ndarray) -> np.ndarray:
    """Return whole numbers in the shortest type that a browser has for them."""
    if not len(values):
        return values.astype(np.float64)
    low, high = int(values.min()), int(values.max())
    for kind in _NUMBERS[:-1]:
        limits = np.iinfo(kind)
        if limits.min <= low and high <= limits.max:
            return values.astype(kind)
    return values.astype(np.float64)

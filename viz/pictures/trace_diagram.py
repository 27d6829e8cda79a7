"""The trace diagram: tasks against time, coloured by the operation that each executes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from bokeh.layouts import column
from bokeh.models import (
    BasicTicker,
    Column,
    ColumnDataSource,
    CustomJS,
    CustomJSHover,
    CustomJSTickFormatter,
    NumeralTickFormatter,
    Range,
    Range1d,
    Spacer,
    TabPanel,
    Tabs,
    WeightedStackColorMapper,
)
from bokeh.models.renderers import GlyphRenderer
from bokeh.plotting import figure

from ensembles.model.events import Events
from ensembles.model.run_info import RunInfo
from ensembles.model.units import count_text, seconds_text
from ensembles.run.rasters import drawn_raster, kept_raster
from ensembles.run.run import Run
from ensembles.summaries.longest_calls import DiagramCalls
from ensembles.summaries.raster import CLASSES, DrawnRaster, Raster, ShareImage, raster_request, share_images
from ensembles.viz.common import figures as draw
from ensembles.viz.common.data_for import data_for, need_calls, of_several, partial_sentence
from ensembles.viz.common.mixed import EMPHASIS, add_mixed, mixer, opacities, swatches
from ensembles.viz.common.single_calls import (
    LAYERS,
    Window,
    add_calls,
    call_columns,
    has_lanes_of_threads,
    lanes_sentence,
    nested_layers,
    only_layer,
)
from ensembles.viz.common.style import LABELS
from ensembles.viz.common.task_order import (
    Order,
    TaskRows,
    of_layer,
    ordered_raster,
    rasters_of_layers,
    rows_of_tasks,
    window_of,
)
from ensembles.viz.common.theme import widget_colours
from ensembles.viz.pictures.trace_annotations import (
    BANDS,
    add_zoomed_calls,
    calls_for_zooms,
    calls_of,
    head_of_whole,
    is_nested,
    node_bands,
    outline_calls,
    phase_bands,
    rows_with_calls,
    tasks_inside,
    title_of_part,
    where_io_is,
)

_SEPARATED_TASKS = 48


_TASKS_JS = """
    const low = first + Math.floor(Math.min(Math.max(value + 0.5 - first, 0), tasks - 1) / per_row) * per_row;
    const last = Math.min(low + per_row, first + tasks) - 1;
    const mine = Array.from({length: last - low + 1}, (_, i) => ranks.length ? ranks[low + i] : low + i);
    const starts = mine.sort((a, b) => a - b).filter((rank, i) => rank != mine[i - 1] + 1);
    const ends = mine.filter((rank, i) => rank + 1 != mine[i + 1]);
    const spans = starts.map((rank, i) => rank == ends[i] ? rank : `${rank}–${ends[i]}`);
    const more = spans.length > 5 ? ', …' : '';
    return `rank${mine.length > 1 ? 's' : ''} ${spans.slice(0, 5).join(', ')}${more}`;
"""

_SHARE_JS = """
    const byte = value[Number(format)];
    if (byte == 0) return '0 %';
    if (byte == 1) return '< 0.5 %';
    return (100 * byte / 255).toFixed(byte < 26 ? 1 : 0) + ' %';
"""


@of_several
def trace_diagram(
    data: Any,
    window_s: tuple[float, float] | None = None,
    *,
    ranks: tuple[int, int] | None = None,
    order: Order = "rank",
    bands: Sequence[str] = (),
    layers: Sequence[str] = (),
    calls: Events | None = None,
    title: str | None = None,
    x_range: Range1d | None = None,
    zoomed: DiagramCalls | None = None,
    is_selection: bool = False,
    info: RunInfo | None = None,
) -> Column:
    """Draw ranks against time, and below them the number of tasks inside a call over time.

    A pixel mixes the colours of the operations in proportion to the time spent in them, and nothing in
    proportion to the time outside of recorded calls. If calls are short, most of the diagram is blank; the
    enhanced colour scale makes them visible. In a window with at most 2,000 calls, each call is a rectangle,
    and its hover box shows file, offset, size and duration. A zoom into the diagram of a whole run shows
    such rectangles too: of all calls, or of the 8,000 longest, if there are more.

    Parameters
    ----------
    data : Run, Events or Raster
    window_s : (float, float), optional
        Only this time, in seconds since the origin of the run. Calls that reach beyond are cut. Of a run
        only the calls in this time are read, or none if its ``trace.h5`` has sums that are fine enough.
    ranks : (int, int), optional
        Only these rows, both ends included. They are ranks, if tasks are ordered by rank.
    order : {"rank", "node", "slowness", "start"}
        Order of the tasks: by rank, by the name of their node, by their time in calls (the most first), or by
        the start of their first call.
    bands : sequence of {"phases", "nodes"}
        Draw the beginning of each phase, or the first task of each node; of a run.
    layers : sequence of {"netcdf", "pnetcdf", "hdf5", "mpiio", "stdio", "posix"}
        Draw a diagram for the calls of each of these layers, the first on top, with the same axes, so that
        one sees which calls of a layer below a call became. Default: one diagram of all outermost calls.
    calls : Events, optional
        Calls that are outlined, with hover boxes, such as the slowest ones (`Events.slowest`).
    title : str, optional
    x_range : Range1d, optional
        Time axis in seconds, to share with another figure.
    zoomed : DiagramCalls, optional
        Calls that a zoom shows one by one. Default: those of a run or of events; a raster has none.
    is_selection : bool
        Whether a raster has only some of the calls of its run, as events always may: ranks before the first
        and behind the last that has any are left out if they are many.
    info : RunInfo, optional
        Facts about the run of a raster, with which boxes of calls name call sites and storage targets.

    Returns
    -------
    Column
        The names of its figures are ``trace_diagram`` and ``tasks_inside``; those of layers are
        ``trace_diagram_posix`` and so on.

    Raises
    ------
    TypeError
        `data` has another type, or is a raster, of which there is no window or other order.
    EnsioError
        The run was recorded without events, or its nodes or phases are not known.
    ValueError
        There is no such order, band or layer, or the window is empty.

    Examples
    --------
    >>> from ensembles import viz
    >>> layout = viz.trace_diagram(en.open("ensio-ior"))
    >>> layout.select_one({"name": "trace_diagram"}).title.text
    'Trace diagram of 8 tasks; blank: no recorded call'
    >>> layout = viz.trace_diagram(en.open("ensio-ior"), (0.0, 0.1), order="slowness")
    >>> layout.select_one({"name": "trace_diagram"}).yaxis.axis_label
    'rank, most time in calls first'
    >>> layout = viz.trace_diagram(en.open("ensio-ior"), layers=["mpiio", "posix"])
    >>> layout.select_one({"name": "trace_diagram_mpiio"}).title.text.replace("\\n", " ")
    'Calls of mpiio of 8 tasks; blank: no call of this layer'
    """
    if wrong := [layer for layer in layers if layer not in LAYERS]:
        raise ValueError(f"there are the layers {', '.join(LAYERS)}, and no others: {', '.join(wrong)}")
    if any(band not in BANDS for band in bands):
        raise ValueError(f"there are the bands {' and '.join(BANDS)}, and no others: {', '.join(bands)}")
    if layers:
        return _of_layers(data, layers, window_s, ranks, order, bands, calls, title, x_range)
    plain_order = order == "rank" and window_s is None and ranks is None
    rows = None if plain_order and "nodes" not in bands else rows_of_tasks(data, order)
    part, single = None, None
    raster: Raster | DrawnRaster
    if window_s is not None or ranks is not None:
        assert rows is not None
        part = _part(data, window_s, ranks, len(rows.row))
        raster, single = window_of(data, part, rows)
    elif rows is not None and order != "rank":
        raster = ordered_raster(data, rows)
    else:
        raster, calls_in_page = _whole_with_calls(data) if zoomed is None else (_whole(data), zoomed)
        zoomed = calls_in_page
    shared = x_range or (
        draw.time_range(*raster.extent_ns)
        if window_s is None
        else Range1d(start=window_s[0], end=window_s[1])
    )
    present = raster.present()
    mapper = mixer(present)
    info = data.info if isinstance(data, Run) else info
    if zoomed is None and part is None:
        zoomed = calls_of(data)
    first = 0 if part is None else part.first
    shown = _Shown(raster, present, rows, first, single, calls, info, zoomed=None if part else zoomed)
    # A selection leaves calls out that the run has.
    is_selection = is_selection or isinstance(data, Events)
    blank = f"blank: no {'selected' if is_selection else 'recorded'} call"
    view = rows_with_calls(raster) if is_selection and part is None and order == "rank" else None
    head = title or head_of_whole(raster, is_nested(data, zoomed), view)
    colour = "" if raster.ranks_per_row == 1 else "colour: share of their time in an operation, "
    words = title or (f"{head}; {colour}{blank}" if part is None else title_of_part(part, single, blank))
    diagram = _diagram(replace(shown, words=(head, blank)), mapper, words, shared, view=view)
    if part is None and (where := where_io_is(raster)):
        draw.subtitle(diagram, where)
    _add_bands(diagram, data, bands, rows)
    inside = tasks_inside(raster, present, shared)
    parts = [_emphasis(mapper), diagram, inside] if present and single is None else [diagram, inside]
    return column(parts, sizing_mode="stretch_width", name="trace")


def _add_bands(diagram: figure, data: Any, bands: Sequence[str], rows: TaskRows | None) -> None:
    if partial := partial_sentence(data):
        draw.subtitle(diagram, partial)
    if "phases" in bands:
        phase_bands(diagram, data)
    if "nodes" in bands and rows is not None:
        node_bands(diagram, rows.nodes, data)


def _of_layers(
    data: Any,
    layers: Sequence[str],
    window_s: tuple[float, float] | None,
    ranks: tuple[int, int] | None,
    order: Order,
    bands: Sequence[str],
    calls: Events | None,
    title: str | None,
    x_range: Range1d | None,
) -> Column:
    """Draw a diagram for each layer, all with the same axes."""
    rows = rows_of_tasks(data, order)
    part = None
    if window_s is not None or ranks is not None:
        part = _part(data, window_s, ranks, len(rows.row))
    rasters, single = rasters_of_layers(data, layers, rows, part)
    present = [name for name in CLASSES if any(name in raster.present() for raster in rasters)]
    if window_s is None:
        spans = [raster.extent_ns for raster in rasters if raster.extent_ns[1]] or [(0, 0)]
        shared = x_range or draw.time_range(min(low for low, _ in spans), max(high for _, high in spans))
    else:
        shared = x_range or Range1d(start=window_s[0], end=window_s[1])
    mapper, info, first = mixer(present), data.info if isinstance(data, Run) else None, 0
    tasks, when = len(rows.row), ""
    if part is not None:
        first, tasks = part.first, part.tasks
        when = f" from {seconds_text(part.low_ns * 1e-9)} to {seconds_text(part.high_ns * 1e-9)}"
    diagrams: list[figure] = []
    for layer, raster in zip(layers, rasters, strict=True):
        own = calls if calls is None else of_layer(calls, layer)
        shown = _Shown(raster, present, rows, first, single, own, info, layer)
        words = f"Calls of {layer} of {count_text(tasks, 'task')}{when}; blank: no call of this layer"
        head = title if title and not diagrams else words
        fig = _diagram(shown, mapper, head, shared, diagrams[0].y_range if diagrams else None)
        _add_bands(fig, data, bands, rows)
        diagrams.append(fig)
    draw.label_time_axis(diagrams[-1])
    diagrams[-1].xaxis.visible = True
    diagrams[-1].height = (diagrams[-1].height or 0) + 42
    emphasis = [_emphasis(mapper)] if present and single is None else []
    return column([*emphasis, *diagrams], sizing_mode="stretch_width", name="trace")


def _whole(data: Any) -> Raster | DrawnRaster:
    """Return the raster of all data, or what the file of a run keeps of it."""
    if isinstance(data, DrawnRaster):
        return data
    drawn = drawn_raster(data) if isinstance(data, Run) else None
    return data_for(data, Raster) if drawn is None else drawn


def _whole_with_calls(data: Any) -> tuple[Raster | DrawnRaster, DiagramCalls | None]:
    """Return the raster and the calls for zooms: of a run that keeps no raster, from one pass."""
    if not isinstance(data, Run):
        return _whole(data), None
    need_calls(data)
    known = drawn_raster(data) or kept_raster(data)
    if known is not None:
        return known, None
    found = data.summarize({"raster": raster_request(), "calls": calls_for_zooms(data)}).summaries
    return found["raster"], found["calls"]


def _part(
    data: Any, window_s: tuple[float, float] | None, ranks: tuple[int, int] | None, tasks: int
) -> Window:
    """Return the window of the diagram that is asked for."""
    first, last = ranks or (0, tasks - 1)
    first, last = max(int(first), 0), min(int(last), tasks - 1)
    if window_s is None:
        low, high = _whole(data).extent_ns
    else:
        low, high = (round(float(end) * 1e9) for end in window_s)
    if low >= high or first > last:
        raise ValueError("the window is empty: give the earlier time and the lower rank first")
    return Window(low, high, first, last)


@dataclass(frozen=True)
class _Shown:
    """What a diagram shows: numbers, classes, order of the tasks, first row, single and outlined calls."""

    raster: Raster | DrawnRaster
    present: list[str]
    rows: TaskRows | None
    first: int
    single: Events | None
    outlined: Events | None
    info: RunInfo | None
    layer: str = ""
    zoomed: DiagramCalls | None = None
    words: tuple[str, str] = ("", "")


def _diagram(
    shown: _Shown,
    mapper: WeightedStackColorMapper,
    title: str,
    x_range: Range1d,
    y_range: Range | None = None,
    view: tuple[int, int] | None = None,
) -> figure:
    raster, present, first = shown.raster, shown.present, shown.first
    low, high = view or (first, first + raster.tasks - 1)
    top, bottom = low - 0.5, high + 0.5
    tallest = 400 if shown.layer else 560
    is_empty = not (raster.present() if shown.layer else present)
    rows = high - low + 1
    height = int(np.clip(min(150 + 26 * rows, 104 + 38 * rows), 0, tallest))  # few bars are not thick ones
    fig = draw.new_figure(
        title,
        height=90 if is_empty and shown.layer else height,
        x_range=x_range,
        y_range=y_range or Range1d(start=bottom, end=top, bounds=(top, bottom)),
        name=f"trace_diagram_{shown.layer}" if shown.layer else "trace_diagram",
    )
    fig.yaxis.axis_label = "rank" if shown.rows is None else shown.rows.label
    fig.yaxis.ticker = BasicTicker(min_interval=1, num_minor_ticks=0, desired_num_ticks=min(raster.tasks, 8))
    fig.yaxis.formatter = NumeralTickFormatter(format="0")
    if shown.rows is not None and shown.rows.label != "rank":
        fig.yaxis.formatter = CustomJSTickFormatter(
            args={"ranks": shown.rows.ranks.tolist()},
            code="return ranks[tick] === undefined ? '' : String(ranks[tick]);",
        )
    if raster.tasks <= _SEPARATED_TASKS:
        # A part of a rank shows no more than the whole.
        draw.zoom_time_by_wheel(fig, x_range)
    fig.xaxis.visible = False
    fig.grid.visible = False
    if is_empty:
        draw.annotate_empty(
            fig, "no recorded call takes time" if not shown.layer else f"no call of {shown.layer}"
        )
        return fig
    row, lanes = None if shown.rows is None else shown.rows.row, ""
    if shown.single is not None:
        layers = [shown.layer] if shown.layer else nested_layers(shown.single)
        columns = call_columns(shown.single, row=row, layers=layers, info=shown.info)
        add_calls(fig, ColumnDataSource(only_layer(columns, shown.layer)), shown.info)
        lanes = lanes_sentence(layers) if len(layers) > 1 else ""
        if has_lanes_of_threads(shown.single):
            lanes = f"{lanes} Each thread of a rank has a lane in its row.".lstrip()
    else:
        images = raster.images if isinstance(raster, DrawnRaster) else share_images(raster, present)
        if view is not None:
            images = images[:1]  # the fine one, whose rows are those of a part of the ranks
        renderers = [_add_image(fig, raster, image, mapper, first) for image in images]
        if len(images) > 1:
            renderers[0].visible = False
            if shown.zoomed is None:
                _switch_by_zoom(fig, *renderers)
        for image, renderer in zip(images, renderers, strict=True):
            _add_hover(fig, shown, image, renderer)
        if raster.tasks <= _SEPARATED_TASKS:
            fig.hspan(
                y=first + np.arange(1, raster.tasks) - 0.5,
                line_color="white",
                line_width=3 if raster.tasks <= 16 else 1,
            )
    outlined = shown.outlined
    marks = [outline_calls(fig, outlined, row, shown.info)] if outlined is not None and len(outlined) else []
    if shown.zoomed is not None and shown.single is None:
        add_zoomed_calls(
            fig,
            shown.zoomed,
            renderers,
            shown.words,
            row,
            shown.info,
            marks[0].renderers[0] if marks else None,
        )
    draw.horizontal_legend(fig, [*swatches(fig, {name: LABELS[name] for name in present}), *marks])
    if lanes:
        draw.subtitle(fig, lanes)
    return fig


def _add_image(
    fig: figure, raster: Raster | DrawnRaster, image: ShareImage, mapper: Any, first: int
) -> GlyphRenderer[Any]:
    rows, cells = image.shares.shape[:2]
    place = {"x": [raster.edges_ns[0] * 1e-9], "y": [first - 0.5]}
    size = {"dw": [cells * image.cell_ns * 1e-9], "dh": [rows * image.ranks_per_row]}
    return add_mixed(fig, {"image": [image.shares], **place, **size}, mapper)


def _switch_by_zoom(fig: figure, fine: GlyphRenderer[Any], coarse: GlyphRenderer[Any]) -> None:
    """Show the fine image when the zoom makes its pixels as large as those of the screen."""
    assert isinstance(fine.data_source, ColumnDataSource)
    image = fine.data_source.data
    ranges = (fig.x_range, fig.y_range)
    code = """
        const zoomed = (range, all) => Math.abs(range.end - range.start) <= 0.6 * all;
        fine.visible = zoomed(x_range, span_s) || zoomed(y_range, tasks);
        coarse.visible = !fine.visible;
    """
    args = {
        "fine": fine,
        "coarse": coarse,
        "x_range": fig.x_range,
        "y_range": fig.y_range,
        "span_s": float(image["dw"][0]),
        "tasks": float(image["dh"][0]),
    }
    for axis_range in ranges:
        callback = CustomJS(args=args, code=code)
        axis_range.js_on_change("start", callback)
        axis_range.js_on_change("end", callback)


def _add_hover(fig: figure, shown: _Shown, image: ShareImage, renderer: GlyphRenderer[Any]) -> None:
    rows = shown.rows
    tasks = CustomJSHover(
        args={
            "tasks": shown.raster.tasks,
            "first": shown.first,
            "per_row": image.ranks_per_row,
            "ranks": [] if rows is None or rows.label == "rank" else rows.ranks.tolist(),
        },
        code=_TASKS_JS,
    )
    shares = [(name, f"@image{{{position}}}") for position, name in enumerate(shown.present)]
    draw.add_hover(
        fig,
        renderer,
        [("", "$y{0}"), ("time", "$x{at}"), *shares],
        formatters={"$y": tasks, "@image": CustomJSHover(code=_SHARE_JS)},
        description="Values of the trace diagram",
        visible=renderer is fig.renderers[0],
    )


def _emphasis(mapper: WeightedStackColorMapper) -> Tabs:
    """Create the choice between the linear colour scale and one that enhances small shares."""
    choice = Tabs(
        tabs=[
            TabPanel(child=Spacer(height=0), title=f"{name} colour scale") for name in ("linear", "enhanced")
        ],
        name="emphasis",
        margin=(0, 0, 2, draw.LEFT_BORDER),
        stylesheets=[widget_colours()],
    )
    code = """
        mapper.alpha_mapper.palette = palettes[cb_obj.active];
        mapper.change.emit();
    """
    args = {"mapper": mapper, "palettes": [mapper.alpha_mapper.palette, opacities(power=EMPHASIS)]}
    choice.js_on_change("active", CustomJS(args=args, code=code))
    return choice

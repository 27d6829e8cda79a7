"""The trace diagram: tasks against time, coloured by the operation that each executes."""

from __future__ import annotations

from typing import Any

import numpy as np
from bokeh.layouts import column
from bokeh.models import (
    BasicTicker,
    Column,
    ColumnDataSource,
    CustomJS,
    CustomJSHover,
    HoverTool,
    ImageStack,
    LinearColorMapper,
    NumeralTickFormatter,
    Range1d,
    WeightedStackColorMapper,
)
from bokeh.models.renderers import GlyphRenderer
from bokeh.models.widgets import RadioButtonGroup
from bokeh.plotting import figure

from ensembles.model.events import Events
from ensembles.run.rasters import window_raster
from ensembles.run.run import Run
from ensembles.summaries.raster import Raster
from ensembles.viz.concurrency import tasks_inside
from ensembles.viz.data_for import data_for, partial_sentence
from ensembles.viz.figures import (
    LEFT_BORDER,
    annotate_empty,
    horizontal_legend,
    legend_item,
    new_figure,
    subtitle,
    time_range,
)
from ensembles.viz.raster_images import ShareImage, share_images
from ensembles.viz.style import COLOURS, LABELS, time_hover

_SEPARATED_TASKS = 48

_TASKS_JS = """
    const first = Math.floor(Math.min(Math.max(value + 0.5, 0), tasks - 1) / per_row) * per_row;
    const last = Math.min(first + per_row, tasks) - 1;
    return first == last ? `rank ${first}` : `ranks ${first}–${last}`;
"""

_SHARE_JS = """
    const byte = value[Number(format)];
    if (byte == 0) return '0 %';
    if (byte == 1) return '< 0.5 %';
    return (100 * byte / 255).toFixed(byte < 26 ? 1 : 0) + ' %';
"""


def trace_diagram(
    data: Any,
    *,
    title: str | None = None,
    x_range: Range1d | None = None,
    window_s: tuple[float, float] | None = None,
) -> Column:
    """Draw ranks against time, and below them the number of tasks inside a call over time.

    A pixel mixes the colours of the operations in proportion to the time spent in them, and nothing in
    proportion to the time outside of recorded calls. If calls are short, most of the diagram is blank; the
    enhanced colour scale makes them visible.

    Parameters
    ----------
    data : Run, Events or Raster
    title : str, optional
    x_range : Range1d, optional
        Time axis in seconds, to share with another figure.
    window_s : (float, float), optional
        Show only this time, in seconds since the origin of the run, in finer cells. Of a run only the calls
        in this time are read, or none if its ``trace.h5`` has sums that are fine enough.

    Returns
    -------
    Column
        The names of its figures are ``trace_diagram`` and ``tasks_inside``.

    Raises
    ------
    TypeError
        `data` has another type.
    ValueError
        The window is empty.
    EnsioError
        The run was recorded without events.

    Examples
    --------
    >>> from ensembles import viz
    >>> layout = viz.trace_diagram(en.open("ensio-ior"))
    >>> layout.select_one({"name": "trace_diagram"}).title.text
    'Trace diagram of 8 tasks; blank: no recorded call'
    """
    raster = data_for(data, Raster) if window_s is None else _window(data, *window_s)
    shared = x_range or time_range(*raster.extent_ns)
    present = raster.present()
    mapper = _mapper(present)
    partial = partial_sentence(data)
    diagram = _diagram(raster, present, mapper, title or _title(raster), shared)
    if partial:
        subtitle(diagram, partial)
    inside = tasks_inside(raster, present, shared)
    parts = [_emphasis(mapper), diagram, inside] if present else [diagram, inside]
    return column(parts, sizing_mode="stretch_width", name="trace")


def _window(data: Any, low_s: float, high_s: float) -> Raster:
    if not isinstance(data, (Run, Events)):
        raise TypeError(f"a window is shown of a run or of events, not of {type(data).__name__}")
    if isinstance(data, Run) and data.mode == "profile":
        return data_for(data, Raster)  # it says what is missing
    return window_raster(data, round(low_s * 1e9), round(high_s * 1e9))


def _title(raster: Raster) -> str:
    tasks = f"{raster.tasks:,} task" + "s" * (raster.tasks != 1)
    if raster.ranks_per_row == 1:
        return f"Trace diagram of {tasks}; blank: no recorded call"
    return (
        f"Trace diagram of {tasks}, {raster.ranks_per_row} per row; colour: share of their time in an "
        "operation, blank: no recorded call"
    )


def _diagram(
    raster: Raster, present: list[str], mapper: WeightedStackColorMapper, title: str, x_range: Range1d
) -> figure:
    fig = new_figure(
        title,
        height=int(np.clip(150 + 26 * raster.tasks, 220, 560)),
        x_range=x_range,
        y_range=Range1d(start=raster.tasks - 0.5, end=-0.5, bounds=(-0.5, raster.tasks - 0.5)),
        name="trace_diagram",
    )
    fig.yaxis.axis_label = "rank"
    fig.yaxis.ticker = BasicTicker(min_interval=1, num_minor_ticks=0, desired_num_ticks=min(raster.tasks, 8))
    fig.yaxis.formatter = NumeralTickFormatter(format="0,0")
    fig.xaxis.visible = False
    fig.grid.visible = False
    if not present:
        annotate_empty(fig, "no recorded call takes time")
        return fig
    images = share_images(raster, present)
    renderers = [_add_image(fig, raster, image, mapper) for image in images]
    if len(images) > 1:
        _switch_by_zoom(fig, *renderers)
    for image, renderer in zip(images, renderers, strict=True):
        _add_hover(fig, raster, image, renderer, present)
    if raster.tasks <= _SEPARATED_TASKS:
        fig.hspan(
            y=np.arange(1, raster.tasks) - 0.5, line_color="white", line_width=3 if raster.tasks <= 16 else 1
        )
    _add_legend(fig, present)
    return fig


def _add_image(fig: figure, raster: Raster, image: ShareImage, mapper: Any) -> GlyphRenderer[Any]:
    rows, cells = image.shares.shape[:2]
    source = ColumnDataSource(
        {
            "image": [image.shares],
            "x": [raster.edges_ns[0] * 1e-9],
            "dw": [cells * image.cell_ns * 1e-9],
            "dh": [rows * image.ranks_per_row],
        }
    )
    glyph = ImageStack(image="image", x="x", y=-0.5, dw="dw", dh="dh", color_mapper=mapper)
    return fig.add_glyph(source, glyph)


def _switch_by_zoom(fig: figure, fine: GlyphRenderer[Any], coarse: GlyphRenderer[Any]) -> None:
    """Show the fine image when the zoom makes its pixels as large as those of the screen."""
    fine.visible = False
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


def _add_hover(
    fig: figure, raster: Raster, image: ShareImage, renderer: GlyphRenderer[Any], present: list[str]
) -> None:
    tasks = CustomJSHover(args={"tasks": raster.tasks, "per_row": image.ranks_per_row}, code=_TASKS_JS)
    shares = [(name, f"@image{{{position}}}") for position, name in enumerate(present)]
    fig.add_tools(
        HoverTool(
            renderers=[renderer],
            description="Values of the trace diagram",
            visible=renderer is fig.renderers[0],
            tooltips=[("", "$y{0}"), ("time", "$x{0}"), *shares],
            formatters={"$y": tasks, "$x": time_hover(), "@image": CustomJSHover(code=_SHARE_JS)},
        )
    )


def _emphasis(mapper: WeightedStackColorMapper) -> RadioButtonGroup:
    """Create the choice between the linear colour scale and one that enhances small shares."""
    strong = [f"#000000{round(255 * (alpha / 255) ** 0.4):02x}" for alpha in range(256)]
    buttons = RadioButtonGroup(
        labels=["linear colour scale", "enhanced colour scale"],
        active=0,
        name="emphasis",
        margin=(0, 0, 2, LEFT_BORDER),
    )
    code = """
        mapper.alpha_mapper.palette = palettes[cb_obj.active];
        mapper.change.emit();
    """
    args = {"mapper": mapper, "palettes": [mapper.alpha_mapper.palette, strong]}
    buttons.js_on_change("active", CustomJS(args=args, code=code))
    return buttons


def _mapper(present: list[str]) -> WeightedStackColorMapper:
    """Mix the colours of the classes by their shares; the opacity is the sum of the shares."""
    alphas = [f"#000000{alpha:02x}" for alpha in range(256)]
    return WeightedStackColorMapper(
        palette=[COLOURS[name] for name in present],
        color_baseline=0,
        nan_color="#ffffff00",
        alpha_mapper=LinearColorMapper(palette=alphas, low=0, high=255),
    )


def _add_legend(fig: figure, present: list[str]) -> None:
    items = []
    for name in present:
        swatch = fig.quad(
            left=[np.nan], right=[np.nan], bottom=[np.nan], top=[np.nan], color=COLOURS[name], line_color=None
        )
        items.append(legend_item(LABELS[name], swatch))
    horizontal_legend(fig, items)

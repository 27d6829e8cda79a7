"""The trace diagram: which task was inside which kind of call, and when."""

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
    GlyphRenderer,
    HoverTool,
    ImageStack,
    LegendItem,
    LinearColorMapper,
    NumeralTickFormatter,
    RadioButtonGroup,
    Range1d,
    WeightedStackColorMapper,
)
from bokeh.plotting import figure

from ensembles.summaries.raster import CLASSES, Raster
from ensembles.viz.colours import COLOURS, LABELS
from ensembles.viz.figures import (
    LEFT_BORDER,
    horizontal_legend,
    label_time_axis,
    new_figure,
    say_empty,
    steps,
    time_range,
)
from ensembles.viz.summarise import summarise, tasks_of
from ensembles.viz.units import time_hover

# A canvas draws the nearest pixel of an image: one with more pixels than the screen would lose whole tasks.
# So a coarser image, of averages, is drawn until the reader zooms in.
_SCREEN_ROWS = 420
_SCREEN_CELLS = 1024

_SEPARATED_TASKS = 48

_TASKS_JS = """
    const first = Math.floor(Math.min(Math.max(value + 0.5, 0), tasks - 1) / per_row) * per_row;
    const last = Math.min(first + per_row, tasks) - 1;
    return first == last ? `task ${first}` : `tasks ${first}–${last}`;
"""

_COUNT_JS = """
    const number = Number(value.toPrecision(4)).toLocaleString('en-US');
    const percent = Number((100 * value / tasks).toPrecision(3));
    return `${number} of ${tasks.toLocaleString('en-US')} tasks (${percent} %)`;
"""

_SHARE_JS = """
    const byte = value[Number(format)];
    if (byte == 0) return '0 %';
    if (byte == 1) return '< 0.5 %';
    return (100 * byte / 255).toFixed(byte < 26 ? 1 : 0) + ' %';
"""


def trace_diagram(data: Any, *, title: str | None = None, x_range: Range1d | None = None) -> Column:
    """Draw tasks × time, and below it how many tasks were inside a call at each time.

    The colour of a pixel is the true mixture of what it covers: white where its tasks were outside of
    recorded calls, and the colour of each kind of operation by the share of (tasks × time) spent in it. Where
    calls are so short that most of the picture is white, the curve below tells what is there, and a button of
    the toolbar draws short calls more strongly.

    Parameters
    ----------
    data : Run, Events or Raster
    title : str, optional
    x_range : Range1d, optional
        Time axis of another picture, to be shared, in seconds.

    Returns
    -------
    Column
        The figures in it are called ``trace_diagram`` and ``tasks_inside``.
    """
    raster = summarise(data, Raster, lambda: Raster(tasks_of(data)))
    shared = x_range or time_range(*raster.extent_ns)
    present = raster.present()
    mapper = _mapper(present)
    diagram = _diagram(raster, present, mapper, title or _title(raster), shared)
    inside = _tasks_inside(raster, present, shared)
    parts = [_emphasis(mapper), diagram, inside] if present else [diagram, inside]
    return column(parts, sizing_mode="stretch_width", name="trace")


def _title(raster: Raster) -> str:
    tasks = f"{raster.tasks:,} task" + "s" * (raster.tasks != 1)
    if raster.ranks_per_row == 1:
        return f"Trace diagram: {tasks}; white is time outside of recorded calls"
    return (
        f"Trace diagram: {tasks}, {raster.ranks_per_row} in each row; colour is the share of their time, "
        "white is time outside of recorded calls"
    )


def _diagram(
    raster: Raster, present: list[str], mapper: WeightedStackColorMapper, title: str, x_range: Range1d
) -> figure:
    fig = new_figure(
        title,
        height=int(np.clip(150 + 26 * raster.tasks, 220, 560)),
        x_range=x_range,
        y_range=Range1d(raster.tasks - 0.5, -0.5, bounds=(-0.5, raster.tasks - 0.5)),
        name="trace_diagram",
    )
    fig.yaxis.axis_label = "task"
    fig.yaxis.ticker = BasicTicker(min_interval=1, num_minor_ticks=0, desired_num_ticks=min(raster.tasks, 8))
    fig.yaxis.formatter = NumeralTickFormatter(format="0,0")
    fig.xaxis.visible = False
    fig.grid.visible = False
    if not present:
        say_empty(fig, "no time was spent in recorded calls")
        return fig
    fine = _shares(raster.time_ns, raster.tasks_of_row, raster.cell_ns, present)
    images = [_add_image(fig, raster, fine, raster.ranks_per_row, raster.cell_ns, mapper)]
    rows_joined = 2 if raster.rows > _SCREEN_ROWS else 1
    cells_joined = 2 if len(raster.edges_ns) - 1 > _SCREEN_CELLS else 1
    if rows_joined * cells_joined > 1:
        time_ns = _joined(_joined(raster.time_ns, 1, rows_joined), 2, cells_joined)
        tasks_of_row = _joined(raster.tasks_of_row, 0, rows_joined)
        cell_ns = raster.cell_ns * cells_joined
        coarse = _shares(time_ns, tasks_of_row, cell_ns, present)
        images.append(_add_image(fig, raster, coarse, raster.ranks_per_row * rows_joined, cell_ns, mapper))
        _switch_by_zoom(fig, *images)
    _add_hover(fig, raster, images, present)
    if raster.tasks <= _SEPARATED_TASKS:
        fig.hspan(
            y=np.arange(1, raster.tasks) - 0.5, line_color="white", line_width=3 if raster.tasks <= 16 else 1
        )
    _add_legend(fig, present)
    return fig


def _joined(values: np.ndarray, axis: int, count: int) -> np.ndarray:
    """Sums of `count` neighbours along an axis; the last one may be of fewer."""
    if count == 1:
        return values
    return np.add.reduceat(values, np.arange(0, values.shape[axis], count), axis=axis)


def _shares(time_ns: np.ndarray, tasks_of_row: np.ndarray, cell_ns: int, present: list[str]) -> np.ndarray:
    """Shares of (tasks × time) as bytes, 255 being all of it: uint8, shape (rows, cells, classes present).

    What is there at all is at least 1, so that it is never drawn, or told, as nothing.
    """
    per_byte_ns = (tasks_of_row * (cell_ns / 255.0)).astype(np.float32)[:, None]
    shares = np.empty((*time_ns.shape[1:], len(present)), dtype=np.uint8)
    for number, name in enumerate(present):
        scaled = time_ns[list(CLASSES).index(name)] / per_byte_ns
        shares[:, :, number] = np.where(scaled > 0, np.clip(np.rint(scaled), 1, 255), 0)
    return shares


def _mapper(present: list[str]) -> WeightedStackColorMapper:
    """Mixes the colours of the classes by their shares, as opaque as the sum of the shares."""
    alphas = [f"#000000{alpha:02x}" for alpha in range(256)]
    return WeightedStackColorMapper(
        palette=[COLOURS[name] for name in present],
        color_baseline=0,
        nan_color="#ffffff00",
        alpha_mapper=LinearColorMapper(palette=alphas, low=0, high=255),
    )


def _add_image(
    fig: figure, raster: Raster, shares: np.ndarray, ranks_per_row: int, cell_ns: int, mapper: Any
) -> GlyphRenderer:
    rows, cells = shares.shape[:2]
    source = ColumnDataSource(
        {
            "image": [shares],
            "x": [raster.edges_ns[0] * 1e-9],
            "dw": [cells * cell_ns * 1e-9],
            "dh": [rows * ranks_per_row],
        }
    )
    glyph = ImageStack(image="image", x="x", y=-0.5, dw="dw", dh="dh", color_mapper=mapper)
    return fig.add_glyph(source, glyph)


def _switch_by_zoom(fig: figure, fine: GlyphRenderer, coarse: GlyphRenderer) -> None:
    """Draw the fine image as soon as its pixels are not smaller than those of the screen."""
    fine.visible = False
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
        "span_s": float(fine.data_source.data["dw"][0]),
        "tasks": float(fine.data_source.data["dh"][0]),
    }
    for axis_range in ranges:
        callback = CustomJS(args=args, code=code)
        axis_range.js_on_change("start", callback)
        axis_range.js_on_change("end", callback)


def _add_hover(fig: figure, raster: Raster, images: list[GlyphRenderer], present: list[str]) -> None:
    for number, image in enumerate(images):
        per_row = (
            raster.ranks_per_row if number == 0 else int(image.data_source.data["dh"][0]) // _rows(image)
        )
        shares = [(name, f"@image{{{position}}}") for position, name in enumerate(present)]
        fig.add_tools(
            HoverTool(
                renderers=[image],
                description="Values of the trace diagram",
                visible=number == 0,
                tooltips=[("", "$y{0}"), ("time", "$x{0}"), *shares],
                formatters={
                    "$y": CustomJSHover(args={"tasks": raster.tasks, "per_row": per_row}, code=_TASKS_JS),
                    "$x": time_hover(),
                    "@image": CustomJSHover(code=_SHARE_JS),
                },
            )
        )


def _rows(image: GlyphRenderer) -> int:
    return image.data_source.data["image"][0].shape[0]


def _emphasis(mapper: WeightedStackColorMapper) -> RadioButtonGroup:
    """A choice between true areas and one that draws small shares more strongly."""
    strong = [f"#000000{round(255 * (alpha / 255) ** 0.4):02x}" for alpha in range(256)]
    buttons = RadioButtonGroup(
        labels=["true areas", "short calls stronger"],
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


def _add_legend(fig: figure, present: list[str]) -> None:
    items = []
    for name in present:
        swatch = fig.quad(
            left=[np.nan], right=[np.nan], bottom=[np.nan], top=[np.nan], color=COLOURS[name], line_color=None
        )
        items.append(LegendItem(label=LABELS[name], renderers=[swatch]))
    horizontal_legend(fig, items)


def _tasks_inside(raster: Raster, present: list[str], x_range: Range1d) -> figure:
    fig = new_figure("Tasks inside a call at the same time", height=200, x_range=x_range, name="tasks_inside")
    fig.yaxis.axis_label = "tasks"
    fig.yaxis.formatter = NumeralTickFormatter(format="0,0.[00]")
    label_time_axis(fig)
    if not present:
        fig.y_range = Range1d(0, max(raster.tasks, 1))
        say_empty(fig, "")
        return fig
    edges_s = raster.edges_ns * 1e-9
    inside = {name: raster.tasks_inside(name) for name in present}
    below = np.zeros(len(edges_s))
    for name in present:
        above = below + steps(inside[name])
        fig.varea_step(
            x=edges_s, y1=below, y2=above, step_mode="after", fill_color=COLOURS[name], fill_alpha=0.85
        )
        below = above
    top = float(below.max())
    fig.y_range = Range1d(0, 1.08 * top)
    columns = {"left": edges_s[:-1], "right": edges_s[1:], **{f"n_{name}": inside[name] for name in present}}
    target = fig.quad(
        left="left", right="right", bottom=0, top=1.08 * top, source=ColumnDataSource(columns), alpha=0
    )
    counts = CustomJSHover(args={"tasks": raster.tasks}, code=_COUNT_JS)
    fig.add_tools(
        HoverTool(
            renderers=[target],
            mode="vline",
            point_policy="follow_mouse",
            description="Values of the curve",
            tooltips=[
                ("time", "@left{0} – @right{0}"),
                *((name, f"@n_{name}{{0}}") for name in present),
            ],
            formatters={
                "@left": time_hover(),
                "@right": time_hover(),
                **{f"@n_{name}": counts for name in present},
            },
        )
    )
    most = f"{top:,.0f}" if top >= 10 else f"{top:.2g}"
    fig.title.text = f"Tasks inside a call at the same time (at most {most} of {raster.tasks:,})"
    return fig

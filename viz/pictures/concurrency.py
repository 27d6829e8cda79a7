"""Number of tasks, or calls, in progress over time: the curve below the trace diagram."""

from __future__ import annotations

import numpy as np
from bokeh.models import ColumnDataSource, CustomJSHover, HoverTool, NumeralTickFormatter, Range1d
from bokeh.plotting import figure

from ensembles.summaries.raster import DrawnRaster, Raster
from ensembles.viz.common.figures import (
    annotate_empty,
    cells_of_time,
    label_time_axis,
    new_figure,
    retitle,
    steps,
)
from ensembles.viz.common.style import COLOURS, moment_hover

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

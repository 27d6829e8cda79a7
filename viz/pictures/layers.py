"""Bars of layers: exclusive time, and time in calls of other layers inside."""

from __future__ import annotations

from typing import Any

from bokeh.models import ColumnDataSource, HoverTool, Range1d
from bokeh.plotting import figure

from ensembles.model.units import S_PER_NS, count_text, seconds_text
from ensembles.summaries.runtotals import RunTotals
from ensembles.viz.common.data_for import data_for, of_several
from ensembles.viz.common.figures import (
    annotate_empty,
    horizontal_legend,
    label_summed_time,
    legend_item,
    new_figure,
    plain,
)
from ensembles.viz.common.style import COLOURS, NEUTRAL, SERIES, time_hover

_WAITING = {"mpisync": " (waiting in MPI)"}
"""What layers without I/O are, of whose names readers may not know that."""


@of_several
def layers(data: Any, *, title: str | None = None) -> figure:
    """Draw the time of each layer: exclusive, and inside recorded calls that its calls made.

    Exclusive times add up to the time in calls; whole times overlap, because a layer's calls contain those of
    the layers below.

    Parameters
    ----------
    data : Run, Events or RunTotals
    title : str, optional

    Returns
    -------
    figure

    Raises
    ------
    TypeError
        `data` has another type.

    Examples
    --------
    >>> from ensembles import viz
    >>> figure = viz.layers(en.open("ensio-ior"))
    >>> figure.renderers[0].data_source.data["layer"]
    ['posix']
    """
    found = data_for(data, RunTotals).layers.layers
    rows = sorted(found.items(), key=lambda item: -item[1].time_ns)
    top_s = max([layer.time_ns * S_PER_NS for _, layer in rows], default=0.0)
    fig = new_figure(
        title or "Time in the calls of each layer, summed over tasks",
        126 + 38 * max(len(rows), 1),
        x_range=Range1d(start=0, end=1.04 * top_s or 1.0),
        y_range=Range1d(start=max(len(rows), 1) - 0.45, end=-0.62),
        name="layers",
    )
    fig.min_border_left = 24
    fig.yaxis.visible = False
    fig.ygrid.visible = False
    label_summed_time(fig, "time", top_s)
    if not rows:
        annotate_empty(fig, "no call was recorded")
        return fig
    exclusive_s = [layer.exclusive_ns * S_PER_NS for _, layer in rows]
    whole_s = [layer.time_ns * S_PER_NS for _, layer in rows]
    inner_s = [whole - own for whole, own in zip(whole_s, exclusive_s, strict=True)]
    columns = {
        "layer": [plain(name) for name, _ in rows],
        "calls": [f"{layer.calls:,}" for _, layer in rows],
        "exclusive_s": exclusive_s,
        "whole_s": whole_s,
        "inner_s": inner_s,
        "y": [number + 0.12 for number in range(len(rows))],
        "label_y": [number - 0.08 for number in range(len(rows))],
        "label": [
            f"{plain(name)}{_WAITING.get(name, '')}: {count_text(layer.calls, 'call')}, "
            f"{seconds_text(own)} exclusive"
            for (name, layer), own in zip(rows, exclusive_s, strict=True)
        ],
    }
    columns["colour"] = [COLOURS["wait"] if name in _WAITING else SERIES[2] for name, _ in rows]
    source = ColumnDataSource(columns)
    own = fig.hbar(y="y", height=0.36, left=0, right="exclusive_s", source=source, color="colour")
    items = [legend_item("exclusive", own)]
    bars = [own]
    if any(inner_s):
        inner = fig.hbar(
            y="y", height=0.36, left="exclusive_s", right="whole_s", source=source, color=SERIES[5]
        )
        items.append(legend_item("in recorded calls of layers below", inner))
        bars.append(inner)
    fig.text(
        x=0,
        y="label_y",
        text="label",
        source=source,
        text_font_size="9.5pt",
        text_baseline="bottom",
        x_offset=3,
        text_color=NEUTRAL["text"],
    )
    horizontal_legend(fig, items)
    fig.add_tools(
        HoverTool(
            renderers=[*bars],
            tooltips=[
                ("layer", "@layer"),
                ("calls", "@calls"),
                ("exclusive", "@exclusive_s{0}"),
                ("inside other calls", "@inner_s{0}"),
            ],
            formatters={"@exclusive_s": time_hover(), "@inner_s": time_hover()},
        )
    )
    return fig

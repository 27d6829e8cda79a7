"""Pictures of counters that another tool kept: time by interface, access sizes, ranks, heat map."""

from __future__ import annotations

from typing import Any

import numpy as np
from bokeh.models import BasicTicker, ColumnDataSource, DataRange1d, HoverTool, NumeralTickFormatter
from bokeh.plotting import figure

from ensembles.model.counters import Counters, HeatMap, ModuleCounters
from ensembles.model.units import bytes_text, seconds_text, size_text
from ensembles.viz.figures import new_figure
from ensembles.viz.style import COLOURS, NEUTRAL, byte_unit

_PARTS = (("read", "read_s"), ("write", "write_s"), ("metadata", "meta_s"))


def counter_pictures(counters: Counters) -> dict[str, Any]:
    """Draw the counters of a run.

    Parameters
    ----------
    counters : Counters
        ``run.counters``.

    Returns
    -------
    dict of str to figure
        ``counted_time``; ``counted_sizes`` if sizes of requests are known; ``counted_ranks`` if files of
        single ranks are; ``heat_map`` if the log has one.

    Examples
    --------
    >>> from ensembles.model.counters import Counters
    >>> from ensembles.viz.counters import counter_pictures
    >>> counter_pictures(Counters("Darshan 3.4.4", 4, 60.0))
    {}
    """
    pictures: dict[str, Any] = {}
    timed = [module for module in counters.modules.values() if module.time_s > 0]
    if timed:
        pictures["counted_time"] = _time_by_interface(timed, counters.tasks)
    sized = [module for module in counters.modules.values() if any(module.size_classes.values())]
    if sized:
        pictures["counted_sizes"] = _access_sizes(sized[-1])
    own = [module for module in timed if (module.by_rank["records"] > 0).sum() > 1]
    if own:
        pictures["counted_ranks"] = _time_by_rank(max(own, key=lambda module: module.time_s))
    if counters.heatmaps:
        pictures["heat_map"] = _heat_map(
            *max(counters.heatmaps.items(), key=lambda item: item[1].written.sum())
        )
    return pictures


def _time_by_interface(modules: list[ModuleCounters], tasks: int) -> figure:
    names = [f"{module.layer} ({module.module})" for module in modules][::-1]
    columns: dict[str, Any] = {"name": names}
    for label, key in _PARTS:
        columns[label] = [float(module.total(key)) / tasks for module in modules][::-1]
    # A sum that only bounds the time of the slowest task has no place on the axis of measured times.
    bounds = [module.slowest_is_bound for module in modules][::-1]
    times = [module.slowest_rank_s for module in modules][::-1]
    columns["slowest"] = [np.nan if bound else each for each, bound in zip(times, bounds, strict=True)]
    columns["text"] = [
        ("at most " if bound else "") + seconds_text(each) for each, bound in zip(times, bounds, strict=True)
    ]
    mark = "black mark: slowest task" + (", where it is known" if any(bounds) else "")
    fig = new_figure(
        f"Time of the mean task by interface ({mark}; an interface contains those below)",
        90 + 40 * len(names),
        y_range=names,
    )
    source = ColumnDataSource(columns)
    labels = [label for label, _ in _PARTS]
    bars = fig.hbar_stack(
        labels,
        y="name",
        height=0.6,
        source=source,
        color=[COLOURS[name] for name in labels],
        legend_label=labels,
    )
    fig.scatter(
        x="slowest", y="name", source=source, marker="dash", angle=np.pi / 2, size=22, color=NEUTRAL["text"]
    )
    fig.add_tools(
        HoverTool(
            renderers=[*bars],
            tooltips=[*((name, f"@{name}{{0.000}} s") for name in labels), ("slowest", "@text")],
        )
    )
    fig.xaxis.axis_label = "time (s)"
    return _with_legend(fig)


def _access_sizes(module: ModuleCounters) -> figure:
    bounds = sorted({(low, high) for classes in module.size_classes.values() for low, high, _ in classes})
    names = [
        f"over {size_text(low - 1)}" if high >= 1 << 62 else f"to {size_text(high)}" for low, high in bounds
    ]
    fig = new_figure(f"Access sizes of {module.layer} ({module.module})", 260, x_range=names)
    counts = {
        op: {(low, high): count for low, high, count in module.size_classes[op]} for op in ("read", "write")
    }
    present = [op for op in counts if any(counts[op].values())]
    for op in present:
        # Bars of one direction are at their tick, those of two on either side of it.
        shift = 0.0 if len(present) < 2 else -0.2 if op == "read" else 0.2
        heights = [counts[op].get(bound, 0) for bound in bounds]
        source = ColumnDataSource(
            {"x": [(name, shift) for name in names], "count": heights, "text": [f"{n:,}" for n in heights]}
        )
        bars = fig.vbar(x="x", top="count", width=0.38, source=source, color=COLOURS[op], legend_label=op)
        fig.add_tools(HoverTool(renderers=[bars], tooltips=[(op, "@text calls")]))
    fig.yaxis.axis_label = "calls"
    fig.yaxis.formatter = NumeralTickFormatter(format="0,0")
    fig.y_range = DataRange1d(start=0)
    return _with_legend(fig)


def _time_by_rank(module: ModuleCounters) -> figure:
    table = module.by_rank
    own = table["records"] > 0
    fig = new_figure(f"Time of each rank in its own files, {module.layer} ({module.module})", 260)
    below = np.zeros(int(own.sum()))
    for label, key in _PARTS:
        top = below + table[key][own]
        source = ColumnDataSource({"rank": table["rank"][own], "bottom": below, "top": top})
        fig.vbar(
            x="rank",
            bottom="bottom",
            top="top",
            width=1.0,
            source=source,
            color=COLOURS[label],
            legend_label=label,
        )
        below = top
    fig.xaxis.axis_label = "rank"
    fig.xaxis.ticker = BasicTicker(min_interval=1, num_minor_ticks=0)
    fig.yaxis.axis_label = "time (s)"
    fig.y_range = DataRange1d(start=0)
    return _with_legend(fig)


def _heat_map(name: str, found: HeatMap) -> figure:
    fig = new_figure(f"Data rate over time ({name}, from Darshan's heat map)", 240)
    edges_s = np.arange(len(found.read)) * found.bin_s
    most = max(float(found.read.max(initial=0)), float(found.written.max(initial=0))) / found.bin_s
    unit, unit_name = byte_unit(max(most, 1024.0))
    for label, moved in (("read", found.read), ("write", found.written)):
        if not moved.any():
            continue
        source = ColumnDataSource(
            {
                "x": edges_s,
                "y": moved / found.bin_s / unit,
                "text": [f"{bytes_text(each / found.bin_s)}/s" for each in moved],
            }
        )
        line = fig.step(x="x", y="y", mode="after", source=source, color=COLOURS[label], legend_label=label)
        fig.add_tools(HoverTool(renderers=[line], tooltips=[("time", "@x s"), (label, "@text")]))
    fig.xaxis.axis_label = "time since the start of the run (s)"
    fig.yaxis.axis_label = f"data rate ({unit_name}/s)"
    fig.yaxis.formatter = NumeralTickFormatter(format="0,0.[00]")
    return _with_legend(fig)


def _with_legend(fig: figure) -> figure:
    """Move the legend to the right of the frame, where it hides nothing."""
    if fig.legend:
        fig.add_layout(fig.legend[0], "right")
    return fig

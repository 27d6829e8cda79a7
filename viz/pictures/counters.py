"""Pictures of counters that another tool kept: time by interface, access sizes, ranks, heat map."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from bokeh.layouts import column
from bokeh.models import (
    BasicTicker,
    Column,
    ColumnDataSource,
    DataRange1d,
    HoverTool,
    NumeralTickFormatter,
    Range1d,
)
from bokeh.models.annotations import LegendItem
from bokeh.plotting import figure

from ensembles.model.counters import Counters, HeatMap, ModuleCounters, SizeClass
from ensembles.model.units import bytes_text, count_text, seconds_text, size_text
from ensembles.viz.common.figures import (
    annotate_empty,
    horizontal_legend,
    label_time_axis,
    legend_item,
    new_figure,
    subtitle,
)
from ensembles.viz.common.mixed import add_mixed, mixed_image, mixer, swatches
from ensembles.viz.common.style import COLOURS, NEUTRAL, byte_unit, scaled_ticks, time_hover, time_unit

_SPARSE = 0.1
"""Part of the ranks: the bars of fewer have outlines."""
_PARTS = (("read", "read_s"), ("write", "write_s"), ("metadata", "meta_s"))


def counter_pictures(counters: Counters) -> dict[str, Any]:
    """Draw the counters of a run."""
    pictures: dict[str, Any] = {}
    timed = [module for module in counters.modules.values() if module.time_s > 0]
    if timed:
        pictures["counted_time"] = _time_by_interface(timed, counters.tasks)
    sized = [module for module in counters.modules.values() if any(module.size_classes.values())]
    for module in sized:
        # What the program asked a library for is not what reached the storage: both, as for other tables.
        pictures[f"counted_sizes_{module.layer}"] = _access_sizes(module)
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
    mark = "upright mark: slowest task" + (", where it is known" if any(bounds) else "")
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
            tooltips=[*((name, f"@{name}{{0}}") for name in labels), ("slowest", "@text")],
            formatters={f"@{name}": time_hover() for name in labels},
        )
    )
    longest = np.nanmax([sum(columns[label][row] for label in labels) for row in range(len(names))])
    unit_s, unit = time_unit(float(np.nanmax([longest, *columns["slowest"]])))
    fig.xaxis.axis_label = f"time ({unit})"
    fig.xaxis.formatter = scaled_ticks(unit_s)
    fig.x_range = Range1d(start=0, end=1.06 * float(np.nanmax([longest, *columns["slowest"], 1e-9])))
    return _with_legend(fig)


def _access_sizes(module: ModuleCounters) -> figure:
    bounds = _with_empty_classes(module.size_classes)
    names = [
        f"over {size_text(low - 1)}" if high >= 1 << 62 else f"to {size_text(high)}" for low, high in bounds
    ]
    fig = new_figure(f"Access sizes of {module.layer} ({module.module})", 260, x_range=names)
    counts = {
        op: {(low, high): count for low, high, count in module.size_classes[op]} for op in ("read", "write")
    }
    present = [op for op in counts if any(counts[op].values())]
    fig.xaxis.axis_label = "access size (a class begins above the one before it)"
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


def _with_empty_classes(classes: Mapping[str, Sequence[SizeClass]]) -> list[tuple[int, int]]:
    """Return the bounds of the classes, also one for each gap: 1 KiB is not beside 1 GiB."""
    known = sorted({(low, high) for each in classes.values() for low, high, _ in each})
    found = known[:1]
    for low, high in known[1:]:
        if (end := found[-1][1]) + 1 < low:
            found.append((end + 1, low - 1))
        found.append((low, high))
    return found


def _time_by_rank(module: ModuleCounters) -> figure:
    table = module.by_rank
    own = table["records"] > 0
    fig = new_figure(f"Time of each rank in its own files, {module.layer} ({module.module})", 260)
    ranks, span = table["rank"][own], int(np.ptp(table["rank"][own])) + 1
    is_sparse = len(ranks) < _SPARSE * span
    if is_sparse:
        subtitle(
            fig, f"{count_text(len(ranks), 'rank')} of ranks {ranks.min()} to {ranks.max()} had files alone."
        )
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
            fill_color=COLOURS[label],
            # A rank among thousands is narrower than a pixel: its outline is not.
            line_color=COLOURS[label] if is_sparse else None,
            line_width=3,
            legend_label=label,
        )
        below = top
    fig.xaxis.axis_label = "rank"
    fig.xaxis.ticker = BasicTicker(min_interval=1, num_minor_ticks=0)
    unit_s, unit = time_unit(float(below.max(initial=0.0)))
    fig.yaxis.axis_label = f"time ({unit})"
    fig.yaxis.formatter = scaled_ticks(unit_s)
    fig.y_range = DataRange1d(start=0)
    return _with_legend(fig)


def _heat_map(name: str, found: HeatMap) -> Column:
    shared = Range1d(start=0.0, end=max(len(found.read), 1) * found.bin_s)
    parts = [_bytes_by_rank(name, found, shared), _rate_over_time(name, found, shared)]
    return column(parts, sizing_mode="stretch_width", name="heat_map")


def _bytes_by_rank(name: str, found: HeatMap, shared: Range1d) -> figure:
    """Draw the bytes of each rank over time; the colour is stronger where more were moved."""
    shown = {op: grid for op, grid in (("write", found.row_written), ("read", found.row_read)) if grid.any()}
    rows = len(found.row_read)
    of = f", {found.ranks_per_row:,} ranks a row" if found.ranks_per_row > 1 else ""
    fig = new_figure(
        f"Bytes moved by rank and time ({name}, from Darshan's heat map{of})",
        90 + min(12 * rows + 60, 300),
        x_range=shared,
        y_range=Range1d(start=rows * found.ranks_per_row - 0.5, end=-0.5),
        name="heat_map_ranks",
    )
    fig.yaxis.axis_label = "rank"
    fig.yaxis.ticker = BasicTicker(min_interval=1, num_minor_ticks=0)
    fig.yaxis.formatter = NumeralTickFormatter(format="0")
    label_time_axis(fig)
    if not shown:
        annotate_empty(fig, "no bytes moved")
        return fig
    assert isinstance(shared.end, float)
    data, top = mixed_image(list(shown.values()), 0.0, -0.5, shared.end, rows * found.ranks_per_row)
    add_mixed(fig, data, mixer(shown))
    most, bin_text = bytes_text(top), seconds_text(found.bin_s)
    subtitle(fig, f"Full colour: {most} in {bin_text}.")
    horizontal_legend(fig, swatches(fig, {op: op for op in shown}))
    return fig


def _rate_over_time(name: str, found: HeatMap, shared: Range1d) -> figure:
    fig = new_figure(f"Data rate over time ({name}, from Darshan's heat map)", 240, x_range=shared)
    edges_s = np.arange(len(found.read)) * found.bin_s
    most = max(float(found.read.max(initial=0)), float(found.written.max(initial=0))) / found.bin_s
    unit, unit_name = byte_unit(max(most, 1024.0))
    items = []
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
        line = fig.step(x="x", y="y", mode="after", source=source, color=COLOURS[label])
        items.append(legend_item(label, line))
        fig.add_tools(HoverTool(renderers=[line], tooltips=[("time", "@x s"), (label, "@text")]))
    label_time_axis(fig)
    fig.yaxis.axis_label = f"data rate ({unit_name}/s)"
    fig.yaxis.formatter = NumeralTickFormatter(format="0,0.[00]")
    horizontal_legend(fig, items)
    return fig


def _with_legend(fig: figure) -> figure:
    """Move the legend above the frame, where it hides nothing."""
    if fig.legend:
        legend = fig.legend[0]
        fig.center.remove(legend)
        horizontal_legend(fig, [item for item in legend.items if isinstance(item, LegendItem)])
    return fig

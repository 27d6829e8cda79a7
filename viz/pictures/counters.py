"""Pictures of counters that another tool kept: time by interface, access sizes, ranks, heat map.

Counters of the kernel around a program's I/O over time: dirty pages, I/O pressure, bytes moved.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from bokeh.layouts import column
from bokeh.models import Column, ColumnDataSource, CustomJSHover, DataRange1d, Range1d
from bokeh.models.renderers import GlyphRenderer
from bokeh.plotting import figure

from ensembles.model.counters import Counters, HeatMap, ModuleCounters, SizeClass
from ensembles.model.surroundings import SurroundingsTable
from ensembles.model.units import bytes_text, count_text, seconds_text, size_text
from ensembles.structure.surroundings import count_sampled, sum_levels, sum_rates
from ensembles.viz.common import figures as draw
from ensembles.viz.common.data_for import of_several
from ensembles.viz.common.mixed import add_mixed, mixed_image, mixer, swatches
from ensembles.viz.common.style import COLOURS, NEUTRAL, SERIES, byte_unit, shade

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
    fig = draw.new_figure(
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
    )
    fig.scatter(
        x="slowest", y="name", source=source, marker="dash", angle=np.pi / 2, size=22, color=NEUTRAL["text"]
    )
    draw.add_hover(fig, bars, [*((name, f"@{name}{{s}}") for name in labels), ("slowest", "@text")])
    longest = np.nanmax([sum(columns[label][row] for label in labels) for row in range(len(names))])
    top_s = float(np.nanmax([longest, *columns["slowest"]]))
    draw.name_times(fig.xaxis, "time", top_s)
    fig.x_range = Range1d(start=0, end=1.06 * max(top_s, 1e-9))
    draw.horizontal_legend(
        fig, [draw.legend_item(label, bar) for label, bar in zip(labels, bars, strict=True)]
    )
    return fig


def _access_sizes(module: ModuleCounters) -> figure:
    bounds = _with_empty_classes(module.size_classes)
    names = [
        f"over {size_text(low - 1)}" if high >= 1 << 62 else f"to {size_text(high)}" for low, high in bounds
    ]
    fig = draw.new_figure(f"Access sizes of {module.layer} ({module.module})", 260, x_range=names)
    counts = {
        op: {(low, high): count for low, high, count in module.size_classes[op]} for op in ("read", "write")
    }
    present = [op for op in counts if any(counts[op].values())]
    fig.xaxis.axis_label = "access size (a class begins above the one before it)"
    items = []
    for op in present:
        # Bars of one direction are at their tick, those of two on either side of it.
        shift = 0.0 if len(present) < 2 else -0.2 if op == "read" else 0.2
        heights = [counts[op].get(bound, 0) for bound in bounds]
        source = ColumnDataSource(
            {"x": [(name, shift) for name in names], "count": heights, "text": [f"{n:,}" for n in heights]}
        )
        bars = fig.vbar(x="x", top="count", width=0.38, source=source, color=COLOURS[op])
        items.append(draw.legend_item(op, bars))
        draw.add_hover(fig, bars, [(op, "@text calls")])
    draw.name_axis(fig.yaxis, "calls", "0,0")
    fig.y_range = DataRange1d(start=0)
    draw.horizontal_legend(fig, items)
    return fig


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
    fig = draw.new_figure(f"Time of each rank in its own files, {module.layer} ({module.module})", 260)
    ranks, span = table["rank"][own], int(np.ptp(table["rank"][own])) + 1
    is_sparse = len(ranks) < 0.1 * span
    if is_sparse:
        draw.subtitle(
            fig, f"{count_text(len(ranks), 'rank')} of ranks {ranks.min()} to {ranks.max()} had files alone."
        )
    parts = {label: (table[key][own], COLOURS[label]) for label, key in _PARTS}
    bars, top = draw.stack(fig.vbar, ColumnDataSource({"rank": ranks}), parts, x="rank", width=1.0)
    for bar, (_, colour) in zip(bars, parts.values(), strict=True):
        if is_sparse:  # a rank among thousands is narrower than a pixel: its outline is not
            bar.glyph.update(line_color=colour, line_width=3)
    draw.count_along(fig.xaxis)
    draw.name_times(fig.yaxis, "time", top)
    fig.y_range = DataRange1d(start=0)
    draw.horizontal_legend(
        fig, [draw.legend_item(label, bar) for label, bar in zip(parts, bars, strict=True)]
    )
    return fig


def _heat_map(name: str, found: HeatMap) -> Column:
    shared = Range1d(start=0.0, end=max(len(found.read), 1) * found.bin_s)
    parts = [_bytes_by_rank(name, found, shared), _rate_over_time(name, found, shared)]
    return column(parts, sizing_mode="stretch_width", name="heat_map")


def _bytes_by_rank(name: str, found: HeatMap, shared: Range1d) -> figure:
    """Draw the bytes of each rank over time; the colour is stronger where more were moved."""
    shown = {op: grid for op, grid in (("write", found.row_written), ("read", found.row_read)) if grid.any()}
    rows = len(found.row_read)
    of = f", {found.ranks_per_row:,} ranks a row" if found.ranks_per_row > 1 else ""
    fig = draw.new_figure(
        f"Bytes moved by rank and time ({name}, from Darshan's heat map{of})",
        90 + min(12 * rows + 60, 300),
        x_range=shared,
        y_range=Range1d(start=rows * found.ranks_per_row - 0.5, end=-0.5),
        name="heat_map_ranks",
    )
    draw.count_along(fig.yaxis)
    draw.label_time_axis(fig)
    if not shown:
        draw.annotate_empty(fig, "no bytes moved")
        return fig
    assert isinstance(shared.end, float)
    data, top = mixed_image(list(shown.values()), 0.0, -0.5, shared.end, rows * found.ranks_per_row)
    add_mixed(fig, data, mixer(shown))
    most, bin_text = bytes_text(top), seconds_text(found.bin_s)
    draw.subtitle(fig, f"Full colour: {most} in {bin_text}.")
    draw.horizontal_legend(fig, swatches(fig, {op: op for op in shown}))
    return fig


def _rate_over_time(name: str, found: HeatMap, shared: Range1d) -> figure:
    fig = draw.new_figure(f"Data rate over time ({name}, from Darshan's heat map)", 240, x_range=shared)
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
        items.append(draw.legend_item(label, line))
        draw.add_hover(fig, line, [("time", "@x s"), (label, "@text")])
    draw.label_time_axis(fig)
    draw.name_axis(fig.yaxis, f"data rate ({unit_name}/s)", "0,0.[00]")
    draw.horizontal_legend(fig, items)
    return fig


class _Line(NamedTuple):
    label: str
    colour: str
    time_s: np.ndarray
    value: np.ndarray
    dash: str = "solid"


@of_several
def surroundings(data: Any, *, title: str | None = None, x_range: Range1d | None = None) -> Column:
    """Draw the samples of the kernel's counters over time.

    Three figures share a time axis: pages that wait to be written, the share of time in which tasks waited
    for I/O, and the bytes that the processes moved by their calls and from and to storage. A counter is known
    at samples, which are at least a second apart: amounts are points, joined by faint lines, and rates are
    steps, the mean between two samples. The figures say how many there are.
    """
    table = data if isinstance(data, SurroundingsTable) else _table_of(data)
    times = table.time
    shared = x_range or draw.time_range(
        int(times.min()) if len(times) else 0, int(times.max()) if len(times) else 0
    )
    nodes, tasks = (
        count_text(count_sampled(table, name), what)
        for name, what in (("dirty_bytes", "node"), ("written_by_calls", "task"))
    )
    pages = "Pages of all jobs that wait to be written to storage"
    head = title or (f"{pages}, on {nodes}" if len(times) else pages)
    figures = [
        _bytes_figure(head, "dirty_pages", _pages(table), shared, ""),
        _pressure_figure(table, shared),
        _bytes_figure(
            f"Bytes that {tasks} moved, by calls and from and to storage",
            "process_bytes",
            _moved(table),
            shared,
            "/s",
        ),
    ]
    drawn = [one for one in figures if one is not None]
    return column(drawn or [_empty(head, shared)], sizing_mode="stretch_width", name="surroundings")


def _table_of(data: Any) -> SurroundingsTable:
    if not hasattr(data, "surroundings"):
        raise TypeError(f"a run or its samples are needed, not {type(data).__name__}")
    table: SurroundingsTable = data.surroundings()
    return table


def _empty(title: str, x_range: Range1d) -> figure:
    fig = draw.new_figure(
        title, height=160, x_range=x_range, y_range=Range1d(start=0, end=1), name="dirty_pages"
    )
    draw.label_time_axis(fig)
    draw.annotate_empty(
        fig, "no samples: recorded with ENSIO_SURROUNDINGS=0, for a very short time, or by another tool"
    )
    return fig


def _pages(table: SurroundingsTable) -> list[_Line]:
    found = []
    for name, label, colour in (
        ("dirty_bytes", "dirty", COLOURS["write"]),
        ("writeback_bytes", "being written", COLOURS["sync"]),
        ("lustre_dirty_bytes", "dirty in the Lustre client", COLOURS["metadata"]),
    ):
        levels = sum_levels(table, name)
        if len(levels.time_ns) > 1:
            found.append(_Line(label, colour, levels.time_ns * 1e-9, levels.value))
    return found


def _moved(table: SurroundingsTable) -> list[_Line]:
    found = []
    for name, label, colour, dash in (
        ("write_bytes", "written, to be sent to storage", shade(COLOURS["write"], 1), "solid"),
        ("written_by_calls", "taken by write calls", COLOURS["write"], "dashed"),
        ("read_bytes", "fetched from storage", shade(COLOURS["read"], 1), "solid"),
        ("read_by_calls", "returned by read calls", COLOURS["read"], "dashed"),
    ):
        line = _rate_line(table, name, label, colour, 1.0, dash)
        found += [line] if line is not None and line.value.any() else []
    return found


def _pressure_figure(table: SurroundingsTable, x_range: Range1d) -> figure | None:
    lines = []
    for name, label, dash, colour in (
        ("some_us", "some task waited for I/O", "solid", "#555555"),
        ("full_us", "all tasks that were not idle waited", "dashed", SERIES[3]),
        ("cgroup_some_us", "some task of the job's cgroup waited", "dotted", COLOURS["metadata"]),
    ):
        nodes = max(count_sampled(table, name), 1)
        line = _rate_line(table, name, label, colour, 1e-6 / nodes, dash)
        lines += [line._replace(value=np.minimum(line.value, 1.0))] if line is not None else []
    if not lines:
        return None
    title = "I/O pressure: share of the time in which tasks of any job on the node waited for I/O"
    fig = _figure(title, "io_pressure", lines, x_range, 1.0, "")
    draw.name_axis(fig.yaxis, "share of the time", "0 %")
    fig.y_range = Range1d(start=0, end=1.08 * max(max(float(line.value.max()) for line in lines), 0.05))
    return fig


def _rate_line(
    table: SurroundingsTable, name: str, label: str, colour: str, scale: float, dash: str
) -> _Line | None:
    rates = sum_rates(table, name)
    if not len(rates.per_s):
        return None
    return _Line(label, colour, rates.edges_ns * 1e-9, scale * np.append(rates.per_s, rates.per_s[-1]), dash)


def _bytes_figure(title: str, name: str, lines: list[_Line], x_range: Range1d, per: str) -> figure | None:
    if not lines:
        return None
    top = max(float(line.value.max()) for line in lines)
    size, unit = byte_unit(max(top, 1024.0))
    fig = _figure(title, name, lines, x_range, size, unit + per)
    draw.name_axis(fig.yaxis, unit + per, "0,0.[000]")
    fig.y_range = Range1d(start=0, end=1.08 * max(top / size, 1e-3))
    return fig


def _figure(title: str, name: str, lines: list[_Line], x_range: Range1d, size: float, unit: str) -> figure:
    """Draw levels as the points that were sampled, and rates as steps between two samples."""
    count = max(len(line.time_s) for line in lines)
    fig = draw.new_figure(title, 210 if count > 5 else 175, x_range=x_range, name=name)
    draw.label_time_axis(fig)
    steps = name != "dirty_pages"
    items, hovered = [], []
    for line in lines:
        source = ColumnDataSource({"time": line.time_s, "value": line.value / size})
        style: dict[str, Any] = {"line_color": line.colour, "line_dash": line.dash}
        drawn: GlyphRenderer[Any]
        if steps:
            drawn = fig.step(x="time", y="value", mode="after", source=source, line_width=1.6, **style)
        else:
            # What was between two samples is not known: the line only joins what belongs together.
            drawn = fig.line(x="time", y="value", source=source, line_width=1, line_alpha=0.35, **style)
        samples = fig.scatter(
            x="time", y="value", source=source, size=4 if steps else 7, color=line.colour, alpha=0.9
        )
        items.append(draw.legend_item(line.label, drawn, samples))
        hovered.append((line.label, samples))
    draw.horizontal_legend(fig, items, click_policy="hide")
    draw.add_legend_buttons(fig)
    each = "a step is the mean between two" if steps else "known at the points, which lines only join"
    draw.subtitle(fig, f"{count_text(count, 'sample')} in {_span_text(lines)}: {each}")
    value = CustomJSHover(
        args={"unit": unit},
        code="return unit ? Number(value.toPrecision(4)).toLocaleString('en-US') + ` ${unit}`"
        " : (100 * value).toPrecision(3) + ' %';",
    )
    for label, samples in hovered:
        draw.add_hover(
            fig,
            samples,
            [("", label), ("time", "@time{at}"), ("value", "@value{0}")],
            formatters={"@value": value},
            description=f"Values: {label}",
        )
    return fig


def _span_text(lines: list[_Line]) -> str:
    first, last = (end(float(end(line.time_s)) for line in lines) for end in (min, max))
    return seconds_text(last - first)

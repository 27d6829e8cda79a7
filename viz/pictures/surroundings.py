"""Counters of the kernel around a program's I/O over time: dirty pages, I/O pressure, bytes moved."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from bokeh.layouts import column
from bokeh.models import Column, ColumnDataSource, CustomJSHover, HoverTool, NumeralTickFormatter, Range1d
from bokeh.models.renderers import GlyphRenderer
from bokeh.plotting import figure

from ensembles.model.surroundings import SurroundingsTable
from ensembles.model.units import count_text, seconds_text
from ensembles.structure.surroundings import count_sampled, sum_levels, sum_rates
from ensembles.viz.common.data_for import of_several
from ensembles.viz.common.figures import (
    add_legend_buttons,
    annotate_empty,
    horizontal_legend,
    label_time_axis,
    legend_item,
    new_figure,
    subtitle,
    time_range,
)
from ensembles.viz.common.style import COLOURS, SERIES, byte_unit, moment_hover, shade

_HEIGHT, _LOW, _FEW_SAMPLES = 210, 175, 5
"""Pixels of a figure, and of one with so few samples that it has no course to show."""


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
    shared = x_range or time_range(
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
    fig = new_figure(title, height=160, x_range=x_range, y_range=Range1d(start=0, end=1), name="dirty_pages")
    label_time_axis(fig)
    annotate_empty(
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
        ("write_bytes", "made dirty, to be written to storage", shade(COLOURS["write"], 1), "solid"),
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
    fig.yaxis.axis_label = "share of the time"
    fig.yaxis.formatter = NumeralTickFormatter(format="0 %")
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
    fig.yaxis.axis_label = unit + per
    fig.yaxis.formatter = NumeralTickFormatter(format="0,0.[000]")
    fig.y_range = Range1d(start=0, end=1.08 * max(top / size, 1e-3))
    return fig


def _figure(title: str, name: str, lines: list[_Line], x_range: Range1d, size: float, unit: str) -> figure:
    """Draw levels as the points that were sampled, and rates as steps between two samples."""
    count = max(len(line.time_s) for line in lines)
    fig = new_figure(title, _HEIGHT if count > _FEW_SAMPLES else _LOW, x_range=x_range, name=name)
    label_time_axis(fig)
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
        items.append(legend_item(line.label, drawn, samples))
        hovered.append((line.label, samples))
    horizontal_legend(fig, items, click_policy="hide")
    add_legend_buttons(fig)
    each = "a step is the mean between two" if steps else "known at the points, which lines only join"
    subtitle(fig, f"{count_text(count, 'sample')} in {_span_text(lines)}: {each}")
    value = CustomJSHover(
        args={"unit": unit},
        code="return unit ? Number(value.toPrecision(4)).toLocaleString('en-US') + ` ${unit}`"
        " : (100 * value).toPrecision(3) + ' %';",
    )
    for label, samples in hovered:
        fig.add_tools(
            HoverTool(
                renderers=[samples],
                description=f"Values: {label}",
                tooltips=[("", label), ("time", "@time{0}"), ("value", "@value{0}")],
                formatters={"@time": moment_hover(), "@value": value},
            )
        )
    return fig


def _span_text(lines: list[_Line]) -> str:
    first, last = (end(float(end(line.time_s)) for line in lines) for end in (min, max))
    return seconds_text(last - first)

"""Rates of several runs against the number of tasks, nodes or writers, with the spread of repeated runs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from bokeh.models import ColumnDataSource, FixedTicker, LinearAxis, NoOverlap, NumeralTickFormatter, Range1d
from bokeh.models.annotations import Span
from bokeh.plotting import figure

from ensembles.answers.scaling import By, Direction, Scaling, ScalingPoint, label_of
from ensembles.answers.scaling import scaling as compute_scaling
from ensembles.model.units import bytes_text, count_text
from ensembles.run.run import Run
from ensembles.viz.common import figures as draw
from ensembles.viz.common.style import NEUTRAL, byte_unit, op_colour, shade

_MARKERS = ("circle", "square", "triangle", "diamond")


def scaling(
    data: Any,
    *,
    op: Direction = "write",
    by: By = "tasks",
    maximum_bytes_per_s: float | None = None,
    title: str | None = None,
) -> figure:
    """Draw the rates of several runs against the number of tasks, nodes or writers.

    A line joins the medians of repeated runs, and a bar spans their rates from the lowest to the highest.
    Each layer and kind of files has a line. The right axis has the share of the maximum.

    Parameters
    ----------
    data : Scaling, or iterable of Run
        Runs with equal numbers, layer and files are repetitions.
    op : {"write", "read"}
        Direction of the data, of runs.
    by : {"tasks", "nodes", "writers"}
        Number on the horizontal axis, of runs.
    maximum_bytes_per_s : float, optional
        Rate that the file system can reach, of runs. Default: the highest rate of these runs.
    title : str, optional

    Returns
    -------
    figure

    Raises
    ------
    TypeError
        `data` has another type.
    EnsioError
        A run moved no bytes in this direction, or does not keep every call; or there are no runs.

    Examples
    --------
    >>> from ensembles import viz
    >>> figure = viz.scaling([en.open("ensio-ior")])
    >>> figure.title.text
    'Rate of bytes written, by the number of tasks'
    """
    found = data if isinstance(data, Scaling) else _computed(data, op, by, maximum_bytes_per_s)
    numbers = sorted({point.at for point in found.points})
    top = 1.08 * max(found.maximum_bytes_per_s, *(point.high_bytes_per_s for point in found.points))
    unit, unit_name = byte_unit(max(top, 1024.0))
    direction = "written" if found.direction == "write" else "read"
    counted = label_of(found.by, found.direction)
    fig = draw.new_figure(
        title or f"Rate of bytes {direction}, by the number of {counted}",
        360,
        x_range=Range1d(start=numbers[0] / 1.3, end=numbers[-1] * 1.3),
        y_range=Range1d(start=0, end=top / unit),
        x_axis_type="log",
        name="scaling",
    )
    fig.xaxis.axis_label = counted
    fig.xaxis.ticker = FixedTicker(ticks=numbers)
    fig.xaxis.formatter = NumeralTickFormatter(format="0,0")
    draw.name_axis(fig.yaxis, f"rate while files were open ({unit_name}/s)", "0,0.[00]")
    _add_shares(fig, top / found.maximum_bytes_per_s)
    items = []
    series: dict[tuple[str, str], list[ScalingPoint]] = {}
    for point in found.points:
        series.setdefault((point.layer, point.files), []).append(point)
    for place, ((layer, files), points) in enumerate(series.items()):
        colour = shade(op_colour(found.direction), place)
        label = f"{layer}, {_files_text(files)}"
        source = ColumnDataSource(_columns(points, label, unit))
        line = fig.line("at", "median", source=source, color=colour, line_width=2)
        fig.segment(
            "at",
            "low",
            "at",
            "high",
            source=source,
            color=colour,
            line_width=6,
            line_alpha=0.35,
            name="range",
        )
        dots = fig.scatter(
            "at", "median", source=source, color=colour, size=9, marker=_MARKERS[place % len(_MARKERS)]
        )
        draw.add_hover(
            fig,
            dots,
            [
                ("", "@label"),
                (counted, "@at{0,0}"),
                ("runs", "@runs"),
                ("median", "@median_text"),
                ("lowest to highest", "@range_text"),
                ("of the maximum", "@share{0.0 %}"),
                ("efficiency", "@efficiency{0.0 %}"),
            ],
        )
        items.append(draw.legend_item(draw.plain(label), line, dots))
    draw.horizontal_legend(fig, items)
    origin = "the highest of these runs" if found.maximum_is_measured else "as given"
    runs = count_text(sum(len(point.runs) for point in found.points), "run")
    draw.subtitle(
        fig,
        f"Dashed: the maximum, {_rate_text(found.maximum_bytes_per_s)}, {origin}. Bars: lowest to highest "
        f"rate of repeated runs; {runs} in all.",
    )
    for note in found.notes:
        draw.subtitle(fig, f"{note[0].upper()}{note[1:].rstrip('.')}.")
    return fig


def _computed(data: Any, op: Direction, by: By, maximum_bytes_per_s: float | None) -> Scaling:
    runs = list(data) if isinstance(data, Iterable) and not isinstance(data, Run | str) else [data]
    for run in runs:
        if not isinstance(run, Run):
            raise TypeError(f"runs or a Scaling are needed, not {type(run).__name__}")
    return compute_scaling(runs, op, by, maximum_bytes_per_s)


def _add_shares(fig: figure, share: float) -> None:
    """Add the maximum, and a right axis with shares of it."""
    fig.extra_y_ranges = {"share": Range1d(start=0, end=share)}
    axis = LinearAxis(
        y_range_name="share",
        axis_label="share of the maximum",
        axis_label_text_font_style="normal",
        minor_tick_line_color=None,
        major_label_policy=NoOverlap(min_distance=4),
    )
    fig.add_layout(axis, "right")
    fig.yaxis[1].formatter = NumeralTickFormatter(format="0 %")
    fig.add_layout(
        Span(
            location=1,
            dimension="width",
            y_range_name="share",
            line_color=NEUTRAL["line"],
            line_dash="dashed",
        )
    )


def _columns(points: list[ScalingPoint], label: str, unit: float) -> dict[str, list[Any]]:
    return {
        "label": [draw.plain(label)] * len(points),
        "at": [point.at for point in points],
        "runs": [len(point.runs) for point in points],
        "median": [point.median_bytes_per_s / unit for point in points],
        "low": [point.low_bytes_per_s / unit for point in points],
        "high": [point.high_bytes_per_s / unit for point in points],
        "median_text": [_rate_text(point.median_bytes_per_s) for point in points],
        "range_text": [
            f"{_rate_text(point.low_bytes_per_s)} to {_rate_text(point.high_bytes_per_s)}" for point in points
        ],
        "share": [point.share_of_maximum for point in points],
        "efficiency": [point.efficiency for point in points],
    }


def _files_text(files: str) -> str:
    """Name the kind of files that a series of runs wrote or read."""
    words = {"shared": "one shared file", "per task": "a file per task", "one": "one file of one task"}
    return words.get(files, f"{files} files")


def _rate_text(bytes_per_s: float) -> str:
    return f"{bytes_text(round(bytes_per_s))}/s"

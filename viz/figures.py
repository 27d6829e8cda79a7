"""What all figures have in common."""

from __future__ import annotations

import re
import textwrap
from datetime import datetime, timedelta
from typing import Any

import numpy as np
from bokeh.models import ContinuousTicker, DataRange1d, LogScale, Range, Range1d, WheelZoomTool
from bokeh.models.annotations import Legend, LegendItem, Title
from bokeh.models.renderers import GlyphRenderer
from bokeh.plotting import figure

from ensembles.ensemble.ensemble import Ensemble
from ensembles.viz.style import scaled_ticks, time_ticks, time_unit

LEFT_BORDER = 76
"""Room for the labels of the vertical axis, in pixels: the same everywhere, so that linked time axes are
aligned."""

RIGHT_BORDER = 18

_LINE = 120

_LEAST_SPAN_S = 1e-6


def new_figure(title: str, height: int, **options: Any) -> figure:
    """A figure that fills the width it gets.

    The wheel zooms with Ctrl held, so that a page with the figure can still be scrolled.
    """
    fig = figure(
        title=Title(text=title, text_font_size="11pt", text_font_style="bold"),
        height=height,
        sizing_mode="stretch_width",
        tools="pan,box_zoom,reset,save",
        active_drag="box_zoom",
        min_border_left=LEFT_BORDER,
        min_border_right=RIGHT_BORDER,
        **options,
    )
    wheel = WheelZoomTool(modifiers={"ctrl": True})
    fig.add_tools(wheel)
    fig.toolbar.active_scroll = wheel
    fig.toolbar.logo = None
    fig.toolbar.autohide = False
    fig.xgrid.grid_line_color = "#e6e6e6"
    fig.ygrid.grid_line_color = "#e6e6e6"
    fig.outline_line_color = "#999999"
    for axis in fig.axis:
        axis.axis_label_text_font_style = "normal"
        axis.minor_tick_line_color = None
    return fig


def retitle(fig: figure, title: str) -> None:
    """Change the title of a picture."""
    assert isinstance(fig.title, Title)
    fig.title.text = title


def ends(axis: Range) -> tuple[float, float]:
    """Start and end of what an axis of numbers shows."""
    if not isinstance(axis, Range1d | DataRange1d):
        raise TypeError(f"an axis of numbers is needed, not {type(axis).__name__}")
    return _number(axis.start), _number(axis.end)


def _number(end: float | datetime | timedelta) -> float:
    if isinstance(end, datetime | timedelta):
        raise TypeError("an axis of numbers is needed, not one of dates")
    return float(end)


def time_range(low_ns: int, high_ns: int) -> Range1d:
    """The time that a picture shows at first, in seconds.

    It begins with the run, unless all that happened lies far behind its beginning.
    """
    low, high = low_ns * 1e-9, high_ns * 1e-9
    if high_ns <= low_ns:
        return Range1d(start=0.0, end=1.0)
    pad = max(0.01 * (high - low), (_LEAST_SPAN_S - (high - low)) / 2)
    begin = low - pad if low < 0 or low > 0.3 * high else -pad
    return Range1d(start=begin, end=high + pad, min_interval=1e-9)


def label_time_axis(fig: figure) -> None:
    """Name a time axis and give its ticks the unit that suits the range it shows at first."""
    start, end = ends(fig.x_range)
    unit_s, name = time_unit(end - start)
    fig.xaxis.axis_label = f"time since the run began ({name})"
    fig.xaxis.formatter = scaled_ticks(unit_s)
    _want_ticks(fig, 10)


def label_duration_axis(fig: figure) -> None:
    """Name an axis of durations and give its ticks the unit that suits the range it shows at first."""
    unit_s, name = time_unit(ends(fig.x_range)[1])
    fig.xaxis.axis_label = f"duration of a call ({name})"
    fig.xaxis.formatter = scaled_ticks(unit_s)
    _want_ticks(fig, 10)


def _want_ticks(fig: figure, count: int) -> None:
    for axis in fig.xaxis:
        assert isinstance(axis.ticker, ContinuousTicker)
        axis.ticker.desired_num_ticks = count


def label_log_durations(fig: figure, ensemble: Ensemble) -> None:
    """Name a logarithmic axis of an ensemble's durations; each tick has its own unit."""
    what = "duration of a call" if ensemble.per == "call" else "time for each MiB"
    fig.xaxis.axis_label = f"{what} (unit at each tick)"
    fig.xaxis.formatter = time_ticks()


def ensemble_from(data: Any) -> Ensemble:
    """The ensemble itself, or that of all calls of a run or of events.

    Raises
    ------
    TypeError
        `data` is none of these.
    """
    if isinstance(data, Ensemble):
        return data
    if not hasattr(data, "ensemble"):
        raise TypeError(f"an ensemble, events or a run is needed, not {type(data).__name__}")
    return data.ensemble()


def legend_item(label: str, *drawn: GlyphRenderer[Any]) -> LegendItem:
    """An entry of a legend, which stands for what was drawn."""
    return LegendItem(label=label, renderers=list(drawn))


def horizontal_legend(fig: figure, items: list[LegendItem], **options: Any) -> None:
    """Put a legend above the picture, where it hides nothing."""
    legend = Legend(
        items=items,
        orientation="horizontal",
        border_line_color=None,
        padding=2,  # type: ignore[arg-type] # Bokeh's stubs know no plain number
        margin=0,
        spacing=14,
        label_text_font_size="10pt",
        **options,
    )
    fig.add_layout(legend, "above")


def subtitle(fig: figure, sentence: str) -> None:
    """Put a sentence between the title and the picture."""
    text = textwrap.fill(plain(sentence), _LINE)
    fig.add_layout(Title(text=text, text_font_style="normal", text_color="#666666"), "above")


def plain(text: str) -> str:
    """A text with names from a trace in it, without what Bokeh would take for mathematics."""
    return re.sub(r"[^\w .,:;()%+–-]", "?", text)


def annotate_empty(fig: figure, sentence: str) -> None:
    """Write in the middle of a picture, whose ranges are set, why there is nothing in it."""
    middle = [
        (start * end) ** 0.5 if isinstance(scale, LogScale) else (start + end) / 2
        for (start, end), scale in ((ends(fig.x_range), fig.x_scale), (ends(fig.y_range), fig.y_scale))
    ]
    fig.text(
        x=middle[:1],
        y=middle[1:],
        text=[sentence],
        text_align="center",
        text_baseline="middle",
        text_color="#666666",
        name="empty",
    )


def steps(values: np.ndarray) -> np.ndarray:
    """One value per cell as one per edge, for glyphs that draw a step after each edge."""
    return np.append(values, values[-1:])

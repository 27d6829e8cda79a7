"""Parts that all figures share: frames, axes, legends, subtitles.

Buttons for the entries of legends in notebooks, where no page makes them (viz/common/legend_keys.js).
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import Any

import numpy as np
from bokeh.events import MouseMove
from bokeh.layouts import column
from bokeh.models import (
    AdaptiveTicker,
    BasicTicker,
    Column,
    ColumnDataSource,
    ContinuousTicker,
    CustomJS,
    CustomJSHover,
    DataRange1d,
    HoverTool,
    InlineStyleSheet,
    LogTicker,
    Node,
    NoOverlap,
    NumeralTickFormatter,
    Plot,
    Range,
    Range1d,
    SaveTool,
    WheelZoomTool,
)
from bokeh.models.annotations import Label, Legend, LegendItem, Title
from bokeh.models.renderers import GlyphRenderer
from bokeh.models.widgets import Button
from bokeh.plotting import figure

from ensembles.ensemble.ensemble import Ensemble
from ensembles.viz.common.style import NEUTRAL, moment_hover, scaled_ticks, time_hover, time_ticks, time_unit

LEFT_BORDER = 76
"""Width of the labels of the vertical axis, in pixels; equal in all figures, to align linked time axes."""

_LINE = 82
_TITLE_LINE = 62
"""Characters in a line of text and of a title, which fit into a figure 700 pixels wide."""

_ENTRY_WIDTH, _CHARACTER_WIDTH = 48, 6.8
"""Pixels: what an entry of a legend takes besides its text, and a character of it."""

_UNIT = re.compile(
    r"(?<=\d) (?=(?:[nµm]?s|min|h|[KMGTPE]?i?B)\b|%)"  # 3 s, 5 %
    r"|(?<=[×<>≤≥]) (?=\d)"
    r"|(?<=\d h) (?=\d\d min)|(?<=\d min) (?=\d\d s)"  # 1 h 05 min
)

# Shift cannot choose the axis: with it, browsers report a turn of the wheel as one to the side.
_WHEEL_JS = """
    const wanted = cb_obj.x < times.start ? 'height' : 'width';
    if (wheel.dimensions !== wanted) wheel.setv({dimensions: wanted}, {sync: false});
"""

LABEL_GROUND: dict[str, Any] = {"background_fill_color": "#ffffff", "background_fill_alpha": 0.8}
"""Arguments of a text by which it can be read where lines and curves pass."""


def new_figure(title: str, height: int, **options: Any) -> figure:
    """Create a figure that fills the available width.

    The wheel zooms only while Ctrl is held, so that a page with the figure can be scrolled.
    """
    fig = figure(
        title=Title(text=_in_lines(title), text_font_size="11pt", text_font_style="bold"),
        height=height,
        sizing_mode="stretch_width",
        tools="pan,box_zoom,reset,save",
        active_drag="box_zoom",
        min_border_left=LEFT_BORDER,
        min_border_right=18,
        **options,
    )
    for tool in fig.tools:
        if isinstance(tool, SaveTool):
            tool.filename = f"ensio-{options.get('name', 'picture')}"
    wheel = WheelZoomTool(modifiers={"ctrl": True})
    fig.add_tools(wheel)
    fig.toolbar.active_scroll = wheel
    wider = {
        "least": 760,  # pixels of a frame that has longer lines, and legends with more columns
        "title_px": 8.6,
        "text_px": 6.8,
        "character_px": _CHARACTER_WIDTH,
        "entry_px": _ENTRY_WIDTH,
    }
    fig.js_on_change("inner_width", CustomJS(args=wider, code=_wide_js()))
    fig.border_line_color = None  # a white one shows on dark pages
    speak_title(fig)
    fig.toolbar.logo = None
    fig.toolbar.autohide = False
    fig.xgrid.grid_line_color = NEUTRAL["grid"]
    fig.ygrid.grid_line_color = NEUTRAL["grid"]
    fig.outline_line_color = NEUTRAL["frame"]
    for axis in fig.axis:
        axis.axis_label_text_font_style = "normal"
        axis.minor_tick_line_color = None
        axis.major_label_policy = NoOverlap(min_distance=4)
        if isinstance(axis.ticker, LogTicker):
            # Below two decades, Bokeh's six ticks are at equal steps: the lower half of the axis has none.
            axis.ticker.desired_num_ticks = 12
            shown = fig.x_range if axis in fig.xaxis else fig.y_range
            if isinstance(shown, Range1d) and ends(shown)[1] >= 100 * ends(shown)[0]:
                # Over several decades only their ends have labels: small ticks at twice, three times, ….
                axis.ticker.num_minor_ticks = 10
                axis.minor_tick_line_color = NEUTRAL["line"]
                axis.minor_tick_out = 3
    return fig


@cache
def _wide_js() -> str:
    """Return the program for wide figures without comments and indentation: each figure has a copy."""
    lines = files("ensembles.viz").joinpath("common/wide.js").read_text(encoding="utf-8").splitlines()
    return "\n".join(line.strip() for line in lines if not line.strip().startswith("//"))


def zoom_time_by_wheel(fig: figure, times: Range1d) -> None:
    """Let the wheel zoom time inside a picture, and the other axis beside it."""
    wheel = fig.toolbar.active_scroll
    assert isinstance(wheel, WheelZoomTool)
    wheel.dimensions = "width"
    fig.js_on_event(MouseMove, CustomJS(args={"wheel": wheel, "times": times}, code=_WHEEL_JS))


def retitle(fig: figure, title: str, line: int = _TITLE_LINE) -> None:
    """Change the title of a figure, in lines of so many characters."""
    assert isinstance(fig.title, Title)
    fig.title.text = _in_lines(title, line)
    speak_title(fig)


def _in_lines(title: str, line: int = _TITLE_LINE) -> str:
    """Break a title into lines that a narrow figure shows whole, but not between a number and its unit."""
    return "\n".join(textwrap.wrap(keep_units(title), line, break_long_words=False, break_on_hyphens=False))


def keep_units(text: str) -> str:
    """Return a text in which no line ends between a number and its unit, or a sign and its number."""
    return _UNIT.sub("\u00a0", text)


def characters_beside(labels: Iterable[str]) -> tuple[int, int]:
    """Return the characters of a line of text, and of a title, beside such labels of the vertical axis.

    Long labels make the border wider, and titles begin where it ends.
    """
    # Pixels: ticks and name of the axis, a page, its tools; of a character of a label, a text, a title.
    border = max(LEFT_BORDER, 30 + 6.3 * max(map(len, labels), default=0))
    width = 650 - border - 58
    return min(_LINE, int(width / 6.25)), min(_TITLE_LINE, int(width / 7.6))


def ends(axis: Range) -> tuple[float, float]:
    """Return start and end of a numeric axis."""
    if not isinstance(axis, Range1d | DataRange1d):
        raise TypeError(f"a numeric axis is needed, not {type(axis).__name__}")
    return _number(axis.start), _number(axis.end)


def _number(end: float | datetime | timedelta) -> float:
    if isinstance(end, datetime | timedelta):
        raise TypeError("a numeric axis is needed, not one of dates")
    return float(end)


def time_range(low_ns: int, high_ns: int) -> Range1d:
    """Return the initial range of a time axis, in seconds.

    It starts with the run, unless all calls are much later.
    """
    low, high = low_ns * 1e-9, high_ns * 1e-9
    if high_ns <= low_ns:
        return Range1d(start=0.0, end=1.0)
    pad = max(0.01 * (high - low), (1e-6 - (high - low)) / 2)
    begin = low - pad if low < 0 or low > 0.3 * high else -pad
    return Range1d(start=begin, end=high + pad, min_interval=1e-9)


def add_hover(
    fig: figure,
    drawn: Any,
    tooltips: Sequence[tuple[str, str]],
    formatters: Mapping[str, CustomJSHover] = MappingProxyType({}),
    **options: Any,
) -> HoverTool:
    """Add boxes of values to a renderer, to several, or to all (None).

    A field that ends in ``{s}`` is a duration in seconds, in ``{at}`` a moment of a run.
    """
    known: dict[str, Any] = dict(formatters)
    for kind, make in (("{s}", time_hover), ("{at}", moment_hover)):
        fields = {name for _, text in tooltips for name in re.findall(rf"([@$]\w+){re.escape(kind)}", text)}
        if fields:
            known |= dict.fromkeys(sorted(fields), make())
    if drawn is not None:
        options["renderers"] = list(drawn) if isinstance(drawn, Sequence) else [drawn]
    tool = HoverTool(tooltips=list(tooltips), formatters=known, **options)
    fig.add_tools(tool)
    return tool


def add_intervals(fig: figure, columns: Mapping[str, Any], what: str, level: float) -> ColumnDataSource:
    """Draw medians and intervals of predictions below each other, with a legend; return their source.

    `columns`: ``y``, ``label``, ``low``, ``median``, ``high`` in seconds, and ``colour``.
    """
    source = ColumnDataSource(dict(columns))
    at: dict[str, Any] = {"x0": "low", "x1": "high", "y0": "y", "y1": "y"}
    bar = fig.segment(**at, source=source, line_color="colour", line_width=6, line_alpha=0.5)
    look: dict[str, Any] = {"size": 9, "fill_color": "colour", "line_color": NEUTRAL["text"]}
    point = fig.scatter(x="median", y="y", source=source, name="predictions", **look)
    horizontal_legend(fig, [legend_item(f"median and {100 * level:g} % interval", point, bar)])
    boxes = [(what, "@label"), ("median", "@median{s}"), ("interval", "@low{s} – @high{s}")]
    add_hover(fig, [bar, point], boxes, visible=False)
    return source


def add_marks(fig: figure, places: Sequence[float], top: float, bottom: float = 0.0, **look: Any) -> Any:
    """Draw upright lines over the height of a figure."""
    count = len(places)
    return fig.segment(x0=places, x1=places, y0=[bottom] * count, y1=[top] * count, **look)


def stack(
    draw: Callable[..., GlyphRenderer[Any]],
    source: ColumnDataSource,
    parts: Mapping[str, tuple[np.ndarray, str]],
    **look: Any,
) -> tuple[list[GlyphRenderer[Any]], float]:
    """Draw bars on each other, of each part its heights and its colour; return them, and the highest end.

    `draw`: a method of a figure, such as ``vbar``. The source gets a column ``NAME above`` for each part.
    """
    drawn: list[GlyphRenderer[Any]] = []
    bottom: float | str = 0.0
    end = np.zeros(1)
    for name, (heights, colour) in parts.items():
        top, end = f"{name} above", end + heights
        source.data[top] = end
        drawn.append(draw(bottom=bottom, top=top, source=source, fill_color=colour, line_color=None, **look))
        bottom = top
    return drawn, float(end.max())


def name_axis(axis: Any, text: str, numbers: str) -> None:
    """Name an axis, with a format of the numbers at its ticks."""
    axis.axis_label, axis.formatter = text, NumeralTickFormatter(format=numbers)


def name_times(axis: Any, what: str, span_s: float, per: str = "") -> None:
    """Name an axis of times in seconds, in a unit that suits a time span."""
    unit_s, unit = time_unit(span_s)
    axis.axis_label, axis.formatter = f"{what} ({unit}{per})", scaled_ticks(unit_s)


def count_along(axis: Any, what: str = "rank") -> None:
    """Name an axis of whole numbers, such as ranks."""
    name_axis(axis, what, "0")
    axis.ticker = BasicTicker(min_interval=1, num_minor_ticks=0)


def label_time_axis(fig: figure, span_s: float | None = None) -> None:
    """Label a time axis, in a unit that suits a time span, by default its initial range."""
    start, end = ends(fig.x_range)
    name_times(fig.xaxis, "time since the start of the run", end - start if span_s is None else span_s)
    _want_ticks(fig, 10)


def label_duration_axis(fig: figure) -> None:
    """Label an axis of durations, in a unit that suits its initial range."""
    name_times(fig.xaxis, "call duration", ends(fig.x_range)[1])
    _want_ticks(fig, 10)


def label_summed_time(fig: figure, what: str, most_s: float) -> None:
    """Label an axis of times in seconds that are summed over tasks, which may be days: then in hours."""
    unit_s, unit = time_unit(most_s)
    if most_s >= 10 * 3600:
        unit_s, unit = 3600.0, "h"
        # Half an hour, one, two, and ten times as many.
        fig.xaxis.ticker = AdaptiveTicker(base=10, mantissas=[1.8, 3.6, 7.2], num_minor_ticks=0)
        fig.xgrid.ticker = fig.xaxis.ticker
    fig.xaxis.axis_label = f"{what} ({unit})"
    fig.xaxis.formatter = scaled_ticks(unit_s)


def _want_ticks(fig: figure, count: int) -> None:
    for axis in fig.xaxis:
        assert isinstance(axis.ticker, ContinuousTicker)
        axis.ticker.desired_num_ticks = count


def label_log_durations(fig: figure, ensemble: Ensemble) -> None:
    """Label a logarithmic axis of the durations of an ensemble; each tick has a unit."""
    what = "call duration" if ensemble.per == "call" else "duration per MiB"
    fig.xaxis.axis_label = f"{what} (unit at each tick)"
    fig.xaxis.formatter = time_ticks()


def ensemble_from(data: Any) -> Ensemble:
    """Return an ensemble unchanged, or the ensemble of all calls of a run or of events."""
    if isinstance(data, Ensemble):
        return data
    if not hasattr(data, "ensemble"):
        raise TypeError(f"an ensemble, events or a run is needed, not {type(data).__name__}")
    ensemble: Ensemble = data.ensemble()
    return ensemble


def legend_item(label: str, *drawn: GlyphRenderer[Any]) -> LegendItem:
    """Create a legend entry for one or several renderers."""
    return LegendItem(label=label, renderers=list(drawn))


def _legend_columns(widths: list[float]) -> int:
    """Return the most columns of entries of these widths, row by row, that fit into a narrow figure."""
    for columns in range(len(widths), 1, -1):
        if sum(max(widths[first::columns]) for first in range(columns)) <= 590:  # pixels of a row
            return columns
    return 1


def _grow(fig: figure, pixels: int) -> None:
    """Make a figure higher by what is written above it, so that the drawing keeps its height."""
    assert fig.height is not None
    fig.height += pixels


def _text_of(item: LegendItem) -> str:
    return str(getattr(item.label, "value", item.label))


def horizontal_legend(fig: figure, items: list[LegendItem], **options: Any) -> None:
    """Add a legend above the figure, where it covers no data, in as many rows as a narrow figure needs."""
    columns = _legend_columns([_CHARACTER_WIDTH * len(_text_of(item)) + _ENTRY_WIDTH for item in items])
    row_px = 25
    _grow(fig, row_px * (-(-len(items) // columns) - 1))
    legend = Legend(
        items=items,
        orientation="horizontal",
        ncols=columns,
        border_line_color=None,
        padding=(2, 2, 6, 2),  # type: ignore[arg-type] # Bokeh's stubs lack plain numbers
        margin=0,
        spacing=9,
        glyph_height=15,
        label_height=15,
        label_text_font_size="10pt",
        **options,
    )
    fig.add_layout(legend, "above")


def subtitle(fig: figure, sentence: str, line: int = _LINE) -> None:
    """Add a sentence between the title and the figure, in lines of so many characters."""
    text = textwrap.fill(keep_units(plain(sentence)), line, break_on_hyphens=False)
    line_px = 18
    _grow(fig, line_px * (text.count("\n") + 1))
    fig.add_layout(Title(text=text, text_font_style="normal", text_color=NEUTRAL["weak"]), "above")
    speak_title(fig)


def sentence_of(note: str) -> str:
    """Return a note as a sentence."""
    return f"{note[:1].upper()}{note[1:].rstrip('.')}."


def say_what_is_left_out(fig: figure, ensemble: Ensemble) -> None:
    """Say below the title of a figure which calls of a run are not in the ensemble that it shows."""
    for note in ensemble.left_out:
        subtitle(fig, sentence_of(note))


def speak_title(fig: figure) -> None:
    """Give a figure its titles as the label for screen readers, wherever it is shown.

    The division of a report has them already: `ensembles.viz.report.drawing.embed_pictures` takes them out.
    """
    label = ". ".join(titles_of(fig))
    fig.html_attributes = {**fig.html_attributes, "role": "figure", "aria-label": label}


def titles_of(fig: Plot) -> list[str]:
    """Return the title of a figure and the sentences below it, without their ends."""
    # The sentence that was added last is the highest.
    titles = [fig.title, *(part for part in reversed(fig.above) if isinstance(part, Title))]
    texts = [" ".join(str(getattr(title, "text", title)).split()) for title in titles if title is not None]
    return [text.rstrip(".:") for text in texts if text]


def plain(text: str) -> str:
    """Replace characters of a text that Bokeh would interpret as mathematics."""
    return re.sub(r"[^\w .,:;()%+/=×<→–-]", "?", text)


def empty_picture(title: str, why: str, name: str, first: str) -> Column:
    """Return a picture of nothing, which says why; `first` is the name of its figure."""
    nothing = {axis: Range1d(start=0, end=1) for axis in ("x_range", "y_range")}
    fig = new_figure(title, 200, **nothing, name=first)
    annotate_empty(fig, why)
    return column([fig], sizing_mode="stretch_width", name=name)


def annotate_empty(fig: figure, sentence: str, *, x_axis: bool = False) -> None:
    """Write in the middle of an empty figure why it is empty.

    Its axes are hidden; `x_axis` keeps that of a figure which shares it with others.
    """
    # In the middle of the frame and not at a place of the axes, which a zoom moves.
    middle = Node(target="frame", symbol="center")
    text = Label(
        x=middle,
        y=middle,
        text=textwrap.fill(sentence, _TITLE_LINE),
        text_align="center",
        text_baseline="middle",
        text_color=NEUTRAL["weak"],
        name="empty",
    )
    fig.add_layout(text)
    fig.grid.visible = False
    fig.yaxis.visible = False
    fig.xaxis.visible = x_axis


def cells_of_time(edges_ns: np.ndarray) -> dict[str, np.ndarray]:
    """Return edges of cells as columns ``left`` and ``right`` in seconds; the last cell has no right edge.

    They have single precision where it is a thousandth of a cell, which halves them in a page.
    """
    edges_s: np.ndarray = edges_ns * 1e-9
    short = edges_s.astype(np.float32)
    if len(edges_s) > 1 and (np.abs(short - edges_s) < 1e-3 * np.diff(edges_s).min()).all():
        edges_s = short
    return {"left": edges_s, "right": np.append(edges_s[1:], edges_s.dtype.type(np.nan))}


def steps(values: np.ndarray) -> np.ndarray:
    """Repeat the last value, because step glyphs need one value for each edge.

    The result has single precision, finer than any screen: it is half as long in a page.
    """
    return np.append(values, values[-1:]).astype(np.float32)


def add_steps(
    fig: figure,
    source: ColumnDataSource,
    colour: str,
    y: str,
    *,
    x: str = "t",
    base: float = 0,
    alpha: float = 0.3,
    width: float = 2,
) -> tuple[GlyphRenderer[Any], GlyphRenderer[Any]]:
    """Draw a column over the edges of bins, as an area and its outline."""
    look: dict[str, Any] = {"x": x, "source": source}
    area = fig.varea_step(y1=base, y2=y, step_mode="after", fill_color=colour, fill_alpha=alpha, **look)
    return area, fig.step(y=y, mode="after", line_color=colour, line_width=width, **look)


_TAG = "entry of a legend"

_SEEN_WITH_FOCUS = """
:host { position: absolute; left: 0; top: 0; z-index: 10; }
:host(:not(:focus-within)) { width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }
"""

_CLICK_JS = """
    const visible = !renderers.some((each) => each.visible);
    for (const each of renderers) each.visible = visible;
"""


def add_legend_buttons(fig: figure) -> None:
    """Give the entries of a figure's legends to the keyboard: each has a button, seen while it has the focus.

    Bokeh draws legends on a canvas, which no key reaches.
    """
    items = [item for legend in fig.legend if legend.click_policy == "hide" for item in legend.items]
    fig.elements = [*fig.elements, *(_button(item) for item in items if isinstance(item, LegendItem))]


def _button(item: LegendItem) -> Button:
    # Numbers that follow the name may change with what is in view.
    name = str(getattr(item.label, "value", item.label)).partition(":")[0]
    button = Button(
        label=f"show or hide {name}", tags=[_TAG], stylesheets=[InlineStyleSheet(css=_SEEN_WITH_FOCUS)]
    )
    button.js_on_event("button_click", CustomJS(args={"renderers": item.renderers}, code=_CLICK_JS))
    return button


def is_legend_button(model: Any) -> bool:
    """Whether something is a button of a legend."""
    return isinstance(model, Button) and _TAG in model.tags

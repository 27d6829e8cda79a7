"""The trace diagram of the explorer: marked calls keep their colours, and a close window has single calls."""

from __future__ import annotations

from math import ceil
from typing import Any, Literal

import numpy as np
from bokeh.models import BoxSelectTool, ColumnDataSource, CustomJS, Range1d, WeightedStackColorMapper
from bokeh.models.annotations import BoxAnnotation
from bokeh.models.renderers import GlyphRenderer
from bokeh.plotting import figure

from ensembles.model.events import Events
from ensembles.model.units import count_text, seconds_text
from ensembles.summaries.raster import CLASSES, Raster, share_image
from ensembles.viz.common import figures as draw
from ensembles.viz.common.mixed import EMPHASIS, add_mixed, mixer, opacities, swatches
from ensembles.viz.common.single_calls import (
    Window,
    add_calls,
    call_columns,
    has_lanes_of_threads,
    nested_layers,
)
from ensembles.viz.common.style import LABELS
from ensembles.viz.explorer.calls import Calls
from ensembles.viz.explorer.shown import Shown
from ensembles.viz.explorer.view import Chosen, Interval, View

PALE = 0.18
"""Opacity of what is not marked."""

_PLACES = ("image", "x", "y", "dw", "dh")
_SIDES = ("left", "right", "bottom", "top")

# The change of a rectangle at once, which moves all ends together; of several, as of a wheel, the last too.
_WINDOW_JS = """
    const now = performance.now();
    if (!(now - source.last_ms < 300)) source.first_ms = now;
    source.last_ms = now;
    clearTimeout(source.waiting);
    source.waiting = setTimeout(() => {
        source.data = {x: [x_range.start, x_range.end], y: [y_range.start, y_range.end]};
    }, now - source.first_ms < 15 ? 15 : 120);
"""


class TraceDiagram:
    """The trace diagram, on which a rectangle marks calls; marked calls keep their colours.

    `window`: the page writes the ranges of the axes into it, as ``x`` and ``y``, some time after their last
    change.
    """

    def __init__(self, shown: Shown, calls: Calls, times: Range1d, name: str = "explorer_trace") -> None:
        self._calls_of, self._times = calls, times
        self._tasks = shown.run.tasks
        self.classes = _classes_of(calls) or ["write"]
        self._whole_s = draw.ends(times)
        times.tags = list(self._whole_s)  # keys move and zoom within them (keys.js)
        rows = Range1d(start=self._tasks - 0.5, end=-0.5, bounds=(-0.5, self._tasks - 0.5), min_interval=1)
        self.figure = draw.new_figure(
            "",
            int(np.clip(130 + 26 * self._tasks, 200, 460)),
            x_range=times,
            y_range=rows,
            name=name,
        )
        self._rows = rows
        draw.count_along(self.figure.yaxis)
        self.figure.grid.visible = False
        draw.label_time_axis(self.figure)
        self._of = self._what = ""
        self._were_whole: set[Interval] = set()
        self._images: list[GlyphRenderer[Any]] = []
        self._all, self._mapper = self._add(opacities(power=EMPHASIS))
        self._marked, _ = self._add(marked_alphas())
        self._calls, self._info = ColumnDataSource(call_columns(Events.empty())), shown.run.info
        add_calls(self.figure, self._calls, self._info)
        self._chosen = ColumnDataSource({name: [] for name in _SIDES}, name=f"{name}_chosen")
        self.figure.quad(
            left="left",
            right="right",
            bottom="bottom",
            top="top",
            source=self._chosen,
            fill_alpha=0,
            line_color="black",
            line_width=3,
        )
        self._box = BoxAnnotation(fill_alpha=0, line_color="black", line_dash="dashed", visible=False)
        self.figure.add_layout(self._box)
        add_box_select(self.figure, "both")
        draw.zoom_time_by_wheel(self.figure, times)
        self.window = ColumnDataSource({"x": [], "y": []}, name=f"{name}_window")
        watch = CustomJS(
            args={"source": self.window, "x_range": times, "y_range": rows},
            code=_WINDOW_JS,
        )
        for axis in (times, rows):
            axis.js_on_change("start", watch)
            axis.js_on_change("end", watch)
        labels = {name: short_label(name) for name in self.classes}
        draw.horizontal_legend(self.figure, swatches(self.figure, labels))

    def _add(self, alphas: list[str]) -> tuple[ColumnDataSource, WeightedStackColorMapper]:
        source, mapper = ColumnDataSource(_no_image()), mixer(self.classes, alphas)
        tell_new_opacity(mapper)
        self._images.append(add_mixed(self.figure, source, mapper))
        return source, mapper

    def _image(self, raster: Raster, first: int, view: View, pixels: int) -> dict[str, Any]:
        """Return the image of a raster, whose cells and rows are at least a pixel wide and high in a view."""
        if raster.cell_ns == 0 or len(raster.edges_ns) < 2:
            return _no_image()
        low_s, high_s = view.zoom_s or self._whole_s
        top, bottom = view.zoom_ranks or (-0.5, self._tasks - 0.5)
        assert self.figure.height is not None
        joined_cells = ceil((high_s - low_s) * 1e9 / pixels / raster.cell_ns)
        joined_rows = ceil((bottom - top) / (self.figure.height - 120) / raster.ranks_per_row)
        image = share_image(raster, self.classes, max(joined_rows, 1), max(joined_cells, 1))
        rows, cells = image.shares.shape[:2]
        return {
            "image": [image.shares],
            "x": [raster.edges_ns[0] * 1e-9],
            "y": [first - 0.5],
            "dw": [cells * image.cell_ns * 1e-9],
            "dh": [rows * image.ranks_per_row],
        }

    @property
    def shares(self) -> np.ndarray | None:
        """Shares of time that are drawn, of uint8 and shape (rows, cells, classes); None: no image."""
        images: Any = self._all.data["image"]
        return images[0] if len(images) else None

    def is_of(self, calls: Calls) -> bool:
        """Whether the legend has all classes of these calls."""
        return set(_classes_of(calls)) <= set(self.classes)

    def replace(self, calls: Calls) -> None:
        """Take other calls of the same run, as while it goes on; `show` draws them."""
        self._calls_of = calls
        low, high = calls.raster().extent_ns
        before, following = self._whole_s, self._times.end == self._whole_s[1]
        self._whole_s = (before[0], max(self._whole_s[1], high * 1e-9 + 0.01 * (high - low) * 1e-9))
        self._times.tags = list(self._whole_s)
        if following:
            # The page may report the window of before after the run has become longer. That is not a zoom.
            self._were_whole.add((round(before[0], 9), round(before[1], 9)))
            self._times.end = self._whole_s[1]

    def window_of(self, data: dict[str, Any]) -> tuple[Interval | None, Interval | None]:
        """Return the times and rows that the page shows; None: all of them."""
        if len(data["x"]) < 2 or len(data["y"]) < 2:
            return None, None
        low, high = sorted(map(float, data["x"]))
        top, bottom = sorted(map(float, data["y"]))
        whole = self._whole_s[1] - self._whole_s[0]
        times: Interval | None = round(low, 9), round(max(high, low + 1e-9), 9)
        # A window of nearly all is the whole.
        if high - low >= 0.995 * whole or times in self._were_whole:
            times = None
        rows = None if bottom - top >= 0.995 * self._tasks else (round(top, 3), round(bottom, 3))
        return times, rows

    def zoom(self, view: View) -> None:
        """Set the axes to the window of a view."""
        times = view.zoom_s or self._whole_s
        top, bottom = view.zoom_ranks or (-0.5, self._tasks - 0.5)
        for axis, wanted in ((self._times, times), (self._rows, (bottom, top))):
            if draw.ends(axis) != wanted:
                axis.update(start=wanted[0], end=wanted[1])

    def show(self, marked: Calls | None, view: View) -> None:
        """Show a view.

        `marked`: the marked calls; None: no call is marked, and all have their colours.
        """
        calls, window = self._calls_of, self.window_in(view)
        # Pixels of the axis of time for which images are made.
        for source, some, pixels in ((self._all, calls, 1200), (self._marked, marked, 560)):
            if some is None:
                source.data = _no_image()
                continue
            raster, first = (some.raster(), 0)
            if window is not None:
                raster, first = some.window(window.wider(self._tasks)).drawn
            source.data = self._image(raster, first, view, pixels)
        part, drawn = self._single_calls(window)
        alpha: float | np.ndarray = 1.0
        if marked is not None and len(drawn):
            alpha = np.where(_same_calls(drawn, marked.window(part).events), 1.0, PALE)
        layers = nested_layers(drawn)
        low_s, high_s = view.zoom_s or self._whole_s
        self._calls.data = call_columns(drawn, alpha, layers=layers, info=self._info, span_s=high_s - low_s)
        self._outline(view.chosen)
        for image in self._images:
            image.visible = not len(drawn)
        self._mapper.alpha_mapper.palette = opacities(1.0 if marked is None else PALE, EMPHASIS)
        self._box.visible = view.time_s is not None or view.ranks is not None
        self._box.left, self._box.right = view.time_s or self._whole_s
        top, bottom = view.ranks or (0, self._tasks - 1)
        self._box.top, self._box.bottom = top - 0.5, bottom + 0.5
        further = "point at a call" if len(drawn) else "zoom in to see single calls"
        if not len(drawn) and calls.hides_inner:
            further += "; calls inside others: Layers above each other"
        if len(drawn) and has_lanes_of_threads(drawn):
            further += "; each thread has a lane"
        if layers:
            further += f"; in each row, {' above '.join(layers)}"
        self._what = f"drag to mark calls, {further}{self._said(window, marked)}"
        self._retitle()

    def _retitle(self) -> None:
        draw.retitle(self.figure, f"Trace diagram{self._of}: {self._what}")

    def _outline(self, call: Chosen | None) -> None:
        """Outline a call: its rectangle, or, where single calls are not drawn, its part of the row."""
        if call is None:
            self._chosen.data = {name: [] for name in _SIDES}
            return
        rank, start_s, duration_s, _ = call
        drawn = self._calls.data
        left, right = (np.asarray(drawn[side], np.float64) for side in ("left", "right"))
        bottom = np.asarray(drawn["bottom"], np.float64)
        found = np.flatnonzero(
            (np.abs(bottom - rank) <= 0.5)
            & (np.abs(left - start_s) < 1e-9)
            & (np.abs(right - start_s - duration_s) < 2e-9)
        )
        if len(found):
            self._chosen.data = {name: [float(drawn[name][found[0]])] for name in _SIDES}
            return
        sides = (start_s, start_s + duration_s, rank - 0.5, rank + 0.5)
        self._chosen.data = {name: [side] for name, side in zip(_SIDES, sides, strict=True)}

    def _said(self, window: Window | None, marked: Calls | None) -> str:
        """Say in what cells a window is drawn of which the calls have not been read."""
        if window is None:
            return ""
        wider = window.wider(self._tasks)
        drawn = [(self._all, self._calls_of), *([] if marked is None else [(self._marked, marked)])]
        for source, calls in drawn:
            why, image = calls.window(wider).missing, source.data["image"]
            if why and len(image):
                rows, cells = image[0].shape[:2]
                width = seconds_text(source.data["dw"][0] / cells)
                tasks = round(source.data["dh"][0] / rows)
                return f"; in cells of {width} × {count_text(tasks, 'rank')}: calls are {why}"
        return ""

    def _single_calls(self, window: Window | None) -> tuple[Window, Events]:
        """Find the calls to draw one by one: those of the window and around it, or none if they are many."""
        low, high = (round(end * 1e9) for end in self._whole_s)
        whole = Window(low - 1, high + 1, 0, self._tasks - 1)
        if window is None:
            few = 0 < self._calls_of.count <= 200
            return whole, self._calls_of.window(whole).events if few else Events.empty()
        for part in (window.wider(self._tasks), window):
            found = self._calls_of.window(part)
            if len(found.events) or found.missing:
                break
        return part, found.events

    @property
    def span_s(self) -> float:
        """Length of the axis of time, if all of it is shown."""
        return self._whole_s[1] - self._whole_s[0]

    def name_run(self, name: str) -> None:
        """Write the name of the run into the title, where there are two."""
        self._of = f" of {name}"
        self._retitle()

    def window_in(self, view: View) -> Window | None:
        """Return what a view shows of the run; None: all of it."""
        if view.zoom_s is None and view.zoom_ranks is None:
            return None
        low, high = view.zoom_s or self._whole_s
        top, bottom = view.zoom_ranks or (-0.5, self._tasks - 0.5)
        first = int(np.clip(np.floor(top + 0.5), 0, self._tasks - 1))
        last = int(np.clip(np.ceil(bottom - 0.5), first, self._tasks - 1))
        return Window(int(np.floor(low * 1e9)), int(np.ceil(high * 1e9)), first, last)


def _classes_of(calls: Calls) -> list[str]:
    """Return the classes of calls, also of those inside others, which are drawn when they are marked."""
    present = {*calls.raster().present(), *calls.durations()}
    return [name for name in CLASSES if name in present]


def tell_new_opacity(mapper: WeightedStackColorMapper) -> None:
    """Have the page draw its images anew when the opacities change, which Bokeh does for the colours only."""
    code = "mapper.change.emit()"
    mapper.alpha_mapper.js_on_change("palette", CustomJS(args={"mapper": mapper}, code=code))


def short_label(name: str) -> str:
    """Return the name of a class of operations in the legends of the explorer."""
    return LABELS[name] if "wait" in name else name


def _same_calls(events: Events, others: Events) -> np.ndarray:
    """Return which calls are among others of the same run: bool, shape (n,)."""
    names = ("rank", "thread", "start", "duration", "call", "depth")
    mine, known = (
        zip(*(getattr(each, name).tolist() for name in names), strict=True) for each in (events, others)
    )
    found = set(known)
    return np.array([call in found for call in mine], bool)


def _no_image() -> dict[str, Any]:
    return {name: [] for name in _PLACES}


def marked_alphas(least: float = 0.45) -> list[str]:
    """Opacity by share of marked calls: those that fill the least part of a pixel can be seen too."""
    shares = np.arange(1, 256) / 255
    opacities = least + (1 - least) * shares**0.6
    return ["#00000000", *(f"#000000{round(255 * each):02x}" for each in opacities.tolist())]


def add_box_select(fig: figure, dimensions: Literal["width", "both"]) -> None:
    """Add the tool that marks by dragging, and make it the first one."""
    # Without renderers it selects nothing in the page, where bars that it left out would stay pale.
    tool = BoxSelectTool(dimensions=dimensions, continuous=False, renderers=[])
    fig.add_tools(tool)
    fig.toolbar.active_drag = tool

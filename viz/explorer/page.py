"""The document of the explorer: linked pictures and tables of the calls of a run.

The same document is served by `ensembles.viz.explorer.server`, and shown in notebooks by
`ensembles.viz.explorer.widget`.
"""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np
from bokeh.document import Document
from bokeh.events import Event, Reset, SelectionGeometry
from bokeh.layouts import column, row
from bokeh.models import (
    BasicTicker,
    BoxSelectTool,
    ColumnDataSource,
    CustomJS,
    ImageStack,
    LinearColorMapper,
    NumeralTickFormatter,
    Range1d,
    WeightedStackColorMapper,
)
from bokeh.models.annotations import BoxAnnotation
from bokeh.models.widgets import (
    Button,
    DataTable,
    Div,
    HTMLTemplateFormatter,
    NumberFormatter,
    Select,
    TableColumn,
    TextInput,
)
from bokeh.plotting import figure

from ensembles.model.errors import EnsioError
from ensembles.model.events import Events
from ensembles.model.units import seconds_text
from ensembles.run.run import Run
from ensembles.summaries.raster import CLASSES, Raster
from ensembles.viz.explorer.shown import Shown, by_rank, durations_by_class, slowest_calls
from ensembles.viz.explorer.view import FILTERS, View
from ensembles.viz.figures import horizontal_legend, legend_item, new_figure, time_range
from ensembles.viz.raster_images import share_image
from ensembles.viz.rate import rate
from ensembles.viz.style import COLOURS, scaled_ticks, time_ticks, time_unit

_PALE = 0.18
_HEIGHT = 380

_TIME_CELL = """<span><%
    const [unit, name] = value >= 1 || value == 0 ? [1, 's'] : value >= 1e-3 ? [1e-3, 'ms']
        : value >= 1e-6 ? [1e-6, 'µs'] : [1e-9, 'ns'];
    print(Number((value / unit).toPrecision(4)) + ' ' + name);
%></span>"""

_LINK_JS = """
    const old = new URLSearchParams(window.location.search);
    const query = new URLSearchParams(source.data.query[0]);
    if (old.has('token')) query.set('token', old.get('token'));
    const text = query.toString();
    window.history.replaceState(null, '', window.location.pathname + (text ? '?' + text : ''));
"""

_HINTS = {
    "op": "write",
    "call": "pread,pwrite",
    "layer": "posix",
    "file": "*/restart.*",
    "rank": "0-63",
    "size": "1MiB..4MiB",
    "time": "10..20",
    "phase": "3",
    "ordinal": "4-8",
}


class Explorer:
    """The explorer of several runs, in one document.

    Parameters
    ----------
    runs : sequence of Shown
        Read once, and shared by all documents.
    view : View
        What is shown first.
    in_page : bool
        The page is the explorer's, and its address becomes the link of the view.

    Attributes
    ----------
    view : View
        What is shown now.
    layout : LayoutDOM
        What is added to a document.
    texts : ColumnDataSource
        The texts to copy; added to the document too.
    """

    def __init__(self, runs: Sequence[Shown], view: View, *, in_page: bool = True) -> None:
        self.runs = runs
        self.view = view
        self._link = ColumnDataSource({"query": [view.query()]}, name="link")
        if in_page:
            self._link.js_on_change("data", CustomJS(args={"source": self._link}, code=_LINK_JS))
        self._message = Div(name="message", sizing_mode="stretch_width")
        self._found = Div(name="found", sizing_mode="stretch_width")
        self._call = Div(name="call", sizing_mode="stretch_width")
        self.texts = ColumnDataSource({"command": [""], "python": [""]}, name="texts")
        numbered: list[str | tuple[Any, str]] = [
            (str(number), shown.run.path) for number, shown in enumerate(runs)
        ]
        self._run = Select(
            title="run",
            options=numbered,
            value=str(view.run),
            name="run",
            width=220,
        )
        self._run.on_change("value", self._choose_run)
        self._inputs = {
            name: TextInput(
                title=name,
                value=view.filters.get(name, ""),
                placeholder=_HINTS[name],
                width=110,
                name=f"filter_{name}",
            )
            for name in FILTERS
        }
        for name, field in self._inputs.items():
            field.on_change("value", self._filter(name))
        clear = Button(label="Clear the marked calls", name="clear", width=170)
        clear.on_click(self._clear)
        self._modes = Button(label="Modes of the marked calls", name="modes", width=190)
        self._modes.on_click(self._show_modes)
        self._of_modes = Div(name="of_modes", sizing_mode="stretch_width")
        self._slowest, self._slowest_source = _table(
            "slowest",
            [
                ("rank", "rank", None, 60),
                ("call", "call", None, 100),
                ("start_s", "start", _TIME_CELL, 90),
                ("duration_s", "duration", _TIME_CELL, 90),
                ("moved_bytes", "bytes moved", "0,0", 100),
                ("offset_bytes", "offset", "0,0", 130),
                ("file", "file", None, 300),
            ],
        )
        self._ranks, self._ranks_source = _table(
            "by_rank",
            [
                ("rank", "rank", None, 60),
                ("calls", "calls", "0,0", 70),
                ("time_s", "time in calls", _TIME_CELL, 100),
                ("slowest_s", "slowest call", _TIME_CELL, 100),
            ],
        )
        self._pictures = column(sizing_mode="stretch_width", name="pictures")
        self.layout = column(
            row(self._run, *self._inputs.values(), sizing_mode="stretch_width", styles={"flex-wrap": "wrap"}),
            self._message,
            self._pictures,
            row(clear, self._modes, *_copy_buttons(self.texts), styles={"flex-wrap": "wrap"}),
            self._found,
            self._of_modes,
            self._call,
            row(
                column(_heading("Slowest calls"), self._slowest, min_width=640, sizing_mode="stretch_width"),
                column(_heading("Ranks, most I/O time first"), self._ranks, width=350),
                sizing_mode="stretch_width",
                styles={"flex-wrap": "wrap"},
            ),
            sizing_mode="stretch_width",
            name="explorer",
        )
        self._draw()

    @property
    def shown(self) -> Shown:
        """The run that is shown."""
        return self.runs[self.view.run]

    def look(self, view: View) -> None:
        """Show another view; if it is not valid, say why and keep the one before."""
        before, self.view = self.view, view
        try:
            if (before.run, before.filters) != (view.run, view.filters):
                self._draw()
            else:
                self._mark()
        except EnsioError as error:
            self.view = before
            self._say(str(error))

    def _say(self, sentence: str) -> None:
        self._message.text = (
            f'<p role="alert" style="color:#b00020">{html.escape(sentence)}</p>' if sentence else ""
        )

    def _choose_run(self, attribute: str, old: str, new: str) -> None:
        self.look(View(run=int(new), filters=self.view.filters))

    def _filter(self, name: str) -> Any:
        def changed(attribute: str, old: str, new: str) -> None:
            filters = {key: text for key, text in {**self.view.filters, name: new.strip()}.items() if text}
            self.look(replace(self.view, filters=filters))

        return changed

    def _clear(self) -> None:
        self.look(replace(self.view, time_s=None, ranks=None, durations_s=None))

    def _draw(self) -> None:
        """Draw everything, of the calls that the filters select."""
        events = self.shown.filtered(self.view)
        raster = self.shown.raster(events)
        times = time_range(*raster.extent_ns)
        self._diagram = TraceDiagram(raster, times)
        self._diagram.figure.on_event(SelectionGeometry, self._mark_rectangle)
        self._histogram = Durations(events)
        self._histogram.figure.on_event(SelectionGeometry, self._mark_durations)
        for fig in (self._diagram.figure, self._histogram.figure):
            fig.on_event(Reset, lambda _: self._clear())
        rates = rate(events, title="Rate of all tasks", x_range=times)
        rates.height = 220
        self._pictures.children = [self._diagram.figure, rates, self._histogram.figure]
        self._mark()

    def _mark(self) -> None:
        """Show the marked calls in every picture and table."""
        texts = {
            "command": [self.view.command(self.shown.run.path)],
            "python": [self.view.python(self.shown.run.path)],
        }
        events = self.shown.marked(self.view)
        marked = self.view.is_marked
        self._diagram.mark(self.shown.raster(events) if marked else None, self.view)
        self._histogram.mark(events if marked else None, self.view)
        self._slowest_source.data = slowest_calls(events)
        self._ranks_source.data = by_rank(events)
        self._found.text = f"<p>{html.escape(_sentence(events, self.shown, marked))}</p>"
        self._of_modes.text = ""
        self.texts.data = texts
        style = "white-space:pre-wrap;overflow-wrap:anywhere"
        self._call.text = "".join(
            f'<pre style="{style}">{html.escape(text[0])}</pre>' for text in texts.values()
        )
        self._link.data = {"query": [self.view.query()]}
        self._say(" ".join([*self.shown.notes, *self.shown.run.notes]))

    def _mark_rectangle(self, event: Event) -> None:
        assert isinstance(event, SelectionGeometry)
        box: Any = event.geometry
        if not event.final or not box or box["type"] != "rect":
            return
        low, high = sorted((box["x0"], box["x1"]))
        first, last = sorted((box["y0"], box["y1"]))
        ranks = (max(0, round(first)), min(self.shown.run.tasks - 1, round(last)))
        if ranks[0] <= ranks[1]:
            self.look(
                replace(self.view, time_s=(round(low, 9), round(high, 9)), ranks=ranks, durations_s=None)
            )

    def _mark_durations(self, event: Event) -> None:
        assert isinstance(event, SelectionGeometry)
        box: Any = event.geometry
        if not event.final or not box or box["type"] != "rect":
            return
        low, high = sorted((box["x0"], box["x1"]))
        self.look(
            replace(self.view, time_s=None, ranks=None, durations_s=(max(0.0, round(low, 9)), round(high, 9)))
        )

    def _show_modes(self) -> None:
        try:
            modes = self.shown.marked(self.view).ensemble().modes()
        except (EnsioError, ValueError) as error:
            self._of_modes.text = f"<p>{html.escape(str(error))}</p>"
            return
        self._of_modes.text = f"<pre>{html.escape(str(modes))}</pre>"


class TraceDiagram:
    """The trace diagram, on which a rectangle marks calls; marked calls keep their colours.

    Parameters
    ----------
    raster : Raster
        Of the calls that the filters select.
    times : Range1d
        The axis of time.
    """

    def __init__(self, raster: Raster, times: Range1d) -> None:
        self._present = raster.present() or ["write"]
        tasks = raster.tasks
        self.figure = new_figure(
            "Trace diagram: draw a rectangle to mark calls",
            int(np.clip(130 + 26 * tasks, 200, 460)),
            x_range=times,
            y_range=Range1d(start=tasks - 0.5, end=-0.5, bounds=(-0.5, tasks - 0.5)),
            name="explorer_trace",
        )
        self.figure.yaxis.axis_label = "rank"
        self.figure.yaxis.ticker = BasicTicker(min_interval=1, num_minor_ticks=0)
        self.figure.yaxis.formatter = NumeralTickFormatter(format="0,0")
        self.figure.grid.visible = False
        unit_s, name = time_unit(raster.extent_ns[1] * 1e-9)
        self.figure.xaxis.axis_label = f"time since the start of the run ({name})"
        self.figure.xaxis.formatter = scaled_ticks(unit_s)
        self._all, self._mapper = self._add(raster)
        self._marked, _ = self._add(None)
        self._box = BoxAnnotation(fill_alpha=0, line_color="black", line_dash="dashed", visible=False)
        self.figure.add_layout(self._box)
        _add_box_select(self.figure, "both")
        items = []
        for name in self._present:
            swatch = self.figure.quad(
                left=[np.nan],
                right=[np.nan],
                bottom=[np.nan],
                top=[np.nan],
                color=COLOURS[name],
                line_color=None,
            )
            items.append(legend_item(name, swatch))
        horizontal_legend(self.figure, items)

    def _add(self, raster: Raster | None) -> tuple[ColumnDataSource, WeightedStackColorMapper]:
        source = ColumnDataSource(self._image(raster))
        mapper = WeightedStackColorMapper(
            palette=[COLOURS[name] for name in self._present],
            color_baseline=0,
            nan_color="#ffffff00",
            alpha_mapper=LinearColorMapper(palette=_alphas(1.0), low=0, high=255),
        )
        glyph = ImageStack(image="image", x="x", y=-0.5, dw="dw", dh="dh", color_mapper=mapper)
        self.figure.add_glyph(source, glyph)
        return source, mapper

    def _image(self, raster: Raster | None) -> dict[str, Any]:
        if raster is None or raster.cell_ns == 0 or len(raster.edges_ns) < 2:
            return {"image": [], "x": [], "dw": [], "dh": []}
        image = share_image(raster, self._present)
        rows, cells = image.shares.shape[:2]
        return {
            "image": [image.shares],
            "x": [raster.edges_ns[0] * 1e-9],
            "dw": [cells * image.cell_ns * 1e-9],
            "dh": [rows * image.ranks_per_row],
        }

    def mark(self, raster: Raster | None, view: View) -> None:
        """Show which calls are marked; None: no call is marked, and all have their colours."""
        self._marked.data = self._image(raster)
        self._mapper.alpha_mapper.palette = _alphas(1.0 if raster is None else _PALE)
        self._box.visible = view.time_s is not None or view.ranks is not None
        if view.time_s is not None:
            self._box.left, self._box.right = view.time_s
        if view.ranks is not None:
            self._box.top, self._box.bottom = view.ranks[0] - 0.5, view.ranks[1] + 0.5


class Durations:
    """The histogram of durations, on logarithmic axes, on which a range of durations marks calls.

    Parameters
    ----------
    events : Events
        The calls that the filters select.
    """

    def __init__(self, events: Events) -> None:
        counted = durations_by_class(events)
        low = min((max(edges[0], 0.5e-9) for edges, _ in counted.values()), default=1e-6)
        high = max((edges[-1] for edges, _ in counted.values()), default=1.0)
        top = max((int(counts.max()) for _, counts in counted.values()), default=1)
        self.figure = new_figure(
            "Durations: drag over a peak to mark its calls",
            _HEIGHT,
            x_range=Range1d(start=low / 1.5, end=high * 1.5),
            y_range=Range1d(start=0.5, end=2.0 * max(top, 5)),
            x_axis_type="log",
            y_axis_type="log",
            name="explorer_histogram",
        )
        self.figure.xaxis.axis_label = "call duration (unit at each tick)"
        self.figure.xaxis.formatter = time_ticks()
        self.figure.yaxis.axis_label = "calls per bin (9 % wide)"
        self.figure.yaxis.formatter = NumeralTickFormatter(format="0,0")
        items = []
        self._marked = {}
        for name in CLASSES:
            if name not in counted:
                continue
            line = self.figure.quad(
                source=ColumnDataSource(_bars(*counted[name])),
                left="left",
                right="right",
                top="top",
                bottom=0.5,
                fill_color=COLOURS[name],
                fill_alpha=0.25,
                line_color=COLOURS[name],
                name=f"all_{name}",
            )
            source = ColumnDataSource({"left": [], "right": [], "top": []})
            self.figure.quad(
                source=source,
                left="left",
                right="right",
                top="top",
                bottom=0.5,
                color=COLOURS[name],
                line_color=None,
                name=f"marked_{name}",
            )
            self._marked[name] = source
            items.append(legend_item(f"{name} ({int(counted[name][1].sum()):,})", line))
        self._box = BoxAnnotation(
            fill_alpha=0.06, fill_color="black", line_color="black", line_dash="dashed", visible=False
        )
        self.figure.add_layout(self._box)
        _add_box_select(self.figure, "width")
        horizontal_legend(self.figure, items)

    def mark(self, events: Events | None, view: View) -> None:
        """Show the durations of the marked calls, filled; None: no call is marked."""
        counted = {} if events is None else durations_by_class(events)
        for name, source in self._marked.items():
            source.data = _bars(*counted[name]) if name in counted else {"left": [], "right": [], "top": []}
        self._box.visible = view.durations_s is not None
        if view.durations_s is not None:
            self._box.left, self._box.right = view.durations_s


def add_explorer(document: Document, runs: Sequence[Shown], query: Mapping[str, str]) -> Explorer:
    """Add the explorer to a document.

    Parameters
    ----------
    document : Document
    runs : sequence of Shown
    query : mapping of str to str
        Parameters of the link. If they are not valid, the whole first run is shown, and the page says why.

    Returns
    -------
    Explorer
    """
    try:
        explorer = Explorer(runs, View.from_query(query, len(runs)))
    except EnsioError as error:
        explorer = Explorer(runs, View())
        explorer._say(str(error))
    document.title = "ensio explorer"
    document.add_root(explorer.layout)
    # Models without a place on the page: the link and the texts to copy.
    document.add_root(explorer._link)
    return explorer


def shown_runs(runs: Run | Sequence[Run]) -> list[Shown]:
    """Read the calls of one or several runs."""
    return [Shown(run) for run in ([runs] if isinstance(runs, Run) else runs)]


def _sentence(events: Events, shown: Shown, marked: bool) -> str:
    what = "marked" if marked else "shown"
    if not len(events):
        return f"No call is {what}."
    ranks = len(np.unique(events.rank))
    low, middle, high = np.quantile(events.duration, [0, 0.5, 1], method="inverted_cdf") * 1e-9
    return (
        f"{len(events):,} calls are {what}, of {ranks:,} of {shown.run.tasks:,} ranks, from "
        f"{seconds_text(int(events.start.min()) * 1e-9)} to {seconds_text(int(events.end.max()) * 1e-9)}. "
        f"Durations: {seconds_text(low)} to {seconds_text(high)}, median {seconds_text(middle)}."
    )


def _bars(edges_s: np.ndarray, counts: np.ndarray) -> dict[str, np.ndarray]:
    used = np.flatnonzero(counts)
    return {"left": np.maximum(edges_s[used], 0.5e-9), "right": edges_s[used + 1], "top": counts[used]}


def _alphas(most: float) -> list[str]:
    """Opacity by share: small shares are enhanced, so that short calls remain visible."""
    return [f"#000000{round(255 * most * (share / 255) ** 0.4):02x}" for share in range(256)]


def _add_box_select(fig: figure, dimensions: Literal["width", "both"]) -> None:
    tool = BoxSelectTool(dimensions=dimensions, continuous=False)
    fig.add_tools(tool)
    fig.toolbar.active_drag = tool


def _heading(text: str) -> Div:
    return Div(text=f"<strong>{text}</strong>")


def _table(name: str, columns: list[tuple[str, str, str | None, int]]) -> tuple[DataTable, ColumnDataSource]:
    made = []
    for field, title, how, width in columns:
        given: dict[str, Any] = {"field": field, "title": title, "width": width}
        if how == _TIME_CELL:
            given["formatter"] = HTMLTemplateFormatter(template=how)
        elif how is not None:
            given["formatter"] = NumberFormatter(format=how)
        made.append(TableColumn(**given))
    source = ColumnDataSource({field: [] for field, *_ in columns})
    table = DataTable(
        source=source,
        columns=made,
        index_position=None,
        reorderable=False,
        height=280,
        sizing_mode="stretch_width",
        name=name,
    )
    return table, source


def _copy_buttons(texts: ColumnDataSource) -> list[Button]:
    buttons = []
    for field, label in (("command", "Copy as command"), ("python", "Copy as Python")):
        button = Button(label=label, name=f"copy_{field}", width=140)
        code = "navigator.clipboard.writeText(texts.data[field][0]);"
        button.js_on_click(CustomJS(args={"texts": texts, "field": field}, code=code))
        buttons.append(button)
    return buttons

"""The linked pictures of one run in the explorer; the keys of the one that has the focus."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from importlib.resources import files
from typing import Any, Protocol

from bokeh.events import Event, Reset, SelectionGeometry
from bokeh.models import CustomJS, LayoutDOM, Range1d, Ticker
from bokeh.models.annotations import Legend, Title
from bokeh.models.widgets import Select
from bokeh.plotting import figure

from ensembles.model.units import bytes_text
from ensembles.viz.common.figures import label_time_axis
from ensembles.viz.common.style import time_unit
from ensembles.viz.explorer.calls import Calls
from ensembles.viz.explorer.diagram import TraceDiagram
from ensembles.viz.explorer.pictures import Durations, Offsets, Rates
from ensembles.viz.explorer.sentences import sentence_of
from ensembles.viz.explorer.shown import Shown
from ensembles.viz.explorer.view import View, end_of, rounded

Look = Callable[..., None]

_AUTOMATIC = "with most bytes, or of the marked or chosen calls"


class Shows(Protocol):
    """What parts of the page need of the explorer that they belong to (`ensembles.viz.explorer.page`)."""

    runs: Sequence[Shown]
    view: View
    layout: LayoutDOM
    _panels: list[Panel]

    @property
    def shown(self) -> Shown: ...

    def look(self, view: View, *, from_page: bool = False) -> None: ...


class Panel:
    """Trace diagram, rates, durations and offsets of a run, of the calls that a view shows.

    `calls`: the calls that the filters select.
    `marked`: the marked calls; None: no mark.
    """

    def __init__(
        self, shown: Shown, view: View, times: Range1d, look: Look, beside: Panel | None = None
    ) -> None:
        self.shown, self._look, self._is_second = shown, look, beside is not None
        self.calls = shown.calls(view)
        self.marked: Calls | None = None
        self.file_choice: Select | None = None
        more = "_beside" if beside is not None else ""
        self.diagram = TraceDiagram(shown, self.calls, times, f"explorer_trace{more}")
        compared = None if beside is None else beside.rates
        self.rates: Rates = Rates(self.calls, times, f"explorer_rates{more}", compared)
        self.durations: Durations = Durations(
            self.calls,
            f"explorer_histogram{more}",
            None if beside is None else beside.durations,
            view.per_byte,
        )
        ticker = next(iter(self.rates.figures.values())).xaxis[0].ticker
        assert isinstance(ticker, Ticker)
        self._ticker = self.diagram.figure.xaxis.ticker = ticker
        self._times, self._more = times, more
        self._unit = time_unit(self.diagram.span_s)
        self._draw_offsets()
        self.diagram.figure.on_event(SelectionGeometry, self._mark_rectangle)
        self.durations.figure.on_event(SelectionGeometry, self._mark_durations)
        self.diagram.window.on_change("data", self._zoomed)
        for fig in self.rates.figures.values():
            fig.xaxis.ticker = ticker
        for fig in (self.diagram.figure, *self.rates.figures.values(), self.durations.figure):
            fit_when_narrow(fig)
            fig.on_event(Reset, lambda _: self._look(_reset))
        take_keys(self.diagram.figure, "time", "ranks")
        take_keys(self.durations.figure, "durations", "calls")
        for fig in self.rates.figures.values():
            take_keys(fig, "time")

    def _draw_offsets(self, file: str | None = None) -> None:
        self.offsets = Offsets(self.calls, self._times, f"explorer_offsets{self._more}", file)
        if self.offsets.figure is not None:
            fit_when_narrow(self.offsets.figure)
            label_time_axis(self.offsets.figure, self.diagram.span_s)
            self.offsets.figure.xaxis.ticker = self._ticker
            self.offsets.figure.on_event(SelectionGeometry, self._mark_offsets)
            self.offsets.figure.on_event(Reset, lambda _: self._look(_reset))
            take_keys(self.offsets.figure, "time", "offsets")

    @property
    def of_marked(self) -> Calls:
        """The marked calls; if none is marked, those that the filters select."""
        return self.calls if self.marked is None else self.marked

    @property
    def figures(self) -> list[figure]:
        """The pictures, from top to bottom."""
        rates = self.rates.figures.values()
        some = [self.diagram.figure, *rates, self.offsets.figure, self.durations.figure]
        return [fig for fig in some if fig is not None]

    def mark(self, view: View) -> bool:
        """Show the marked calls in every picture."""
        self.marked = self.shown.marked_calls(view)
        is_other = self.show_window(view)
        self.durations.mark(self.marked, view)
        return is_other

    def _file_of(self, view: View) -> str:
        """Return the file whose offsets are shown."""
        found, path = self.calls.access_map()
        if found is None:
            return path
        marked = self.marked
        named = [view.file, "" if view.chosen is None else view.chosen.file]
        if marked is not None and marked.count and not marked.moves_bytes_in(found.file):
            named.append(marked.busiest_file())
        return next((file for file in named if file and self.calls.has_map_of(file)), path)

    def show_window(self, view: View) -> bool:
        """Show the window of a view in the trace diagram, the rates and the offsets."""
        file = self._file_of(view)
        is_other = file != self.offsets.path
        if is_other:
            self._draw_offsets(file)
        self.offsets.show(self.marked, view)
        self.rates.show(self.marked, view.zoom_s)
        # Asked for last, the calls of the diagram are read first.
        self.diagram.show(self.marked, self._own(view))
        if self.file_choice is not None:
            self.file_choice.value = view.file if view.file == file else ""
        return is_other

    def choose_file(self) -> Select | None:
        """Return the choice of the file of the offsets, with the files so far; None: there is one."""
        found = self.calls.access_map()[0]
        files = {} if found is None else self.calls.files_by_bytes(found.layer)
        if len(files) < 2:
            return self.file_choice
        options: list[str | tuple[Any, str]] = [("", _AUTOMATIC)]
        options += [(path, f"{end_of(path, 60)}: {bytes_text(moved)}") for path, moved in files.items()]
        if self.file_choice is None:
            self.file_choice = Select(
                title="offsets in file", options=options, name=f"offsets_file{self._more}", width=560
            )
            self.file_choice.on_change("value", self._chose_file)
        elif self.file_choice.options != options:
            self.file_choice.options = options
        return self.file_choice

    def _chose_file(self, attribute: str, old: str, new: str) -> None:
        if new or old == self.offsets.path:
            self._look(lambda view: replace(view, file=new))

    def shows_all_but_window(self, view: View) -> bool:
        """Whether only the window can have changed, of a run that is read in the background."""
        return self.shown.calls(view) is self.calls and self.shown.marked_calls(view) is self.marked

    def renew(self, view: View) -> bool:
        """Take the calls that came since, of a run that goes on; there may be one picture more then."""
        calls = self.shown.calls(view)
        if calls is self.calls:
            return True
        if not self.diagram.is_of(calls) or not self.durations.replace(calls):
            return False
        if not self.rates.replace(calls):
            return False
        self.calls = calls
        self.diagram.replace(calls)
        self._label_times()
        if self.offsets.figure is not None:
            return self.offsets.replace(calls)
        self._draw_offsets()
        return True

    def _label_times(self) -> None:
        """Label the axes of time anew, if the run has become so long that another unit suits it."""
        unit = time_unit(self.diagram.span_s)
        if unit == self._unit:
            return
        self._unit = unit
        for fig in self.figures:
            if fig.x_range is self._times and fig.xaxis[0].axis_label is not None:
                label_time_axis(fig, self.diagram.span_s)
                fig.xaxis.ticker = self._ticker

    def _own(self, view: View) -> View:
        """Return the view with the rows of this run; only those of the first one are in the view."""
        if not self._is_second:
            return view
        rows = self.diagram.window_of(dict(self.diagram.window.data))[1]
        return replace(view, zoom_ranks=rows, chosen=None)

    def _zoomed(self, attribute: str, old: Any, new: Any) -> None:
        times, rows = self.diagram.window_of(new)
        if self._is_second:
            self._look(lambda view: replace(view, zoom_s=times), from_page=True)
        else:
            self._look(lambda view: replace(view, zoom_s=times, zoom_ranks=rows), from_page=True)

    def sentence(self, view: View, several: bool) -> str:
        """Describe the calls that are marked, or selected, and what is in view."""
        window = self.diagram.window_in(self._own(view))
        return sentence_of(self.shown, self.of_marked, view, window, several)

    def notes(self, view: View, several: bool) -> list[str]:
        """Return what the page says first: what is missing, and why there is nothing to see."""
        found = [*self.shown.notes, *self.shown.run.notes]
        if not self.calls.count and not self.calls.reading:
            found.append(self.sentence(view, several))
        return found

    def _mark_rectangle(self, event: Event) -> None:
        box = _rectangle(event)
        if box is None:
            return
        low, high = sorted((box["x0"], box["x1"]))
        first, last = sorted((box["y0"], box["y1"]))
        ranks = (max(0, round(first)), min(self.shown.run.tasks - 1, round(last)))
        if ranks[0] <= ranks[1]:
            self._look(lambda view: view.marking(time_s=rounded(low, high), ranks=ranks))

    def _mark_durations(self, event: Event) -> None:
        box = _rectangle(event)
        if box is None:
            return
        low, high = sorted((box["x0"], box["x1"]))
        marks = self.durations.range(low, high)
        self._look(lambda view: view.marking(**marks))

    def _mark_offsets(self, event: Event) -> None:
        box = _rectangle(event)
        if box is not None:
            self._look(lambda view: self.offsets.rectangle(view, box))


def _reset(view: View) -> View:
    return replace(view.marking(), zoom_s=None, zoom_ranks=None)


def _rectangle(event: Event) -> dict[str, Any] | None:
    assert isinstance(event, SelectionGeometry)
    box: Any = event.geometry
    return box if event.final and box and box["type"] == "rect" else None


# As `viz/common/figures.py` does it for 700 pixels: pixels of a character of a title, and of a legend; room
# beside the text of an entry; pixels of a row of each.
_FIT_JS = """
    const available = fig.outer_width - 60;
    if (!(available > 0)) return;
    if (fig.wide_title == null || fig.title.text !== fig.narrow_title) fig.wide_title = fig.title.text;
    let title = '';
    const most = Math.max(...fig.wide_title.split('\\n').map((line) => line.length));
    const fits = Math.floor((available - 75) / 8.2);
    if (fits >= most) title = fig.wide_title;
    else {
        let line = 0;
        for (const word of fig.wide_title.split(/[ \\n]+/)) {
            const breaks = line > 0 && line + 1 + word.length > fits;
            title += (line === 0 ? '' : breaks ? '\\n' : ' ') + word;
            line = breaks || line === 0 ? word.length : line + 1 + word.length;
        }
    }
    const lines = (text) => text.split('\\n').length;
    let more = 18 * (lines(title) - lines(fig.wide_title));
    fig.narrow_title = title;
    if (fig.title.text !== title) fig.title.setv({text: title}, {sync: false});
    for (const legend of legends) {
        legend.wide ??= legend.ncols;
        const widths = legend.items.map((item) => 7.2 * `${item.label?.value ?? ''}`.length + 35);
        let columns = legend.wide;
        const width = () => {
            const widest = Array(columns).fill(0);
            widths.forEach((each, at) => { widest[at % columns] = Math.max(widest[at % columns], each); });
            return widest.reduce((sum, each) => sum + each, 0);
        };
        while (columns > 1 && width() > available) columns -= 1;
        const rows = (each) => Math.ceil(widths.length / each);
        more += 24 * (rows(columns) - rows(legend.wide));
        if (legend.ncols !== columns) legend.setv({ncols: columns}, {sync: false});
    }
    fig.wide_height ??= fig.height;
    const height = fig.wide_height + more;
    if (fig.height !== height) fig.setv({height}, {sync: false});
"""


def fit_when_narrow(fig: figure) -> None:
    """Break title and legend of a figure where the page is too narrow for them.

    The page does so when its width changes, and when the title does.
    """
    legends = [each for each in fig.above if isinstance(each, Legend)]
    fit = CustomJS(args={"fig": fig, "legends": legends}, code=_FIT_JS)
    fig.js_on_change("outer_width", fit)
    assert isinstance(fig.title, Title)
    fig.title.js_on_change("text", fit)


def take_keys(fig: figure, along: str, across: str = "") -> None:
    """Let a figure have the focus, and say which keys it then takes (``keys.js``).

    `across`: what its vertical axis has; empty: no key changes it.
    """
    words, keys = f"+ − zoom, ← → move ({along})", "Plus - ArrowLeft ArrowRight 0 Home"
    if across:
        words += f"; ↑ ↓ move, Shift with ↑ ↓ zooms ({across})"
        keys += " ArrowUp ArrowDown Shift+ArrowUp Shift+ArrowDown"
    fig.html_attributes = {
        **fig.html_attributes,
        "tabindex": "0",
        "aria-keyshortcuts": keys,
        "aria-description": f"Keys: {words}; 0 or Home: all.",
    }


def keys_program() -> str:
    """Return the programs that act on keys and on widths: they define ``explorerKeys`` and ``fitRows``."""
    folder = files("ensembles.viz.explorer")
    return "".join(folder.joinpath(name).read_text(encoding="utf-8") for name in ("keys.js", "rows.js"))

"""The arrangement of the explorer's page: pictures, headings and buttons.

Fields of the explorer for marks and window, which a rectangle of the mouse sets too.
"""

from __future__ import annotations

import html
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from bokeh.layouts import column, row
from bokeh.models import Column, ColumnDataSource, CustomJS
from bokeh.models.ui import UIElement
from bokeh.models.widgets import Button, Div, Select, TextInput

from ensembles.model.errors import EnsioError
from ensembles.model.filters import FILTERS, parse_numbers, parse_range
from ensembles.viz.common.figures import plain, retitle
from ensembles.viz.explorer.panel import Panel
from ensembles.viz.explorer.shown import Shown
from ensembles.viz.explorer.view import (
    RANGES,
    YES,
    Interval,
    Ranks,
    View,
    end_of,
    numbers_text,
    range_text,
    rounded,
)

if TYPE_CHECKING:
    from ensembles.viz.explorer.panel import Shows


LINK_JS = """
    const old = new URLSearchParams(window.location.search);
    const query = new URLSearchParams(source.data.query[0]);
    const text = query.toString();
    window.history.replaceState(null, '', window.location.pathname + (text ? '?' + text : ''));
"""
"""Writes a view into the address of the page."""

LINES = "white-space:pre-wrap;overflow-wrap:anywhere;margin:0 0 10px"
"""Style of a text with lines, which are broken where the page is too narrow for them."""

HINTS = {
    "op": "write",
    "call": "pread,pwrite",
    "layer": "posix",
    "file": "*/restart.*",
    "rank": "0-63",
    "size": "1MiB..4MiB",
    "time": "10..20",
    "duration": "10ms..",
    "offset": "1GiB..2GiB",
    "rate": "..10MiB",
    "error": "ENOSPC",
    "region": "checkpoint",
    "site": "*write_restart*",
    "phase": "3",
    "ordinal": "4-8",
}
"""Examples in the fields of the filters."""


def name_runs(panels: Sequence[Panel]) -> None:
    """Name the run in the title of each picture, where the page shows two."""
    if len(panels) == 1:
        return
    for panel in panels:
        name = name_of(panel.shown)
        panel.diagram.name_run(name)
        panel.rates.name_run(name)
        panel.offsets.name_run(name)
        retitle(panel.durations.figure, f"{panel.durations.name} of {name}: drag over a peak to mark calls")


def name_of(shown: Shown) -> str:
    """Return the name of a run where there are several."""
    return end_of(plain(shown.run.path), 40)


def examined_of(runs: Sequence[Shown], view: View) -> int:
    """Return the number of the run whose findings, phases and call indices a view shows.

    It is the one that the view names, or that which takes longer, from its first call to its last.
    """

    def took_ns(number: int) -> int:
        first, last = runs[number].calls(View()).extent_ns
        return last - first

    if view.beside is None:
        return view.run
    both = (view.run, view.beside)
    return view.causes if view.causes in both else max(both, key=took_ns)


def choice_of_causes(chosen: Callable[[int], None]) -> Select:
    """Return the choice of the run whose findings, phases and call indices are shown."""
    made = Select(name="causes", width=260, title="findings, phases and call indices of")
    made.on_change("value", lambda attribute, old, new: chosen(int(new)))
    return made


def offer_causes(choice: Select, runs: Sequence[Shown], view: View) -> None:
    """Offer the runs of a view in that choice, if there are two."""
    choice.visible = view.beside is not None
    numbers = [each for each in (view.run, view.beside) if each is not None]
    choice.options = list[str | tuple[Any, str]]((str(each), end_of(runs[each].run.path)) for each in numbers)
    choice.value = str(examined_of(runs, view))


def name_tables(slowest: Div, ranks: Div, panels: Sequence[Panel]) -> None:
    """Write the headings of the tables of calls and ranks, with the run if the page shows two."""
    of = f" of {html.escape(name_of(panels[0].shown))}" if len(panels) > 1 else ""
    slowest.text = f"<strong>Slowest calls{of}: choose one to zoom to it</strong>"
    ranks.text = f"<strong>Ranks{of} by I/O time, without waiting: choose one to mark its calls</strong>"


def arranged(panels: Sequence[Panel]) -> list[Any]:
    """Arrange the pictures below each other, those of two runs in turns."""
    offsets = [
        [each for each in (panel.choose_file(), panel.offsets.figure) if each is not None]
        if panel.offsets.figure is not None
        else []
        for panel in panels
    ]
    if len(panels) == 1:
        first = panels[0]
        return [
            first.diagram.figure,
            *first.rates.figures.values(),
            *offsets[0],
            first.durations.figure,
        ]
    first, second = panels
    return [
        first.diagram.figure,
        second.diagram.figure,
        *(
            panel.rates.figures[direction]
            for direction in ("", "write", "read")
            for panel in panels
            if direction in panel.rates.figures
        ),
        first.durations.figure,
        second.durations.figure,
        *offsets[0],
        *offsets[1],
    ]


def filter_fields(view: View) -> dict[str, TextInput | Select]:
    """Return the fields of the filters, by name."""
    fields: dict[str, TextInput | Select] = {
        name: TextInput(
            title=name,
            value=view.filters.get(name, ""),
            placeholder=HINTS[name],
            width=110,
            name=f"filter_{name}",
        )
        for name in FILTERS
        if name in HINTS
    }
    flags: dict[str, tuple[str, str, str, int]] = {
        "failed": ("failed", "all calls", "failed calls only", 150),
        "per_byte": ("durations", "of all calls", "per MiB, of calls with bytes", 220),
    }
    for name, (title, unset, chosen, width) in flags.items():
        options: list[str | tuple[Any, str]] = [("", unset), (YES, chosen)]
        fields[name] = Select(
            title=title,
            options=options,
            value=view.filters.get(name, ""),
            width=width,
            name=f"filter_{name}",
        )
    return fields


def wide(least: int, *parts: UIElement) -> Column:
    """Arrange parts of which the last, a table, can be moved sideways in a page that is narrower."""
    parts[-1].styles = {"min-width": f"{least}px"}
    styles = {"min-width": f"min({least}px, 100%)", "overflow-x": "auto"}
    return column(*parts, sizing_mode="stretch_width", styles=styles)


def heading(text: str) -> Div:
    """Return a heading."""
    return Div(text=f"<strong>{text}</strong>")


def button(label: str, name: str, clicked: Callable[[], None], width: int) -> Button:
    """Return a button that calls a function of Python."""
    made = Button(label=label, name=name, width=width)
    made.on_click(clicked)
    return made


def copy_buttons(texts: ColumnDataSource) -> list[Button]:
    """Return the buttons that copy the texts of the columns ``command`` and ``python``."""
    buttons = []
    for field, label in (("command", "Copy as command"), ("python", "Copy as Python")):
        made = Button(label=label, name=f"copy_{field}", width=140)
        code = "navigator.clipboard.writeText(texts.data[field][0]);"
        made.js_on_click(CustomJS(args={"texts": texts, "field": field}, code=code))
        buttons.append(made)
    return buttons


TYPED = "with ranges that were typed"
"""Is added to what a mark is about."""


class Fields:
    """A row of fields for the ranges of a view: what is marked, and what is in view.

    They show the ranges as the link and the commands have them, and take both.
    """

    def __init__(self, explorer: Shows) -> None:
        self._explorer = explorer
        self._filled: View | None = None
        self._is_filling = False
        self._inputs = {
            name: TextInput(
                title=each.title, placeholder=each.hint, width=each.width, name=f"field_{each.link}"
            )
            for name, each in RANGES.items()
        }
        for name, field in self._inputs.items():
            field.on_change("value", partial(self._typed, name))
        in_view = button("Mark what is in view", "mark_view", self._mark_view, 150)
        in_view.align = "end"
        self._about = Div(name="about_fields", sizing_mode="stretch_width", visible=False)
        self.layout = column(
            row(*self._inputs.values(), in_view, sizing_mode="stretch_width", styles={"flex-wrap": "wrap"}),
            self._about,
            sizing_mode="stretch_width",
        )

    def fill(self, view: View) -> None:
        """Show the ranges of a view; a text that could not be read stays until another view is shown."""
        if view == self._filled:
            return
        self._refuse("")
        self._filled, self._is_filling = view, True
        try:
            for name, field in self._inputs.items():
                field.value = self._text(view, name)
            self._inputs["rates"].visible = view.per_byte or view.rates is not None
        finally:
            self._is_filling = False

    def _text(self, view: View, name: str) -> str:
        ends = getattr(view, name)
        if ends is None:
            return ""
        if name == "zoom_ranks":
            ends = rows_of(ends, self._explorer.shown.run.tasks)
        if name in ("ranks", "zoom_ranks"):
            return numbers_text(*ends)
        text = range_text(*ends)  # of long ones in view, without the digits that no pixel shows
        return range_text(*rounded(*ends)) if name == "zoom_s" and len(text) > 20 else text

    def _typed(self, name: str, attribute: str, old: str, new: str) -> None:
        if self._is_filling:
            return
        self._refuse("")
        view = self._explorer.view
        try:
            ends = self._ends(name, new.strip()) if new.strip() else None
        except EnsioError as error:
            self._refuse(str(error))
            return
        if new.strip() != self._text(view, name):
            self._look(_with(view, name, ends))

    def _look(self, view: View) -> None:
        before = self._explorer.view
        self._explorer.look(view)
        if view != before == self._explorer.view:
            self._refuse("nothing is changed: the reason is at the top of the page")

    def _refuse(self, sentence: str) -> None:
        """Say below the fields why something is not shown; empty: it is."""
        alert = '<p role="alert" style="color:var(--ensio-alert, #b00020)">'
        self._about.update(text=f"{alert}{html.escape(sentence)}</p>", visible=bool(sentence))

    def _ends(self, name: str, text: str) -> Any:
        """Read a range, as the link or a command has it."""
        calls = self._explorer.shown.calls(self._explorer.view)
        if name in ("ranks", "zoom_ranks"):
            return self._ranks(name, text)
        if name == "offsets":
            first, last = parse_range("offset", text)
            return first, min(last, (1 << 62) - 1) + 1
        if name == "rates":
            return parse_range("rate", text)
        if name == "durations_s":
            least, most = parse_range("duration", text)
            longest = calls.durations_ns[2] if calls.count else 0
            is_open = not text.partition("..")[2].strip()
            most = max(longest, least) if is_open else most
            return round(least * 1e-9, 9), round((most + 1) * 1e-9, 9)
        low, high = parse_range("time", text)
        first_ns, end_ns = calls.extent_ns
        low = min(first_ns * 1e-9, 0.0) if math.isinf(low) else low
        high = max(end_ns * 1e-9, low) + 1e-9 if math.isinf(high) else high
        low = round(low, 9)
        return low, max(round(high, 9), round(low + 1e-9, 9))

    def _ranks(self, name: str, text: str) -> Ranks | Interval:
        low, high = parse_numbers("rank", text.replace("..", "-"))
        tasks = self._explorer.shown.run.tasks
        if low >= tasks:
            raise EnsioError(f"there is no rank {low}: the run has ranks 0 to {tasks - 1}")
        high = min(high, tasks - 1)
        return (low - 0.5, high + 0.5) if name == "zoom_ranks" else (low, high)

    def _mark_view(self) -> None:
        """Mark the calls that start in the window of the trace diagram, as a rectangle around it does."""
        view = self._explorer.view
        if view.zoom_s is None and view.zoom_ranks is None:
            self._refuse("the whole run is in view: zoom in, or type what to mark into the fields")
            return
        tasks = self._explorer.shown.run.tasks
        rows = None if view.zoom_ranks is None else rows_of(view.zoom_ranks, tasks)
        times = None if view.zoom_s is None else rounded(*view.zoom_s)
        self._look(view.marking(time_s=times, ranks=rows))


def rows_of(edges: Interval, tasks: int) -> Ranks:
    """Return the first and the last rank whose row is in view, if only in part."""
    first = min(max(math.floor(edges[0] + 0.5), 0), tasks - 1)
    return first, min(max(math.ceil(edges[1] - 0.5), first), tasks - 1)


def _with(view: View, name: str, ends: Any) -> View:
    """Return a view with another range: other ranges, and what a mark is about, stay."""
    changes: dict[str, Any] = {name: ends}
    if not name.startswith("zoom"):
        what = view.what if view.marks else ""
        if what and not what.endswith(TYPED):
            what += f", {TYPED}"
        changes["what"] = what
    return replace(view, **changes)

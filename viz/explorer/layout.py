"""The arrangement of the explorer's page: pictures, headings and buttons."""

from __future__ import annotations

import html
from collections.abc import Callable, Sequence
from typing import Any

from bokeh.layouts import column
from bokeh.models import Column, ColumnDataSource, CustomJS
from bokeh.models.ui import UIElement
from bokeh.models.widgets import Button, Div, Select, TextInput

from ensembles.viz.common.figures import plain, retitle
from ensembles.viz.explorer.panel import Panel
from ensembles.viz.explorer.shown import Shown
from ensembles.viz.explorer.view import FILTERS, YES, View, end_of

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

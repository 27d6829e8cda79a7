"""The arrangement of the explorer's page: pictures, headings and buttons."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from bokeh.models import ColumnDataSource, CustomJS
from bokeh.models.widgets import Button, Div

from ensembles.viz.explorer.panel import Panel
from ensembles.viz.figures import plain, retitle

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
    "phase": "3",
    "ordinal": "4-8",
}
"""What the fields of filters show while they are empty."""


def arranged(panels: Sequence[Panel]) -> list[Any]:
    """Arrange the pictures below each other, those of two runs in turns."""
    if len(panels) == 1:
        return list(panels[0].figures)
    for panel in panels:
        name = plain(panel.shown.run.path)[-40:]
        panel.diagram.name_run(panel.shown.run.path)
        retitle(panel.rates.figure, f"Rate of all tasks of {name}")
        retitle(panel.durations.figure, f"Durations of {name}: drag over a peak to mark calls")
    first, second = panels
    return [
        first.diagram.figure,
        second.diagram.figure,
        first.rates.figure,
        second.rates.figure,
        first.durations.figure,
        second.durations.figure,
        *(panel.offsets.figure for panel in panels if panel.offsets.figure is not None),
    ]


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

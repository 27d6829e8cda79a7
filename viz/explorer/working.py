"""The sign that a question of the reader is being worked on: the page shows it without asking the server."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from bokeh.events import ButtonClick, Reset, SelectionGeometry
from bokeh.models import ColumnDataSource, CustomJS
from bokeh.models.ui import UIElement
from bokeh.models.widgets import Button, Div, Select, TextInput, Widget
from bokeh.plotting import figure

from ensembles.viz.explorer.tables import Table

_TEXT = '<span role="status">Working on it …</span>'
_STYLE = {
    "position": "fixed",
    "top": "8px",
    "left": "50%",
    "transform": "translateX(-50%)",
    "z-index": "20",
    "padding": "4px 14px",
    "border": "1px solid #9a9aa2",
    "border-radius": "4px",
    "background": "#18191d",
    "color": "#ffffff",
    "pointer-events": "none",
}

# A question has been sent before the timer of 0 ms ends. The server answers in order: when it has seen the
# number, everything that the question changes has come.
_ASK_JS = """
    const number = asked.last = (asked.last ?? 0) + 1;
    asked.waiting ??= setTimeout(() => {
        asked.is_shown = true;
        sign.setv({styles: {...sign.styles, visibility: 'visible'}}, {sync: false});
    }, after_ms);
    setTimeout(() => { asked.data = {number: [number]}; });
"""
_ANSWERED_JS = """
    if (!(cb_obj.data.number[0] >= asked.last)) return;
    clearTimeout(asked.waiting);
    asked.waiting = null;
    // What has come is painted before the sign goes.
    if (asked.is_shown) requestAnimationFrame(() => setTimeout(() => {
        if (asked.waiting) return;
        asked.is_shown = false;
        sign.setv({styles: {...sign.styles, visibility: 'hidden'}}, {sync: false});
    }));
"""


class Working:
    """Shows a sign while a question of the page takes longer than 300 ms.

    `sign`: part of the layout from the beginning; it takes no room.
    """

    def __init__(self) -> None:
        self._watched: set[str] = set()
        self.sign = Div(text=_TEXT, name="working", styles={**_STYLE, "visibility": "hidden"})
        self._asked = ColumnDataSource({"number": [0]}, name="asked")
        self._answered = ColumnDataSource({"number": [0]}, name="answered")
        self._ask = CustomJS(args={"asked": self._asked, "sign": self.sign, "after_ms": 300}, code=_ASK_JS)
        self._answered.js_on_change(
            "data", CustomJS(args={"asked": self._asked, "sign": self.sign}, code=_ANSWERED_JS)
        )
        # Where the sign is, both sources are: the page can answer as soon as it can ask.
        self.sign.tags = [self._asked, self._answered]
        self._asked.on_change("data", self._answer)

    def _answer(self, attribute: str, old: Any, new: Any) -> None:
        self._answered.data = dict(new)

    def watch_figures(self, figures: Iterable[figure], windows: Iterable[ColumnDataSource]) -> None:
        """Watch for marks and zooms, in figures that are not watched yet."""
        for fig in figures:
            if fig.id not in self._watched:
                self._watched.add(fig.id)
                fig.js_on_event(SelectionGeometry, self._ask)
                fig.js_on_event(Reset, self._ask)
        for window in windows:
            if window.id not in self._watched:
                self._watched.add(window.id)
                window.js_on_change("data", self._ask)

    def watch_widget(self, widget: Select) -> bool:
        """Watch a choice that came later; return whether it was not watched before."""
        if widget.id in self._watched:
            return False
        self._watched.add(widget.id)
        widget.js_on_change("value", self._ask)
        return True

    def watch_widgets(self, layout: UIElement, tables: Iterable[Table]) -> None:
        """Watch filters, choices, buttons, and the rows of tables."""
        for widget in layout.select({"type": Widget}):
            if isinstance(widget, Button):
                widget.js_on_event(ButtonClick, self._ask)
            elif isinstance(widget, Select | TextInput):
                widget.js_on_change("value", self._ask)
        for table in tables:
            table.source.selected.js_on_change("indices", self._ask)

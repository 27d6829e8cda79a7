"""Fields of the explorer for marks and window, which a rectangle of the mouse sets too."""

from __future__ import annotations

import html
import math
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from bokeh.layouts import column, row
from bokeh.models.widgets import Div, TextInput

from ensembles.model.errors import EnsioError
from ensembles.model.filters import parse_durations, parse_numbers, parse_offsets, parse_rates, parse_times
from ensembles.viz.explorer.layout import button
from ensembles.viz.explorer.view import Interval, Ranks, View, range_text, rounded

if TYPE_CHECKING:
    from ensembles.viz.explorer.panel import Shows

TYPED = "with ranges that were typed"
"""Is added to what a mark is about."""

_LEAST_S = 1e-9

FIELDS = {
    "time_s": ("marked time (s)", "10..20"),
    "ranks": ("marked ranks", "0-63"),
    "durations_s": ("marked durations (s)", "10ms..2"),
    "rates": ("marked rates (bytes/s)", "100MiB..1GiB"),
    "offsets": ("marked offsets (bytes)", "1GiB..2GiB"),
    "zoom_s": ("time in view (s)", "10..20"),
    "zoom_ranks": ("ranks in view", "0-63"),
}
"""Title and example of the field of each range of a view."""

_WIDTHS = {"ranks": 120, "zoom_ranks": 120}
"""Pixels; other ranges have up to 24 characters."""

_LONG = 20
"""Characters of a range in view from which digits are left out that the pixels of the window do not show."""

_OF_LINK = {
    "time_s": "marked-time",
    "ranks": "marked-ranks",
    "durations_s": "marked-durations",
    "rates": "marked-rates",
    "offsets": "marked-offsets",
    "zoom_s": "shown-time",
    "zoom_ranks": "shown-ranks",
}


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
                title=title, placeholder=hint, width=_WIDTHS.get(name, 190), name=f"field_{_OF_LINK[name]}"
            )
            for name, (title, hint) in FIELDS.items()
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
            return f"{ends[0]}-{ends[1]}" if ends[0] < ends[1] else str(ends[0])
        text = range_text(*ends)
        return range_text(*rounded(*ends)) if name == "zoom_s" and len(text) > _LONG else text

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
            first, last = parse_offsets(text)
            return first, min(last, (1 << 62) - 1) + 1
        if name == "rates":
            return parse_rates(text)
        if name == "durations_s":
            least, most = parse_durations(text)
            longest = calls.durations_ns[2] if calls.count else 0
            is_open = not text.partition("..")[2].strip()
            most = max(longest, least) if is_open else most
            return round(least * 1e-9, 9), round((most + 1) * 1e-9, 9)
        low, high = parse_times(text)
        first_ns, end_ns = calls.extent_ns
        low = min(first_ns * 1e-9, 0.0) if math.isinf(low) else low
        high = max(end_ns * 1e-9, low) + _LEAST_S if math.isinf(high) else high
        low = round(low, 9)
        return low, max(round(high, 9), round(low + _LEAST_S, 9))

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
    """Return the first and the last rank whose row is in view, if only in part.

    Examples
    --------
    >>> from ensembles.viz.explorer.fields import rows_of
    >>> rows_of((-0.5, 2.5), 8), rows_of((1.7, 9.0), 8)
    ((0, 2), (2, 7))
    """
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

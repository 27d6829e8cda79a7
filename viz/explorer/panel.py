"""The linked pictures of one run in the explorer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from bokeh.events import Event, Reset, SelectionGeometry
from bokeh.models import Range1d
from bokeh.models.annotations import Legend, LegendItem
from bokeh.plotting import figure

from ensembles.viz.explorer.calls import Calls
from ensembles.viz.explorer.diagram import TraceDiagram
from ensembles.viz.explorer.durations import Durations
from ensembles.viz.explorer.offsets import Offsets
from ensembles.viz.explorer.shown import Shown
from ensembles.viz.explorer.view import View
from ensembles.viz.rate import rate

_RATE_LESS = 50
"""Pixels by which the rates are less high than in a report."""

Look = Callable[..., None]


class Panel:
    """Trace diagram, rates, durations and offsets of a run, of the calls that a view shows.

    Parameters
    ----------
    shown : Shown
        The run.
    view : View
    times : Range1d
        The axis of time, which pictures of several runs share.
    look : callable
        Shows another view, of which it is given a function of the present one.
    beside : Panel, optional
        The pictures of the run to which this one is compared.

    Attributes
    ----------
    calls : Calls
        The calls that the filters select.
    marked : Calls or None
        The marked calls; None: no mark.
    """

    def __init__(
        self, shown: Shown, view: View, times: Range1d, look: Look, beside: Panel | None = None
    ) -> None:
        self.shown, self._look, self._is_second = shown, look, beside is not None
        self.calls = shown.calls(view)
        self.marked: Calls | None = None
        more = "_beside" if beside is not None else ""
        self.diagram = TraceDiagram(shown, self.calls, times, f"explorer_trace{more}")
        self.rates = rate(self.calls.curve(), title="Rate of all tasks", x_range=times)
        self.rates.height = (self.rates.height or 0) - _RATE_LESS
        self.durations: Durations = Durations(
            self.calls, f"explorer_histogram{more}", None if beside is None else beside.durations
        )
        self.offsets = Offsets(self.calls, times, f"explorer_offsets{more}")
        self.diagram.figure.on_event(SelectionGeometry, self._mark_rectangle)
        self.durations.figure.on_event(SelectionGeometry, self._mark_durations)
        self.diagram.window.on_change("data", self._zoomed)
        if self.offsets.figure is not None:
            self.offsets.figure.on_event(SelectionGeometry, self._mark_offsets)
        for fig in self.figures:
            fig.on_event(Reset, lambda _: self._look(_reset))

    @property
    def of_marked(self) -> Calls:
        """The marked calls; if none is marked, those that the filters select."""
        return self.calls if self.marked is None else self.marked

    @property
    def figures(self) -> list[figure]:
        """The pictures, from top to bottom."""
        some = [self.diagram.figure, self.rates, self.offsets.figure, self.durations.figure]
        return [fig for fig in some if fig is not None]

    def mark(self, view: View) -> None:
        """Show the marked calls in every picture.

        Raises
        ------
        EnsioError
            Nothing can match the filters and the marks; the pictures are as before.
        """
        self.marked = self.shown.marked_calls(view)
        self.show_window(view)
        self.durations.mark(self.marked, view)
        self.offsets.mark(self.marked, view)

    def show_window(self, view: View) -> None:
        """Show the window of a view in the trace diagram."""
        self.diagram.show(self.marked, self._own(view))

    def renew(self, view: View) -> bool:
        """Take the calls that came since, of a run that goes on.

        Returns
        -------
        bool
            False: the pictures must be made anew, because they lack a kind of calls.
        """
        calls = self.shown.calls(view)
        if calls is self.calls:
            return True
        if not self.diagram.is_of(calls) or not self.durations.replace(calls):
            return False
        if not _renew(self.rates, rate(calls.curve(), title="Rate of all tasks")):
            return False
        self.calls = calls
        self.diagram.replace(calls)
        return self.offsets.replace(calls)

    def _own(self, view: View) -> View:
        """Return the view with the rows of this run; only those of the first one are in the view."""
        if not self._is_second:
            return view
        return replace(view, zoom_ranks=self.diagram.window_of(dict(self.diagram.window.data))[1])

    def _zoomed(self, attribute: str, old: Any, new: Any) -> None:
        times, rows = self.diagram.window_of(new)
        if self._is_second:
            self._look(lambda view: replace(view, zoom_s=times), from_page=True)
        else:
            self._look(lambda view: replace(view, zoom_s=times, zoom_ranks=rows), from_page=True)

    def _mark_rectangle(self, event: Event) -> None:
        box = _rectangle(event)
        if box is None:
            return
        low, high = sorted((box["x0"], box["x1"]))
        first, last = sorted((box["y0"], box["y1"]))
        ranks = (max(0, round(first)), min(self.shown.run.tasks - 1, round(last)))
        if ranks[0] <= ranks[1]:
            self._look(lambda view: view.marking(time_s=(round(low, 9), round(high, 9)), ranks=ranks))

    def _mark_durations(self, event: Event) -> None:
        box = _rectangle(event)
        if box is None:
            return
        low, high = sorted((box["x0"], box["x1"]))
        least = max(0.0, round(low, 9))
        durations = least, max(round(high, 9), least + 1e-9)
        self._look(lambda view: view.marking(durations_s=durations))

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


def _renew(fig: figure, new: figure) -> bool:
    """Give the data of a new figure to one that is shown; False: they have other parts."""
    before, after = _parts(fig), _parts(new)
    if str(fig.yaxis.axis_label) != str(new.yaxis.axis_label) or list(before) != list(after):
        return False
    for key, (old, item) in before.items():
        renewed, renewed_item = after[key]
        for mine, its in zip(old, renewed, strict=True):
            mine.data_source.update(data=dict(its.data_source.data))
        if item is not None and renewed_item is not None:
            item.label = renewed_item.label
    return True


_Parts = dict[str, tuple[list[Any], LegendItem | None]]


def _parts(fig: figure) -> _Parts:
    """Return the renderers of each entry of the legend, and those without one."""
    legends = [each for each in fig.above if isinstance(each, Legend)]
    items = [item for legend in legends for item in legend.items if isinstance(item, LegendItem)]
    parts: _Parts = {_text(item).split(":")[0]: (list(item.renderers), item) for item in items}
    named = {id(each) for renderers, _ in parts.values() for each in renderers}
    parts[""] = ([each for each in fig.renderers if id(each) not in named], None)
    return parts


def _text(item: LegendItem) -> str:
    return str(getattr(item.label, "value", item.label))

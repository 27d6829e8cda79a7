"""The histogram of the explorer, on which a range of durations marks calls."""

from __future__ import annotations

from typing import Any

import numpy as np
from bokeh.core.properties import value
from bokeh.models import ColumnDataSource, LogAxis, NumeralTickFormatter, Range1d
from bokeh.models.annotations import BoxAnnotation, LegendItem

from ensembles.model.units import MIB
from ensembles.summaries.raster import CLASSES
from ensembles.viz.common.figures import ends, horizontal_legend, legend_item, new_figure, retitle
from ensembles.viz.common.style import COLOURS, time_ticks
from ensembles.viz.explorer.calls import Calls, Counted
from ensembles.viz.explorer.diagram import add_box_select, short_label
from ensembles.viz.explorer.view import View, rounded
from ensembles.viz.pictures.histogram import add_rate_axis, below_clock, on_log_axis


class Durations:
    """The histogram of durations, on logarithmic axes, on which a range of durations marks calls."""

    def __init__(
        self,
        calls: Calls,
        name: str = "explorer_histogram",
        beside: Durations | None = None,
        per_mib: bool = False,
    ) -> None:
        self.per_mib = per_mib
        counted = calls.durations(per_mib)
        shown = on_log_axis(counted)
        low = min((edges[0] for edges, _ in shown.values()), default=1e-6)
        high = max((edges[-1] for edges, _ in shown.values()), default=1.0)
        top = max((int(counts.max()) for _, counts in shown.values()), default=1)
        self.durations: Range1d = _widened(
            None if beside is None else beside.durations, low / 1.5, high * 1.5
        )
        self._counts = Range1d(start=0.5, end=2.0 * max(top, 5))
        self.figure = new_figure(
            self._title(counted, shown),
            320 + (44 if per_mib else 0),
            x_range=self.durations,
            y_range=self._counts,
            x_axis_type="log",
            y_axis_type="log",
            name=name,
        )
        quantity = "duration per MiB" if per_mib else "call duration"
        self.figure.xaxis.axis_label = f"{quantity} (unit at each tick)"
        self.figure.xaxis.formatter = time_ticks()
        if per_mib:
            add_rate_axis(self.figure, LogAxis())
        self.figure.yaxis.axis_label = "calls per bin (9 % wide)"
        self.figure.yaxis.formatter = NumeralTickFormatter(format="0,0")
        self._all: dict[str, ColumnDataSource] = {}
        self._marked: dict[str, ColumnDataSource] = {}
        self._items: dict[str, LegendItem] = {}
        self._bars: dict[str, Any] = {}
        more = "" if beside is None else "_beside"
        # Waiting is often as long as the calls that others wait for: behind them, it covers none.
        for op in sorted(CLASSES, key=lambda name: "wait" not in name):
            if op not in counted:
                continue
            self._all[op] = ColumnDataSource(_bars(shown.get(op)))
            bars = self.figure.quad(
                source=self._all[op],
                left="left",
                right="right",
                top="top",
                bottom=0.5,
                fill_color=COLOURS[op],
                fill_alpha=0.4,
                line_color=COLOURS[op],
                name=f"all_{op}{more}",
            )
            self._bars[op] = bars
            source = ColumnDataSource({"left": [], "right": [], "top": []})
            self.figure.quad(
                source=source,
                left="left",
                right="right",
                top="top",
                bottom=0.5,
                fill_color=COLOURS[op],
                fill_alpha=0.75,
                line_color=COLOURS[op],
                name=f"marked_{op}{more}",
            )
            self._marked[op] = source
            self._items[op] = legend_item(_label(op, counted[op][1]), bars)
        self._box = BoxAnnotation(
            fill_alpha=0.06, fill_color="black", line_color="black", line_dash="dashed", visible=False
        )
        self.figure.add_layout(self._box)
        add_box_select(self.figure, "width")
        horizontal_legend(self.figure, [self._items[op] for op in CLASSES if op in counted])

    def _title(self, counted: Counted, shown: Counted) -> str:
        below = below_clock(counted, shown)
        return f"{self.name}: drag over a peak to mark calls{f'; {below}' if below else ''}"

    @property
    def name(self) -> str:
        """What the histogram shows."""
        return "Durations per MiB" if self.per_mib else "Durations"

    def range(self, low: float, high: float) -> dict[str, Any]:
        """Return the mark of a part of the axis, in s, as attributes of a `View`."""
        if self.per_mib:
            slowest, fastest = rounded(MIB / max(high, 1e-9), MIB / max(low, 1e-9), is_log=True)
            return {"rates": (int(slowest), max(int(fastest), int(slowest) + 1))}
        return {"durations_s": rounded(max(0.0, low), high, is_log=True)}

    def _marked_range(self, view: View) -> tuple[float, float] | None:
        """Return the part of the axis that a view marks; None: none, or one of the other quantity."""
        if not self.per_mib:
            return view.durations_s
        return None if view.rates is None else (MIB / view.rates[1], MIB / max(view.rates[0], 1e-3))

    def replace(self, calls: Calls) -> bool:
        """Take other calls of the same run, as while it goes on."""
        counted = calls.durations(self.per_mib)
        if not set(counted) <= set(self._all):
            return False
        shown = on_log_axis(counted)
        for name, found in counted.items():
            self._all[name].data = bars = _bars(shown.get(name))
            self._items[name].label = value(_label(name, found[1]))
            if len(bars["top"]):
                _widened(self.durations, bars["left"][0] / 1.5, bars["right"][-1] * 1.5)
                _widened(self._counts, 0.5, 2.0 * float(bars["top"].max()))
        retitle(self.figure, self._title(counted, shown))
        return True

    def mark(self, calls: Calls | None, view: View) -> None:
        """Show the durations of the marked calls, filled; None: no call is marked."""
        shown = {} if calls is None else on_log_axis(calls.durations(self.per_mib))
        for name, source in self._marked.items():
            source.data = _bars(shown.get(name))
        fill, line = (0.4, 1.0) if calls is None else (0.1, 0.2)
        for bars in self._bars.values():
            bars.glyph.update(fill_alpha=fill, line_alpha=line)
        box = self._marked_range(view)
        self._box.visible = box is not None
        if box is not None:
            self._box.left, self._box.right = box


def _widened(axis: Range1d | None, low: float, high: float) -> Range1d:
    """Return an axis that covers a range too; None: a new one."""
    if axis is None:
        return Range1d(start=low, end=high)
    start, end = ends(axis)
    axis.update(start=min(start, float(low)), end=max(end, float(high)))
    return axis


def _label(name: str, counts: np.ndarray) -> str:
    return f"{short_label(name)} ({int(counts.sum()):,})"


def _bars(found: tuple[np.ndarray, np.ndarray] | None) -> dict[str, Any]:
    if found is None:
        return {"left": [], "right": [], "top": []}
    edges_s, counts = found
    used = np.flatnonzero(counts)
    return {"left": edges_s[used], "right": edges_s[used + 1], "top": counts[used]}

"""The access map of the explorer: offsets of the busiest file against time; a rectangle marks calls."""

from __future__ import annotations

import glob
from copy import deepcopy
from typing import Any

import numpy as np
from bokeh.models import (
    ColumnDataSource,
    Range1d,
)
from bokeh.models.annotations import BoxAnnotation

from ensembles.summaries.offset_map import OffsetMap
from ensembles.summaries.runtotals import DIRECTIONS
from ensembles.viz.common.figures import (
    horizontal_legend,
    label_time_axis,
    new_figure,
    retitle,
    zoom_time_by_wheel,
)
from ensembles.viz.common.mixed import add_mixed, mixer, opacities, swatches
from ensembles.viz.explorer.calls import Calls
from ensembles.viz.explorer.diagram import PALE, add_box_select, marked_alphas, tell_new_opacity
from ensembles.viz.explorer.view import View, rounded, rounded_offsets
from ensembles.viz.pictures.access_map import label_offsets, offset_image
from ensembles.viz.pictures.bars import plain_path

_MOST_PATH = 60
"""Characters of a path in a title: those of a narrow page. The choice above it has all of it."""


class Offsets:
    """Offset in a file against time, on which a rectangle marks calls.

    `file`: default: the file with the most bytes among the calls.
    `figure`: None: no bytes moved at known offsets.
    `path`: the file.
    """

    def __init__(
        self, calls: Calls, times: Range1d, name: str = "explorer_offsets", file: str | None = None
    ) -> None:
        self._file, self._of, self._what = file, "", ""
        found, self.path = calls.access_map(file)
        self.figure = None
        if found is None or not found.calls:
            return
        self._calls, self._found, self._most = calls, found, 1.0
        self._shown = [op for op in reversed(DIRECTIONS) if found.by_rank(op).any()]
        edges = found.offset_edges
        offsets = Range1d(start=float(edges[0]), end=float(edges[-1]))
        # So high that a cell of offsets has a pixel: of those that share one, a canvas draws one.
        fig = self.figure = new_figure(self._title(), 360, x_range=times, y_range=offsets, name=name)
        label_time_axis(fig)
        label_offsets(fig, 0)
        self._mapper = mixer(self._shown)
        tell_new_opacity(self._mapper)
        data, self._most = offset_image(found, "time", self._shown)
        self._drawn = found
        self._all = ColumnDataSource(data)
        add_mixed(fig, self._all, self._mapper)
        self._marked = ColumnDataSource({name: [] for name in data})
        # Blue and red of few bytes have a contrast of 3 on a dark page, too.
        add_mixed(fig, self._marked, mixer(self._shown, marked_alphas(0.94)))
        self._box = BoxAnnotation(fill_alpha=0, line_color="black", line_dash="dashed", visible=False)
        fig.add_layout(self._box)
        add_box_select(fig, "both")
        zoom_time_by_wheel(fig, times)
        horizontal_legend(fig, swatches(fig, {op: op for op in self._shown}))

    def _title(self) -> str:
        path = plain_path(self.path)
        path = path if len(path) <= _MOST_PATH else f"…{path[1 - _MOST_PATH :]}"
        return f"Offsets in {path}{self._of}: {self._what or 'drag to mark calls'}"

    def name_run(self, name: str) -> None:
        """Write the name of the run into the title, where there are two."""
        self._of = f", run {name}"
        if self.figure is not None:
            retitle(self.figure, self._title())

    def replace(self, calls: Calls) -> bool:
        """Take other calls of the same run, as while it goes on."""
        found, path = calls.access_map(self._file)
        known = found is not None and found.calls > 0
        if self.figure is None or found is None or not known:
            return (self.figure is None) == (not known)
        if path != self.path or [op for op in reversed(DIRECTIONS) if found.by_rank(op).any()] != self._shown:
            return False
        self._calls, self._found = calls, found
        self._draw(found)
        assert isinstance(self.figure.y_range, Range1d)
        self.figure.y_range.end = float(found.offset_edges[-1])
        return True

    def _draw(self, found: OffsetMap) -> None:
        self._drawn = found
        self._all.data, self._most = offset_image(found, "time", self._shown)

    def show(self, marked: Calls | None, view: View) -> None:
        """Show where calls moved bytes in the window of a view.

        `marked`: the marked calls; None: no call is marked, and all have their colours.
        """
        if self.figure is None:
            return
        # A new model would make Bokeh search the document again.
        self._mapper.alpha_mapper.palette = opacities(1.0 if marked is None else PALE)
        whole, some, is_empty = self._found, None, False
        if view.zoom_s is not None:
            low, high = view.zoom_s
            span_ns = int(np.floor(low * 1e9)), int(np.ceil(high * 1e9))
            within = self._calls.bytes_in(whole, span_ns)
            some = None if marked is None else marked.bytes_in(whole, span_ns)
            # Until both have been read, both are drawn in the cells of the whole run.
            if within is not None and (marked is None or some is not None):
                whole, is_empty = within, not within.calls
        if whole is self._found and marked is not None:
            some = marked.bytes_in(whole) if marked.count else None
        if whole is not self._drawn:
            self._draw(whole)
        if some is None or not some.calls:
            self._marked.data = {name: [] for name in self._marked.data}
        else:
            self._marked.data = offset_image(_in_cells_of(whole, some), "time", self._shown, self._most)[0]
        nothing = marked is not None and not marked.reading and not self._marked.data["image"]
        self._what = "no bytes move in this time" if is_empty else ""
        self._what = "no marked call moves bytes here" if nothing else self._what
        retitle(self.figure, self._title())
        self._box.visible = view.offsets is not None
        if view.offsets is not None:
            self._box.bottom, self._box.top = view.offsets
        if view.offsets is not None and view.time_s is not None:
            self._box.left, self._box.right = view.time_s

    def rectangle(self, view: View, box: dict[str, Any]) -> View:
        """Return the view in which the calls of a rectangle are marked."""
        low, high = sorted((box["x0"], box["x1"]))
        first, end = sorted((box["y0"], box["y1"]))
        return view.marking(
            time_s=rounded(low, high),
            offsets=rounded_offsets(first, end),
            marks={"file": glob.escape(self.path)},
            what="a rectangle of the access map",
        )


def _in_cells_of(whole: OffsetMap, some: OffsetMap) -> OffsetMap:
    """Return a map with cells of offsets that are as high as those of the map of all calls."""
    edges = whole.offset_edges
    if np.array_equal(edges, some.offset_edges):
        return some
    some = deepcopy(some)  # more calls may be added to it in the background
    some.cover(int(edges[0]), int(edges[-1]))
    return some

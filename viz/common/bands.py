"""What is drawn over a trace diagram: phases, nodes, and outlined calls."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from bokeh.models import ColumnDataSource
from bokeh.models.annotations import LegendItem
from bokeh.plotting import figure

from ensembles.model.errors import EnsioError
from ensembles.model.events import Events
from ensembles.model.run_info import RunInfo
from ensembles.model.units import count_text
from ensembles.run.run import Run
from ensembles.structure.phases.detect import Phases
from ensembles.structure.phases.table import PhaseTable
from ensembles.viz.common.figures import ends, legend_item, plain, subtitle
from ensembles.viz.common.single_calls import add_boxes, add_calls, call_columns
from ensembles.viz.common.style import NEUTRAL

BANDS = ("phases", "nodes")
"""What can be drawn over a trace diagram."""

_MOST_PHASES = 60
_MOST_NODES = 64
_LEAST_SHARE, _NAME_SHARE = 0.03, 0.12
"""Labels that are nearer than this part of the axis are left out, and names in less than this part."""

_OUTLINED_ROWS = 100
"""With more rows, each is lower than 5 pixels."""

_LINE: dict[str, Any] = {
    "line_color": NEUTRAL["text"],
    "line_alpha": 0.7,
    "line_dash": [4, 3],
    "line_width": 1,
}
# Bokeh's stubs lack the properties of boxes around texts.
_BOX: dict[str, Any] = {"background_fill_color": "white", "background_fill_alpha": 0.75}


def phase_bands(fig: figure, run: Any) -> None:
    """Draw where the phases of a run begin and end, with their numbers and names."""
    phases = run.reading.phases_of_calls if isinstance(run, Run) else None
    if phases is None:
        raise EnsioError("phases are not known: they need a run that keeps every call as an event")
    totals = run.summarize(partial(_table_of, phases)).totals()
    shown = sorted(sorted(totals, key=lambda row: -row.time_s)[:_MOST_PHASES], key=lambda row: row.phase)
    if len(shown) < len(totals):
        subtitle(fig, f"Dashed: the {len(shown)} longest phases of {len(totals):,}.")
    fig.vspan(x=[row.start_s for row in shown], name="phase_bands", **_LINE)
    low, high = ends(fig.x_range)
    bottom, top = ends(fig.y_range)
    inside = [row for row in shown if low <= row.start_s <= high]
    last, places, words = -np.inf, [], []
    for row, after in zip(inside, [*(each.start_s for each in inside[1:]), high], strict=True):
        if min(row.start_s - last, high - row.start_s) < _LEAST_SHARE * (high - low):
            continue
        last = row.start_s
        is_wide = after - last >= _NAME_SHARE * (high - low)
        places.append(last)
        words.append(f"{row.phase} {plain(row.name)[:12]}" if row.name and is_wide else str(row.phase))
    _label(fig, places, [bottom - 0.005 * (bottom - top)] * len(places), words, "phase_labels", "bottom")


def _table_of(found: Phases, _: Any) -> PhaseTable:
    return PhaseTable(found)


def node_bands(fig: figure, nodes: Sequence[tuple[str, int]], data: Any) -> None:
    """Draw the first task of each node, with the name of the node."""
    if not nodes:
        path = getattr(data, "path", "these events")
        raise EnsioError(f"{path}: nodes are not known, or are not neighbours: draw them with order=node")
    if len(nodes) > _MOST_NODES:
        subtitle(fig, f"{len(nodes):,} nodes are too many to draw each.")
        return
    fig.hspan(y=[first - 0.5 for _, first in nodes[1:]], name="node_bands", **_LINE)
    bottom, top = ends(fig.y_range)
    low, _ = ends(fig.x_range)
    last, places, words = -np.inf, [], []
    for name, first in nodes:
        if top <= first <= bottom and first - last >= 1.5 * _LEAST_SHARE * (bottom - top):
            last = first
            places.append(first - 0.4)
            words.append(plain(name)[:24])
    _label(fig, [low] * len(places), places, words, "node_labels", "top")


def _label(fig: figure, x: list[float], y: list[float], words: list[str], name: str, side: str) -> None:
    fig.text(
        x=x,
        y=y,
        text=words,
        x_offset=3,
        text_font_size="8.5pt",
        text_baseline=side,
        text_color=NEUTRAL["text"],
        name=name,
        **_BOX,
    )


def outline_calls(
    fig: figure, calls: Events, row: np.ndarray | None = None, info: RunInfo | None = None
) -> LegendItem:
    """Mark some calls in a trace diagram, with hover boxes.

    They are outlined; where rows are so low that outlines would cover them, they are circled.

    `row`: row of each task. Default: its rank.
    """
    columns = call_columns(calls, 0.0, row, info=info)
    bottom, top = ends(fig.y_range)
    many = "slowest call" if len(calls) == 1 else count_text(len(calls), "slowest call")
    look: dict[str, Any] = {"line_color": NEUTRAL["text"], "line_alpha": 0.9}
    if abs(bottom - top) <= _OUTLINED_ROWS:
        drawn = add_calls(fig, ColumnDataSource(columns), info)
        drawn.name = "outlined_calls"
        drawn.glyph.update(line_width=0.7, **look)
        return legend_item(f"outlined: the {many}", drawn)
    middles = {"x": ("left", "right"), "y": ("bottom", "top")}
    columns |= {
        axis: (np.asarray(columns[low]) + np.asarray(columns[high])) / 2
        for axis, (low, high) in middles.items()
    }
    circles = fig.scatter(
        "x", "y", size=7, fill_alpha=0, source=ColumnDataSource(columns), name="outlined_calls", **look
    )
    add_boxes(fig, circles, info)
    return legend_item(f"circled: the {many}", circles)

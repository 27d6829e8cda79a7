"""What the title of a trace diagram says: which tasks and calls, and what one would overlook."""

from __future__ import annotations

from typing import Any

import numpy as np

from ensembles.model.events import Events
from ensembles.model.units import count_text, seconds_text, share_text
from ensembles.summaries.longest_calls import DiagramCalls
from ensembles.summaries.raster import DrawnRaster, Raster
from ensembles.viz.common.single_calls import Window

_SHORT_IO = 0.1
"""Part of the time: if all I/O is in less, a sentence says where."""

_MOST_OF_TASKS = 0.8
"""Part of the tasks: a selection with more has the rows of all."""


def rows_with_calls(raster: Raster | DrawnRaster) -> tuple[int, int] | None:
    """Return the first and the last rank of the rows that have calls; None: nearly all, or none."""
    if not isinstance(raster, Raster):
        return None
    rows = np.flatnonzero(raster.time_ns.any(axis=(0, 2)))
    if not len(rows):
        return None
    first = int(rows[0]) * raster.ranks_per_row
    last = min((int(rows[-1]) + 1) * raster.ranks_per_row, raster.tasks) - 1
    return (first, last) if last - first + 1 <= _MOST_OF_TASKS * raster.tasks else None


def is_nested(data: Any, zoomed: DiagramCalls | None) -> bool:
    """Whether calls inside of others are known, which are not drawn."""
    known = zoomed.events if zoomed is not None else data if isinstance(data, Events) else None
    return known is not None and bool((known.depth > 0).any())


def where_io_is(raster: Raster | DrawnRaster) -> str:
    """Return a sentence on the part of the time that has I/O, if it is so short that one may overlook it."""
    classes = [name for name in raster.present() if name != "wait"]
    inside = sum((raster.tasks_inside(name) for name in classes), np.zeros(len(raster.edges_ns) - 1))
    found = np.flatnonzero(inside)
    if not len(found):
        return ""
    low_ns, high_ns = int(raster.edges_ns[found[0]]), int(raster.edges_ns[found[-1] + 1])
    share = (high_ns - low_ns) / max(raster.extent_ns[1] - raster.extent_ns[0], 1)
    if share > _SHORT_IO:
        return ""
    when = f"from {seconds_text(low_ns * 1e-9)} to {seconds_text(high_ns * 1e-9)}"
    return f"All I/O is {when}, {share_text(share, None)} of the time: drag over it to enlarge it."


def title_of_whole(
    raster: Raster | DrawnRaster, blank: str, is_nested: bool, view: tuple[int, int] | None = None
) -> str:
    """Return the title of the diagram of a run, or of the ranks of a selection.

    Events do not say how many tasks their run has.
    """
    tasks = count_text(raster.tasks, "task")
    if view is not None:
        low, high = view
        tasks = f"rank {low}" if low == high else f"ranks {low} to {high}"
    tasks += ", outermost calls" * is_nested
    if raster.ranks_per_row == 1:
        return f"Trace diagram of {tasks}; blank: {blank}"
    return (
        f"Trace diagram of {tasks}, {raster.ranks_per_row} per row; colour: share of their time in an "
        f"operation, blank: {blank}"
    )


def title_of_part(part: Window, single: Events | None, blank: str) -> str:
    """Return the title of a window."""
    tasks = f"{part.tasks:,} task" + "s" * (part.tasks != 1)
    when = f"{seconds_text(part.low_ns * 1e-9)} to {seconds_text(part.high_ns * 1e-9)}"
    which = "" if single is None else f": {len(single):,} calls"
    return f"Trace diagram of {tasks} from {when}{which}; blank: {blank}"

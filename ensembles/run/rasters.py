"""Rasters of a run that need no pass: of all of its time, and of a window, from the kept pyramid."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ensembles.summaries.pyramid import LEVELS, MOST_CELLS, Pyramid, pyramid_request
from ensembles.summaries.raster import DrawnRaster, Raster, drawn_request, raster_request
from ensembles.summaries.timegrid import CELLS, TimeGrid

if TYPE_CHECKING:
    from ensembles.run.run import Run

LEAST_CELLS = 500
"""Cells of time that a window needs at least. A level of the pyramid with fewer is too coarse."""

_LEVEL_OF_ESTIMATE = 2
"""Level of the pyramid from which numbers of calls are estimated: finer ones take longer to read."""


def kept_raster(run: Run) -> Raster | None:
    """Return the raster of a run from the finest level of its kept pyramid; None: there is none."""
    if Raster(run.tasks).rows * 2 * CELLS <= MOST_CELLS:
        return None  # the raster itself is kept
    finest = _level(run, 0)
    return None if finest is None else finest.raster()


def drawn_raster(run: Run) -> DrawnRaster | None:
    """Return what a trace diagram shows of a run, if its file keeps it; else None."""
    drawn = DrawnRaster(run.tasks)
    return drawn if run.reading.kept.find(drawn_request(), drawn) else None


def whole_raster(run: Run, rows: int, cells: int) -> Raster | None:
    """Return a raster of a run from what is kept, if it is: a level of its pyramid, or its raster."""
    for number in range(LEVELS):
        if Pyramid(run.tasks, number).rows <= rows:
            found = _level(run, number)
            if found is not None:
                return found.folded(cells) if found.extent_ns[1] else None
    raster = Raster(run.tasks)
    return raster if run.reading.kept.find(raster_request(), raster) and raster.extent_ns[1] else None


def pyramid_window(run: Run, low_ns: int, high_ns: int) -> Raster | None:
    """Return the raster of a window from the coarsest level of the kept pyramid that suffices.

    With at least `LEAST_CELLS` cells of time. None: no level has so many, or there is no pyramid.
    """
    coarsest = _level(run, LEVELS - 1)
    if coarsest is None:
        return None
    for number in reversed(range(LEVELS)):
        axis = TimeGrid(1, Pyramid(run.tasks, number).cells)
        axis.add_extent(coarsest.extent_ns)
        if (high_ns - low_ns) // axis.cell_ns >= LEAST_CELLS:
            level = _level(run, number)
            return None if level is None else level.window(low_ns, high_ns)
    return None


def kept_levels(run: Run) -> list[Pyramid]:
    """Read all levels of the kept pyramid of a run, the finest first; none, if there is no pyramid."""
    found = (_level(run, number) for number in range(LEVELS))
    return [level for level in found if level is not None]


def expected_calls(run: Run, low_ns: int, high_ns: int) -> float | None:
    """Estimate how many outermost calls begin in a window, from a level of the kept pyramid.

    As if calls began evenly within each cell. None: there is no pyramid.
    """
    level = _level(run, _LEVEL_OF_ESTIMATE)
    if level is None:
        return None
    edges_ns = level.edges_ns
    inside_ns = np.minimum(edges_ns[1:], high_ns) - np.maximum(edges_ns[:-1], low_ns)
    shares = np.maximum(inside_ns, 0) / np.diff(edges_ns)
    return float(level.begun.sum(axis=(0, 1)) @ shares)


def _level(run: Run, number: int) -> Pyramid | None:
    level = Pyramid(run.tasks, number)
    return level if run.reading.kept.find(pyramid_request(number), level) else None

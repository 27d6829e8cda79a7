"""Rasters of a run: of all of its time, and of a window, from the pyramid or from the calls in it."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ensembles.model.events import Events
from ensembles.run.selection import Selection
from ensembles.summaries.pyramid import LEVELS, MOST_CELLS, Pyramid, pyramid_request
from ensembles.summaries.raster import Raster, raster_request
from ensembles.summaries.raster_images import DrawnRaster, drawn_request
from ensembles.summaries.timegrid import CELLS, TimeGrid

if TYPE_CHECKING:
    from ensembles.run.run import Run

LEAST_CELLS = 500
"""Cells of time that a window needs at least. A level of the pyramid with fewer is too coarse."""

_LEVEL_OF_ESTIMATE = 2
"""Level of the pyramid from which numbers of calls are estimated: finer ones take longer to read."""


class WindowRaster(Raster):
    """A mergeable summary: the raster of a window of time.

    Parameters
    ----------
    tasks : int
        Number of tasks of the run; ranks are below it.
    low_ns, high_ns : int
        The window, ns since the origin of the run; the end is excluded.

    Examples
    --------
    >>> from ensembles.run.rasters import WindowRaster
    >>> events = en.open("ensio-ior").events
    >>> raster = WindowRaster(8, 0, 1_000_000_000)
    >>> raster.add(events)
    >>> raster.extent_ns[1] <= 1_000_000_000
    True
    """

    results = Raster.results

    def __init__(self, tasks: int, low_ns: int, high_ns: int) -> None:
        super().__init__(tasks)
        self.window_ns = low_ns, high_ns

    def add(self, chunk: Events) -> None:
        """Add the parts of calls in the window."""
        super().add(clipped(chunk, *self.window_ns))


def clipped(events: Events, low_ns: int, high_ns: int) -> Events:
    """Cut calls to a window.

    Parameters
    ----------
    events : Events
        With the columns of a `Raster`.
    low_ns, high_ns : int
        The window; the end is excluded.

    Returns
    -------
    Events
        The calls that are under way in the window, with the columns of a `Raster`.
    """
    chosen = np.flatnonzero(Selection(under_way_ns=(low_ns, high_ns)).mask(events))
    columns = {name: getattr(events, name)[chosen] for name in Raster.columns}
    start = np.maximum(columns["start"], low_ns)
    end = np.minimum(columns["start"] + columns["duration"], high_ns)
    columns |= {"start": start, "duration": np.maximum(end - start, 0)}
    return Events.partly(columns, events.calls, events.files, events.sites)


def kept_raster(run: Run) -> Raster | None:
    """Return the raster of a run from the finest level of its kept pyramid; None: there is none.

    Parameters
    ----------
    run : Run

    Returns
    -------
    Raster or None
        As a pass over the events makes it.
    """
    if Raster(run.tasks).rows * 2 * CELLS <= MOST_CELLS:
        return None  # the raster itself is kept
    finest = _level(run, 0)
    return None if finest is None else finest.raster()


def drawn_raster(run: Run) -> DrawnRaster | None:
    """Return what a trace diagram shows of a run, if its file keeps it; else None."""
    drawn = DrawnRaster(run.tasks)
    return drawn if run.reading.kept.find(drawn_request(), drawn) else None


def whole_raster(run: Run, rows: int, cells: int) -> Raster | None:
    """Return a raster of all of a run from what is kept: a level of its pyramid, or its raster.

    Parameters
    ----------
    run : Run
    rows, cells : int
        Largest numbers of rows and of cells of time.

    Returns
    -------
    Raster or None
        None: nothing suitable is kept, or the run has no calls.
    """
    for number in range(LEVELS):
        if Pyramid(run.tasks, number).rows <= rows:
            found = _level(run, number)
            if found is not None:
                return found.folded(cells) if found.extent_ns[1] else None
    raster = Raster(run.tasks)
    return raster if run.reading.kept.find(raster_request(), raster) and raster.extent_ns[1] else None


def window_raster(data: Run | Events, low_ns: int, high_ns: int) -> Raster:
    """Return the raster of a window.

    It comes from the coarsest level of the pyramid that has `LEAST_CELLS` cells in the window, and then has
    whole cells of it. Else the calls that are under way in the window are read.

    Parameters
    ----------
    data : Run or Events
    low_ns, high_ns : int
        ns since the origin of the run; the end is excluded.

    Returns
    -------
    Raster

    Raises
    ------
    ValueError
        The window is empty.
    """
    if low_ns >= high_ns:
        raise ValueError("a window ends after it begins: give its two ends in this order")
    if isinstance(data, Events):
        raster = WindowRaster(int(data.rank.max()) + 1 if len(data) else 1, low_ns, high_ns)
        raster.add(data)
        return raster
    found = pyramid_window(data, low_ns, high_ns)
    if found is not None:
        return found
    make = partial(_empty_window, low_ns, high_ns)
    return data.summarize(make, selection=Selection(under_way_ns=(low_ns, high_ns)))


def pyramid_window(run: Run, low_ns: int, high_ns: int) -> Raster | None:
    """Return the raster of a window from the coarsest level of the kept pyramid that suffices.

    Parameters
    ----------
    run : Run
    low_ns, high_ns : int
        ns since the origin of the run; the end is excluded.

    Returns
    -------
    Raster or None
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


def expected_calls(run: Run, low_ns: int, high_ns: int) -> float | None:
    """Estimate how many outermost calls begin in a window, from a level of the kept pyramid.

    Parameters
    ----------
    run : Run
    low_ns, high_ns : int
        ns since the origin of the run; the end is excluded.

    Returns
    -------
    float or None
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


def _empty_window(low_ns: int, high_ns: int, run: Any) -> WindowRaster:
    return WindowRaster(run.tasks, low_ns, high_ns)

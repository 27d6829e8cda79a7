"""Curves of the samples of the kernel's counters over time, summed over tasks or nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ensembles.model.surroundings import SurroundingsTable

if TYPE_CHECKING:
    import numpy.typing as npt

MOST_POINTS = 1000
"""Largest number of points of a curve; those of more samples are interpolated or averaged."""


class Levels(NamedTuple):
    """Sum of an amount over nodes.

    Attributes
    ----------
    time_ns : ndarray of int64, shape (n,)
        Moments, ns since the origin of the run.
    value : ndarray of float64, shape (n,)
        Sum of the amounts of all nodes, linear between the samples of each.
    """

    time_ns: npt.NDArray[np.int64]
    value: npt.NDArray[np.float64]


class Rates(NamedTuple):
    """Sum of the rates at which a counter grew.

    Attributes
    ----------
    edges_ns : ndarray of int64, shape (n + 1,)
        Bounds of the intervals, ns since the origin of the run; empty without intervals.
    per_s : ndarray of float64, shape (n,)
        Growth in the unit of the counter by second, summed over tasks; that between two samples is spread
        evenly.
    """

    edges_ns: npt.NDArray[np.int64]
    per_s: npt.NDArray[np.float64]


def sum_levels(table: SurroundingsTable, name: str) -> Levels:
    """Sum an amount over nodes.

    Returns
    -------
    Levels
        A node has its first sample before, and its last one after its samples.

    Examples
    --------
    >>> import numpy as np
    >>> from ensembles.model.surroundings import COLUMNS, SurroundingsTable
    >>> from ensembles.structure.surroundings_curves import sum_levels
    >>> columns = {name: np.full(4, -1) for name in COLUMNS}
    >>> columns |= {"rank": [0, 0, 1, 1], "time": [0, 20, 10, 20], "dirty_bytes": [0, 200, 50, 50]}
    >>> sum_levels(SurroundingsTable(columns), "dirty_bytes").value
    array([ 50., 150., 250.])
    """
    ranks, sampled, value = table.series(name)
    times = _thinned(np.unique(sampled))
    total = np.zeros(len(times))
    for rank in np.unique(ranks):
        mine = ranks == rank
        total += np.interp(times, sampled[mine], value[mine])
    return Levels(times, total)


def sum_rates(table: SurroundingsTable, name: str) -> Rates:
    """Sum the rates of a counter over tasks.

    Examples
    --------
    >>> import numpy as np
    >>> from ensembles.model.surroundings import COLUMNS, SurroundingsTable
    >>> from ensembles.structure.surroundings_curves import sum_rates
    >>> columns = {name: np.full(4, -1) for name in COLUMNS}
    >>> columns |= {"rank": [0, 0, 1, 1], "time": [0, 2 * 10**9, 10**9, 2 * 10**9]}
    >>> columns |= {"write_bytes": [0, 200, 0, 50]}
    >>> sum_rates(SurroundingsTable(columns), "write_bytes").per_s
    array([100., 150.])
    """
    rises = table.rises(name)
    length = np.maximum(rises.end - rises.start, 1)
    edges = np.unique(np.concatenate([rises.start, rises.start + length]))
    change = np.zeros(len(edges))
    slope = rises.rise / length
    np.add.at(change, np.searchsorted(edges, rises.start), slope)
    np.add.at(change, np.searchsorted(edges, rises.start + length), -slope)
    rate = np.maximum(np.cumsum(change)[:-1], 0.0)
    if len(edges) > MOST_POINTS + 1:
        grown = np.concatenate([[0.0], np.cumsum(rate * np.diff(edges))])
        coarse = np.linspace(edges[0], edges[-1], MOST_POINTS + 1).astype(np.int64)
        rate = np.diff(np.interp(coarse, edges, grown)) / np.diff(coarse)
        edges = coarse
    return Rates(edges, rate * 1e9)


def count_sampled(table: SurroundingsTable, name: str) -> int:
    """Count the tasks with at least one sample of a counter: for those of the node, its nodes."""
    return len(np.unique(table.series(name)[0]))


def _thinned(times: np.ndarray) -> np.ndarray:
    if len(times) <= MOST_POINTS:
        return times
    kept: np.ndarray = times[np.linspace(0, len(times) - 1, MOST_POINTS).astype(int)]
    return kept

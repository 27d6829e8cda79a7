"""How many of the slowest calls are a tail, and the valleys between modes that it must not cross."""

from __future__ import annotations

import numpy as np

from ensembles.statistics.sample import Sample
from ensembles.summaries.bins import bin_edges_s

MOST_CALLS = 100
"""Calls that a tail is fitted to, at most. With more, what log-normal and Weibull tails have in curvature
exceeds what the fit takes for its own uncertainty when it is carried to a hundred times the calls."""

SHARE = 0.07
"""Share of the last mode's calls that is called its tail, at most; where that is fewer than ``FEWEST_CALLS``,
up to half of them are."""

FEWEST_CALLS = 20

SIGNIFICANT = 2.8
"""Standard deviations by which a valley must lie below the hills on both sides. Several widths and all places
are looked at, so that some are found where there are none. A valley that is not there makes an interval
wider; one that is there and not seen makes it wrong."""

_FEWEST_ABOVE = 10

_OCTAVES = (0.125, 0.25, 0.5, 0.7, 1.0, 1.4, 2.0)


def last_antimode_s(sample: Sample, significant: float = SIGNIFICANT) -> float:
    """The last valley between two modes of log duration above the median, in seconds; 0.0: there is none.

    Calls are counted in classes of log duration, of several widths. A class is in a valley if its count is
    lower than one on its left and one on its right, by ``significant`` standard deviations of the difference
    of their square roots (which for Poisson counts plus 3/8 is 1 / sqrt(2) whatever they are: Anscombe 1948),
    and if at least ten calls are longer.
    """
    counts = sample.counts
    used = np.flatnonzero(counts)
    if len(used) < 3:
        return 0.0
    edges = bin_edges_s()
    used = used[edges[used] > 0]
    # Calls are taken as spread evenly over the logarithm of their bin, so that classes need not agree with
    # bins.
    low, high, count = np.log2(edges[used]), np.log2(edges[used + 1]), counts[used].astype(np.float64)
    knots = np.ravel(np.column_stack([low, high]))
    below = np.ravel(np.column_stack([np.cumsum(count) - count, np.cumsum(count)]))
    middle = np.interp(0.5 * sample.total, below, knots)
    last = np.interp(sample.total - _FEWEST_ABOVE, below, knots)
    found = 0.0
    for width in _OCTAVES:
        for shift in (0.0, 0.33, 0.67):
            grid = np.arange(low[0] - (1 + shift) * width, high[-1] + 2 * width, width)
            root = np.sqrt(np.diff(np.interp(grid, knots, below)) + 0.375)
            if sample.resolution_s > 0:  # classes that hold less than some three ticks are no witnesses
                root = root[2.0 ** grid[:-1] * (2.0**width - 1.0) >= 3 * sample.resolution_s]
                if len(root) < 3:
                    continue
                grid = grid[-len(root) - 1 :]
            left = np.maximum.accumulate(root)
            right = np.maximum.accumulate(root[::-1])[::-1]
            depth = np.minimum(left, right) - root
            valleys = np.flatnonzero(
                (depth > significant / np.sqrt(2)) & (grid[:-1] > middle) & (grid[1:] < last)
            )
            if len(valleys):
                found = max(found, _lowest_s(grid, root, int(valleys[-1])))
    return found


def _lowest_s(grid: np.ndarray, root: np.ndarray, last: int) -> float:
    """Where the valley ends in which the class ``last`` lies: right of it the last mode rises."""
    return float(2.0 ** grid[last + 1])


def tail_calls(calls: int) -> int:
    """How many of the slowest calls of a mode are its tail."""
    return int(min(MOST_CALLS, max(SHARE * calls, min(FEWEST_CALLS, calls // 2))))

"""Lower end of the last kind of calls of an ensemble, and the number of calls in its tail.

A second kind of slow calls shows as a mode, or as a shoulder without an antimode. The density of log
duration of one kind of calls is nearly always log-concave: that of log-normal, gamma, Weibull, Pareto, beta
and uniform durations is. Then the counts of three classes of equal width on a logarithmic axis, at places
x_a < x_b < x_c, obey::

    log p_b >= u log p_a + (1 - u) log p_c,    u = (x_c - x_b) / (x_c - x_a)

Two kinds of calls violate this before there is an antimode: the density falls steeply to the left of the
shoulder, and does not continue to fall to its right.
"""

from __future__ import annotations

import numpy as np

from ensembles.model.levels import FEWEST_SLOW
from ensembles.statistics.samples.counted_durations import CountedDurations
from ensembles.summaries.bins import bin_edges_s

MOST_CALLS = 100
"""Most calls to which a tail is fitted. With more calls, the curvature of log-normal and Weibull tails
exceeds the uncertainty of the fit when it is extrapolated to a hundred times the calls.
"""

SHARE = 0.07
"""Largest share of the last mode's calls in its tail. If that is fewer than ``FEWEST_SLOW``, the tail has up
to half of them.
"""


def tail_calls(calls: int) -> int:
    """Return how many of the slowest calls of a mode form its tail."""
    return int(min(MOST_CALLS, max(SHARE * calls, min(FEWEST_SLOW, calls // 2))))


SIGNIFICANT = 3.6
"""Signed root of the likelihood ratio at which a class holds significantly too few calls. All places, several
widths and distances are tested: about 1 % of samples of 1,000 to 100,000 calls of one kind reach it.
"""

MATTERS = 0.25
"""Logarithm of the least ratio by which calls must be too few; smaller ratios may be due to rounding to bins.
"""

_OCTAVES = (0.125, 0.25, 0.5, 0.7, 1.0)
_SHIFTS = (0.0, 0.33, 0.67)
_APART = (1, 2, 4)
"""Distances from the first to the middle class, and from the middle to the last, in classes."""


def last_shoulder_s(sample: CountedDurations, significant: float = SIGNIFICANT) -> float:
    """Find the lower end of the last kind of calls above the median."""
    triples = _triples(sample)
    if not triples.shape[1]:
        return 0.0
    calls_a, calls_b, calls_c, share, begin, end, last = triples
    root = too_few(calls_a, calls_b, calls_c, share)
    sure = root > significant
    if not sure.any():
        return 0.0
    # Of all triples that contain the last lack of calls, the most significant one gives its upper end.
    farthest = end[sure].max()
    same = sure & (begin < farthest) & (last >= farthest)
    return float(2.0 ** end[same][np.argmax(root[same])])


def _triples(sample: CountedDurations) -> np.ndarray:
    """Return all triples of classes with too few calls in the middle, shape (7, m).

    The rows are the calls of the three classes, u, and (in log2 seconds) the lower end of the first, the
    upper end of the middle one and that of the last.
    """
    counts, edges = sample.counts, bin_edges_s()
    used = np.flatnonzero(counts)
    used = used[edges[used] > 0]
    if len(used) < 3:
        return np.zeros((7, 0))
    low, high, count = edges[used], edges[used + 1], counts[used].astype(np.float64)
    if sample.resolution_s > 0:  # a tick represents all durations that are nearest to it
        low, high = between_ticks_s(low, sample.resolution_s), between_ticks_s(high, sample.resolution_s)
        apart = (high > low) & (low > 0)
        low, high, count = low[apart], high[apart], count[apart]
        if len(count) < 3:
            return np.zeros((7, 0))
    low, high = np.log2(low), np.log2(high)
    knots = np.ravel(np.column_stack([low, high]))
    below = np.ravel(np.column_stack([np.cumsum(count) - count, np.cumsum(count)]))
    middle = np.interp(0.5 * sample.total, below, knots)
    latest = np.interp(sample.total - FEWEST_SLOW // 2, below, knots)
    parts = [np.zeros((7, 0))]
    for width in _OCTAVES:
        for shift in _SHIFTS:
            grid = np.arange(middle - (_APART[-1] + shift) * width, high[-1] + width, width)
            calls = np.diff(np.interp(grid, knots, below))
            if sample.resolution_s > 0:  # classes narrower than about three ticks are not used
                coarse = int((2.0 ** grid[:-1] * (2.0**width - 1.0) < 3 * sample.resolution_s).sum())
                calls, grid = calls[coarse:], grid[coarse:]
            for left in _APART:
                for right in _APART:
                    m = len(calls) - left - right
                    if m <= 0:
                        continue
                    a, b, c = calls[:m], calls[left : left + m], calls[left + right :]
                    end = grid[left + 1 : left + 1 + m]
                    u = right / (left + right)
                    kept = np.flatnonzero((end > middle) & (end < latest) & (a > 0) & (c > 0))
                    part = np.array(
                        [a, b, c, np.full(m, u), grid[:m], end, grid[left + right + 1 : left + right + 1 + m]]
                    )[:, kept]
                    parts.append(part)
    found = np.concatenate(parts, axis=1)
    a, b, c, u = found[:4]
    lacking = np.log(np.maximum(b, 1e-300)) < u * np.log(a) + (1 - u) * np.log(c) - MATTERS
    return found[:, lacking]


def between_ticks_s(edge_s: np.ndarray, step_s: float) -> np.ndarray:
    """Move edges of bins to the middle between two ticks of the clock, because all durations are ticks."""
    return (np.ceil(edge_s / step_s - 1e-6) - 0.5) * step_s


def too_few(a: np.ndarray, b: np.ndarray, c: np.ndarray, u: np.ndarray) -> np.ndarray:
    """Return the root of the likelihood ratio of counts with ``b < a**u c**(1 - u)``.

    The alternative are Poisson means that obey log-concavity.
    """
    low, high = np.zeros(len(a)), np.minimum(a / u, c / (1 - u)) * (1 - 1e-12)
    for _ in range(24):  # the likeliest means are b + s, a - u s, c - (1 - u) s
        s = 0.5 * (low + high)
        above = np.log(b + s) > u * np.log(a - u * s) + (1 - u) * np.log(c - (1 - u) * s)
        low, high = np.where(above, low, s), np.where(above, s, high)
    s = 0.5 * (low + high)
    ratio = a * np.log(a / (a - u * s)) + c * np.log(c / (c - (1 - u) * s))
    ratio += b * np.log(np.maximum(b, 1e-300) / (b + s))
    root: np.ndarray = np.sqrt(np.maximum(2 * ratio, 0.0))
    return root

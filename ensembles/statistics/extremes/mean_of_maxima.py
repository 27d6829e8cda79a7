"""The mean of the slowest of N calls that are drawn from those of a phase.

Few very long calls decide it, whose chance of being drawn is far smaller than the step of any set of equally
probable cases. So it is a sum over all calls of a phase.
"""

from __future__ import annotations

import numpy as np

from ensembles.model.levels import MOST_SEEN
from ensembles.statistics import special
from ensembles.statistics.samples.counted_durations import CountedDurations
from ensembles.summaries.bins import bin_edges_s

_LARGE = 2 * MOST_SEEN
"""From this number of calls on, Stirling's formula is exact enough, and differences of log Γ are not."""


def mean_of_maxima_s(sample: CountedDurations, tasks: int) -> np.ndarray:
    """Compute the mean of the slowest of N calls drawn without replacement, for each phase."""
    phase = np.repeat(np.arange(len(sample.n)), np.diff(sample.begin))
    n = sample.n[phase].astype(np.float64)
    before = np.cumsum(sample.count) - sample.count
    first = sample.begin[:-1]
    above = n - (before - before[first][phase]) - sample.count
    edges = bin_edges_s()
    longest_s, shortest_s = sample.max_s[phase], sample.min_s[phase]
    middle_s = 0.5 * (
        np.clip(edges[sample.bin], shortest_s, longest_s)
        + np.clip(edges[sample.bin + 1], shortest_s, longest_s)
    )
    # The longest call of a phase is one of its last bin, and is known.
    least = np.maximum(above, 1.0)
    left_out = np.exp(log_left_out(n, tasks, least)) - np.exp(log_left_out(n, tasks, above + sample.count))
    top_s = sample.max_s * -np.expm1(log_left_out(sample.n.astype(np.float64), tasks, np.ones(len(sample.n))))
    found: np.ndarray = top_s + np.bincount(phase, left_out * middle_s, len(sample.n))
    return found


def log_left_out(n: np.ndarray, tasks: int, longest: np.ndarray) -> np.ndarray:
    """Return the logarithm of ``(n - r)! (n - N)! / ((n - r - N)! n!)``; -inf: some must be drawn."""
    rest, left = n - tasks, n - tasks - longest
    possible = left >= 0
    with np.errstate(divide="ignore", invalid="ignore"):
        exact = (
            special.gammaln(n - longest + 1)
            - special.gammaln(n + 1)
            + special.gammaln(rest + 1)
            - special.gammaln(np.maximum(left, 0.0) + 1)
        )
        # Log Γ of large numbers has no digits left for the chance of a single call.
        stirling = (
            longest * np.log1p(-tasks / n)
            + (n - longest + 0.5) * np.log1p(-longest / n)
            - (left + 0.5) * np.log1p(-longest / rest)
        )
    found = np.where((n >= _LARGE) & (left >= 0.01 * n), stirling, exact)
    return np.where(possible, np.minimum(found, 0.0), -np.inf)

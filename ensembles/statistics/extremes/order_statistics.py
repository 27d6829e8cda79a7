"""The maximum of N calls within reach of the data, and Equation 1 of the paper.

Equation 1 gives the distribution of the maximum of N independent calls, ``f_N(t) = N F(t)**(N - 1) f(t)``.

`max_tasks` limits intervals that hold for any distribution. If past and new calls are exchangeable, each of
the ``n + N`` is equally likely to be the longest. The probability that none of N new calls is longer than the
c-th longest of n is exactly::

    P = n! (n + N - c)! / ((n - c)! (n + N)!)

This is the beta-binomial law with parameters c and n - c + 1. For c = 1 it is ``n / (n + N)``: an interval
with probability a on either side ends at the longest call for ``N = n a / (1 - a)``; with a = 5 %, ``N = n /
19``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ensembles.model.fields import Fields
from ensembles.model.notebook_html import Printed
from ensembles.model.units import seconds_text
from ensembles.statistics import special
from ensembles.statistics.samples.counted_durations import CountedDurations
from ensembles.summaries.bins import bin_edges_s


@dataclass(frozen=True)
class Equation1(Printed, Fields):
    """The slowest of N calls by Equation 1, in seconds.

    The central interval from `low_s` to `high_s` has the probability ``level``, if calls are independent and
    of one distribution. `phases` is the number of phases that made the calls in it: if these are few, the
    assumption is wrong, and the interval is too narrow. None: phases are unknown, or there is one.

    Of more than `max_tasks` calls, the upper end lies at or beyond the longest call, which bounds Equation 1:
    `high_s` is None, and the other numbers are the least that is possible.
    """

    median_s: float
    mean_s: float
    low_s: float
    high_s: float | None
    phases: int | None = None

    @property
    def is_bound(self) -> bool:
        """Whether the numbers are lower bounds only, because there are too many tasks for these calls."""
        return self.high_s is None

    def to_json(self) -> dict[str, Any]:
        """Return the fields, and the width."""
        return super().to_json() | {"width": self.width}

    @property
    def width(self) -> float | None:
        """Ratio of the ends of the interval; None: it has no upper end, or begins at 0."""
        return None if self.high_s is None or self.low_s <= 0 else self.high_s / self.low_s

    def __str__(self) -> str:
        low = seconds_text(self.low_s)
        return f"at least {low}" if self.high_s is None else f"{low} to {seconds_text(self.high_s)}"


def compute_equation1(sample: CountedDurations, tasks: int, level: float = 0.9) -> Equation1:
    """Evaluate Equation 1 with the empirical distribution of a sample."""
    side = (1.0 - level) / 2.0
    chance = np.array([side, 0.5, 1.0 - side]) ** (1.0 / tasks)
    curve = UpperOrderStatistics.from_sample(sample)
    # The quantile of an empirical distribution is a call; its rank counts the calls that are as long.
    rank = np.floor(sample.total * -np.expm1(np.log(chance))) + 1.0
    low, median, high = np.minimum(np.interp(rank, curve.rank, curve.duration_s), sample.max_s.max())
    _, below = maximum_distribution(sample, tasks)
    edges = bin_edges_s()
    middle = np.clip(0.5 * (edges[:-1] + edges[1:]), sample.min_s.min(), sample.max_s.max())
    mean = float(np.diff(below) @ middle)
    phases = None
    if sample.phases_known and len(sample.n) > 1:
        phases = int(np.count_nonzero(sample.max_s >= min(low, sample.max_s.max())))
    within_reach = tasks <= max(max_tasks(sample.total, level), 1)
    return Equation1(float(median), mean, float(low), float(high) if within_reach else None, phases)


def maximum_distribution(sample: CountedDurations, tasks: int) -> tuple[np.ndarray, np.ndarray]:
    """Return F_N at the edges of the bins."""
    total = np.concatenate([[0], np.cumsum(sample.counts)]) / sample.total
    return bin_edges_s(), total ** float(tasks)


def chance_below_longest(calls: float, tasks: float, rank: np.ndarray) -> np.ndarray:
    """Return the probability that no new call exceeds the ``rank``-th longest call."""
    rank = np.minimum(np.asarray(rank, dtype=np.float64), calls)
    n = float(calls)
    log_chance = (special.gammaln(n + 1) - special.gammaln(n - rank + 1)) - (
        special.gammaln(n + tasks + 1) - special.gammaln(n + tasks - rank + 1)
    )
    if n > 1e6:  # the differences of large logarithms lose their digits, and the product is a power
        log_chance = rank * (np.log(n) - np.log(n + tasks))
    chance: np.ndarray = np.exp(log_chance)
    return chance


def max_tasks(calls: int, level: float) -> int:
    """Return the most tasks for which a central interval is within reach of the calls."""
    side = (1.0 - level) / 2.0
    return int(calls * side / (1.0 - side) + 1e-9)


@dataclass(frozen=True, eq=False)
class UpperOrderStatistics:
    """Number of calls that are at least as long as a duration: a decreasing curve."""

    # duration_s, rank: Durations in decreasing order, and the number of calls that are at least as
    # long, from 1
    duration_s: np.ndarray
    rank: np.ndarray  # shape (m,)
    calls: int  # Number of all calls
    known: int  # Number of durations that belong to calls; the others are edges of bins

    @classmethod
    def from_sample(
        cls, sample: CountedDurations, largest_s: np.ndarray | None = None
    ) -> UpperOrderStatistics:
        """Make the curve of a sample."""
        edges = bin_edges_s()
        used = np.flatnonzero(sample.counts)[::-1]
        rank = np.cumsum(sample.counts[used]).astype(np.float64)
        longest_s = float(sample.max_s.max())
        # No call lies between two bins in use: each has a knot at both of its ends.
        ends_s = np.ravel(np.column_stack([edges[used + 1], edges[used]]))
        duration_s = np.clip(ends_s, float(sample.min_s.min()), longest_s)
        rank = np.ravel(np.column_stack([np.concatenate([[0.0], rank[:-1]]) + 1e-6, rank]))
        if sample.resolution_s > 0:
            longest_s += 0.5 * sample.resolution_s
        if largest_s is not None and len(largest_s) > 1:
            exact_s = np.sort(np.asarray(largest_s, dtype=np.float64))[::-1]
            later = (rank > len(exact_s)) & (duration_s < exact_s[-1])
            duration_s = np.concatenate([exact_s, duration_s[later]])
            rank = np.concatenate([np.arange(1.0, len(exact_s) + 1), rank[later]])
            known = len(exact_s)
        else:
            known = 1
            duration_s = np.concatenate([[longest_s], duration_s])
            rank = np.concatenate([[1.0], np.maximum(rank, 1.0 + 1e-9)])
            duration_s[:2] = longest_s
        return cls(duration_s, rank, sample.total, known)

    def longest_s(self, number: int) -> np.ndarray:
        """Return the `number` longest calls in decreasing order, with each bin spread evenly."""
        places = self.rank - 0.5 * (np.arange(len(self.rank)) < self.known)
        log_s = np.log(np.maximum(self.duration_s, 1e-12))
        longest: np.ndarray = np.exp(np.interp(np.arange(number) + 0.5, places, log_s))
        return longest

    def quantiles_s(self, tasks: float, levels: np.ndarray) -> np.ndarray:
        """Return quantiles of the slowest of ``tasks`` new calls."""
        levels = np.asarray(levels, dtype=np.float64)
        # Ranks from 1 to all, denser where the probability falls by some percent with each.
        ranks = np.minimum(np.geomspace(1.0, self.calls, 2000), self.calls)
        chance = chance_below_longest(self.calls, tasks, ranks)
        wanted = np.interp(-levels, -chance, ranks)
        return np.where(levels > chance[0], np.nan, self.ranked_s(wanted))

    def ranked_s(self, rank: np.ndarray) -> np.ndarray:
        """Return the calls of some ranks; between two calls a factor of two apart, the nearer one."""
        log_s = np.log(np.maximum(self.duration_s, 1e-12))
        after = np.clip(np.searchsorted(self.rank, rank), 1, len(self.rank) - 1)
        share = (rank - self.rank[after - 1]) / np.maximum(np.diff(self.rank)[after - 1], 1e-12)
        apart = log_s[after - 1] - log_s[after] > np.log(2.0)
        nearer = np.where(share < 0.5, log_s[after - 1], log_s[after])
        found: np.ndarray = np.exp(np.where(apart, nearer, np.interp(rank, self.rank, log_s)))
        return found

"""The slowest of N within reach of the data: bands that hold for any distribution.

If the calls seen and the calls to come are exchangeable, then any of the ``n + N`` is as likely as any other
to be the slowest, and the chance that none of N new calls is longer than the c-th longest of n is exactly::

    P = n! (n + N - c)! / ((n - c)! (n + N)!)

(all of the c longest of both together are old ones; the beta-binomial law with parameters c and n - c + 1).
It is (n / (n + N)) for the longest, so that a band with chance 1 - a on either side ends at the longest call
seen for N = n a / (1 - a): with a = 5 % for N = n / 19."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ensembles.statistics.sample import Sample
from ensembles.summaries.bins import bin_edges_s


def chance_below_longest(calls: float, tasks: float, rank: np.ndarray) -> np.ndarray:
    """The chance that none of ``tasks`` new calls is longer than the ``rank``-th longest of ``calls``; ranks
    between whole numbers are interpolated by the gamma function."""
    from scipy.special import gammaln

    rank = np.minimum(np.asarray(rank, dtype=np.float64), calls)
    n = float(calls)
    log_chance = (gammaln(n + 1) - gammaln(n - rank + 1)) - (
        gammaln(n + tasks + 1) - gammaln(n + tasks - rank + 1)
    )
    if n > 1e6:  # the differences of large logarithms lose their digits, and the product is a power
        log_chance = rank * (np.log(n) - np.log(n + tasks))
    return np.exp(log_chance)


def reach(calls: int, level: float) -> int:
    """The most tasks for which a central band at ``level`` lies within what ``calls`` calls have seen."""
    side = (1.0 - level) / 2.0
    return int(calls * side / (1.0 - side) + 1e-9)


@dataclass(frozen=True, eq=False)
class Longest:
    """How many calls are as long as a duration, or longer: a falling curve through what is known of them.

    Attributes
    ----------
    duration_s, rank : ndarray of float64, shape (m,)
        Durations, falling, and the number of calls that are at least as long, rising from 1.
    calls : int
        All of them.
    known : int
        So many of the durations are those of calls, and the others edges of bins.
    """

    duration_s: np.ndarray
    rank: np.ndarray
    calls: int
    known: int

    @classmethod
    def of(cls, sample: Sample, largest_s: np.ndarray | None = None) -> Longest:
        """From the bins, the longest call, and the longest calls where they are given."""
        edges = bin_edges_s()
        used = np.flatnonzero(sample.counts)[::-1]
        rank = np.cumsum(sample.counts[used]).astype(np.float64)
        longest_s = float(sample.max_s.max())
        duration_s = np.maximum(np.minimum(edges[used], longest_s), float(sample.min_s.min()))
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
        return cls(duration_s, rank, sample.total, known)

    def longest_s(self, number: int) -> np.ndarray:
        """The longest calls, falling; those of which the bin is known are spread evenly over it."""
        places = self.rank - 0.5 * (np.arange(len(self.rank)) < self.known)
        log_s = np.log(np.maximum(self.duration_s, 1e-12))
        return np.exp(np.interp(np.arange(number) + 0.5, places, log_s))

    def quantiles_s(self, tasks: float, levels: np.ndarray) -> np.ndarray:
        """Quantiles of the slowest of ``tasks`` new calls, seconds; nan where they lie above the longest one
        seen."""
        levels = np.asarray(levels, dtype=np.float64)
        # Ranks from 1 to all of them, denser where the chance falls by some percent with each.
        ranks = np.minimum(np.geomspace(1.0, self.calls, 2000), self.calls)
        chance = chance_below_longest(self.calls, tasks, ranks)
        wanted = np.interp(-levels, -chance, ranks)
        found = np.exp(np.interp(wanted, self.rank, np.log(np.maximum(self.duration_s, 1e-12))))
        return np.where(levels > chance[0], np.nan, found)

"""Equation 1 of the paper: the slowest of N as if calls were independent draws of one distribution.

``f_N(t) = N F(t)**(N - 1) f(t)``, that is ``F_N = F**N``, with the distribution of all calls put together for
F (Uselton et al., From Events to Ensembles, 2010). It is the paper's answer, and shown beside ours; it cannot
exceed the longest call seen, takes phases for alike, and says nothing of its own uncertainty."""

from __future__ import annotations

from dataclasses import asdict, dataclass

import numpy as np

from ensembles.statistics.sample import Sample
from ensembles.statistics.slowest.within_reach import Longest
from ensembles.summaries.bins import bin_edges_s


@dataclass(frozen=True)
class Equation1:
    """The slowest of N by Equation 1, seconds; the central interval holds it with the chance ``level``."""

    median_s: float
    mean_s: float
    low_s: float
    high_s: float

    def to_json(self) -> dict[str, float]:
        """A dict of its numbers."""
        return asdict(self)


def equation1_of(sample: Sample, tasks: int, level: float = 0.9) -> Equation1:
    """Equation 1 with the empirical distribution of a sample that has calls."""
    side = (1.0 - level) / 2.0
    chance = np.array([side, 0.5, 1.0 - side]) ** (1.0 / tasks)
    curve = Longest.of(sample)
    # The quantile of an empirical distribution is a call: the one that so many others are longer than.
    rank = np.floor(sample.total * -np.expm1(np.log(chance))) + 1.0
    low, median, high = np.interp(rank, curve.rank, curve.duration_s)
    _, below = slowest_distribution(sample, tasks)
    edges = bin_edges_s()
    middle = np.clip(0.5 * (edges[:-1] + edges[1:]), sample.min_s.min(), sample.max_s.max())
    mean = float(np.diff(below) @ middle)
    return Equation1(float(median), mean, float(low), float(high))


def slowest_distribution(sample: Sample, tasks: int) -> tuple[np.ndarray, np.ndarray]:
    """F_N over the edges of the bins: both float64, shape (BIN_COUNT + 1,)."""
    total = np.concatenate([[0], np.cumsum(sample.counts)]) / sample.total
    return bin_edges_s(), total ** float(tasks)

"""The slowest of N calls beyond the data: a tail above the last mode, with its uncertainty."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ensembles.model.levels import FEWEST
from ensembles.statistics.extremes.last_mode import between_ticks_s, last_shoulder_s, tail_calls
from ensembles.statistics.extremes.order_statistics import UpperOrderStatistics
from ensembles.statistics.extremes.pareto_posterior import Excesses, Nodes, compute_posterior
from ensembles.statistics.samples.counted_durations import CountedDurations
from ensembles.summaries.bins import bin_edges_s

_ANDERSON_DARLING = 0.7


@dataclass(frozen=True, eq=False)
class ParetoTail:
    """Distribution of the slowest of N new calls from a fitted tail."""

    threshold_s: float  # Lower end of the tail, in seconds
    calls: int  # calls, above: Number of calls of the sample, and of those above the threshold
    above: int
    nodes: Nodes  # Tails with their posterior weights
    longest: UpperOrderStatistics  # The calls themselves, for quantiles below the threshold

    @property
    def shape(self) -> float:
        """Posterior mean of the shape of the tail of durations.

        A tail of the logarithm is nearly a power law, whose shape is the scale of the logarithm.
        """
        shape = np.where(self.nodes.logarithmic, self.nodes.scale, self.nodes.shape)
        return float(shape @ self.nodes.weight)

    def chance_below(self, tasks: float, duration_s: np.ndarray) -> np.ndarray:
        """Return F_N, the probability that none of ``tasks`` new calls takes longer.

        The number of new calls above the threshold is Poisson. Its mean has a gamma posterior from ``above``
        calls among ``calls``: ``P = E[(1 + N S(t) / n)**-above]``.
        """
        ratio = np.maximum(np.asarray(duration_s, dtype=np.float64) / self.threshold_s, 1.0)
        expected = np.exp(self.nodes.log_survival(ratio)) * (tasks / self.calls)
        chance: np.ndarray = (1.0 + expected) ** -float(self.above) @ self.nodes.weight
        return chance

    def quantiles_s(self, tasks: float, levels: np.ndarray) -> np.ndarray:
        """Return quantiles of the slowest of ``tasks`` new calls, in seconds."""
        levels = np.asarray(levels, dtype=np.float64)
        expected = self.above * tasks / self.calls
        low, high = np.log(
            [
                max(self.nodes.exceeded_with(min(np.log(8.0 / expected), 0.0)).min(), 1.0 + 1e-9),
                self.nodes.exceeded_with(min(np.log(1e-3 / expected), -1e-9)).max(),
            ]
        )
        grid = np.linspace(low, max(high, low + 1e-9), 48)
        chance = self.chance_below(tasks, np.exp(grid) * self.threshold_s)
        first = chance[0]
        for _ in range(2):
            right = np.clip(np.searchsorted(chance, levels), 1, len(grid) - 1)
            grid = np.unique(np.linspace(grid[right - 1], grid[right], 9))
            chance = self.chance_below(tasks, np.exp(grid) * self.threshold_s)
        found: np.ndarray = np.exp(np.interp(levels, chance, grid)) * self.threshold_s
        below = levels < first
        if below.any():
            found[below] = np.minimum(self.longest.quantiles_s(tasks, levels[below]), self.threshold_s)
        return found

    def mean_s(self, tasks: float) -> float | None:
        """Return the mean of the slowest of ``tasks`` new calls, in seconds.

        None: a tenth of it comes from probabilities below 1e-5, which the data do not determine.
        """
        rest = np.concatenate([np.linspace(1.0, 0.06, 48), np.geomspace(0.05, 1e-9, 55)])
        slowest = self.quantiles_s(tasks, 1.0 - 0.5 * (rest[1:] + rest[:-1]))
        parts = slowest * -np.diff(rest)
        mean = float(parts.sum())
        return mean if parts[rest[1:] < 1e-5].sum() < 0.1 * mean else None


def fit_pareto_tail(sample: CountedDurations, largest_s: np.ndarray | None = None) -> ParetoTail | None:
    """Fit a tail to exchangeable calls."""
    last_kind_s = last_shoulder_s(sample)
    first = int(np.searchsorted(bin_edges_s()[:-1], last_kind_s)) if last_kind_s > 0 else 0
    wanted = tail_calls(int(sample.counts[first:].sum()))
    if wanted < FEWEST:
        return None
    longest = UpperOrderStatistics.from_sample(sample, largest_s)
    exact = np.sort(largest_s)[::-1] if largest_s is not None and sample.resolution_s == 0 else np.zeros(0)
    tail, refuted = None, False
    while True:
        one = _with_calls(sample, exact, wanted, first, longest)
        if one is None:
            return tail
        tail = one
        if goodness_of_fit(tail, longest):
            break
        wanted, refuted = wanted * 2 // 3, True
        if wanted < FEWEST:
            return tail
    if refuted:  # the rest may still contain calls of the mode below, too few for the test
        one = _with_calls(sample, exact, max(wanted * 4 // 9, FEWEST), first, longest)
    return one or tail


def goodness_of_fit(tail: ParetoTail, longest: UpperOrderStatistics) -> bool:
    """Return whether the calls above the threshold agree with the likeliest tail.

    The Anderson-Darling statistic must be below 0.7, which 10 to 20 % of simulated samples of a fitted
    generalised Pareto distribution exceed.
    """
    nodes = tail.nodes
    rank = np.arange(tail.above) + 1.0
    ratio = longest.longest_s(tail.above)
    best = nodes.only(int(np.argmax(nodes.weight)))
    survival = np.exp(best.log_survival(np.maximum(ratio / tail.threshold_s, 1.0 + 1e-12))[:, 0])
    survival = np.clip(survival, 1e-12, 1 - 1e-12)
    n = len(survival)
    # Survival rises with the rank from the longest on.
    statistic = -n - float(((2 * rank - 1) * (np.log(survival) + np.log1p(-survival[::-1]))).sum()) / n
    return statistic < _ANDERSON_DARLING


def _with_calls(
    sample: CountedDurations, exact_s: np.ndarray, wanted: int, first: int, longest: UpperOrderStatistics
) -> ParetoTail | None:
    """Fit a tail to about so many of the longest calls, of the bins from `first` on."""
    edges, count, used = bin_edges_s(), sample.counts.copy(), np.zeros(0, np.int64)
    if len(exact_s) > wanted and exact_s[wanted] < exact_s[0]:
        threshold_s = float(exact_s[wanted])
        exact_s = exact_s[exact_s > threshold_s]
    else:
        at_least = count[::-1].cumsum()[::-1]
        begin = int(np.flatnonzero(at_least >= wanted)[-1])
        # The next edge as threshold gives a number of calls nearer to the wanted one.
        if at_least[begin + 1] >= max(wanted // 2, FEWEST) and at_least[begin] > 2 * wanted:
            begin += 1
        begin = max(begin, first)
        threshold_s = float(edges[begin])
        used = begin + np.flatnonzero(count[begin:])
        exact_s = sample.max_s[np.rint(sample.max_s * 1e9) >= np.rint(threshold_s * 1e9)]
        if sample.resolution_s > 0:
            exact_s = np.zeros(0)
    if len(used) and len(exact_s):  # exactly known calls are not counted again in their bins
        inside = np.searchsorted(edges, exact_s, side="right") - 1
        np.subtract.at(count, np.clip(inside, used[0], used[-1]), 1)
        used = used[count[used] > 0]
    low, high = edges[used], edges[used + 1]
    if sample.resolution_s > 0 and len(used):
        low, high = (between_ticks_s(edge, sample.resolution_s) for edge in (low, high))
        narrow = high <= low
        low, high = low - 0.5 * sample.resolution_s * narrow, high + 0.5 * sample.resolution_s * narrow
        threshold_s = float(low.min())
    if threshold_s <= 0:
        return None
    excesses = Excesses(
        np.maximum(exact_s / threshold_s - 1.0, 0.0),
        low / threshold_s - 1.0,
        high / threshold_s - 1.0,
        count[used],
    )
    if len(excesses.exact) + len(used) < 3 or not excesses.largest > 0:
        return None
    return ParetoTail(threshold_s, sample.total, excesses.total, compute_posterior(excesses), longest)

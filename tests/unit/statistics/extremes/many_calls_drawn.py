"""Very many independent calls, drawn as what is known of them: the longest ones and counts of bins.

The k longest of n calls follow from the k lowest of n uniform numbers, and given the shortest of these the
other calls are independent draws below it, whose counts are multinomial. So a hundred million calls cost as
much as a thousand, and enough ensembles can be drawn to tell 87 % from 90 %."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

import numpy as np
from scipy import stats

from calibration.cases.tail_cases import SCALE_S, Independent
from ensembles.statistics.extremes.pareto_tail import fit_pareto_tail
from ensembles.statistics.extremes.slowest_of_n import LARGEST
from ensembles.statistics.samples.counted_durations import CountedDurations
from ensembles.summaries.bins import bin_edges_s, bin_index

LEVELS = np.array([0.05, 0.95])


class Chances:
    """The chance of each trial's interval to hold the slowest call, given the calls seen, and widths.

    No slowest call is drawn: its distribution is known, and a chance scatters less than a yes or no does.
    """

    def __init__(self) -> None:
        self._rows: list[tuple[float, float, float]] = []
        self.refused = 0

    def add(self, truth: Independent, tasks: int, low_s: float, high_s: float) -> None:
        """One trial."""
        short_of_low, short_of_high = chance_below(truth, tasks, np.array([low_s, high_s]))
        self._rows.append((float(short_of_low), float(1.0 - short_of_high), high_s / max(low_s, 1e-12)))

    @property
    def trials(self) -> int:
        """Trials with an answer."""
        return len(self._rows)

    @property
    def below(self) -> float:
        """How many slowest calls are expected below their intervals."""
        return sum(row[0] for row in self._rows)

    @property
    def above(self) -> float:
        """How many are expected above."""
        return sum(row[1] for row in self._rows)

    @property
    def coverage(self) -> float:
        """Mean chance that it lies inside."""
        return 1.0 - (self.below + self.above) / max(self.trials, 1)

    @property
    def coverages(self) -> np.ndarray:
        """The chance of each trial: float64, shape (trials,)."""
        return np.array([1.0 - below - above for below, above, _ in self._rows])

    @property
    def error(self) -> float:
        """Standard error of the coverage; NaN without trials."""
        return float(np.std(self.coverages) / self.trials**0.5) if self.trials else np.nan

    @property
    def width(self) -> float:
        """Median of high / low."""
        return float(np.median([row[2] for row in self._rows] or [np.nan]))


def survival(truth: Independent, duration_s: np.ndarray) -> np.ndarray:
    """The chance of a call to be longer."""
    value = np.asarray(duration_s, dtype=np.float64) / SCALE_S
    share = truth.share if truth.slow is not None else 0.0
    longer = (1.0 - share) * truth.fast.sf(value)
    return longer if truth.slow is None else longer + share * truth.slow.sf(value)


def chance_below(truth: Independent, tasks: int, duration_s: np.ndarray) -> np.ndarray:
    """The chance that none of ``tasks`` calls is longer."""
    with np.errstate(divide="ignore"):
        return np.exp(tasks * np.log1p(-survival(truth, duration_s)))


def drawn(truth: Independent, n: int, rng: np.random.Generator) -> tuple[CountedDurations, np.ndarray]:
    """Draw a sample of ``n`` calls as counts of bins and the longest call; and its longest calls."""
    slow = 0 if truth.slow is None else int(rng.binomial(n, truth.share))
    counts, longest_s = _of_one_kind(truth.fast, n - slow, rng)
    if truth.slow is not None and slow:
        more, others_s = _of_one_kind(truth.slow, slow, rng)
        counts, longest_s = counts + more, np.sort(np.concatenate([longest_s, others_s]))
    edges_s = bin_edges_s()
    shortest_s = min(float(edges_s[np.flatnonzero(counts)[0]]), float(longest_s[-1]))
    return CountedDurations.from_counts(counts, shortest_s, float(longest_s[-1])), longest_s[-LARGEST:]


def _of_one_kind(
    law: stats.distributions.rv_frozen, n: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Counts of bins of ``n`` calls, and the longest of them (s, rising)."""
    k = min(n, LARGEST)
    places = np.cumsum(rng.exponential(size=k))
    longer = places / (places[-1] + rng.gamma(n - k + 1))  # the k lowest of n uniform numbers
    longest_s = SCALE_S * law.isf(longer)[::-1]
    below = np.minimum(_below_edges(law) / (1.0 - longer[-1]), 1.0)
    below[0], below[-1] = 0.0, 1.0
    chance = np.maximum(np.diff(below), 0.0)
    counts = rng.multinomial(n - k, chance / chance.sum())
    np.add.at(counts, bin_index(np.rint(longest_s * 1e9).astype(np.int64)), 1)
    return counts, longest_s


@lru_cache(maxsize=64)
def _below_edges(law: stats.distributions.rv_frozen) -> np.ndarray:
    """The chance of a call to lie below each edge of the bins."""
    # Durations are rounded to whole ns, so that a bin begins half of one before its lower edge.
    edges_s = np.maximum(bin_edges_s() - 0.5e-9, 0.0)
    return np.asarray(law.cdf(edges_s / SCALE_S), dtype=np.float64)


def many_calls_coverage(
    truth: Independent, calls: int, ratios: tuple[float, ...], trials: int, seed: int, exactly: bool
) -> list[Chances]:
    """Coverage of the slowest of ``ratio * calls``, one `Chances` for each ratio."""
    found = [Chances() for _ in ratios]
    for sample, longest_s in _trials(truth, calls, trials, seed):
        tail = fit_pareto_tail(sample, longest_s if exactly else None)
        for one, ratio in zip(found, ratios, strict=True):
            if tail is None:
                one.refused += 1
                continue
            tasks = round(ratio * calls)
            low_s, high_s = tail.quantiles_s(tasks, LEVELS)
            one.add(truth, tasks, float(low_s), float(high_s))
    return found


def _trials(
    truth: Independent, calls: int, trials: int, seed: int
) -> Iterator[tuple[CountedDurations, np.ndarray]]:
    rng = np.random.default_rng([seed, calls])
    for _ in range(trials):
        yield drawn(truth, calls, rng)

"""Simulated truth for the calibration of the slowest of N calls."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy import stats

from ensembles.statistics.extremes.pareto_tail import fit_pareto_tail
from ensembles.statistics.extremes.slowest_of_n import LARGEST, SlowestOfN
from ensembles.statistics.samples.counted_durations import CountedDurations

SCALE_S = 1e-3
NEW_PHASES = 20


@dataclass(frozen=True)
class Independent:
    """Calls that are independent draws: with a chance from a slow distribution, else from a fast one."""

    fast: stats.distributions.rv_frozen
    slow: stats.distributions.rv_frozen | None = None
    share: float = 0.0

    def draw(self, n: int, rng: np.random.Generator) -> np.ndarray:
        """Durations, seconds."""
        value = self.fast.rvs(n, random_state=rng)
        if self.slow is not None:
            value = np.where(rng.random(n) < self.share, self.slow.rvs(n, random_state=rng), value)
        return SCALE_S * value

    def slowest(self, tasks: int, rng: np.random.Generator) -> float:
        """The slowest of ``tasks``, by inverting the distribution (not by drawing them all)."""
        from scipy.optimize import brentq

        chance = -np.expm1(np.log(rng.random()) / tasks)
        if self.slow is None:
            return SCALE_S * float(self.fast.isf(chance))

        def excess(value: float) -> float:
            return (1 - self.share) * self.fast.sf(value) + self.share * self.slow.sf(value) - chance

        highest = max(self.fast.isf(chance / 2), self.slow.isf(chance / 2))
        return SCALE_S * float(brentq(excess, 0.0, highest * 2, xtol=1e-12, rtol=1e-10))


INDEPENDENT = {
    "exponential": Independent(stats.expon()),
    "log-normal, sd 0.5": Independent(stats.lognorm(0.5)),
    "log-normal, sd 1": Independent(stats.lognorm(1.0)),
    "Weibull, shape 0.5": Independent(stats.weibull_min(0.5)),
    "Weibull, shape 2": Independent(stats.weibull_min(2.0)),
    "Pareto, alpha 2": Independent(stats.pareto(2)),
    "Pareto, alpha 3": Independent(stats.pareto(3)),
    "Pareto, alpha 5": Independent(stats.pareto(5)),
    "uniform on 0.5 to 1.5": Independent(stats.uniform(0.5, 1)),
    "beta(2, 5)": Independent(stats.beta(2, 5)),
    "2 % slow, log-normal x 20": Independent(stats.lognorm(0.3), stats.lognorm(0.4, scale=20), 0.02),
    "10 % slow, log-normal x 20": Independent(stats.lognorm(0.3), stats.lognorm(0.4, scale=20), 0.1),
    "2 % slow, log-normal x 4": Independent(stats.lognorm(0.3), stats.lognorm(0.3, scale=4), 0.02),
    "10 % slow, log-normal x 4": Independent(stats.lognorm(0.3), stats.lognorm(0.3, scale=4), 0.1),
    "2 % slow, 10 + exponential of 5": Independent(stats.expon(), stats.expon(10, 5), 0.02),
}

WITHIN: dict[str, Callable[[int, float, np.random.Generator], np.ndarray]] = {
    "log-normal": lambda n, spread, rng: 0.5 * spread * rng.standard_normal(n),
    "exponential": lambda n, spread, rng: spread * np.log(rng.exponential(size=n) + 0.3),
    "Pareto": lambda n, spread, rng: spread * rng.exponential(size=n) / 3,
    "bounded": lambda n, spread, rng: spread * np.log(0.5 + rng.random(n)),
    "some slow calls": lambda n, spread, rng: (
        0.3 * rng.standard_normal(n) + 2.0 * (rng.random(n) < min(0.02 * spread**2, 0.5))
    ),
}
"""Logarithms of durations in a phase, by its own spread."""


@dataclass(frozen=True)
class Phased:
    """Phases with a random location, spread, and a chance to be slow altogether."""

    within: str
    phases: int
    calls: int
    location: float
    spread: float
    slow: float

    def phase(self, n: int, effects: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Durations of one phase, seconds."""
        return SCALE_S * np.exp(effects[0] + WITHIN[self.within](n, effects[1], rng))

    def effects(self, rng: np.random.Generator) -> np.ndarray:
        """Location and spread of phases, some more than are seen: shape (phases + NEW_PHASES, 2)."""
        p = self.phases + NEW_PHASES
        location = rng.normal(0, self.location, p) + (rng.random(p) < self.slow)
        return np.column_stack([location, np.exp(rng.normal(0, self.spread, p))])


@dataclass
class Count:
    """Where the slowest call lay: below, inside, above, refused; and widths."""

    below: int = 0
    inside: int = 0
    above: int = 0
    refused: int = 0
    widths: list[float] | None = None

    def add(self, slowest_s: float, low_s: float | None, high_s: float | None) -> None:
        """One trial."""
        if low_s is None or high_s is None:
            self.refused += 1
            return
        self.below += slowest_s < low_s
        self.above += slowest_s > high_s
        self.inside += low_s <= slowest_s <= high_s
        self.widths = [*(self.widths or []), high_s / max(low_s, 1e-12)]

    @property
    def trials(self) -> int:
        """Trials with an answer."""
        return self.below + self.inside + self.above

    @property
    def coverage(self) -> float:
        """Share of them inside."""
        return self.inside / max(self.trials, 1)

    @property
    def width(self) -> float:
        """Median of high / low."""
        return float(np.median(self.widths or [np.nan]))


def independent_coverage(
    truth: Independent, calls: int, ratios: tuple[float, ...], trials: int, seed: int
) -> list[Count]:
    """Coverage of the slowest of ``ratio * calls``, one `Count` for each ratio.

    The tail is fitted once for all ratios; that `predict_slowest` agrees is tested.
    """
    rng = np.random.default_rng(seed)
    counts = [Count() for _ in ratios]
    for _ in range(trials):
        durations_s = truth.draw(calls, rng)
        tail = fit_pareto_tail(CountedDurations.from_durations(durations_s), np.sort(durations_s)[-LARGEST:])
        for count, ratio in zip(counts, ratios, strict=True):
            tasks = round(ratio * calls)
            low_s, high_s = (None, None) if tail is None else tail.quantiles_s(tasks, np.array([0.05, 0.95]))
            count.add(truth.slowest(tasks, rng), low_s, high_s)
    return counts


def phased_coverage(truth: Phased, ratios: tuple[float, ...], trials: int, seed: int) -> list[Count]:
    """Coverage of the slowest of ``ratio`` times the calls of a phase, in new ones."""
    rng = np.random.default_rng(seed)
    counts = [Count() for _ in ratios]
    for _ in range(trials):
        effects = truth.effects(rng)
        seen = np.concatenate([truth.phase(truth.calls, one, rng) for one in effects[: truth.phases]])
        sample = CountedDurations.from_durations(seen, np.repeat(np.arange(truth.phases), truth.calls))
        model = SlowestOfN.fit(sample)
        for count, ratio in zip(counts, ratios, strict=True):
            tasks = round(ratio * truth.calls)
            found = model.tail(tasks)
            for new in effects[truth.phases :]:
                count.add(float(truth.phase(tasks, new, rng).max()), found.low_s, found.high_s)
    return counts

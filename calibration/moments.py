"""Coverage of the intervals of moments and quantiles.

The truth is known: independent calls, and calls in phases that differ.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from scipy import stats

import ensembles as en
from calibration.page import show

LEVEL = 0.9
GOAL = "87–93 %"
QUANTILES = (0.5, 0.95)
TRIALS = 200
"""Number of ensembles that are drawn; the standard error of a coverage of 90 % is 2 %."""

INDEPENDENT = {
    "normal, cv 0.1": stats.norm(1.0, 0.1),
    "exponential": stats.expon(),
    "gamma 2": stats.gamma(2.0),
    "log-normal 0.5": stats.lognorm(0.5),
    "log-normal 1": stats.lognorm(1.0),
    "Weibull 0.7": stats.weibull_min(0.7),
    "Pareto 3": stats.pareto(3.0),
}


def truth_of(distribution: stats.rv_continuous) -> dict[str, float]:
    """Return the true values of the estimates, without infinite ones."""
    mean, variance = (float(x) for x in distribution.stats("mv"))
    even = distribution.ppf((np.arange(1_000_000) + 0.5) / 1_000_000)
    logs = np.log(np.maximum(even, 1e-12))
    truth = {
        "mean_s": mean,
        "sd_s": np.sqrt(variance),
        "cv": np.sqrt(variance) / mean,
        "log_mean": logs.mean(),
        "log_sd": logs.std(),
        **{f"quantile {q}": float(distribution.ppf(q)) for q in QUANTILES},
    }
    return {name: float(value) for name, value in truth.items() if np.isfinite(value)}


class Measured(NamedTuple):
    """How the intervals of one estimate did.

    The share that held the truth; the share that is open at one end, and holds it easily; the median width
    over the true value.
    """

    covered: float
    open: float
    width: float

    def cells(self) -> tuple[str, ...]:
        """Of the table."""
        width = "–" if np.isnan(self.width) else "open" if np.isinf(self.width) else f"{self.width:.2f}"
        return f"{self.covered:.1%}", f"{self.open:.0%}", width, GOAL


def measured(draw: Callable[[], en.Ensemble], truth: dict[str, float], trials: int) -> dict[str, Measured]:
    """What became of the intervals of each estimate."""
    inside: dict[str, list[bool]] = {name: [] for name in truth}
    is_open: dict[str, list[bool]] = {name: [] for name in truth}
    width: dict[str, list[float]] = {name: [] for name in truth}
    for _ in range(trials):
        ensemble = draw()
        found = ensemble.moments(LEVEL).estimates()
        quantiles = ensemble.quantiles(QUANTILES, LEVEL)
        found |= {f"quantile {q}": quantiles[q] for q in QUANTILES}
        for name, value in truth.items():
            low, high = found[name].low, found[name].high
            inside[name].append(low <= value <= high)
            is_open[name].append(not np.isfinite([low, high]).all())
            width[name].append((high - low) / abs(value) if abs(value) > 0.02 else np.nan)
    return {
        name: Measured(
            float(np.mean(inside[name])), float(np.mean(is_open[name])), float(np.median(width[name]))
        )
        for name in truth
    }


def independent(quick: bool, seed: int) -> Iterator[tuple[str, ...]]:
    """Calls that have nothing to do with each other."""
    random, n = np.random.default_rng(seed), 500
    for name in list(INDEPENDENT)[:: 3 if quick else 1]:
        distribution = INDEPENDENT[name]

        def draw(distribution: stats.rv_continuous = distribution) -> en.Ensemble:
            return en.Ensemble(np.maximum(distribution.rvs(n, random_state=random), 0), resolution_s=0.0)

        for what, found in measured(draw, truth_of(distribution), 40 if quick else TRIALS).items():
            yield f"{name}, n = {n}: {what}", *found.cells()


def dependent(quick: bool, seed: int) -> Iterator[tuple[str, ...]]:
    """Log-normal calls (0.5) in phases whose location varies by as much."""
    random = np.random.default_rng(seed)
    truth = truth_of(stats.lognorm(np.sqrt(0.5)))
    for phases, calls in ((20, 64), (50, 64), (200, 256))[: 1 if quick else 3]:
        phase = np.repeat(np.arange(phases), calls)

        def draw(phase: np.ndarray = phase, phases: int = phases) -> en.Ensemble:
            place = 0.5 * random.standard_normal(phases)
            durations_s = np.exp(place[phase] + 0.5 * random.standard_normal(len(phase)))
            return en.Ensemble(durations_s, phase, resolution_s=0.0)

        for what, found in measured(draw, truth, 40 if quick else TRIALS).items():
            yield f"{phases} phases of {calls} calls: {what}", *found.cells()


def main(quick: bool = False, seed: int = 41) -> None:
    """Print coverage and width of each interval."""
    headers = (f"truth in the {LEVEL:.0%} interval", "measured", "open", "median width / value", "goal")
    for part in (independent, dependent):
        show(part(quick, seed), headers)

"""Runs whose phases drift, for the calibration of predictions of the next phases."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ensembles.statistics.extremes.exchangeability import check_exchangeability
from ensembles.statistics.extremes.maximum import answer
from ensembles.statistics.samples.counted_durations import CountedDurations

CALLS = 48
_SPREAD = 0.3
_WITHIN = 0.5


def _remembering(share: float) -> Callable[[int, np.random.Generator], np.ndarray]:
    """A first-order autoregression with a variance of 1, in its stationary state."""

    def draw(p: int, rng: np.random.Generator) -> np.ndarray:
        from scipy.signal import lfilter

        before = 400
        noise = rng.standard_normal(p + before) * np.sqrt(1 - share**2)
        return lfilter([1.0], [1.0, -share], noise)[before:]

    return draw


def _noise(p: int, rng: np.random.Generator) -> np.ndarray:
    return rng.standard_normal(p)


DRIFTS: dict[str, Callable[[int, np.random.Generator], np.ndarray]] = {
    "independent phases": _noise,
    "correlation 0.5": _remembering(0.5),
    "correlation 0.8": _remembering(0.8),
    "correlation 0.95": _remembering(0.95),
    "trend of 2 sd": lambda p, rng: _noise(p, rng) + np.linspace(0, 2, p),
    "trend of 5 sd": lambda p, rng: _noise(p, rng) + np.linspace(0, 5, p),
    "random walk of 4.5 sd": lambda p, rng: _noise(p, rng) + np.cumsum(_noise(p, rng)) * np.sqrt(20 / p),
    "step of 4 sd, anywhere": lambda p, rng: _noise(p, rng) + 4 * (np.arange(p) > rng.random() * p),
    "8 regimes, 2 sd": lambda p, rng: _noise(p, rng) + 2 * np.repeat(_noise(8, rng), -(-p // 8))[:p],
    "warm-up of 4 sd": lambda p, rng: _noise(p, rng) + 4 * np.exp(-np.arange(p) / (p / 20)),
}
"""Locations of phases, in standard deviations of what they differ by at random."""


def later_half(name: str, phases: int, trials: int, seed: int) -> np.ndarray:
    """Predict the later half of runs from their first half.

    Returns
    -------
    ndarray of float64, shape (trials, 2)
        Share of the later phases within the interval, without and with the test of stationarity; NaN:
        refused.
    """
    rng = np.random.default_rng(seed)
    found = np.full((trials, 2), np.nan)
    half = phases // 2
    for trial in found:
        location = _SPREAD * DRIFTS[name](phases, rng)
        durations_s = 1e-3 * np.exp(location[:, None] + _WITHIN * rng.standard_normal((phases, CALLS)))
        seen = CountedDurations.from_durations(durations_s[:half].ravel(), np.repeat(np.arange(half), CALLS))
        said = answer(seen, CALLS, 0.9, check_exchangeability(seen))
        if said.low_s is None or said.high_s is None:
            continue
        slowest_s = durations_s[half:].max(1)
        trial[0] = np.mean((slowest_s >= said.low_s) & (slowest_s <= said.high_s))
        if said.unsettled is None:
            trial[1] = trial[0]
    return found

"""Runs whose phases drift, for the calibration of predictions of the next phase."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ensembles.statistics.extremes.next_phase import NextPhase, predict_next

CALLS = 48
_SPREAD = 0.3
_WITHIN = 0.5
_NORMAL_95 = 1.645


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


def next_phases(name: str, phases: int, trials: int, seed: int) -> list[NextPhase]:
    """Predict each phase of simulated runs from those before it."""
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(trials):
        location = _SPREAD * DRIFTS[name](phases, rng)
        log_s = location + (_WITHIN * rng.standard_normal((phases, CALLS))).max(1)
        told = predict_next(log_s)
        assert told is not None
        found.append(told)
    return found


def oracle_width(name: str, phases: int) -> float:
    """Width of the 90 % interval of an oracle: it knows the process, its parameters, and when it jumps.

    It sees the location of past phases through the noise of their slowest calls (the filter of Kalman 1960).
    """
    rng = np.random.default_rng(0)
    slowest = (_WITHIN * rng.standard_normal((40_000, CALLS))).max(1)
    noise = slowest.var()
    if name.startswith("correlation"):
        memory, variance = float(name.split()[1]), _SPREAD**2
        step = variance * (1 - memory**2)
    elif name.startswith("random walk"):
        memory, step, noise = 1.0, _SPREAD**2 * 20 / phases, noise + _SPREAD**2
        variance = noise
    else:
        return float(
            np.exp(np.ptp(np.quantile(slowest + _SPREAD * rng.standard_normal(40_000), [0.05, 0.95])))
        )
    for _ in range(500):
        variance = memory**2 * variance * noise / (variance + noise) + step
    return float(np.exp(2 * _NORMAL_95 * np.sqrt(variance + noise)))

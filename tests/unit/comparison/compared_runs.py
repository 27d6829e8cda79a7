"""Runs of which it is known whether and how they differ."""

from __future__ import annotations

import numpy as np

from ensembles.statistics.samples.counted_durations import CountedDurations

TWO_MODES = ((1e-3, 0.7, 0.2), (4e-3, 0.3, 0.2))
"""Median (s), share of the calls, and standard deviation of log duration of each mode."""
THREE_MODES = ((1e-3, 0.5, 0.1), (3e-3, 0.3, 0.1), (9e-3, 0.2, 0.1))


def run_of_modes(rng, modes=TWO_MODES, calls=1000, between_runs=0.02, factors=None, common=0.0):
    """A run whose modes lie a little elsewhere than in the next one; `factors` moves each mode.

    `common` is the standard deviation of a factor that all modes of a run share.
    """
    median_s, share, spread = (np.array(column) for column in zip(*modes, strict=True))
    here_s = median_s * np.exp(between_runs * rng.standard_normal(len(modes)))
    here_s = here_s * np.exp(common * rng.standard_normal())
    if factors is not None:
        here_s = here_s * np.asarray(factors)
    which = rng.choice(len(modes), calls, p=share)
    return CountedDurations.from_durations(here_s[which] * np.exp(spread[which] * rng.standard_normal(calls)))


def autoregression(rng, length, memory):
    """A stationary series of variance 1, whose neighbours are correlated by `memory`."""
    noise = rng.standard_normal(length)
    series = np.empty(length)
    series[0] = noise[0]
    for i in range(1, length):
        series[i] = memory * series[i - 1] + np.sqrt(1 - memory**2) * noise[i]
    return series


def run_of_phases(rng, phases, calls=64, memory=0.0, spread=0.15, heavy=False, factor=1.0):
    """A run whose phases are fast or slow as a whole, each much like the one before it, and have more or
    fewer slow calls."""
    effect = autoregression(rng, phases, memory)
    if heavy:
        effect = np.sign(effect) * np.abs(effect) ** 1.8
    phase = np.repeat(np.arange(phases), calls)
    slow_share = np.clip(0.1 * np.exp(autoregression(rng, phases, memory)), 0, 0.9)
    slow = rng.random(len(phase)) < slow_share[phase]
    typical_s = np.where(slow, 5e-3, 1e-3) * factor * np.exp(spread * effect[phase])
    return CountedDurations.from_durations(typical_s * rng.lognormal(0, 0.3, len(phase)), phase)

"""The mean of the slowest of N calls, where few very long calls of a phase decide it."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

import ensembles as en
from ensembles.statistics.extremes.phase_maxima import mean_of_maxima_s
from ensembles.statistics.samples.counted_durations import CountedDurations


def calls_with_far_ones(phases: int, calls: int, far: int, seed: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """Calls of about 1 µs, some of each phase of 1 to 10 ms, which take most of the time."""
    rng = np.random.default_rng(seed)
    durations_s = 1e-6 * rng.lognormal(0, 0.1, (phases, calls))
    durations_s[:, :far] = rng.uniform(1e-3, 1e-2, (phases, far))
    return rng.permuted(durations_s, axis=1).ravel(), np.repeat(np.arange(phases), calls)


@pytest.mark.parametrize("tasks", [1, 2, 5, 11, 12])
def test_mean_is_that_of_all_choices_of_calls(tasks: int) -> None:
    rng = np.random.default_rng(7)
    durations_s = rng.lognormal(-7, 2, (2, 12))
    sample = CountedDurations.from_durations(durations_s.ravel(), np.repeat([0, 1], 12))
    expected = [np.mean([max(chosen) for chosen in combinations(phase, tasks)]) for phase in durations_s]
    # A bin is a sixteenth of an octave wide or less.
    assert mean_of_maxima_s(sample, tasks) == pytest.approx(expected, rel=0.02)


@pytest.mark.parametrize("calls", [5_000, 400_000])
def test_few_far_calls_count_for_the_mean_of_the_slowest(calls: int) -> None:
    durations_s, phase = calls_with_far_ones(phases=6, calls=calls, far=5)
    ensemble = en.Ensemble(durations_s, phase)
    found = {tasks: ensemble.tail(tasks) for tasks in (1, 2, 3, 8)}
    # N calls out of so many, of which few are far: N times their part, and what others last.
    far_s = durations_s[durations_s > 1e-4].sum() / len(durations_s)
    for tasks, tail in found.items():
        near = sum(1e-6 * np.random.default_rng(3).lognormal(0, 0.1, (4000, tasks)).max(1)) / 4000
        assert tail.mean_s == pytest.approx(tasks * far_s + near, rel=0.03)
    means_s = [tail.mean_s for tail in found.values()]
    assert means_s == sorted(means_s)
    assert means_s[0] == pytest.approx(durations_s.mean(), rel=0.02)


@pytest.mark.parametrize("calls", [5_000, 60_000])
def test_splitting_far_calls_gains_nothing(calls: int) -> None:
    """A task with a far call is the slowest with k-ths of it, too, and k times as many tasks have such parts.

    60,000 calls in each of 6 phases are more than are split, and the means of those differ.
    """
    durations_s, phase = calls_with_far_ones(phases=6, calls=calls, far=5)
    split = en.Ensemble(durations_s, phase).split([1, 2, 4], tasks=2)
    whole_s = en.Ensemble(durations_s, phase).tail(2).mean_s
    assert [one.speedup for one in split.splits] == pytest.approx([1, 1, 1], abs=0.03)
    assert [one.mean_s for one in split.splits] == pytest.approx([whole_s] * 3, rel=0.03)


@pytest.mark.parametrize("draw", ["lognormal", "pareto", "exponential"])
def test_mean_never_falls_with_the_number_of_calls(draw: str) -> None:
    rng = np.random.default_rng(5)
    drawn = {
        "lognormal": rng.lognormal(0, 1, 6000),
        "pareto": rng.pareto(1.2, 6000) + 1,
        "exponential": rng.exponential(1.0, 6000),
    }
    durations_s = 1e-5 * drawn[draw]
    ensemble = en.Ensemble(durations_s, np.repeat(np.arange(12), 500))
    means_s = [tail.mean_s for tasks in (1, 2, 3, 7, 30, 200, 500) if (tail := ensemble.tail(tasks)).mean_s]
    assert len(means_s) > 3
    assert min(means_s) >= 0.98 * durations_s.mean()
    assert means_s[0] >= 0.98 * durations_s.mean()
    assert means_s == sorted(means_s)

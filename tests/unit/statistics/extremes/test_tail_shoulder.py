"""Slow calls that are a shoulder of the mode below, seen by log-concavity."""

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from ensembles.statistics.extremes.last_mode import last_shoulder_s, too_few
from ensembles.statistics.extremes.pareto_tail import fit_pareto_tail
from ensembles.statistics.samples.counted_durations import CountedDurations


def with_slow(rng, calls, share, factor):
    slow = rng.random(calls) < share
    return 1e-3 * rng.lognormal(0, 0.3, calls) * np.where(slow, factor, 1.0)


def test_a_shoulder_without_a_valley_is_seen():
    rng = np.random.default_rng(10)
    samples = [CountedDurations.from_durations(with_slow(rng, 10_000, 0.02, 4.0)) for _ in range(20)]
    places_s = np.array([last_shoulder_s(sample) for sample in samples])
    # The slow calls lie within 2.2 to 7.3 ms (two standard deviations), the others below 2.5 ms (three).
    assert np.all((places_s > 2e-3) & (places_s < 5e-3))


@pytest.mark.parametrize(
    "draw",
    [
        lambda rng: rng.exponential(size=2000),
        lambda rng: rng.lognormal(0, 0.5, 2000),
        lambda rng: rng.pareto(3, 2000) + 1,
        lambda rng: rng.uniform(0.5, 1.5, 2000),
        lambda rng: rng.beta(2, 5, 2000),
    ],
    ids=["exponential", "log-normal", "Pareto", "uniform", "beta"],
)
def test_one_kind_of_calls_seldom_shows_a_shoulder(draw):
    rng = np.random.default_rng(11)
    assert (
        np.mean([last_shoulder_s(CountedDurations.from_durations(1e-3 * draw(rng))) > 0 for _ in range(25)])
        < 0.2
    )


@pytest.mark.parametrize("step_s", [1e-5, 1e-4])
def test_ticks_of_a_clock_are_no_kinds_of_calls(step_s):
    rng = np.random.default_rng(13)
    samples = [
        CountedDurations.from_durations(
            np.maximum(np.rint(1e-3 * rng.lognormal(0, 0.5, 5000) / step_s), 1) * step_s, None, step_s
        )
        for _ in range(20)
    ]
    assert np.mean([last_shoulder_s(sample) > 0 for sample in samples]) < 0.2


@pytest.mark.parametrize(("a", "b", "c", "u"), [(100.0, 3.0, 12.0, 0.5), (40.0, 0.0, 9.0, 1 / 3)])
def test_likelihood_ratio_is_that_of_a_search(a, b, c, u):
    def lost(means):
        counts = np.array([a, b, c])
        logs = np.log(np.maximum(counts, 1e-300) / means)
        return 2 * (counts * logs - counts + means).sum()

    def best_for(log_c):
        def given(log_a):
            return lost(np.exp([log_a, u * log_a + (1 - u) * log_c, log_c]))

        return minimize_scalar(given, bounds=(-3, 8), method="bounded", options={"xatol": 1e-9}).fun

    least = minimize_scalar(best_for, bounds=(-3, 8), method="bounded", options={"xatol": 1e-9}).fun
    found = too_few(*(np.array([value]) for value in (a, b, c, u)))
    assert found[0] == pytest.approx(np.sqrt(least), rel=1e-3)


def test_the_tail_of_a_shoulder_is_made_of_its_calls():
    rng = np.random.default_rng(12)
    seen = with_slow(rng, 10_000, 0.02, 4.0)
    tail = fit_pareto_tail(CountedDurations.from_durations(seen), np.sort(seen)[-1000:])
    assert tail.threshold_s > 2e-3
    assert tail.above <= 60
    # 4 ms times the largest of some 20,000 log-normal values: 0.3 * 3.9 standard deviations.
    low_s, high_s = tail.quantiles_s(1_000_000, np.array([0.01, 0.99]))
    assert low_s < 4e-3 * np.exp(0.3 * 3.9) < high_s


@pytest.mark.parametrize("durations_s", [[1e-3], [1e-3, 1e-3, 2e-3], np.zeros(100), np.full(1000, 5e-6)])
def test_too_few_different_calls_have_no_shoulder(durations_s):
    assert last_shoulder_s(CountedDurations.from_durations(np.array(durations_s))) == 0.0

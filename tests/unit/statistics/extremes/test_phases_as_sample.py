"""The slowest of N in a new phase, from phases that differ."""

import numpy as np
import pytest

from ensembles.statistics.extremes.per_phase_exceedance import maximum_by_share
from ensembles.statistics.extremes.phase_maxima import (
    PhaseMaxima,
    effective_number,
    longest_log_s,
    phase_maxima,
)
from ensembles.statistics.samples.counted_durations import CountedDurations


def some_phases(phases, calls, seed):
    rng = np.random.default_rng(seed)
    phase = np.repeat(np.arange(phases), calls)
    durations_s = 1e-3 * np.exp(rng.normal(0, 0.4, phases)[phase] + 0.5 * rng.standard_normal(len(phase)))
    return durations_s, phase


def test_as_many_tasks_as_before_need_nothing_but_the_slowest_of_each_phase():
    durations_s, phase = some_phases(99, 64, 1)
    sample = CountedDurations.from_durations(durations_s, phase)
    found = phase_maxima(sample, 64)
    np.testing.assert_allclose(np.sort(found.log_s[:, 0]), np.sort(np.log(sample.max_s)))


def test_maxima_that_are_not_normal_are_predicted_by_their_order():
    log_s = np.where(np.arange(99) < 20, 2.0, 0.0) + 0.1 * np.random.default_rng(1).normal(size=99)
    maxima = PhaseMaxima(log_s[:, None], 99.0, False, log_s)
    assert not maxima.normal
    # The 5th of 99 has a chance of exactly 5 % to exceed a 100th; places between are interpolated.
    expected = np.exp(np.sort(log_s)[[4, 49, 94]])
    np.testing.assert_allclose(maxima.quantiles_s(np.array([0.05, 0.5, 0.95])), expected, rtol=1e-9)


def test_few_phases_get_the_interval_of_students_t():
    from scipy import stats

    log_s = np.random.default_rng(2).normal(0, 0.3, 8)
    found = PhaseMaxima(log_s[:, None], 8.0, False, log_s).quantiles_s(np.array([0.05, 0.95]))
    half = stats.t.ppf(0.95, 7) * log_s.std(ddof=1) * np.sqrt(1 + 1 / 8)
    np.testing.assert_allclose(np.log(found), [log_s.mean() - half, log_s.mean() + half], rtol=1e-6)


def test_a_slow_phase_widens_the_interval_upwards_only():
    from scipy import stats

    levels = np.array([0.05, 0.5, 0.95])
    usual = np.array([2.88, 2.89, 2.9, 2.92, 2.87])
    log_s = np.append(usual, 3.8)
    low, median, high = np.log(PhaseMaxima(log_s[:, None], 6.0, False, log_s).quantiles_s(levels))
    # That of the other phases below the median, and of all above it.
    half = stats.t.ppf(0.95, 4) * usual.std(ddof=1) * np.sqrt(1 + 1 / 5)
    assert low == pytest.approx(usual.mean() - half, rel=1e-6)
    assert median == pytest.approx(log_s.mean(), rel=1e-9)
    half = stats.t.ppf(0.95, 5) * log_s.std(ddof=1) * np.sqrt(1 + 1 / 6)
    assert high == pytest.approx(log_s.mean() + half, rel=1e-6)


@pytest.mark.parametrize(("slow", "least", "most"), [(0.0, 0.035, 0.065), (0.15, 0.022, 0.05)])
def test_phases_below_the_interval_are_as_rare_as_stated(slow, least, most):
    # Equal phases, and phases of which one in seven is 2.5 times as slow: 1.5 % are below that of all.
    rng = np.random.default_rng(7)
    log_s = rng.normal(0, 0.15, (3000, 7)) + np.log(2.5) * (rng.random((3000, 7)) < slow)
    low = [PhaseMaxima(row[:6, None], 6.0, False, row).quantiles_s(np.array([0.05]))[0] for row in log_s]
    assert least <= np.mean(np.exp(log_s[:, 6]) < low) <= most


@pytest.mark.parametrize("tasks", [1, 3, 50, 199])
def test_fewer_tasks_are_drawn_without_replacement(tasks):
    durations_s, phase = some_phases(40, 200, 3)
    found = phase_maxima(CountedDurations.from_durations(durations_s, phase), tasks)
    rng = np.random.default_rng(4)
    groups = durations_s.reshape(40, 200)
    drawn = np.array([rng.permuted(groups, axis=1)[:, :tasks].max(1) for _ in range(200)])
    for level in (0.03, 0.1, 0.5, 0.9):
        assert np.quantile(found.log_s, level) == pytest.approx(np.quantile(np.log(drawn), level), abs=0.06)


def test_more_tasks_reach_where_the_truth_does():
    rng = np.random.default_rng(5)
    found, truth = [], []
    for _ in range(12):
        location = rng.normal(0, 0.3, 100)
        seen = np.exp(location[:, None] + 0.5 * rng.standard_normal((100, 64)))
        more = np.exp(location[:, None] + 0.5 * rng.standard_normal((100, 1024)))
        sample = CountedDurations.from_durations(1e-3 * seen.ravel(), np.repeat(np.arange(100), 64))
        found.append(np.median(phase_maxima(sample, 1024).log_s))
        truth.append(np.median(np.log(1e-3 * more.max(1))))
    assert np.mean(found) == pytest.approx(np.mean(truth), abs=0.1)


def test_ranked_calls_of_each_phase_are_found_in_their_bins():
    durations_s, phase = some_phases(7, 90, 6)
    sample = CountedDurations.from_durations(durations_s, phase)
    ranks = np.array([1.0, 2, 5, 30, 90])
    expected = -np.sort(-durations_s.reshape(7, 90), axis=1)[:, ranks.astype(int) - 1]
    found = np.exp(longest_log_s(sample, np.broadcast_to(ranks, (7, 5))))
    np.testing.assert_allclose(found, expected, rtol=0.035)
    np.testing.assert_allclose(found[:, 0], expected[:, 0], rtol=1e-9)


def test_effective_number_of_an_autoregressive_series_is_known():
    rng, found = np.random.default_rng(7), []
    for _ in range(20):
        series = np.empty(2000)
        last = 0.0
        for place, shock in enumerate(rng.standard_normal(2000)):
            last = series[place] = 0.7 * last + shock
        found.append(effective_number(series))
    assert np.mean(found) == pytest.approx(2000 * 0.3 / 1.7, rel=0.2)


def test_independent_series_keep_their_number():
    rng = np.random.default_rng(8)
    found = [effective_number(rng.standard_normal(200)) for _ in range(50)]
    assert np.median(found) == 200


def test_phases_of_nearly_as_many_calls_keep_their_slowest_where_others_have_fewer():
    durations_s, phase = some_phases(60, 100, 9)
    kept = np.ones(len(phase), bool)
    kept[(phase % 10 == 0) & (np.arange(len(phase)) % 100 < 20)] = False
    sample = CountedDurations.from_durations(durations_s[kept], phase[kept])
    found = phase_maxima(sample, 100).log_s
    whole = sample.n == 100
    seen = np.log(sample.max_s[whole])[:, None]
    np.testing.assert_allclose(found[whole], np.broadcast_to(seen, found[whole].shape))
    assert np.all(found[~whole].mean(1) > np.log(sample.max_s[~whole]))


@pytest.mark.parametrize("seed", [7, 12, 13])
def test_phases_without_a_slow_call_are_expected_among_larger_ones(seed):
    """By moments of the shares of slow calls, half as many were expected."""
    rng = np.random.default_rng(seed)
    share = np.repeat(rng.beta(0.5, 24.5, 20), 64)
    durations_s = 1e-3 * np.exp(rng.normal(0, 0.2, 1280) + np.log(8) * (rng.random(1280) < share))
    sample = CountedDurations.from_durations(durations_s, np.repeat(np.arange(20), 64))
    log_s = maximum_by_share(sample, np.zeros(20) + np.log(1e-3), 512)
    none = float(np.mean(np.exp(log_s) < 3e-3))
    assert 0.12 < none < 0.4  # 0.21 of such phases have none

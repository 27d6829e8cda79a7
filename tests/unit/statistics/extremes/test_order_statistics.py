"""Equation 1, and bands for the slowest of N that hold for any distribution."""

from math import comb

import numpy as np
import pytest
from scipy import stats

from ensembles.statistics.extremes.order_statistics import (
    UpperOrderStatistics,
    chance_below_longest,
    compute_equation1,
    max_tasks,
    maximum_distribution,
)
from ensembles.statistics.samples.counted_durations import CountedDurations


@pytest.mark.parametrize(("calls", "tasks", "rank"), [(20, 1, 1), (50, 7, 3), (100, 40, 10), (30, 30, 30)])
def test_chance_is_that_of_drawing_the_longest_calls_among_old_ones(calls, tasks, rank):
    # All places of the new calls among old and new are equally likely; none may be among the `rank` longest.
    expected = comb(calls + tasks - rank, tasks) / comb(calls + tasks, tasks)
    assert chance_below_longest(calls, tasks, np.array([rank]))[0] == pytest.approx(expected, rel=1e-9)
    assert stats.betabinom.pmf(0, tasks, rank, calls - rank + 1) == pytest.approx(expected, rel=1e-9)


def test_chance_of_a_thousand_million_calls_keeps_its_digits():
    found = chance_below_longest(10**9, 10**6, np.array([1000.0]))[0]
    assert found == pytest.approx((1 + 1e-3) ** -1000, rel=1e-5)


def test_reach_ends_where_the_longest_call_is_the_upper_end():
    for calls in (100, 1000, 12345):
        tasks = max_tasks(calls, 0.9)
        assert chance_below_longest(calls, tasks, np.array([1.0]))[0] >= 0.95
        assert chance_below_longest(calls, tasks + 1, np.array([1.0]))[0] < 0.95


@pytest.mark.parametrize("truth", [stats.lognorm(1.2), stats.uniform(1, 2), stats.pareto(1.5)])
def test_band_within_reach_holds_for_any_distribution(truth):
    rng = np.random.default_rng(5150)
    inside, trials, calls, tasks = 0, 1000, 2000, 100
    for _ in range(trials):
        seen = truth.rvs(calls, random_state=rng) * 1e-3
        curve = UpperOrderStatistics.from_sample(CountedDurations.from_durations(seen), np.sort(seen)[-500:])
        low, high = curve.quantiles_s(tasks, np.array([0.05, 0.95]))
        inside += low <= 1e-3 * truth.ppf(rng.random() ** (1 / tasks)) <= high
    assert abs(inside / trials - 0.9) < 4 * np.sqrt(0.09 / trials)


def test_longest_calls_that_are_known_are_the_order_statistics():
    seen = np.random.default_rng(2).exponential(1e-3, 5000)
    curve = UpperOrderStatistics.from_sample(CountedDurations.from_durations(seen), np.sort(seen)[-100:])
    ranks = np.array([1, 2, 50, 100])
    np.testing.assert_allclose(np.interp(ranks, curve.rank, curve.duration_s), np.sort(seen)[-ranks])
    # Of the others the bin is known.
    deep = np.array([500, 2000])
    np.testing.assert_allclose(np.interp(deep, curve.rank, curve.duration_s), np.sort(seen)[-deep], rtol=0.03)


def test_equation_1_is_the_slowest_of_draws_with_replacement():
    rng = np.random.default_rng(8)
    seen, tasks = rng.lognormal(-7, 1, 3000), 40
    found = compute_equation1(CountedDurations.from_durations(seen), tasks)
    drawn = rng.choice(seen, (20000, tasks)).max(1)
    low, median, high = np.quantile(drawn, [0.05, 0.5, 0.95])
    assert found.low_s == pytest.approx(low, rel=0.04)
    assert found.median_s == pytest.approx(median, rel=0.04)
    assert found.high_s == pytest.approx(high, rel=0.06)
    assert found.mean_s == pytest.approx(drawn.mean(), rel=0.03)


def test_equation_1_is_a_power_of_the_distribution_at_the_edges_of_bins():
    seen = np.random.default_rng(9).gamma(3, 1e-3, 2000)
    edges, chance = maximum_distribution(CountedDurations.from_durations(seen), 17)
    some = np.searchsorted(edges, [1e-3, 3e-3, 8e-3])
    empirical = np.searchsorted(np.sort(np.rint(seen * 1e9)), np.rint(edges[some] * 1e9), side="left") / len(
        seen
    )
    np.testing.assert_allclose(chance[some], empirical**17, rtol=1e-9)


def test_equation_1_never_exceeds_what_was_seen():
    seen = np.random.default_rng(10).exponential(1e-3, 100)
    found = compute_equation1(CountedDurations.from_durations(seen), 10**6)
    assert found.median_s == pytest.approx(seen.max())
    assert found.low_s == pytest.approx(seen.max())


@pytest.mark.parametrize(("tasks", "reached"), [(20, True), (100, True), (101, False), (10**6, False)])
def test_equation_1_has_no_upper_end_beyond_the_reach_of_its_calls(tasks, reached):
    seen = np.random.default_rng(12).exponential(1e-3, 1900)
    found = compute_equation1(CountedDurations.from_durations(seen), tasks)
    assert (found.high_s is not None) == reached == (not found.is_bound)
    assert str(found).startswith("at least ") == (not reached)
    if reached:
        assert found.low_s < found.high_s <= seen.max()


def test_equation_1_says_how_many_phases_its_interval_is_of():
    """Calls of four phases end at one limit: together they look as if the slowest were known exactly."""
    rng = np.random.default_rng(8)
    limit_s = np.repeat([13.42, 13.42, 13.33, 13.42, 13.42], 400)
    durations_s = limit_s - 1e-3 * rng.exponential(size=2000)
    phase = np.repeat(np.arange(5), 400)
    found = compute_equation1(CountedDurations.from_durations(durations_s, phase), 1000)
    assert durations_s.max() - found.low_s < 1e-3 * found.low_s
    assert found.phases == 4
    assert compute_equation1(CountedDurations.from_durations(durations_s), 1000).phases is None

"""Trends over ordinals are found where they are, and not where there are none."""

import numpy as np
import pytest
from scipy.stats import binom

from ensembles.structure.ordinals.trend import _no_trend, fit_trend

MADBENCH = [15, 15, 15, 30, 60, 120, 250, 500] + [15] * 8
"""Typical seconds of the reads of a task: from the fourth to the eighth they get worse."""


def trend_in(typical_s, ranks, seed, spread=0.3, of_ordinal=0.0, of_rank=0.2):
    """Of log-normal durations, whose ordinals and ranks have their own random effects."""
    random = np.random.default_rng(seed)
    p = len(typical_s)
    logs = np.log(np.array(typical_s, float)) + random.normal(0, spread, (ranks, p))
    logs += random.normal(0, of_ordinal, p) + random.normal(0, of_rank, (ranks, 1))
    ordinal = np.arange(1, p + 1)
    return fit_trend(ordinal, ordinal, np.median(logs, axis=0), logs)


@pytest.mark.parametrize("seed", range(10))
def test_the_reads_of_madbench_worsen_from_the_fourth_to_the_eighth(seed):
    found = trend_in(MADBENCH, 256, seed)
    assert (found.worsening, found.from_, found.to) == (True, 4, 8)
    assert found.rise == pytest.approx(500 / 15, rel=0.3)
    assert found.ranks_rising > 0.99
    assert found.p <= 0.05
    assert found.to_json()["from"] == 4
    assert str(found).startswith("gets slower from ordinal 4 to 8: ")


def test_small_worsening_is_mostly_placed_right():
    typical_s = [15, 15, 15, 18, 21, 25, 30, 36] + [15] * 8
    found = [trend_in(typical_s, 256, 100 + seed, of_ordinal=0.02) for seed in range(20)]
    assert sum((trend.from_, trend.to) == (4, 8) for trend in found) >= 19
    assert all(trend.worsening for trend in found)


def test_a_trend_over_all_ordinals_has_no_beginning_but_the_first():
    found = trend_in([1, 2, 3, 4, 5, 6, 7, 8], 64, 1, spread=0.1)
    assert (found.worsening, found.from_, found.to) == (True, 1, 8)


@pytest.mark.parametrize(("ordinals", "of_ordinal"), [(8, 0.3), (16, 0.0), (16, 0.5)])
def test_random_phases_make_no_trend(ordinals, of_ordinal):
    """At the level of 5 %, though all ranks share what befalls an ordinal: 7 of 40 alarms have p = 0.004."""
    found = [trend_in([1] * ordinals, 64, 500 + seed, of_ordinal=of_ordinal) for seed in range(40)]
    assert sum(trend.worsening for trend in found) <= 6


def test_faster_and_faster_is_no_worsening():
    found = trend_in([8, 7, 6, 5, 4, 3, 2, 1], 64, 2)
    assert not found.worsening
    assert (found.from_, found.to, found.to_json()["from"]) == (None, None, None)


def test_a_slow_first_call_is_no_worsening():
    found = [trend_in([5] + [1] * 15, 64, 600 + seed, of_ordinal=0.05) for seed in range(20)]
    assert sum(trend.worsening for trend in found) <= 4


def test_a_rise_by_less_than_a_tenth_is_none():
    level = np.log(1 + 0.05 * np.linspace(0, 1, 20))
    found = fit_trend(np.arange(1, 21), np.arange(1, 21), level)
    assert not found.worsening
    assert "by 10 % or more" in str(found)


def test_too_few_ordinals_cannot_say():
    for n in range(4):
        found = fit_trend(np.arange(1, n + 1), np.arange(1, n + 1), np.log(10.0 ** np.arange(n)))
        assert not found.worsening
        assert "too few" in str(found)


def test_of_many_ordinals_neighbours_are_taken_together():
    n = 5000
    random = np.random.default_rng(3)
    level = np.where(np.arange(n) < 2500, 0.0, (np.arange(n) - 2500) / 1000) + random.normal(0, 0.3, n)
    found = fit_trend(np.arange(1, n + 1), np.arange(1, n + 1), level)
    assert found.worsening
    assert 2000 < found.from_ < 3000
    assert found.to > 4700


def test_ranks_without_one_of_the_calls_do_not_count_as_rising():
    logs = np.tile(np.arange(6.0), (4, 1))
    logs[1] = logs[1, ::-1]
    logs[3, 2] = np.nan
    found = fit_trend(np.arange(1, 7), np.arange(1, 7), np.arange(6.0), logs)
    assert found.ranks_rising == pytest.approx(2 / 3)


def slowly_varying(random, length, correlation):
    """A stationary autoregression of first order, of standard deviation 1."""
    series = np.empty(length)
    series[0] = random.normal()
    for place in range(1, length):
        series[place] = correlation * series[place - 1] + np.sqrt(1 - correlation**2) * random.normal()
    return series


@pytest.mark.parametrize("correlation", [0.5, 0.8, 0.95])
@pytest.mark.parametrize("ordinals", [8, 24, 64])
def test_a_load_that_varies_slowly_is_no_trend(ordinals, correlation):
    """Orders drawn at random called 13 % (8 ordinals) to 85 % (64) of such healthy runs worsening."""
    trials, number = 60, np.arange(1, ordinals + 1)
    alarms = 0
    for seed in range(trials):
        random = np.random.default_rng([ordinals, seed, int(10 * correlation)])
        level = 0.3 * slowly_varying(random, ordinals, correlation) + random.normal(0, 0.05, ordinals)
        alarms += fit_trend(number, number, level).worsening
    assert alarms <= binom.ppf(0.99, trials, 0.05)


def test_a_rise_as_of_a_random_walk_is_said_and_is_no_trend():
    number = np.arange(1, 25)
    walks = np.cumsum(np.random.default_rng(24).normal(0, 0.3, (40, 24)), axis=1)
    found = [fit_trend(number, number, walk) for walk in walks]
    assert sum(trend.worsening for trend in found) <= binom.ppf(0.99, 40, 0.05)
    assert any("a load that wanders does as much" in str(trend) and trend.p > 0.05 for trend in found)


@pytest.mark.parametrize(("ordinals", "least"), [(8, 15), (16, 19), (64, 20)])
def test_a_steady_doubling_is_found_in_spite_of_that(ordinals, least):
    found = [trend_in(np.linspace(1, 2, ordinals), 64, 900 + seed) for seed in range(20)]
    assert sum(trend.worsening for trend in found) >= least


def test_one_slow_ordinal_at_the_end_is_no_trend():
    found = [trend_in([1.0] * 63 + [3.0], 64, 950 + seed) for seed in range(20)]
    assert sum(trend.worsening for trend in found) <= binom.ppf(0.99, 20, 0.05)


@pytest.mark.parametrize("ordinals", [1, 2, 3])
def test_of_one_to_three_ordinals_the_trend_says_that_they_are_too_few(ordinals):
    found = trend_in(np.linspace(1, 2, ordinals), 64, 3)
    assert (found.worsening, found.p) == (False, None)
    assert "too few for a trend test" in str(found)


def test_calls_that_get_faster_have_no_negative_rise():
    sentence = _no_trend(1e-6, 0.954)
    assert "the end is 4.6 % faster" in sentence
    assert "rise" not in sentence
    assert "the rise is 4.6 %" in _no_trend(1e-6, 1.046)

"""Very many calls, drawn as counts and longest calls: their law, and the slowest of N from them."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from project import ROOT
from scipy import stats

from ensembles.statistics.extremes.slowest_of_n import LARGEST
from ensembles.summaries.bins import bin_edges_s, bin_index

sys.path.insert(0, str(ROOT))
from many_calls_drawn import chance_below, drawn, many_calls_coverage, survival

from calibration.cases.tail_cases import INDEPENDENT

LAWS = ("exponential", "Pareto, alpha 3", "2 % slow, log-normal x 4")


@pytest.mark.parametrize("name", LAWS)
def test_counts_are_those_of_independent_draws(name: str) -> None:
    rng, n, draws = np.random.default_rng(5), 20_000, 60
    truth = INDEPENDENT[name]
    counted = np.sum([drawn(truth, n, rng)[0].counts for _ in range(draws)], axis=0)
    assert counted.sum() == n * draws
    begin_s = np.maximum(bin_edges_s() - 0.5e-9, 0.0)  # durations are rounded to whole ns
    expected = -np.diff(survival(truth, begin_s)) * n * draws
    assert expected.sum() == pytest.approx(n * draws)
    often = expected >= 10
    rest = [counted[~often].sum()], [expected[~often].sum()]
    seen, wanted = np.append(counted[often], rest[0]), np.append(expected[often], rest[1])
    assert stats.chisquare(seen, wanted * seen.sum() / wanted.sum()).pvalue > 1e-3


@pytest.mark.parametrize("name", LAWS)
@pytest.mark.parametrize("rank", [1, 100, LARGEST])
def test_longest_calls_are_order_statistics(name: str, rank: int) -> None:
    rng, n = np.random.default_rng(6), 1_000_000
    truth = INDEPENDENT[name]
    durations_s = np.array([drawn(truth, n, rng)[1][-rank] for _ in range(100)])
    # The survival of the k-th longest of n is a beta variable.
    assert stats.kstest(survival(truth, durations_s), stats.beta(rank, n - rank + 1).cdf).pvalue > 1e-3


def test_longest_calls_lie_in_the_bins_that_are_counted() -> None:
    sample, longest_s = drawn(INDEPENDENT["2 % slow, log-normal x 4"], 100_000_000, np.random.default_rng(7))
    assert sample.total == 100_000_000
    assert sample.max_s.max() == longest_s[-1]
    first = bin_index(np.rint(longest_s[:1] * 1e9).astype(np.int64))[0] + 1
    above = np.bincount(bin_index(np.rint(longest_s * 1e9).astype(np.int64)), minlength=len(sample.counts))
    assert np.array_equal(sample.counts[first:], above[first:])


def test_chance_below_is_the_share_of_slowest_calls() -> None:
    rng, truth = np.random.default_rng(8), INDEPENDENT["2 % slow, log-normal x 4"]
    slowest_s = truth.draw(500 * 2000, rng).reshape(2000, 500).max(axis=1)
    assert stats.kstest(slowest_s, lambda value_s: chance_below(truth, 500, value_s)).pvalue > 1e-3


@pytest.mark.parametrize("exactly", [True, False], ids=["longest-calls", "bins"])
@pytest.mark.parametrize("name", ["exponential", "log-normal, sd 1"])
def test_slowest_of_a_tenth_to_a_hundred_times_a_million_calls(name: str, exactly: bool) -> None:
    found = many_calls_coverage(INDEPENDENT[name], 1_000_000, (0.1, 100.0), 20, 1908, exactly)
    for one in found:
        assert one.trials == 20
        assert one.coverage == pytest.approx(0.9, abs=0.03 + 3.5 * one.error)

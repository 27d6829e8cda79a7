"""The pieces of a comparison against theory and against other implementations."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats
from compared_runs import autoregression, run_of_phases

from ensembles.comparison.components import (
    bin_octaves,
    component_shares,
    compute_scores,
    fit_partition,
    quantile_octaves,
)
from ensembles.comparison.hypothesis_tests import (
    dunn_test,
    kolmogorov_smirnov,
    rank_statistic,
    rank_test,
    smallest_rank_p,
    wasserstein_octaves,
)
from ensembles.comparison.model import holm
from ensembles.comparison.shifts import matched
from ensembles.comparison.units import (
    RunCalls,
    block_memory,
    lost_spread,
    make_blocks,
    merged,
    sliced,
    unit_counts,
)
from ensembles.statistics.samples.counted_durations import CountedDurations
from ensembles.summaries.bins import BIN_COUNT


def modes_in(durations_s, resolution_s=0.0):
    counts = CountedDurations.from_durations(durations_s).counts.astype(float)
    return len(fit_partition(counts, len(durations_s), resolution_s))


def test_holm_multiplies_by_what_is_left():
    np.testing.assert_allclose(holm([0.01, 0.04, 0.03, np.nan]), [0.03, 0.06, 0.06, np.nan])


def test_rank_tests_are_those_of_scipy():
    rng = np.random.default_rng(8)
    a, b, c = rng.normal(0, 1, 6), rng.normal(1, 1, 5), rng.normal(2, 1, 4)
    expected = scipy.stats.mannwhitneyu(a, b, alternative="two-sided", method="exact").pvalue
    assert rank_test([a, b]) == pytest.approx(expected, rel=1e-12)
    assert rank_test([a, b, c]) == pytest.approx(scipy.stats.kruskal(a, b, c).pvalue, rel=1e-12)
    assert np.isnan(rank_test([a, np.empty(0)]))
    assert rank_test([np.ones(4), np.ones(5)]) == 1.0


@pytest.mark.parametrize(("sizes", "decimals"), [((49, 49), 9), ((1, 49), 9), ((50, 7), 9), ((60, 90), 1)])
def test_rank_tests_of_many_values_are_those_of_scipy(sizes: tuple[int, int], decimals: int) -> None:
    random = np.random.default_rng(7)
    a, b, c = (random.normal(place, size=size).round(decimals) for place, size in enumerate((*sizes, 9)))
    method = "exact" if max(sizes) < 50 else "asymptotic"
    found = scipy.stats.mannwhitneyu(a, b, alternative="two-sided", method=method)
    assert rank_statistic([a, b])[1:] == pytest.approx((found.statistic, found.pvalue), rel=1e-12)
    found = scipy.stats.kruskal(a, b, c)
    assert rank_statistic([a, b, c])[1:] == pytest.approx((found.statistic, found.pvalue), rel=1e-9)


def test_rank_tests_of_few_values_with_ties_are_exact():
    """Three zeros are ties: by the normal distribution p would be 0.064, below what 3 + 3 runs can show."""
    assert rank_test([np.array([3.0, 1.0, 2.0]), np.zeros(3)]) == pytest.approx(0.1)
    rng = np.random.default_rng(9)
    a, b = rng.integers(0, 4, 6).astype(float), rng.integers(1, 6, 5).astype(float)

    def mean_rank(x, y):
        return scipy.stats.rankdata(np.append(x, y))[: len(x)].mean()

    expected = scipy.stats.permutation_test((a, b), mean_rank, n_resamples=np.inf, vectorized=False).pvalue
    assert rank_test([a, b]) == pytest.approx(expected)


def test_rank_test_of_one_value_each_says_nothing():
    one = np.array([1.0]), np.array([2.0])
    assert rank_test(one) == scipy.stats.mannwhitneyu(*one).pvalue == 1.0


@pytest.mark.parametrize("sizes", [(3, 3), (4, 1), (5, 5), (2, 7)])
def test_smallest_p_is_that_of_groups_without_overlap(sizes):
    values = np.arange(float(sum(sizes)))
    apart = rank_test([values[: sizes[0]], values[sizes[0] :]])
    assert smallest_rank_p(sizes) == pytest.approx(apart)


def test_dunn_of_two_groups_is_kruskal_wallis_with_ties_too():
    a, b = np.array([1.0, 2, 2, 3, 5]), np.array([2.0, 4, 5, 6])
    assert dunn_test([a, b])[0, 1] == pytest.approx(scipy.stats.kruskal(a, b).pvalue)


def test_dunn_of_three_groups_by_hand():
    # Ranks 1 to 9: means 2, 5, 8, and a variance of 9 * 10 / 12 * (1/3 + 1/3) = 5 for each difference.
    groups = [np.array([1.0, 2, 3]), np.array([4.0, 5, 6]), np.array([7.0, 8, 9])]
    far, near = (2 * scipy.stats.norm.sf(difference / np.sqrt(5)) for difference in (6, 3))
    found = dunn_test(groups)
    assert found[0, 2] == pytest.approx(3 * far)
    assert found[0, 1] == found[1, 2] == pytest.approx(2 * near)


def test_distances_are_those_of_scipy_on_the_middles_of_bins():
    rng = np.random.default_rng(9)
    a, b = rng.lognormal(-7, 0.5, 3000), rng.lognormal(-6.8, 0.8, 2000)
    counts = [CountedDurations.from_durations(durations_s).counts for durations_s in (a, b)]
    middles = [np.repeat(bin_octaves(), count) for count in counts]
    assert kolmogorov_smirnov(*counts) == pytest.approx(scipy.stats.ks_2samp(*middles).statistic)
    assert wasserstein_octaves(*counts) == pytest.approx(scipy.stats.wasserstein_distance(*middles))
    assert kolmogorov_smirnov(counts[0], counts[0]) == wasserstein_octaves(counts[0], counts[0]) == 0


def test_quantiles_of_histograms_are_those_of_the_durations_to_a_bin():
    durations_s = np.random.default_rng(10).lognormal(-7, 1, 5000)
    for level in (0.01, 0.5, 0.99):
        found = (
            2
            ** quantile_octaves(
                CountedDurations.from_durations(durations_s).counts[None].astype(float), level
            )[0]
            * 1e-9
        )
        assert found == pytest.approx(np.quantile(durations_s, level), rel=0.032)
    assert np.isnan(quantile_octaves(np.zeros((1, BIN_COUNT)), 0.5)[0])


def test_median_of_an_even_number_of_calls_is_between_the_middle_two():
    # Durations of calls of an MPI program: the median was one of the middle two, 41 us.
    durations_s = np.array([16.4, 22.5, 40.3, 94.9, 150, 929]) * 1e-6
    counts = CountedDurations.from_durations(durations_s).counts[None].astype(float)
    # Weights in thirds do not add up to one half exactly.
    for weights in (counts, counts / counts.sum(), counts / 3):
        found = 2 ** quantile_octaves(weights, 0.5)[0] * 1e-9
        assert found == pytest.approx(np.median(durations_s), rel=0.032)


@pytest.mark.parametrize("seed", range(3))
def test_one_mode_is_not_cut(seed):
    rng = np.random.default_rng(seed + 100)
    assert modes_in(rng.lognormal(-7, 0.4, 10_000)) == 1
    assert modes_in(1e-4 * (1 + rng.pareto(2, 10_000))) == 1
    assert modes_in(1e-4 * rng.gamma(2, 1, 10_000)) == 1
    few_ticks = np.round(rng.lognormal(np.log(4), 0.4, 10_000)) * 1e-6
    assert modes_in(few_ticks) == modes_in(few_ticks, 1e-6) == 1
    assert modes_in(np.full(1000, 1e-3)) == 1


@pytest.mark.parametrize("seed", range(3))
def test_modes_that_are_apart_are_cut_between_them(seed):
    rng = np.random.default_rng(seed + 200)
    which = rng.choice(3, 10_000, p=[0.6, 0.35, 0.05])
    durations_s = np.array([1e-3, 4e-3, 50e-3])[which] * rng.lognormal(0, 0.2, 10_000)
    counts = CountedDurations.from_durations(durations_s).counts.astype(float)
    cut = fit_partition(counts, 10_000)
    assert len(cut) == 3
    np.testing.assert_allclose(
        component_shares(counts[None], cut)[0], np.bincount(which) / 10_000, atol=0.005
    )


@pytest.mark.parametrize("factor", [0.8, 1.02, 1.3])
def test_places_and_tails_move_as_the_durations_do(factor):
    rng = np.random.default_rng(11)
    durations_s = rng.lognormal(-7, 0.5, 200_000)
    counts = np.array(
        [CountedDurations.from_durations(durations_s * f).counts for f in (1.0, factor)], dtype=float
    )
    scores = compute_scores(counts, fit_partition(counts.mean(axis=0), 4e5))
    values = dict(zip([part.name for part in scores.parts], (scores.total / scores.size).T, strict=True))
    assert values["mode 1 place"][1] - values["mode 1 place"][0] == pytest.approx(np.log2(factor), rel=0.04)
    assert values["tail"][1] - values["tail"][0] == pytest.approx(0, abs=0.01)


def test_the_memory_of_an_autoregression_is_bounded_from_above_and_not_far_above():
    rng = np.random.default_rng(12)
    runs = [unit_counts(run_of_phases(rng, 380, memory=0.7, spread=0.4)) for _ in range(4)]
    true = (1 + 0.7) / (1 - 0.7)
    assert true * 0.9 < block_memory(runs) < 2.2 * true


def test_what_blocks_lose_is_what_draws_of_an_autoregression_show():
    rng = np.random.default_rng(13)
    kept, length, blocks = 0.6, 10, 400
    series = autoregression(rng, length * blocks * 20, kept)
    means = series.reshape(20, blocks, length).mean(axis=2)
    told = means.var(axis=1, ddof=1).mean() / blocks
    true = (1 + kept) / (1 - kept) / (length * blocks)
    assert lost_spread((1 + kept) / (1 - kept), length) ** 2 == pytest.approx(true / told, rel=0.05)
    assert lost_spread(1.0, 1.0) == 1.0


def test_blocks_hold_every_call_once():
    rng = np.random.default_rng(14)
    phase = np.sort(rng.integers(0, 700, 9000))
    sample = CountedDurations.from_durations(rng.lognormal(-7, 1, 9000), phase)
    counts = unit_counts(sample)
    np.testing.assert_array_equal(counts.sum(axis=0), sample.counts)
    few = merged(counts, 12)
    assert len(few) == 12
    np.testing.assert_array_equal(few.sum(axis=0), sample.counts)
    assert few.sum(axis=1) == pytest.approx(np.full(12, 750), rel=0.1)
    assert len(make_blocks([sample, sample]).counts[0]) <= 12


def test_modes_are_matched_in_order_and_what_has_no_partner_is_left():
    log2 = np.log2
    a = log2([1e-3, 4e-3, 16e-3]), np.array([0.5, 0.3, 0.2])
    assert matched(*a, *a) == [(0, 0), (1, 1), (2, 2)]
    assert matched(*a, log2([1e-3, 5e-3]), np.array([0.7, 0.3])) == [(0, 0), (1, 1), (2, None)]
    assert matched(log2([1e-3]), np.ones(1), log2([1.0]), np.ones(1)) == [(0, 0)]


def test_calls_are_cut_by_phases_else_by_time_or_ranks_whichever_tells_them_apart():
    rng = np.random.default_rng(15)
    n = 4000
    rank, start_ns = np.tile(np.arange(20), n // 20), np.arange(n) * 1000
    base = rng.lognormal(-7, 0.2, n)
    phase = np.repeat(np.arange(20), n // 20)
    by_time, by_rank = (base * np.exp(rng.standard_normal(20))[which] for which in (phase, rank))
    assert sliced([RunCalls(by_time, phase, rank, start_ns)])[1] == "phases"
    samples, what = sliced([RunCalls(by_time, None, rank, start_ns)])
    assert what == "slices of time"
    assert samples[0].total == n
    assert sliced([RunCalls(by_rank, None, rank, start_ns)])[1] == "ranks"
    assert sliced([RunCalls(by_time, None, rank, None)])[1] == "slices of time"
    samples, what = sliced([RunCalls(by_time)])
    assert (what, samples[0].phases_known) == ("", False)


def test_calls_between_phases_are_not_left_out():
    phase = np.repeat(np.arange(10), 50)
    phase[::25] = -1
    samples, what = sliced([RunCalls(np.full(500, 1e-3), phase, None, np.arange(500))])
    assert what == "phases"
    assert samples[0].total == 500
    assert samples[0].phase.tolist() == list(range(10))

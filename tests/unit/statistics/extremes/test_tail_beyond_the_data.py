"""A tail beyond the data: what is integrated, where it begins, what it leaves uncertain."""

import numpy as np
import pytest
from scipy import stats

from ensembles.statistics.extremes.last_mode import last_shoulder_s
from ensembles.statistics.extremes.pareto_posterior import (
    SHAPE_HIGH,
    SHAPE_LOW,
    Excesses,
    Nodes,
    compute_posterior,
)
from ensembles.statistics.extremes.pareto_tail import fit_pareto_tail
from ensembles.statistics.samples.counted_durations import CountedDurations

NONE = np.zeros(0)


def exact(values):
    return Excesses(values, NONE, NONE, NONE)


def of_one_kind(nodes, logarithmic):
    mine = nodes.logarithmic == logarithmic
    weight = nodes.weight[mine] / nodes.weight[mine].sum()
    return Nodes(nodes.shape[mine], nodes.scale[mine], weight, nodes.logarithmic[mine])


@pytest.mark.slow
@pytest.mark.parametrize("shape", [-0.6, -0.2, 0.0, 0.3])
def test_posterior_is_the_integral_over_a_dense_grid(shape):
    values = stats.genpareto.rvs(shape, scale=0.4, size=60, random_state=17)
    found = of_one_kind(compute_posterior(exact(values)), False)
    # The same prior and likelihood, by scipy's density, summed over a plain grid.
    shapes = np.linspace(SHAPE_LOW + 0.005, SHAPE_HIGH - 0.005, 250)
    log_scales = np.linspace(np.log(0.05), np.log(6.0), 900)
    inside = np.meshgrid(shapes, log_scales, indexing="ij")
    log_density = stats.genpareto.logpdf(values[:, None, None], inside[0], scale=np.exp(inside[1])).sum(0)
    weight = np.exp(log_density - log_density.max())
    weight /= weight.sum()
    assert found.weight @ found.shape == pytest.approx((weight * inside[0]).sum(), abs=0.03)
    for excess in (1.0, 2.0, 4.0):
        expected = (weight * stats.genpareto.sf(excess, inside[0], scale=np.exp(inside[1]))).sum()
        survival = np.exp(found.log_survival(np.array(1.0 + excess))) @ found.weight
        assert survival == pytest.approx(expected, rel=0.05, abs=1e-6)


def test_counts_of_narrow_intervals_say_what_the_values_say():
    values = stats.genpareto.rvs(0.2, scale=0.4, size=200, random_state=3)
    edges = np.linspace(0, values.max() * 1.001, 4000)
    count = np.histogram(values, edges)[0]
    used = count > 0
    grouped = of_one_kind(
        compute_posterior(Excesses(NONE, edges[:-1][used], edges[1:][used], count[used])), False
    )
    known = of_one_kind(compute_posterior(exact(values)), False)
    assert grouped.weight @ grouped.shape == pytest.approx(known.weight @ known.shape, abs=0.01)
    assert grouped.weight @ grouped.scale == pytest.approx(known.weight @ known.scale, rel=0.02)


def test_survival_and_what_is_exceeded_are_inverse():
    nodes = compute_posterior(exact(stats.genpareto.rvs(0.1, size=80, random_state=4)))
    for log_chance in (-0.5, -3.0, -9.0):
        ratio = nodes.exceeded_with(np.array(log_chance))
        for place in range(0, len(ratio), 17):
            one = nodes.only(place)
            assert one.log_survival(np.array(ratio[place]))[0] == pytest.approx(log_chance, rel=1e-6)


def test_the_tail_begins_above_the_gap_between_two_modes():
    rng = np.random.default_rng(21)
    fast, slow = rng.lognormal(0, 0.3, 9800) * 1e-3, rng.lognormal(0, 0.4, 200) * 40e-3
    sample = CountedDurations.from_durations(np.concatenate([fast, slow]))
    assert np.quantile(fast, 0.99) < last_shoulder_s(sample) < np.median(slow)
    tail = fit_pareto_tail(sample)
    assert tail.threshold_s > fast.max()
    assert 5 <= tail.above <= 200


def test_quantiles_and_chances_are_inverse_and_rise():
    tail = fit_pareto_tail(CountedDurations.from_durations(np.random.default_rng(5).lognormal(-7, 1, 5000)))
    levels = np.array([0.05, 0.3, 0.5, 0.9, 0.95])
    for tasks in (5000, 10**6):
        quantiles = tail.quantiles_s(tasks, levels)
        assert np.all(np.diff(quantiles) > 0)
        np.testing.assert_allclose(tail.chance_below(tasks, quantiles), levels, atol=6e-3)
    more = [tail.quantiles_s(tasks, levels)[2] for tasks in (1000, 10**4, 10**5, 10**6)]
    assert np.all(np.diff(more) > 0)


def test_bins_alone_say_nearly_what_the_longest_calls_say():
    seen = np.random.default_rng(6).exponential(1e-3, 10000)
    levels = np.array([0.05, 0.5, 0.95])
    bins = fit_pareto_tail(CountedDurations.from_durations(seen)).quantiles_s(10**5, levels)
    known = fit_pareto_tail(CountedDurations.from_durations(seen), np.sort(seen)[-1000:]).quantiles_s(
        10**5, levels
    )
    np.testing.assert_allclose(bins, known, rtol=0.25)


def test_mean_is_that_of_the_quantile_function_and_none_where_it_rests_on_nothing():
    light = fit_pareto_tail(
        CountedDurations.from_durations(np.random.default_rng(7).uniform(1e-3, 2e-3, 3000))
    )
    assert light.mean_s(3000) == pytest.approx(2e-3, rel=0.02)
    heavy = fit_pareto_tail(
        CountedDurations.from_durations(1e-3 * stats.pareto.rvs(0.9, size=1000, random_state=8))
    )
    assert heavy.mean_s(10**6) is None


def test_a_clock_of_a_microsecond_does_not_hide_the_tail():
    seen = np.random.default_rng(12).exponential(20e-6, 20000)
    coarse = np.floor(seen * 1e6 + np.random.default_rng(13).random(20000)) * 1e-6
    truth_s = 20e-6 * (np.log(10**5) - np.log(np.log(2)))
    for sample in (
        CountedDurations.from_durations(seen),
        CountedDurations.from_durations(coarse, None, 1e-6),
    ):
        low, high = fit_pareto_tail(sample).quantiles_s(10**5, np.array([0.05, 0.95]))
        assert low < truth_s < high < 3 * truth_s

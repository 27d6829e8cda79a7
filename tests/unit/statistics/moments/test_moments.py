"""Moments and quantiles are those of other implementations and of theory; intervals cover."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import ensembles as en
from ensembles.statistics.moments.moments import ResamplingUnits, bandwidth, nodes
from ensembles.statistics.moments.quantiles import compute_quantiles
from ensembles.statistics.samples.counted_durations import CountedDurations
from ensembles.statistics.samples.distinct_values import MOST_GROUPS, WeightedValues
from ensembles.summaries.moments import CentralMoments

QUANTILES = (0.01, 0.25, 0.5, 0.9, 0.999)


def some(count: int, seed: int = 5) -> np.ndarray:
    return np.random.default_rng(seed).gamma(2.0, 1e-3, count)


def test_moments_are_those_of_scipy_to_the_last_digits() -> None:
    x = some(1200)
    found = en.Ensemble(x).moments()
    for estimate, expected in (
        (found.mean_s, x.mean()),
        (found.sd_s, x.std(ddof=1)),
        (found.cv, x.std(ddof=1) / x.mean()),
        (found.skewness, stats.skew(x)),
        (found.excess_kurtosis, stats.kurtosis(x)),
        (found.log_mean, np.log(x).mean()),
        (found.log_sd, np.log(x).std(ddof=1)),
        (found.log_skewness, stats.skew(np.log(x))),
        (found.log_excess_kurtosis, stats.kurtosis(np.log(x))),
    ):
        assert estimate.value == pytest.approx(expected, rel=1e-9)
        if np.isfinite(estimate.low):
            assert estimate.low < estimate.value < estimate.high
    assert (found.min_s, found.max_s) == (x.min(), x.max())


def test_from_bins_moments_are_right_within_the_bins() -> None:
    x = some(200_000)
    found = en.Ensemble(x).moments()
    assert found.mean_s.value == pytest.approx(x.mean(), rel=1e-9)
    assert found.sd_s.value == pytest.approx(x.std(ddof=1), rel=1e-9)
    assert found.skewness.value == pytest.approx(stats.skew(x), rel=2e-3)
    assert found.excess_kurtosis.value == pytest.approx(stats.kurtosis(x), rel=2e-3)
    assert found.log_sd.value == pytest.approx(np.log(x).std(), rel=2e-3)


def test_durations_that_bins_hardly_tell_apart_keep_their_shape() -> None:
    x = 1e-3 + 1e-7 * np.random.default_rng(2).exponential(1.0, 50_000)
    found = en.Ensemble(x).moments()
    assert found.sd_s.value == pytest.approx(x.std(ddof=1), rel=1e-3)
    assert found.skewness.value == pytest.approx(stats.skew(x), rel=1e-2)
    assert found.log_sd.value == pytest.approx(np.log(x).std(ddof=1), rel=1e-3)


def test_quantiles_are_those_of_numpy() -> None:
    x = some(1501)
    ensemble = en.Ensemble(x)
    found = ensemble.quantiles(QUANTILES)
    np.testing.assert_allclose([e.value for e in found.estimates], np.quantile(x, QUANTILES), rtol=1e-12)
    assert found[0.5].value == np.median(x)


@settings(max_examples=60, deadline=None)
@given(
    values=st.lists(st.integers(0, 40), min_size=1, max_size=60),
    phases=st.integers(1, 5),
    seed=st.integers(0, 1000),
)
def test_whatever_the_durations_every_statement_is_ordered_and_plain(values, phases, seed) -> None:
    phase = np.random.default_rng(seed).integers(0, phases, len(values))
    ensemble = en.Ensemble(np.array(values) * 1e-3, phase)
    found = ensemble.quantiles(QUANTILES)
    value_s = [e.value for e in found.estimates]
    np.testing.assert_allclose(value_s, np.quantile(np.array(values) * 1e-3, QUANTILES), rtol=1e-12, atol=0)
    for result in (found, ensemble.moments()):
        json.loads(json.dumps(result.to_json(), allow_nan=False))
        assert "\n" in str(result)
        estimates = result.estimates if result is found else result.estimates().values()
        for e in estimates:
            assert not e.low > e.high
            if result is not found:
                assert not e.value < e.low - 1e-12
                assert not e.value > e.high + 1e-12


def test_no_calls_and_one_call_are_answered() -> None:
    for count in (0, 1):
        ensemble = en.Ensemble([0.25] * count)
        assert ensemble.moments().n == count
        assert math.isnan(ensemble.moments().sd_s.value)
        for result in (ensemble.moments(), ensemble.quantiles()):
            json.dumps(result.to_json(), allow_nan=False)
    assert ensemble.moments().mean_s.value == 0.25
    with pytest.raises(en.EnsioError, match="between 0 and 1"):
        ensemble.quantiles([1.5])


def test_exact_intervals_have_the_binomial_probability() -> None:
    n, q, level = 200, 0.9, 0.9
    exact = en.Ensemble(np.arange(1, n + 1) * 1e-3).quantiles([q], level)[q]
    least, most = round(exact.low * 1e3), round(exact.high * 1e3)
    inside = stats.binom.cdf(most - 1, n, q) - stats.binom.cdf(least - 1, n, q)
    assert level <= inside < level + 0.05
    assert stats.binom.cdf(least - 1, n, q) <= 0.05 < stats.binom.cdf(least, n, q)
    assert stats.binom.sf(most - 1, n, q) <= 0.05 < stats.binom.sf(most - 2, n, q)
    binned = compute_quantiles(CountedDurations.from_durations(np.arange(1, n + 1) * 1e-3), [q], level)[q]
    assert exact.low * 0.968 <= binned.low <= exact.low < exact.high <= binned.high <= exact.high * 1.032


def test_too_few_calls_bound_a_high_quantile_on_one_side_only() -> None:
    found = en.Ensemble(some(20)).quantiles([0.99, 0.5])
    assert found[0.99].high == np.inf
    assert found[0.99].low > 0
    assert np.isfinite(found[0.5].high)
    assert found.to_json()["quantiles"][0]["high_s"] is None


def phase_dependent(random: np.random.Generator, phases: int, calls: int) -> tuple[np.ndarray, np.ndarray]:
    """Log-normal calls of 0.5, in phases whose location varies by 0.5."""
    phase = np.repeat(np.arange(phases), calls)
    place = 0.5 * random.standard_normal(phases)
    return np.exp(place[phase] + 0.5 * random.standard_normal(len(phase))), phase


def coverage(trials: int, seed: int, phases: int, calls: int, told: bool) -> dict[str, float]:
    """How often the 90 % intervals hold the truth of a log-normal distribution of sigma 0.5 ** 0.5."""
    random = np.random.default_rng(seed)
    sigma2 = 0.5
    truth = {
        "mean_s": np.exp(sigma2 / 2),
        "log_mean": 0.0,
        "log_sd": np.sqrt(sigma2),
        "sd_s": np.sqrt(np.exp(sigma2) * np.expm1(sigma2)),
        "cv": np.sqrt(np.expm1(sigma2)),
        0.5: 1.0,
        0.9: np.exp(stats.norm.ppf(0.9) * np.sqrt(sigma2)),
    }
    hits = dict.fromkeys(truth, 0)
    for _ in range(trials):
        x, phase = np.exp(np.sqrt(sigma2) * random.standard_normal(phases * calls)), None
        if told:
            x, phase = phase_dependent(random, phases, calls)
        ensemble = en.Ensemble(x, phase)
        quantiles = ensemble.quantiles([0.5, 0.9])
        found = ensemble.moments().estimates() | {q: quantiles[q] for q in quantiles.quantiles}
        for name, value in truth.items():
            hits[name] += found[name].low <= value <= found[name].high
    return {name: count / trials for name, count in hits.items()}


@pytest.mark.long
def test_intervals_cover_for_independent_calls() -> None:
    for name, share in coverage(24, seed=11, phases=1, calls=120, told=False).items():
        assert share > 0.7, name


@pytest.mark.long
def test_intervals_cover_where_calls_of_a_phase_are_alike() -> None:
    for name, share in coverage(24, seed=12, phases=20, calls=15, told=True).items():
        assert share > 0.7, name


def test_intervals_that_ignore_phases_are_told_to_be_too_narrow() -> None:
    x, phase = phase_dependent(np.random.default_rng(4), 30, 200)
    told, untold = en.Ensemble(x, phase).moments(), en.Ensemble(x).moments()
    assert told.mean_s.high - told.mean_s.low > 3 * (untold.mean_s.high - untold.mean_s.low)
    assert not any("too narrow" in note for note in told.notes)
    assert "too narrow" in untold.notes[0]
    assert "one phase" in en.Ensemble(x, np.zeros(len(x))).moments().notes[0]


@pytest.mark.parametrize(
    ("n", "skewness", "kurtosis"), [(2, False, False), (3, True, False), (4, True, True)]
)
def test_a_shape_that_all_so_small_samples_have_is_not_told(n: int, skewness: bool, kurtosis: bool) -> None:
    """Two values have always skewness 0 and kurtosis -2, three always kurtosis -1.5."""
    x = np.array([1.39, 0.2, 0.5, 3.0])[:n]
    found = en.Ensemble(x).moments()
    assert np.isfinite([found.skewness.value, found.log_skewness.value]).all() == skewness
    assert np.isfinite([found.excess_kurtosis.value, found.log_excess_kurtosis.value]).all() == kurtosis
    assert np.isfinite([found.mean_s.value, found.sd_s.value]).all()
    assert ("skewness             not determined" in str(found)) != skewness
    of_run = CentralMoments.from_durations(np.rint(1e9 * x).astype(np.int64))
    assert np.isfinite(of_run.skewness) == skewness
    assert np.isfinite(of_run.excess_kurtosis) == kurtosis


def test_smoothing_keeps_the_middle_and_widens_by_the_kernel() -> None:
    place = np.random.default_rng(11).normal(2.0, 0.5, 400)
    width = bandwidth(place, np.ones(400))
    spread = min(place.std(), stats.iqr(place) / 1.349)
    assert width == pytest.approx(1.06 * spread * 400**-0.2, rel=0.03)
    assert bandwidth(np.unique(place), np.ones(400)) == pytest.approx(width)
    assert bandwidth(np.array([1.0, 2.0]), np.array([99.0, 1.0])) == 0.0  # most are alike
    assert bandwidth(place, np.full(400, 100.0)) == 0.0  # enough without
    for units, powers in ((20, 9), (1000, 5)):
        steps, weights = nodes(units)
        for power in range(powers + 1):
            expected = 0 if power % 2 else math.prod(range(1, power, 2))  # moments of the normal distribution
            assert weights @ steps**power == pytest.approx(expected, abs=1e-9)


def test_units_that_are_moved_have_the_sums_of_moved_durations() -> None:
    x = some(60).reshape(6, 10)
    middle, scale = x.mean(), x.std()
    for log, moved in ((False, x * np.exp(0.3)), (True, x + 0.3)):

        def sums(values: np.ndarray) -> np.ndarray:
            return (((values - middle) / scale)[..., None] ** np.arange(3)).sum(axis=1)

        units = ResamplingUnits(sums(x), np.ones(6), middle, scale, log)
        np.testing.assert_allclose(units._moved(0.3), sums(moved), rtol=1e-9)


def test_many_phases_are_resampled_in_groups() -> None:
    x, phase = phase_dependent(np.random.default_rng(6), 3000, 4)
    atoms = WeightedValues.from_sample(CountedDurations.from_durations(x, phase))
    assert (atoms.groups, atoms.phases, atoms.n) == (MOST_GROUPS, 3000, 12_000)
    assert atoms.table.sum() == 12_000
    groups = en.Ensemble(x, phase % 1000).moments().log_mean
    found = en.Ensemble(x, phase).moments().log_mean
    assert found.high - found.low == pytest.approx(groups.high - groups.low, rel=0.2)


def test_the_same_seed_gives_the_same_intervals() -> None:
    ensemble = en.Ensemble(some(500))
    assert ensemble.moments(seed=3) == ensemble.moments(seed=3) != ensemble.moments(seed=4)


def test_intervals_that_say_nothing_are_refused_with_what_to_record() -> None:
    """Two phases, the first six times as slow: ends of 7 µs and 0.2 s around a mean of 1 ms."""
    random = np.random.default_rng(1)
    durations_s, phase = random.lognormal(-9, 1.5, 1200), np.repeat([0, 1], 600)
    durations_s[phase == 0] *= 6
    two = en.Ensemble(durations_s, phase=phase).moments()
    assert two.mean_s.value == pytest.approx(durations_s.mean())
    assert "mean                 " in str(two)
    assert np.isnan([two.mean_s.low, two.mean_s.high, two.sd_s.low, two.log_mean.high]).all()
    (note,) = (note for note in two.notes if "factor" in note)
    assert note.startswith("mean, sd")
    assert note.endswith("from 2 phases: record more phases, or choose one kind of calls")
    assert two.to_json()["mean_s"]["low"] is None
    many = en.Ensemble(durations_s, phase=random.permutation(np.repeat(np.arange(20), 60))).moments()
    assert not any("factor" in note for note in many.notes)
    assert many.mean_s.low < durations_s.mean() < many.mean_s.high
    alike = en.Ensemble(random.permutation(durations_s), phase=phase).moments()
    assert alike.mean_s.high < 30 * alike.mean_s.low


def test_moments_quantiles_and_modes_say_that_a_run_drifts_and_a_steady_one_is_said_nothing_of():
    phase = np.repeat(np.arange(40), 50)
    noise = np.random.default_rng(900_701).lognormal(-7.0, 0.2, 2000)
    drifting = en.Ensemble(noise * np.exp(phase / 20), phase)
    steady = en.Ensemble(noise, phase)
    for answer in (drifting.moments(), drifting.quantiles()):
        assert any("has not settled" in note for note in answer.notes)
    assert "has not settled" in drifting.modes().to_json()["unsettled"]
    assert "has not settled" in str(drifting.modes())
    assert steady.modes().unsettled is None
    assert steady.quantiles().notes == ()

"""Histogram and moments against NumPy and SciPy on the same durations."""

from __future__ import annotations

import numpy as np
import pytest
from generated_events import CALLS, events_of
from hypothesis import given
from hypothesis import strategies as st

from ensembles.summaries.bins import RELATIVE_WIDTH, bin_edges_s
from ensembles.summaries.histogram import LogHistogram
from ensembles.summaries.moments import CallMoments, CentralMoments

durations = st.lists(st.integers(0, 10**12), min_size=1, max_size=200).map(np.array)


def histogram_of(duration_ns: np.ndarray, call: int = 0) -> LogHistogram:
    histogram = LogHistogram()
    start, calls = np.zeros(len(duration_ns)), np.full(len(duration_ns), call)
    histogram.add(events_of(start=start, duration=duration_ns, call=calls))
    return histogram


@given(duration_ns=durations)
def test_counts_are_those_of_numpy_histogram(duration_ns: np.ndarray) -> None:
    edges_ns = np.rint(bin_edges_s()[:-400] * 1e9)
    expected, _ = np.histogram(duration_ns, edges_ns)
    counts = histogram_of(duration_ns).counts[CALLS[0]]
    np.testing.assert_array_equal(counts[: len(expected)], expected)
    assert counts.sum() == len(duration_ns)


@given(duration_ns=durations, level=st.floats(0, 1))
def test_quantile_is_within_a_bin_of_the_true_one(duration_ns: np.ndarray, level: float) -> None:
    found = histogram_of(duration_ns).quantile_s(CALLS[0], [level])[0] * 1e9
    # A rank that is a whole number lies between two durations: each of them is a quantile.
    rank = level * len(duration_ns)
    values = np.sort(duration_ns)
    low = values[max(int(np.ceil(rank - 1e-9)) - 1, 0)]
    high = values[min(int(np.floor(rank + 1e-9)), len(values) - 1)]
    assert low * (1 - RELATIVE_WIDTH) - 1.001 <= found <= high * (1 + RELATIVE_WIDTH) + 1.001


@given(duration_ns=durations, bins=st.integers(1, 50))
def test_rebinning_keeps_every_call(duration_ns: np.ndarray, bins: int) -> None:
    edges_s = np.linspace(0, 2e3, bins + 1)
    counts = histogram_of(duration_ns).rebinned(CALLS[0], edges_s)
    assert counts.shape == (bins,)
    assert counts.sum() == len(duration_ns)
    assert (counts == np.rint(counts)).all()


def test_rebinning_a_uniform_ensemble_gives_no_spikes() -> None:
    counts = histogram_of(np.arange(1_000_000, 2_000_000)).rebinned(CALLS[0], np.linspace(1e-3, 2e-3, 98))
    # The first and the last bins of the law reach beyond the ensemble.
    np.testing.assert_allclose(counts[5:-5], 1_000_000 / 97, atol=1)


@pytest.mark.parametrize("per_octave", [4, 8])
@given(duration_ns=durations)
def test_coarse_bins_keep_every_call_in_its_place(per_octave: int, duration_ns: np.ndarray) -> None:
    edges_s, counts = histogram_of(duration_ns).coarse(CALLS[0], per_octave)
    assert len(edges_s) == len(counts) + 1
    assert counts[0] > 0
    assert counts[-1] > 0
    expected, _ = np.histogram(duration_ns, np.rint(edges_s * 1e9))
    np.testing.assert_array_equal(counts, expected)


def test_coarse_bins_are_of_nearly_equal_ratio() -> None:
    edges_s, _ = histogram_of(np.array([64, 10**12])).coarse(CALLS[0], 8)
    ratio = edges_s[1:] / edges_s[:-1]
    assert ratio.max() / ratio.min() < 1.04


def test_each_call_has_its_own_histogram() -> None:
    histogram = LogHistogram()
    histogram.add(events_of(start=np.zeros(3), duration=[5, 5, 7], call=[0, 1, 0]))
    assert histogram.n(CALLS[0]) == 2
    assert histogram.n(CALLS[1]) == 1
    assert list(histogram.counts) == list(CALLS[:2])


@given(duration_ns=durations)
def test_moments_are_those_of_scipy(duration_ns: np.ndarray) -> None:
    stats = pytest.importorskip("scipy.stats", reason="SciPy is not installed: nothing to compare with")
    found = CentralMoments.from_durations(duration_ns)
    assert (found.n, found.min_ns, found.max_ns) == (len(duration_ns), duration_ns.min(), duration_ns.max())
    assert found.mean_ns == pytest.approx(duration_ns.mean(), rel=1e-12)
    if duration_ns.max() == duration_ns.min():
        assert np.isnan([found.skewness, found.excess_kurtosis]).all()
        return
    assert found.std_ns == pytest.approx(duration_ns.std(ddof=1), rel=1e-9)
    # Those of two values, and the kurtosis of three, are the same whatever the values are.
    assert np.isnan(found.skewness) == (found.n < 3)
    assert np.isnan(found.excess_kurtosis) == (found.n < 4)
    if found.n < 4:
        return
    assert found.skewness == pytest.approx(stats.skew(duration_ns), rel=1e-6, abs=1e-9)
    assert found.excess_kurtosis == pytest.approx(stats.kurtosis(duration_ns), rel=1e-6, abs=1e-9)


def test_moments_of_an_exponential_ensemble_are_those_of_theory() -> None:
    sample = np.random.default_rng(5).exponential(1e9, 400_000).astype(np.int64)
    moments = CallMoments()
    for part in np.array_split(sample, 13):
        moments.add(events_of(start=np.zeros(len(part)), duration=part))
    found = moments.moments[CALLS[0]]
    assert found.mean_ns == pytest.approx(1e9, rel=0.01)
    assert found.std_ns == pytest.approx(1e9, rel=0.01)
    assert found.skewness == pytest.approx(2, rel=0.03)
    assert found.excess_kurtosis == pytest.approx(6, rel=0.12)


def test_single_duration_has_no_spread_to_speak_of() -> None:
    found = CentralMoments.from_durations(np.array([42]))
    assert np.isnan(found.std_ns)
    assert np.isnan(found.skewness)


@pytest.mark.parametrize("duration", [0, 1, 5, 31, 32, 63])
def test_quantiles_and_times_of_bins_with_one_value_are_exact(duration: int) -> None:
    histogram = LogHistogram()
    histogram.add(events_of(start=np.zeros(7, "i8"), duration=np.full(7, duration)))
    np.testing.assert_allclose(histogram.quantile_s(CALLS[0], [0, 0.3, 0.5, 1]), duration * 1e-9, rtol=1e-15)
    assert histogram.time_s(CALLS[0]) == pytest.approx(7e-9 * duration, rel=1e-15)

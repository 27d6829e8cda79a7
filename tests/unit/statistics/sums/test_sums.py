"""The time of successive calls, against theory and simulated truth."""

import numpy as np
import pytest
import scipy.stats

from ensembles.statistics.samples.counted_durations import CountedDurations
from ensembles.statistics.sums.convolution import Pieces, convolve_sums, on_grid


def weighted(pieces, step_s, size):
    return np.asarray(pieces.probability @ on_grid(pieces, step_s, size))


def cumulative_of(pieces, k, size, end_s):
    step_s = end_s / (size - 1)
    sums = convolve_sums(weighted(pieces, step_s, size)[None, :], step_s, k)
    return step_s * np.arange(size), sums


def uniform(low_s, high_s):
    return Pieces(np.array([low_s]), np.array([high_s]), np.ones(1))


@pytest.mark.parametrize(
    ("low", "high"), [(0.0, 1.0), (0.3, 0.3), (0.125, 0.125 + 1e-9), (0.2, 0.2031), (1.0, 1.0)]
)
def test_grid_keeps_probability_and_mean(low, high):
    on_points = weighted(uniform(low, high), 1 / 64, 80)
    assert on_points.sum() == pytest.approx(1, abs=1e-12)
    assert on_points @ np.arange(80) / 64 == pytest.approx((low + high) / 2, abs=1e-9)
    assert on_points.min() >= 0


@pytest.mark.parametrize("k", [1, 2, 3, 8, 30])
def test_sums_of_even_durations_follow_irwin_and_hall(k):
    grid_s, sums = cumulative_of(uniform(0.0, 1.0), k, 1 << 14, k * 1.01)
    if k > 8:  # the alternating sum of the exact formula loses its digits: compare with the normal limit
        np.testing.assert_allclose(
            sums.cumulative[0], scipy.stats.norm.cdf(grid_s, k / 2, np.sqrt(k / 12)), atol=2e-3
        )
        return
    exact = scipy.stats.irwinhall(k).cdf if hasattr(scipy.stats, "irwinhall") else None
    if exact is None:
        from math import comb, factorial

        def exact(x):
            return sum(
                (-1) ** j * comb(k, j) * np.clip(x - j, 0, None) ** k for j in range(k + 1)
            ) / factorial(k)

    np.testing.assert_allclose(sums.cumulative[0], exact(np.minimum(grid_s, k)), atol=2 * k / (1 << 14))


@pytest.mark.parametrize("k", [1, 2, 4, 16])
def test_true_sum_lies_within_the_error_that_is_told(k):
    """A sum of exponential times is a gamma time; the pieces are the exact shares of narrow bins."""
    edges = np.linspace(0, 40, 20001)
    pieces = Pieces(edges[:-1], edges[1:], np.diff(scipy.stats.expon.cdf(edges)))
    grid_s, sums = cumulative_of(pieces, k, 1 << 12, 30.0 + 2 * k)
    width = edges[1] * k
    below = scipy.stats.gamma.cdf(grid_s - sums.error_s - width, k)
    above = scipy.stats.gamma.cdf(grid_s + sums.error_s + width, k)
    assert np.all(sums.cumulative[0] >= below - 1e-10)
    assert np.all(sums.cumulative[0] <= above + 1e-10)
    assert sums.error_s == pytest.approx(k * grid_s[1])


def test_sum_of_equal_calls_is_certain():
    sample = CountedDurations.from_durations(np.full(50, 0.25))
    pieces = Pieces.from_counts(sample.counts, 0.25, 0.25)
    grid_s, sums = cumulative_of(pieces, 4, 201, 2.0)
    np.testing.assert_allclose(sums.cumulative[0], (grid_s >= 1 - 1e-9).astype(float), atol=1e-12)


def test_pieces_keep_the_extremes_and_nearly_the_mean():
    durations_s = np.random.default_rng(8).lognormal(-5, 1.2, 30000)
    sample = CountedDurations.from_durations(durations_s)
    pieces = Pieces.from_counts(sample.counts, durations_s.min(), durations_s.max())
    assert (pieces.low_s[0], pieces.high_s[-1]) == (durations_s.min(), durations_s.max())
    assert pieces.mean_s == pytest.approx(durations_s.mean(), rel=0.002)

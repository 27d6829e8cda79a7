"""Distribution functions without SciPy, compared with SciPy and with exact values."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import special

from ensembles.statistics.distributions import chi_square_exceeds, normal_cdf


def test_normal_cdf_is_that_of_scipy_in_both_tails() -> None:
    values = np.concatenate([np.linspace(-38, 38, 4001), [0.0, -0.0, np.inf, -np.inf]])
    np.testing.assert_allclose(normal_cdf(values), special.ndtr(values), rtol=1e-12, atol=1e-310)


def test_normal_cdf_keeps_shape_and_takes_what_is_not_contiguous() -> None:
    values = np.arange(-6.0, 6.0).reshape(3, 4)
    assert normal_cdf(values.T).shape == (4, 3)
    np.testing.assert_array_equal(normal_cdf(values.T), normal_cdf(values).T)
    assert np.isnan(normal_cdf(np.array([np.nan]))).all()


@pytest.mark.parametrize("freedom", [1, 2, 3, 4, 7, 30, 63, 64, 127, 1023, 1025, 4.7, 0.5])
def test_chi_square_is_that_of_scipy(freedom: float) -> None:
    for value in [0.0, 1e-12, 0.3, 1.0, 3.84, 20.0, 90.0, 700.0, 1399.0, 1401.0, 5000.0, math.inf]:
        expected = float(special.chdtrc(freedom, value))
        assert chi_square_exceeds(value, freedom) == pytest.approx(expected, rel=1e-11, abs=1e-310)


def test_chi_square_of_two_degrees_is_exponential() -> None:
    assert chi_square_exceeds(7.0, 2) == pytest.approx(math.exp(-3.5), rel=1e-15)

"""Distribution functions without SciPy, compared with SciPy and with exact values."""

from __future__ import annotations

import math

import pytest
from scipy import special

from ensembles.statistics.distributions import chi_square_exceeds


@pytest.mark.parametrize("freedom", [1, 2, 3, 4, 7, 30, 63, 64, 127, 1023, 1025, 4.7, 0.5])
def test_chi_square_is_that_of_scipy(freedom: float) -> None:
    for value in [0.0, 1e-12, 0.3, 1.0, 3.84, 20.0, 90.0, 700.0, 1399.0, 1401.0, 5000.0, math.inf]:
        expected = float(special.chdtrc(freedom, value))
        assert chi_square_exceeds(value, freedom) == pytest.approx(expected, rel=1e-11, abs=1e-310)


def test_chi_square_of_two_degrees_is_exponential() -> None:
    assert chi_square_exceeds(7.0, 2) == pytest.approx(math.exp(-3.5), rel=1e-15)

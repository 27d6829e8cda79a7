"""The test of Shapiro and Wilk, against that of SciPy."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from ensembles.statistics.extremes.normality import LEAST, shapiro_wilk_p


@pytest.mark.parametrize("n", [5, LEAST - 1, LEAST, 13, 20, 21, 100, 999, 4_999])
@pytest.mark.parametrize("power", [0.0, 0.2, 1.0])
def test_p_values_are_those_of_scipy(n: int, power: float) -> None:
    values = np.random.default_rng(n).normal(loc=-3.0, size=n)
    values = np.exp(power * values) if power else values
    assert shapiro_wilk_p(values) == pytest.approx(float(stats.shapiro(values).pvalue), rel=1e-6, abs=1e-30)


def test_values_with_ties_are_tested() -> None:
    values = np.repeat(np.log([2.0, 3.0, 5.0, 7.0, 40.0]), 5)
    assert shapiro_wilk_p(values) == pytest.approx(float(stats.shapiro(values).pvalue), rel=1e-6)

"""The test of Shapiro and Francia: its level, and the power of the test of Shapiro and Wilk."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from ensembles.statistics.extremes.phase_maxima import shapiro_francia_p


@pytest.mark.parametrize("n", [20, 60, 500])
def test_normal_values_are_contradicted_as_often_as_the_level_says(n: int) -> None:
    drawn = np.random.default_rng(n).normal(-3.0, 0.2, (600, n))
    assert 0.03 < np.mean([shapiro_francia_p(values) < 0.05 for values in drawn]) < 0.075


@pytest.mark.parametrize("n", [20, 60])
def test_skewed_values_are_found_as_often_as_by_shapiro_and_wilk(n: int) -> None:
    drawn = np.random.default_rng(n).lognormal(0.0, 0.4, (200, n))
    ours = np.mean([shapiro_francia_p(values) < 0.05 for values in drawn])
    theirs = np.mean([stats.shapiro(values).pvalue < 0.05 for values in drawn])
    assert abs(ours - theirs) < 0.08

"""SiZer shows at which smoothing a density rises and falls, and nothing where it is flat."""

import numpy as np
import pytest

from ensembles import Ensemble
from ensembles.model.errors import EnsioError


def hills(row):
    """The number of rises that a fall follows."""
    signs = row[np.abs(row) == 1]
    turns = signs[np.append(True, np.diff(signs) != 0)]
    return int(np.sum((turns[:-1] == 1) & (turns[1:] == -1)))


def test_two_modes_are_two_hills_at_fine_and_one_at_coarse_smoothing():
    rng = np.random.default_rng(1)
    durations_s = np.repeat([1e-3, 4e-3], 2000) * rng.lognormal(0, 0.2, 4000)
    found = Ensemble(durations_s).sizer()
    number = [hills(row) for row in found.slope]
    assert found.slope.shape == (len(found.bandwidth), len(found.t_s))
    assert number[-1] == 1
    assert 2 in number
    row = found.slope[number.index(2) + number.count(2) // 2]
    assert row[np.argmin(np.abs(found.t_s - 0.8e-3))] == 1
    assert row[np.argmin(np.abs(found.t_s - 1.3e-3))] == -1
    assert max(number) == 2


def test_a_flat_density_has_no_slope_but_at_its_ends():
    rng = np.random.default_rng(2)
    false = 0
    for _ in range(40):
        found = Ensemble(np.exp(rng.uniform(0, 3, 2000))).sizer()
        inside = (found.t_s > np.exp(1.2)) & (found.t_s < np.exp(1.8))
        false += bool((np.abs(found.slope[6][inside]) == 1).any())
    assert false <= 5


def test_slopes_of_one_phase_among_many_are_not_significant():
    """Calls of a phase depend on each other: 30 phases of 200 equal calls show no more than 30 calls."""
    rng = np.random.default_rng(3)
    phase = np.repeat(np.arange(30), 200)
    durations_s = np.exp(rng.normal(0, 0.5, 30))[phase] * rng.lognormal(0, 0.01, len(phase))
    fine = [np.sum(np.abs(Ensemble(durations_s, phase=p).sizer().slope[:8]) == 1) for p in (None, phase)]
    assert fine[1] < 0.2 * fine[0]


def test_without_calls_there_is_a_sentence():
    with pytest.raises(EnsioError, match="choose other calls"):
        Ensemble([0.0, 0.0]).sizer()

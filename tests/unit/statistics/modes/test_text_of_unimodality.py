"""What the text of modes says of unimodality agrees with the p-value."""

from dataclasses import replace

import numpy as np
import pytest

import ensembles as en
from ensembles.cli.modes import modes_text
from ensembles.statistics.modes.kinds import Bump


@pytest.fixture
def ensemble() -> en.Ensemble:
    random = np.random.default_rng(1)
    return en.Ensemble(np.repeat([0.01, 0.05], [600, 400]) * random.lognormal(0.0, 0.1, 1000))


def test_two_modes_reject_one(ensemble: en.Ensemble) -> None:
    assert "Unimodality rejected (p < 1e-6)." in modes_text(ensemble.modes(), ensemble)


def test_a_mode_and_a_bump_do_not(ensemble: en.Ensemble) -> None:
    found = ensemble.modes()
    bump = Bump(0.04, 0.06, 0.4, 3, 1.2)
    text = modes_text(replace(found, modes=found.modes[:1], bumps=(bump,), p_one_mode=1.0), ensemble)
    assert "Unimodality not rejected: every further cluster is of few phases." in text
    assert "Unimodality rejected" not in text

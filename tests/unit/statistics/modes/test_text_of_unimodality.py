"""What the text of modes says of unimodality agrees with the p-value."""

from dataclasses import replace

import numpy as np
import pytest

import ensembles as en
from ensembles import viz
from ensembles.statistics.modes.kinds import Bump


@pytest.fixture
def ensemble() -> en.Ensemble:
    random = np.random.default_rng(1)
    return en.Ensemble(np.repeat([0.01, 0.05], [600, 400]) * random.lognormal(0.0, 0.1, 1000))


def test_two_modes_reject_one(ensemble: en.Ensemble) -> None:
    assert "Unimodality rejected (p < 1e-6)." in str(ensemble.modes())


def test_a_mode_and_a_bump_do_not(ensemble: en.Ensemble) -> None:
    found = ensemble.modes()
    bump = Bump(0.04, 0.06, 0.4, 3, 1.2)
    text = str(replace(found, modes=found.modes[:1], bumps=(bump,), p_one_mode=1.0))
    assert "Unimodality not rejected: every further cluster is of few phases." in text
    assert "Unimodality rejected" not in text


def test_few_long_calls_are_known_by_their_share_of_the_time() -> None:
    """3 % of the calls take 95 % of the time: their mode and the label of the picture say so."""
    random = np.random.default_rng(2)
    short_s, long_s = 8e-5 * random.lognormal(0.0, 0.1, 970), 0.05 * random.lognormal(0.0, 0.3, 30)
    ensemble = en.Ensemble(np.append(short_s, long_s), name="open")
    found = ensemble.modes()
    shares = [each.time_share for each in (*found.modes, *found.bumps, *found.spread)]
    assert sum(shares) == pytest.approx(1, abs=1e-9)
    assert max(shares) == pytest.approx(long_s.sum() / (short_s.sum() + long_s.sum()), rel=0.01)
    text = str(found)
    assert "of time" in text
    assert f"{100 * found.modes[-1].time_share:.1f} %" in text
    (drawn,) = viz.modes(ensemble).select({"name": "mode_labels"})
    assert drawn.data_source.data["text"][-1].endswith(" % of the time)")


def test_times_per_mib_have_no_shares_of_the_time() -> None:
    random = np.random.default_rng(3)
    ensemble = en.Ensemble(0.01 * random.lognormal(0.0, 0.1, 400), per="MiB", bytes=np.full(400, 1 << 21))
    found = ensemble.modes()
    assert [mode.time_share for mode in found.modes] == [None] * len(found)
    assert "of time" not in str(found)

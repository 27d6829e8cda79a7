"""A cluster of few phases is one of few among those with such calls: small and ugly shapes of first runs."""

import numpy as np
import pytest

import ensembles as en


def ensemble_of(slow: list[int], seed: int, calls: int = 48, width: float = 0.6) -> en.Ensemble:
    """Phases with so many calls near 50 ms; of the others, 15 % last some 4 ms and most 0.2 ms."""
    random = np.random.default_rng(seed)
    parts = []
    for number in slow:
        middle = random.binomial(calls - number, 0.15)
        fast = calls - number - middle
        parts += [
            5e-2 * random.lognormal(0, width, number),
            4e-3 * random.lognormal(0, 0.5, middle),
            2e-4 * random.lognormal(0, 0.4, fast),
        ]
    return en.Ensemble(np.concatenate(parts), phase=np.repeat(np.arange(1, len(slow) + 1), calls))


@pytest.mark.parametrize("seed", [2, 13, 20, 32, 40])
def test_what_comes_back_in_four_of_five_phases_is_a_mode(seed: int) -> None:
    """60 of 240 calls have 95 % of the time, in unequal numbers; the bound of the evidence alone hid them."""
    found = ensemble_of([25, 15, 12, 8, 1], seed).modes()
    assert found.bumps == ()
    assert found.modes[-1].from_s < 0.05 < found.modes[-1].to_s
    assert found.modes[-1].time_share > 0.9
    assert found.phases == 5


@pytest.mark.parametrize("seed", range(4))
def test_what_one_or_two_of_five_phases_made_is_none(seed: int) -> None:
    alone = ensemble_of([30, 0, 0, 0, 0], seed, width=0.3).modes()
    assert [(bump.phase, bump.of_phases) for bump in alone.bumps] == [(1, 5)]
    two = ensemble_of([30, 20, 0, 1, 0], seed, width=0.3).modes()
    assert [bump.phase for bump in two.bumps] == [1]
    assert "of 5 phases" in str(two.bumps[0])


def test_calls_of_most_phases_are_not_said_to_come_from_few() -> None:
    """Two phases have the slow calls; those of some 4 ms, which no antimode separates from them, all five."""
    ensemble = ensemble_of([30, 20, 0, 1, 0], 0)
    (bump,) = ensemble.modes().bumps
    assert bump.effective_phases > 2.5
    text = str(bump)
    assert f"are in about {bump.effective_phases:.0f} of 5 phases, but stand out in few of them" in text
    assert "not typical" not in text


@pytest.mark.parametrize(("slow", "share"), [([20, 20], "2/2"), ([24, 0, 0], "1/3")])
def test_fewer_than_four_phases_show_how_many_have_a_mode(slow: list[int], share: str) -> None:
    ensemble = ensemble_of(slow, 3, width=0.3)
    found = ensemble.modes()
    assert found.bumps == ()
    rows = [line.split() for line in str(found).splitlines() if line.strip()]
    assert share in [row[-1] for row in rows if row[0].isdigit()]


def test_of_forty_calls_in_five_phases_those_of_four_are_a_mode() -> None:
    random = np.random.default_rng(5)
    durations_s = 1e-3 * random.lognormal(0, 0.15, 40)
    phase = np.repeat(np.arange(5), 8)
    slow = np.concatenate([np.arange(8 * number, 8 * number + 4) for number in range(4)])
    durations_s[slow] *= 30
    found = en.Ensemble(durations_s, phase=phase).modes()
    assert [round(mode.weight, 2) for mode in found.modes] == [0.6, 0.4]
    assert found.modes[1].effective_phases == pytest.approx(4)
    one_phase = np.where(np.isin(np.arange(40), slow), 2, phase)
    assert len(en.Ensemble(durations_s, phase=one_phase).modes().bumps) == 1


def test_a_spike_of_one_phase_on_calls_of_all_is_none() -> None:
    """All of 50 phases have calls there; that they gather at one place is the work of one phase."""
    random = np.random.default_rng(6)
    phase = np.repeat(np.arange(50), 60)
    durations_s = 1e-4 * random.lognormal(0, 0.2, len(phase))
    spread = random.random(len(phase)) < 0.2
    durations_s[spread] = np.exp(random.uniform(np.log(2e-3), np.log(2e-2), spread.sum()))
    spike_s = 0.01 * random.lognormal(0, 0.03, 600)
    found = en.Ensemble(np.append(durations_s, spike_s), phase=np.append(phase, np.full(600, 7))).modes()
    assert len(found) == 1
    assert [(bump.phase, bump.of_phases) for bump in found.bumps] == [(7, 50)]

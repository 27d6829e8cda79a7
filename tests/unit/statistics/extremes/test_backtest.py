"""Backtests count what became of predictions, and say when there were none."""

import json

import numpy as np
import pytest

from ensembles.answers.tail import BacktestAnswer
from ensembles.statistics.extremes.backtest import run_backtest
from ensembles.statistics.extremes.exchangeability import CallAttributes
from ensembles.statistics.samples.counted_durations import CountedDurations


def phases_that_differ(phases, calls, seed, drift=0.0):
    rng = np.random.default_rng(seed)
    phase = np.repeat(np.arange(phases), calls)
    location = rng.normal(0, 0.4, phases) + drift * (np.arange(phases) >= phases / 2)
    return 1e-3 * np.exp(location[phase] + 0.5 * rng.standard_normal(len(phase))), phase


@pytest.mark.long
def test_phases_that_are_exchangeable_are_covered_as_often_as_meant():
    durations_s, phase = phases_that_differ(300, 64, 1)
    calls = CallAttributes(durations_s, phase, rank=np.tile(np.arange(64), 300))
    found = run_backtest(CountedDurations.from_durations(durations_s, phase), calls=calls)
    assert [kind.kind for kind in found.kinds] == ["phases", "next phase", "ranks"]
    assert found.trials == 300
    assert found.kinds[1].trials == 292
    for kind in found.kinds:
        assert kind.coverage == pytest.approx(0.9, abs=0.07)
        assert kind.below + kind.coverage + kind.above == pytest.approx(1)
        assert 2 < kind.width < 20


def test_after_a_change_in_the_middle_of_a_run_the_next_phases_are_held_again():
    durations_s, phase = phases_that_differ(100, 64, 2, drift=3.0)
    found = run_backtest(CountedDurations.from_durations(durations_s, phase))
    following = {kind.kind: kind for kind in found.kinds}["next phase"]
    assert following.trials == 92
    assert following.coverage == pytest.approx(0.9, abs=0.07)
    assert following.width < 8  # a factor of 20 lies between the halves
    assert np.histogram(found.pit, 4, (0, 1))[0].min() > 10


@pytest.mark.parametrize("tasks", [16, 64, 512])
def test_a_number_of_tasks_is_tested_by_a_step_as_large(tasks):
    durations_s, phase = phases_that_differ(200, 64, 3)
    found = run_backtest(CountedDurations.from_durations(durations_s, phase), tasks)
    assert found.tasks == tasks
    assert found.trials == 200
    assert found.coverage == pytest.approx(0.9, abs=0.1)


def test_calls_without_phases_are_left_out_at_random():
    seen = np.random.default_rng(4).lognormal(-7, 1, 4000)
    found = run_backtest(CountedDurations.from_durations(seen), 4000)
    assert found.kinds[0].kind == "calls"
    assert found.trials == 40
    assert found.coverage > 0.7


@pytest.mark.parametrize("phases", [0, 1, 4])
def test_too_few_phases_are_no_trial(phases):
    durations_s, phase = phases_that_differ(phases, 50, 5)
    found = run_backtest(CountedDurations.from_durations(durations_s, phase))
    assert found.coverage is None
    assert found.trials == 0
    assert found.kinds[0].reason
    json.dumps(found.to_json(), allow_nan=False)
    assert found.kinds[0].reason in " ".join(str(BacktestAnswer(**vars(found))).split())


def test_thinning_keeps_a_call_with_the_chance_that_is_asked_for():
    from ensembles.statistics.extremes.backtest import _thinned

    durations_s, phase = phases_that_differ(50, 400, 6)
    sample = CountedDurations.from_durations(durations_s, phase)
    thinned = _thinned(sample, 8.0, np.random.default_rng(7))
    assert thinned.total == pytest.approx(20000 / 8, rel=0.08)
    assert thinned.counts.sum() == thinned.total
    assert np.all(thinned.counts <= sample.counts)
    assert np.all(thinned.max_s <= sample.max_s)
    assert np.all(thinned.max_s >= thinned.min_s)


def test_json_has_the_names_that_other_tools_rely_on():
    durations_s, phase = phases_that_differ(20, 30, 8)
    found = run_backtest(CountedDurations.from_durations(durations_s, phase), 30).to_json()
    assert set(found) >= {"coverage", "level", "trials", "tasks", "refused", "width", "kinds"}
    json.dumps(found, allow_nan=False)

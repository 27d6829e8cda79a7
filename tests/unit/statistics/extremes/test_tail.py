"""The slowest of N: which layer answers, what it says, when it says nothing."""

import json

import numpy as np
import pytest

import ensembles as en
from ensembles.answers.tail import TailAnswer
from ensembles.model.errors import EnsioError
from ensembles.statistics.extremes.exchangeability import CallAttributes
from ensembles.statistics.extremes.pareto_tail import fit_pareto_tail
from ensembles.statistics.extremes.slowest_of_n import predict_slowest
from ensembles.statistics.extremes.tail import METHODS
from ensembles.statistics.samples.counted_durations import CountedDurations

KEYS = {
    "n",
    "tasks",
    "median_s",
    "mean_s",
    "low_s",
    "high_s",
    "level",
    "method",
    "observed_max_s",
    "exchangeable",
    "phases",
    "refused",
}


def alike(calls=5000, seed=1):
    return np.random.default_rng(seed).lognormal(-7, 1, calls)


def differing(phases=60, calls=100, seed=2):
    rng = np.random.default_rng(seed)
    phase = np.repeat(np.arange(phases), calls)
    return 1e-3 * np.exp(rng.normal(0, 0.5, phases)[phase] + 0.5 * rng.standard_normal(len(phase))), phase


def test_alike_calls_within_reach_need_no_model():
    found = predict_slowest(CountedDurations.from_durations(alike()), 100)
    assert found.method == "within-reach"
    assert found.low_s < found.median_s < found.high_s <= found.observed_max_s


def test_alike_calls_beyond_reach_get_a_tail():
    seen = alike()
    found = predict_slowest(CountedDurations.from_durations(seen), 50000)
    assert found.method == "beyond"
    assert found.median_s > found.observed_max_s
    tail = fit_pareto_tail(CountedDurations.from_durations(seen))
    ends = tail.quantiles_s(50000, np.array([0.05, 0.5, 0.95]))
    # Between doublings of N, quantiles are interpolated.
    assert (found.low_s, found.median_s, found.high_s) == pytest.approx(tuple(ends), rel=0.01)
    assert (found.threshold_s, found.shape, found.exceedances) == (tail.threshold_s, tail.shape, tail.above)


def test_five_phases_are_the_sample_also_where_they_are_alike():
    durations_s, phase = alike(), np.repeat(np.arange(50), 100)
    found = predict_slowest(CountedDurations.from_durations(durations_s, phase), 100)
    assert found.exchangeable
    assert found.method == "phases"
    few = predict_slowest(CountedDurations.from_durations(durations_s, phase // 13), 100)
    assert few.method == "within-reach"


@pytest.mark.parametrize(("tasks", "method"), [(50, "phases"), (100, "phases"), (1600, "phases-carried")])
def test_phases_that_differ_are_the_sample(tasks, method):
    durations_s, phase = differing()
    found = predict_slowest(CountedDurations.from_durations(durations_s, phase), tasks)
    assert found.method == method
    assert not found.exchangeable
    assert found.broken_by[0].name == "phase"
    assert found.phases == 60
    # Phases differ by a factor of exp(0.5) and more: an interval that only knows of all calls together is
    # narrower.
    pooled = found.equation1
    assert found.high_s / found.low_s > 1.5 * (pooled.high_s or found.observed_max_s) / pooled.low_s


def test_changes_with_time_make_blocks_where_phases_are_not_known():
    durations_s, _ = differing(40, 200)
    calls = CallAttributes(durations_s, start_ns=np.arange(8000))
    found = predict_slowest(CountedDurations.from_durations(durations_s), 200, calls=calls)
    assert found.method == "blocks"
    assert "time" in [one.name for one in found.broken_by]
    assert "calls change with time" in (
        predict_slowest(CountedDurations.from_durations(durations_s), 10**6, calls=calls).refused
    )


def test_intervals_at_a_higher_level_are_wider():
    for sample in (CountedDurations.from_durations(alike()), CountedDurations.from_durations(*differing())):
        for tasks in (100, 5000):
            ends = [predict_slowest(sample, tasks, level) for level in (0.5, 0.8, 0.9, 0.95)]
            assert np.all(np.diff([one.high_s for one in ends]) > 0)
            assert np.all(np.diff([one.low_s for one in ends]) < 0)


def test_answers_repeat():
    durations_s, phase = differing()
    first, second = (
        predict_slowest(CountedDurations.from_durations(durations_s, phase), 900) for _ in range(2)
    )
    assert first == second


@pytest.mark.parametrize(
    ("durations_s", "phase", "reason"),
    [
        (np.zeros(0), None, "there are no calls"),
        (np.array([1e-3]), None, "1 call: too few for a tail"),
        (np.full(500, 2e-3), None, "all 500 calls took 2.00 ms"),
        (np.zeros(100), None, "all 100 calls took 0 ns"),
        (np.r_[alike(300), 8 * alike(300)], np.repeat([0, 1], 300), "record more phases"),
        (np.repeat([1e-3, 2e-3], 400), None, "too similar"),
    ],
)
def test_what_the_data_cannot_say_is_refused_in_one_sentence(durations_s, phase, reason):
    found = predict_slowest(CountedDurations.from_durations(durations_s, phase), 10**4)
    assert found.method == "refused"
    assert reason in found.refused
    assert found.low_s is None
    assert found.median_s is None
    json.dumps(found.to_json(), allow_nan=False)
    assert "No prediction" in str(TailAnswer(**vars(found)))


def test_a_clock_that_is_too_coarse_is_named():
    seen = np.where(np.random.default_rng(3).random(1000) < 0.6, 2e-6, 3e-6)
    assert (
        "step of the clock" in predict_slowest(CountedDurations.from_durations(seen, None, 1e-6), 100).refused
    )


def test_no_interval_is_narrower_than_the_step_of_the_clock():
    rng = np.random.default_rng(5)
    phase = np.repeat(np.arange(30), 100)
    ticks = np.where(rng.random(3000) < 0.3, 1e-3, 2e-3)
    ticks[::200] = 4e-3
    found = predict_slowest(CountedDurations.from_durations(ticks, phase, 1e-3), 20)
    assert found.high_s - found.low_s >= 1e-3 * (1 - 1e-9)
    assert found.low_s <= 2e-3 <= found.high_s


def test_phases_that_resemble_their_neighbours_count_as_fewer():
    phase = np.repeat(np.arange(80), 50)
    rng = np.random.default_rng(4)
    drift = 0.1 * np.cumsum(rng.standard_normal(80))
    seen = 1e-3 * np.exp(drift[phase] + 0.1 * rng.standard_normal(4000))
    found = predict_slowest(CountedDurations.from_durations(seen, phase), 50)
    shuffled = predict_slowest(CountedDurations.from_durations(seen, rng.permutation(80)[phase]), 50)
    assert found.effective_phases < 20 < shuffled.effective_phases
    assert found.width > shuffled.width


def test_calls_that_are_in_no_phase_are_left_out():
    durations_s, phase = differing()
    with_strays = CountedDurations.from_durations(
        np.append(durations_s, [50.0, 60.0]), np.append(phase, [-1, -1])
    )
    found = predict_slowest(with_strays, 100)
    assert found.n == 6000
    assert found.high_s == predict_slowest(CountedDurations.from_durations(durations_s, phase), 100).high_s


@pytest.mark.parametrize(("tasks", "level"), [(0, 0.9), (-3, 0.9), (2.5, 0.9), (10, 0.0), (10, 1.0)])
def test_senseless_questions_are_errors(tasks, level):
    with pytest.raises(EnsioError):
        predict_slowest(CountedDurations.from_durations(alike()), tasks, level)


def test_json_has_the_names_that_other_tools_rely_on():
    durations_s, phase = differing()
    found = predict_slowest(CountedDurations.from_durations(durations_s, phase), 100).to_json()
    assert set(found) >= KEYS
    assert found["method"] in METHODS
    assert set(found["equation1"]) == {"median_s", "mean_s", "low_s", "high_s", "phases", "width"}
    json.dumps(found, allow_nan=False)


def test_an_ensemble_gives_what_it_knows_of_its_calls():
    durations_s, phase = differing()
    rank = np.tile(np.arange(100), 60)
    found = en.Ensemble(durations_s, phase=phase, rank=rank, start_ns=np.arange(6000)).tail(tasks=100)
    assert found.method == "phases"
    assert "100 calls" in str(found)


def test_the_longest_calls_are_those_of_a_sort():
    from ensembles.statistics.extremes.slowest_of_n import LARGEST, _largest

    for seen in (alike(20000), alike(300), np.round(alike(20000), 4)):
        np.testing.assert_array_equal(
            _largest(CountedDurations.from_durations(seen), seen), np.sort(seen)[-LARGEST:]
        )

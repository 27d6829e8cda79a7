"""The slowest of N: which layer answers, what it says, when it says nothing."""

import json

import numpy as np
import pytest

import ensembles as en
from ensembles.model.errors import EnsioError
from ensembles.statistics.extremes.exchangeability import CallAttributes
from ensembles.statistics.extremes.maximum import METHODS, predict_maximum
from ensembles.statistics.extremes.pareto_tail import fit_pareto_tail
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
    found = predict_maximum(CountedDurations.from_durations(alike()), 100)
    assert found.method == "within-reach"
    assert found.low_s < found.median_s < found.high_s <= found.observed_max_s


def test_alike_calls_beyond_reach_get_a_tail():
    seen = alike()
    found = predict_maximum(CountedDurations.from_durations(seen), 50000)
    assert found.method == "beyond"
    assert found.median_s > found.observed_max_s
    low, median, high = fit_pareto_tail(CountedDurations.from_durations(seen)).quantiles_s(
        50000, np.array([0.05, 0.5, 0.95])
    )
    assert (found.low_s, found.median_s, found.high_s) == pytest.approx((low, median, high))


def test_phases_that_are_alike_are_put_together():
    found = predict_maximum(CountedDurations.from_durations(alike(), np.repeat(np.arange(50), 100)), 100)
    assert found.exchangeable
    assert found.method == "within-reach"


@pytest.mark.parametrize(("tasks", "method"), [(50, "phases"), (100, "phases"), (1600, "phases-carried")])
def test_phases_that_differ_are_the_sample(tasks, method):
    durations_s, phase = differing()
    found = predict_maximum(CountedDurations.from_durations(durations_s, phase), tasks)
    assert found.method == method
    assert not found.exchangeable
    assert found.broken_by[0].name == "phase"
    assert found.phases == 60
    # Phases differ by a factor of exp(0.5) and more: an interval that only knows of all calls together is
    # narrower.
    assert found.high_s / found.low_s > 1.5 * found.equation1.high_s / found.equation1.low_s


def test_changes_with_time_make_blocks_where_phases_are_not_known():
    durations_s, _ = differing(40, 200)
    calls = CallAttributes(durations_s, start_ns=np.arange(8000))
    found = predict_maximum(CountedDurations.from_durations(durations_s), 200, calls=calls)
    assert found.method == "blocks"
    assert "time" in [one.name for one in found.broken_by]
    assert predict_maximum(
        CountedDurations.from_durations(durations_s), 10**6, calls=calls
    ).refused.startswith("durations change with time")


def test_intervals_at_a_higher_level_are_wider():
    for sample in (CountedDurations.from_durations(alike()), CountedDurations.from_durations(*differing())):
        for tasks in (100, 10000):
            ends = [predict_maximum(sample, tasks, level) for level in (0.5, 0.8, 0.9, 0.95)]
            assert np.all(np.diff([one.high_s for one in ends]) > 0)
            assert np.all(np.diff([one.low_s for one in ends]) < 0)


def test_answers_repeat():
    durations_s, phase = differing()
    first, second = (
        predict_maximum(CountedDurations.from_durations(durations_s, phase), 900) for _ in range(2)
    )
    assert first == second


@pytest.mark.parametrize(
    ("durations_s", "phase", "reason"),
    [
        (np.zeros(0), None, "there are no calls"),
        (np.array([1e-3]), None, "1 call: too few for a tail"),
        (np.full(500, 2e-3), None, "all 500 calls took 2.00 ms"),
        (np.zeros(100), None, "all 100 calls took 0 ns"),
        (differing(3)[0], differing(3)[1], "3 phases are too few"),
        (np.repeat([1e-3, 2e-3], 400), None, "too similar"),
    ],
)
def test_what_the_data_cannot_say_is_refused_in_one_sentence(durations_s, phase, reason):
    found = predict_maximum(CountedDurations.from_durations(durations_s, phase), 10**4)
    assert found.method == "refused"
    assert reason in found.refused
    assert found.low_s is None
    assert found.median_s is None
    json.dumps(found.to_json(), allow_nan=False)
    assert "no prediction" in str(found)


def test_a_clock_that_is_too_coarse_is_named():
    seen = np.where(np.random.default_rng(3).random(1000) < 0.6, 2e-6, 3e-6)
    assert (
        "step of the clock" in predict_maximum(CountedDurations.from_durations(seen, None, 1e-6), 100).refused
    )


def test_intervals_hold_the_half_step_by_which_a_clock_errs():
    durations_s, phase = differing()
    coarse = np.floor(durations_s * 1e4) / 1e4
    found = predict_maximum(CountedDurations.from_durations(coarse, phase, 1e-4), 100)
    exact = predict_maximum(CountedDurations.from_durations(coarse, phase), 100)
    assert found.low_s == pytest.approx(exact.low_s - 0.5e-4)
    assert found.high_s == pytest.approx(exact.high_s + 0.5e-4)


def test_phases_that_resemble_their_neighbours_too_much_are_refused():
    phase = np.repeat(np.arange(80), 50)
    drift = np.linspace(0, 4, 80)[phase]
    seen = 1e-3 * np.exp(drift + 0.1 * np.random.default_rng(4).standard_normal(4000))
    assert "neighbouring phases" in predict_maximum(CountedDurations.from_durations(seen, phase), 50).refused


def test_calls_that_are_in_no_phase_are_left_out():
    durations_s, phase = differing()
    with_strays = CountedDurations.from_durations(
        np.append(durations_s, [50.0, 60.0]), np.append(phase, [-1, -1])
    )
    found = predict_maximum(with_strays, 100)
    assert found.n == 6000
    assert found.high_s == predict_maximum(CountedDurations.from_durations(durations_s, phase), 100).high_s


@pytest.mark.parametrize(("tasks", "level"), [(0, 0.9), (-3, 0.9), (2.5, 0.9), (10, 0.0), (10, 1.0)])
def test_senseless_questions_are_errors(tasks, level):
    with pytest.raises(EnsioError):
        predict_maximum(CountedDurations.from_durations(alike()), tasks, level)


def test_json_has_the_names_that_other_tools_rely_on():
    durations_s, phase = differing()
    found = predict_maximum(CountedDurations.from_durations(durations_s, phase), 100).to_json()
    assert set(found) >= KEYS
    assert found["method"] in METHODS
    assert set(found["equation1"]) == {"median_s", "mean_s", "low_s", "high_s"}
    json.dumps(found, allow_nan=False)


def test_an_ensemble_gives_what_it_knows_of_its_calls():
    durations_s, phase = differing()
    rank = np.tile(np.arange(100), 60)
    found = en.Ensemble(durations_s, phase=phase, rank=rank, start_ns=np.arange(6000)).tail(tasks=100)
    assert found.extremal_index < 0.6
    assert found.method == "phases"
    assert "100 calls" in str(found)


def test_the_longest_calls_are_those_of_a_sort():
    from ensembles.statistics.extremes.maximum import LARGEST, _largest

    for seen in (alike(20000), alike(300), np.round(alike(20000), 4)):
        np.testing.assert_array_equal(
            _largest(CountedDurations.from_durations(seen), seen), np.sort(seen)[-LARGEST:]
        )

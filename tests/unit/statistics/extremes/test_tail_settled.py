"""Whether a run has settled, and what is said of what comes next if it has not."""

import numpy as np
import pytest
from scipy import stats

from ensembles.answers.tail import TailAnswer
from ensembles.statistics.extremes.backtest import run_backtest
from ensembles.statistics.extremes.exchangeability import CallAttributes
from ensembles.statistics.extremes.slowest_of_n import predict_slowest
from ensembles.statistics.extremes.stationarity import unsettled
from ensembles.statistics.samples.counted_durations import CountedDurations

PHASES, CALLS = 80, 40


def run(location, seed=3):
    rng = np.random.default_rng(seed)
    phase = np.repeat(np.arange(len(location)), CALLS)
    noise = 0.3 * rng.standard_normal(len(location))
    return 1e-3 * np.exp((location + noise)[phase] + 0.5 * rng.standard_normal(len(phase))), phase


def test_independent_phases_have_settled_but_for_the_level():
    rng = np.random.default_rng(4)
    alarms = np.mean([unsettled(*rng.standard_normal((2, PHASES))) is not None for _ in range(400)])
    assert alarms < 0.05 + 3 * np.sqrt(0.05 * 0.95 / 400)


def test_last_stretches_are_compared_by_students_t():
    # 32 phases: 16 stretches of two; the first of the tests that the sentence names is the smallest p-value.
    values = np.concatenate([np.tile([0.0, 1.0, 0.2, 0.8], 7), [3.0, 3.1, 3.2, 3.3]])
    scores = stats.norm.ppf((stats.rankdata(values) - 0.5) / len(values))
    means = scores.reshape(16, 2).mean(1)
    chances = [stats.ttest_ind(means[-k:], means[:-k]).pvalue for k in (2, 4, 8)]
    assert min(chances) == chances[0] < 0.005
    assert "(2 of 16 stretches of time)" in unsettled(values)


@pytest.mark.parametrize(
    ("location", "what"),
    [(np.linspace(0, 0.7, PHASES), "phases"), (1.0 * (np.arange(PHASES) >= PHASES - 5), "last phases")],
)
def test_a_run_that_drifts_or_has_just_changed_says_so(location, what):
    found = predict_slowest(CountedDurations.from_durations(*run(location)), CALLS)
    assert found.refused is None
    assert what in found.unsettled
    assert found.unsettled in " ".join(str(TailAnswer(**vars(found))).split())
    assert found.to_json()["unsettled"] == found.unsettled


def test_an_unsettled_run_is_followed_by_the_prediction_of_its_next_phase():
    drift = np.linspace(0, 1.5, PHASES)
    found = predict_slowest(CountedDurations.from_durations(*run(drift)), CALLS)
    assert found.next_phase.low_s > found.low_s
    assert found.next_phase.high_s / found.next_phase.low_s < 0.8 * found.width
    assert found.next_phase.coverage == pytest.approx(0.9, abs=0.08)
    assert "Next phase" in str(TailAnswer(**vars(found)))


def test_a_settled_run_says_nothing():
    found = predict_slowest(CountedDurations.from_durations(*run(np.zeros(PHASES))), CALLS)
    assert found.unsettled is None
    assert "settled" not in str(TailAnswer(**vars(found)))


@pytest.mark.parametrize("values", [np.arange(10.0), np.ones(100), np.zeros(0)])
def test_too_few_phases_or_equal_ones_cannot_be_called_unsettled(values):
    assert unsettled(values) is None


def test_phases_of_a_single_call_are_replaced_by_stretches_of_time():
    durations_s, _ = run(np.zeros(PHASES))
    start_ns = np.arange(len(durations_s)) * 10**6
    calls = CallAttributes(durations_s, np.arange(len(durations_s)), start_ns=start_ns)
    sample = CountedDurations.from_durations(durations_s, calls.phase)
    found = predict_slowest(sample, CALLS, calls=calls)
    assert found.method == "blocks"
    assert found.low_s < np.median(durations_s.reshape(-1, CALLS).max(1)) < found.high_s
    assert run_backtest(sample, calls=calls).coverage == pytest.approx(0.9, abs=0.1)
    assert "single call" in predict_slowest(sample, CALLS).refused

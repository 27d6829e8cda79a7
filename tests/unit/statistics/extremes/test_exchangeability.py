"""What breaks exchangeability is found, named and measured; what does not is left alone."""

import numpy as np
import pytest
from scipy import stats

from ensembles.statistics.extremes.exchangeability import (
    CallAttributes,
    by_phase,
    check_exchangeability,
    slow_calls_by_phase,
)
from ensembles.statistics.samples.counted_durations import CountedDurations


def test_phase_test_is_that_of_kruskal_and_wallis_over_bins():
    rng = np.random.default_rng(1)
    durations_s, phase = rng.lognormal(-7, 0.5, 3000), rng.integers(0, 12, 3000)
    durations_s *= np.where(phase == 3, 1.1, 1.0)
    sample = CountedDurations.from_durations(durations_s, phase)
    bins = np.repeat(sample.bin, sample.count)
    group = np.repeat(np.repeat(np.arange(12), np.diff(sample.begin)), sample.count)
    expected = stats.kruskal(*[bins[group == one] for one in range(12)]).pvalue
    assert by_phase(sample, rng).p_value == pytest.approx(expected, rel=1e-3)


def test_share_of_the_variance_between_phases_is_found():
    rng = np.random.default_rng(2)
    phase = np.repeat(np.arange(400), 50)
    log_s = rng.normal(0, 0.6, 400)[phase] + rng.normal(0, 0.8, 20000)
    share = by_phase(CountedDurations.from_durations(1e-3 * np.exp(log_s), phase), rng).share
    assert share == pytest.approx(0.36, abs=0.05)


def test_false_alarms_are_rare():
    rng = np.random.default_rng(3)
    broken = 0
    for _ in range(200):
        durations_s, phase = rng.exponential(1e-3, 2000), np.repeat(np.arange(40), 50)
        calls = CallAttributes(durations_s, phase, rank=np.tile(np.arange(50), 40), start_ns=np.arange(2000))
        broken += not check_exchangeability(
            CountedDurations.from_durations(durations_s, phase), calls
        ).exchangeable
    assert broken <= 20  # five tests at 1 %, of 200 ensembles


def test_slow_calls_that_gather_in_some_phases_are_found_where_medians_agree():
    rng = np.random.default_rng(4)
    phase = np.repeat(np.arange(60), 100)
    slow = rng.random(6000) < np.where(phase % 10 == 0, 0.3, 0.01)
    durations_s = rng.lognormal(-7, 0.3, 6000) * np.where(slow, 30.0, 1.0)
    assert slow_calls_by_phase(CountedDurations.from_durations(durations_s, phase), rng).breaks


@pytest.mark.parametrize("column", ["rank", "node", "ordinal", "time"])
def test_what_matters_is_named(column):
    rng = np.random.default_rng(5)
    group = rng.permutation(np.repeat(np.arange(30), 100))
    columns = {name: rng.integers(0, 30, 3000) for name in ("rank", "node", "ordinal")}
    start = rng.permutation(3000)
    if column == "time":
        group = start * 30 // 3000
    else:
        columns[column] = group
    durations_s = 1e-3 * np.exp(rng.normal(0, 0.5, 30)[group] + rng.normal(0, 0.5, 3000))
    found = check_exchangeability(
        CountedDurations.from_durations(durations_s), CallAttributes(durations_s, start_ns=start, **columns)
    )
    assert [one.name for one in found.broken_by] == [column]
    assert 0.2 < found.broken_by[0].share < 0.8


def test_effective_number_of_calls_is_that_of_the_design_effect():
    rng = np.random.default_rng(7)
    phase = np.repeat(np.arange(200), 20)
    durations_s = 1e-3 * np.exp(rng.normal(0, 1, 200)[phase])
    found = check_exchangeability(CountedDurations.from_durations(durations_s, phase))
    assert found.effective_n == pytest.approx(200, rel=0.05)  # calls of a phase are all alike


def test_nothing_to_test_is_no_verdict():
    assert check_exchangeability(CountedDurations.from_durations(np.ones(50))).exchangeable is None

"""Short calibration of the slowest of N; ``./dev calibrate`` runs the long one."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from project import ROOT
from real_tables import real_table

from ensembles.statistics.extremes.backtest import run_backtest
from ensembles.statistics.extremes.exchangeability import CallAttributes
from ensembles.statistics.extremes.order_statistics import compute_equation1
from ensembles.statistics.samples.counted_durations import CountedDurations

sys.path.insert(0, str(ROOT))
from calibration.cases.tail_cases import INDEPENDENT, Phased, independent_coverage, phased_coverage


def allowed(trials: int) -> float:
    """Three and a half standard deviations of a share of 0.9, and what the goal leaves."""
    return 3.5 * np.sqrt(0.09 / trials) + 0.03


@pytest.mark.long
@pytest.mark.parametrize(
    "name",
    [
        "exponential",
        "log-normal, sd 1",
        "Pareto, alpha 3",
        "uniform on 0.5 to 1.5",
        "2 % slow, log-normal x 20",
        "10 % slow, log-normal x 20",
    ],
)
def test_slowest_of_a_tenth_to_a_hundred_times_the_calls(name: str) -> None:
    trials = 24
    counts = independent_coverage(INDEPENDENT[name], 1000, (0.1, 1.0, 10.0, 100.0), trials, seed=1906)
    covered = np.mean([count.coverage for count in counts])
    # The four share their data, so that they count as one and a half sets of trials rather than four.
    assert covered == pytest.approx(0.9, abs=allowed(trials * 3 // 2))
    assert all(np.isfinite(count.width) for count in counts)


@pytest.mark.long
@pytest.mark.parametrize("within", ["log-normal", "Pareto", "some slow calls"])
def test_slowest_of_a_new_phase_with_up_to_sixteen_times_the_tasks(within: str) -> None:
    truth = Phased(within, phases=40, calls=100, location=0.3, spread=0.25, slow=0.1)
    counts = phased_coverage(truth, (1.0, 16.0), 25, seed=1907)
    for count in counts:
        assert count.coverage == pytest.approx(0.9, abs=allowed(25))
        assert count.width < 100


def test_phases_of_a_real_program_are_covered_where_equation_1_is_not() -> None:
    table = real_table("vpic_hdf5_summit_gpfs_192")
    mine = (table["length"] == 524288) & (table["layer"] == 0) & (table["op"] == 1)
    rank, start = table["rank"][mine].astype(np.int64), table["start"][mine]
    durations_s = (table["end"] - table["start"])[mine]
    order = np.lexsort([start, rank])
    first = np.concatenate([[0], np.flatnonzero(np.diff(rank[order])) + 1])
    phase = np.empty(len(rank), np.int64)
    phase[order] = np.arange(len(rank)) - np.repeat(first, np.diff(np.append(first, len(rank))))
    sample = CountedDurations.from_durations(durations_s, phase)
    assert len(sample.n) == 160
    found = run_backtest(sample, calls=CallAttributes(durations_s, phase, rank))
    assert {kind.kind for kind in found.kinds} == {"phases", "next phase", "ranks"}
    following = found.kinds[1]
    assert 0.8 <= following.coverage <= 0.96
    assert following.trials == 152
    for kind in found.kinds:  # or the number of calls is refused
        assert "is known within a factor of" in kind.reason if kind.coverage is None else kind.coverage > 0.8
    pooled = compute_equation1(sample, 192)
    assert np.mean((sample.max_s >= pooled.low_s) & (sample.max_s <= pooled.high_s)) < 0.6

"""Small requests of tasks that share processors also cost what interrupts them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from made_io import KIB, Made, io_run

import ensembles as en
from ensembles.diagnosis.diagnose import diagnose
from ensembles.diagnosis.finding import Finding
from ensembles.diagnosis.rules import small_requests
from ensembles.model.metadata import WAITS_FOR_DEVICE

TASKS, STEPS, CALLS, SLICE_US = 8, 4, 500, 4000.0


def found(folder: Path, processors: int) -> Finding:
    """Writes of 1,000 bytes take 2 µs; one of 100 loses its processor for a time slice."""
    rng = np.random.default_rng(3)
    times_us = np.where(rng.random((TASKS, STEPS, CALLS)) < 0.01, SLICE_US, 2.0)
    ends_us = times_us.sum(axis=2) + CALLS
    tasks = [
        [
            call
            for step in range(STEPS)
            for call in (
                *(
                    Made("pwrite", us, 1000, (step * CALLS + n) * 1000, file=1 + rank)
                    for n, us in enumerate(times_us[rank, step].tolist())
                ),
                Made("MPI_Barrier", ends_us[:, step].max() - ends_us[rank, step] + 10),
            )
        ]
        for rank in range(TASKS)
    ]
    files = {1 + rank: f"/scratch/{rank}" for rank in range(TASKS)}
    run = io_run(folder, tasks, files, processors=str(processors))
    (one,) = diagnose(run, [small_requests.rule]).findings
    return one


def test_where_tasks_share_processors_time_slices_count_in_the_best_estimate(tmp_path: Path) -> None:
    crowded, alone = (found(tmp_path / str(number), number) for number in (2, TASKS))
    run_s = crowded.evidence["run_s"]
    # The calls take all of the run: 42 µs on average, 2 µs of them without the slices.
    assert crowded.share_s is not None
    assert crowded.share_s > 0.6 * run_s
    assert alone.share_s is not None
    assert alone.share_s < 0.1 * run_s
    assert crowded.gain_s is not None
    assert 0 < crowded.gain_s[0] < crowded.share_s <= crowded.gain_s[1]
    # What a call usually costs is said, not the mean.
    assert crowded.evidence["fixed_cost_s"] == pytest.approx(1.75e-6, rel=0.1)
    assert crowded.title == alone.title


def test_two_long_writes_are_not_a_habit_of_small_requests(tmp_path: Path) -> None:
    """As of a clone of a repository: of many writes, two wait for the disk."""
    times_us = [60 if at % 20 == 0 else 1.5 for at in range(500)]
    times_us[100], times_us[300] = 20_000, 12_000
    calls = [Made("pwrite", us, 1000, 1000 * at) for at, us in enumerate(times_us)]
    quick = [Made("pwrite", 1.5, 1000, 1000 * at, 2) for at in range(500)]
    run = io_run(tmp_path / "run", [calls, quick], {1: "/a/1", 2: "/a/2"}, processors="1")
    (one,) = diagnose(run, [small_requests.rule]).findings
    assert one.share_s == pytest.approx(1.5e-3, rel=0.5)


def test_calls_that_take_as_long_as_their_bytes_are_not_slow_requests(tmp_path: Path) -> None:
    # Three tasks write at the rate of memory. The fourth waits for the device, and now and then for long.
    fast = [Made("pwrite", 15, 64 * KIB, 64 * KIB * at) for at in range(320)]
    slow = [
        Made("pwrite", us, 64 * KIB, 64 * KIB * at, 2, carried=WAITS_FOR_DEVICE)
        for at, us in enumerate([12_000, *[205] * 11] * 26 + [12_000, *[205] * 7])
    ]
    run = io_run(
        tmp_path / "run",
        [fast, fast, fast, slow],
        {1: "/scratch/a", 2: "/scratch/b"},
        {2: {"open.flags": "O_SYNC"}},
        processors="2",
    )
    found = {each.id: each for each in en.diagnose(run).findings}
    assert "small-requests" in found["o-sync"].symptoms
    small = found["small-requests"]
    assert small.title.startswith("small requests: 320 calls of 64.0 KiB, ")
    assert "most of this size take 15" in small.title
    assert small.where.ranks == ((3, 3),)


def test_tasks_that_ask_for_a_file_until_it_is_there_take_the_processors(tmp_path: Path) -> None:
    """A call that loses the processor is long, also without other tasks, and goes with the others."""
    asks = [Made("stat", 4_000 if at % 50 == 49 else 0.5, error=2) for at in range(2_000)]
    works = [Made("pwrite", 1, 10)] * 10

    def diagnosed(processors: str) -> dict[str, Finding]:
        run = io_run(tmp_path / processors, [works, asks, asks], processors=processors)
        return {each.id: each for each in en.diagnose(run).findings}

    shared, enough = diagnosed("2"), diagnosed("4")
    assert "fewer-calls" not in {*shared, *enough}
    for each in (shared, enough):
        assert each["metadata-storm"].severity == "critical"
        assert each["metadata-storm"].share_s == pytest.approx(0.16, rel=0.1)


def test_a_processor_that_others_keep_busy_makes_gains_uncertain(tmp_path: Path) -> None:
    calls = [made for at in range(60) for made in (Made("pwrite", 5, KIB, KIB * at), Made("fsync", 1000))]
    quiet, busy = (
        diagnose(io_run(tmp_path / waited, [calls], processor_wait_ns=waited)) for waited in ("0", "40000000")
    )
    sure, unsure = (
        next(each for each in one.findings if each.id == "sync-per-write") for one in (quiet, busy)
    )
    assert sure.gain_s
    assert unsure.gain_s
    assert sure.gain_s[0] - unsure.gain_s[0] == pytest.approx(min(0.04, sure.gain_s[0]))
    assert unsure.gain_s[1] == sure.gain_s[1]
    assert unsure.likely_s == pytest.approx(sure.likely_s * (1 - 0.04 / busy.run_s))
    assert (unsure.severity, unsure.weight[0]) == (sure.severity, sure.weight[0])
    assert not quiet.crowded
    assert "40.0 ms" in busy.crowded

"""Slow nodes among two or three, and phases of unlike length."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from made_io import MIB, Made, io_run
from made_patterns import OPEN, model, operation, pattern, simulated, span_s, stage

import ensembles as en
from calibration.habits.catalogue import HABITS
from calibration.habits.execution import Answer
from calibration.habits.habit import Planted
from calibration.habits.measured import Measured
from ensembles.diagnosis import slow_calls
from ensembles.diagnosis.diagnose import diagnose
from ensembles.diagnosis.rules import disk_waits

RECORDS = "((repetition * 4 + call) * tasks + rank) * MiB"
PROGRAM = pattern(
    OPEN,
    stage(
        "step",
        operation("write_at", times=4, offset=RECORDS, size="MiB"),
        repetitions=8,
        barrier="repetition",
    ),
    tasks=24,
    tasks_per_node=8,
)
MACHINE = {"cache_MiB": 0.0, "stripe_count": 4, "stripe_MiB": 1, "call_noise": 0.2, "target_MB_per_s": 200}


def on_nodes(folder: Path, fault: float, tasks: int) -> en.Run:
    """A run whose second node is slow."""
    machine = model([f"straggler-node={fault}"], **MACHINE, straggler_node=1)
    return simulated(folder, PROGRAM, machine, seed=5, tasks=tasks)


@pytest.mark.parametrize("tasks", [16, 24])
def test_a_slow_node_of_few_is_found_if_its_tasks_are_slower_than_all_others(
    tasks: int, tmp_path: Path
) -> None:
    run = on_nodes(tmp_path / "slow", 0.4, tasks)
    without = on_nodes(tmp_path / "healthy", 0.0, tasks)
    cost_s = span_s(run) - span_s(without)
    (found,) = diagnose(run, [slow_calls.node]).findings
    assert found.where.ranks == ((8, 15),)
    assert found.confidence == pytest.approx(0.76)
    low, high = found.gain_s
    assert 0.5 * cost_s <= low <= high <= 2 * cost_s
    healthy = diagnose(without, [slow_calls.node])
    assert not healthy.findings
    assert "4 nodes" in healthy.not_examined[0].reason


def test_phases_of_unlike_length_do_not_widen_the_gain_of_a_slow_task(tmp_path: Path) -> None:
    # Task 3 takes twice as long in each of eight phases, of which one is 20 times as long as the others.
    rng = np.random.default_rng(4)
    length_us = 1000.0 * np.where(np.arange(8) == 2, 20, 1)
    us = length_us * np.exp(rng.normal(0, 0.02, (12, 8))) * np.where(np.arange(12) == 3, 2, 1)[:, None]
    wait_us = us.max(axis=0) - us + 100

    def calls(rank: int) -> list[Made]:
        steps = zip(us[rank].tolist(), wait_us[rank].tolist(), strict=True)
        return [
            made
            for number, (write, wait) in enumerate(steps)
            for made in (Made("pwrite", write, MIB, number * MIB), Made("MPI_Barrier", wait))
        ]

    run = io_run(tmp_path / "run", [calls(rank) for rank in range(12)])
    (found,) = diagnose(run, [slow_calls.task]).findings
    low, high = found.gain_s
    gain_s = float(np.sum(us.max(axis=0) - np.median(us, axis=0))) * 1e-6
    assert 0.7 * gain_s <= low <= gain_s <= high <= 1.3 * gain_s


def in_step(us: np.ndarray) -> list[list[Made]]:
    """Calls of tasks that write us[task, phase, call] and then meet."""
    wait_us = us.sum(axis=2).max(axis=0) - us.sum(axis=2) + 100
    return [
        [
            made
            for phase in range(us.shape[1])
            for made in (
                *(Made("pwrite", each, MIB, phase * MIB) for each in us[rank, phase].tolist()),
                Made("MPI_Barrier", float(wait_us[rank, phase])),
            )
        ]
        for rank in range(len(us))
    ]


def test_a_task_whose_last_calls_memory_takes_is_slow_by_its_time(tmp_path: Path) -> None:
    # While others wait for targets four times, the slow one waits three times for twice as long: its cache
    # has emptied then, and takes the last write. The mean logarithm of its durations is below that of others.
    us = 1000 * np.exp(np.random.default_rng(6).normal(0, 0.05, (12, 8, 4)))
    us[3] *= np.array([2, 2, 2, 0.01])
    run = io_run(tmp_path / "run", in_step(us))
    (found,) = diagnose(run, [slow_calls.task]).findings
    assert found.where.ranks == ((3, 3),)
    low, high = found.gain_s
    whole = us.sum(axis=2)
    gain_s = float(np.sum(whole.max(axis=0) - np.delete(whole, 3, axis=0).max(axis=0))) * 1e-6
    assert low <= gain_s <= high


@pytest.mark.parametrize(("slow", "found"), [(slice(16, 20), True), (slice(32, 34), False)])
def test_a_node_with_fewer_tasks_than_the_others_is_not_compared(
    slow: slice, found: bool, tmp_path: Path
) -> None:
    # Its tasks share memory, link and cache with fewer others, and so have other times.
    us = 1000 * np.exp(np.random.default_rng(7).normal(0, 0.05, (34, 8, 4)))
    us[slow] *= 1.5
    run = io_run(tmp_path / "run", in_step(us), tasks_per_node=4)
    answer = diagnose(run, [slow_calls.node])
    nodes = [each.where.ranks for each in answer.findings if each.id == "straggler-node"]
    assert nodes == [((16, 19),)] * found


def test_closes_that_take_as_long_as_opens_wait_for_the_metadata_server(tmp_path: Path) -> None:
    def run(name: str, close_us: float) -> en.Run:
        step = [Made("open", 900), Made("pwrite", 300, MIB, 0), Made("close", close_us)]
        step += [Made("MPI_Barrier", 50, gap_us=3000.0)]
        return io_run(tmp_path / name, [step * 12] * 8)

    assert not diagnose(run("alike", 950), [disk_waits.close_cost]).findings
    (found,) = diagnose(run("longer", 2500), [disk_waits.close_cost]).findings
    assert found.id == "close-cost"


def test_a_habit_without_cost_counts_as_harmless_in_the_scores() -> None:
    said = {"findings": [], "not_examined": [], "unexplained_s": None}
    rounds = [[Answer(span_s, span_s, said, set(), 0.0)] * 5 for span_s in (1.0, 1.0)]
    habit, twin = Measured(Planted(HABITS[0], "relinked", ""), *rounds).judged()
    assert habit.truth["harmless"] == {HABITS[0].cause: 0.0}
    assert twin.truth["harmless"] == {}


@pytest.mark.parametrize("name", ["pread", "MPI_File_read_at_all", "pwrite"])
@pytest.mark.parametrize("is_mpi", [True, False])
def test_advice_names_mpi_for_ranks_that_do_not_move_data_together_yet(
    tmp_path: Path, name: str, is_mpi: bool
) -> None:
    head = None if is_mpi else {"rank": -1, "tasks": 0}
    calls = [Made(name, 5_000, 1000, 1000 * at) for at in range(64)]
    calls += [Made("pread", 500_000, 64 * MIB, 0, 2)]
    run = io_run(
        tmp_path / "run", [calls] * 4, {1: "/d/a", 2: "/d/b"}, head=head, recorder="1.0.0" if head else ""
    )
    found = {each.id: each.advice for each in diagnose(run).findings}
    assert "redundant-reads" in found
    for advice in found.values():
        assert ("MPI_Bcast" in advice or "romio" in advice) <= (is_mpi and not name.endswith("_all")), advice
    assert ("MPI_Bcast" in found["redundant-reads"]) == (is_mpi and not name.endswith("_all"))

"""A task that moves more bytes is an imbalance, not a straggler: its syncs flush more."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from made_io import MIB, Made, io_run

import ensembles as en
from ensembles.diagnosis import slow_calls
from ensembles.diagnosis.diagnose import diagnose
from ensembles.diagnosis.evidence import Evidence
from ensembles.diagnosis.evidence_rule import case_of
from ensembles.diagnosis.file_uses import FileUses
from ensembles.diagnosis.rules import imbalance
from ensembles.diagnosis.storage_load import bytes_to_flush, flushes_alike

STEPS, TASKS, HEAVY = 6, 8, 5


def checkpoints(folder: Path, times_bytes: int, write: float, sync: float) -> en.Run:
    """Each task writes 2 MiB to its file and syncs it, then 1 MiB of a shared file, which is not synced.

    Task 5 writes `times_bytes` as much to its file; its calls there take `write` and `sync` times as long;
    with equal bytes, those on the shared file take `write` times as long, too.
    """
    rng = np.random.default_rng(0)
    tasks = []
    for rank in range(TASKS):
        more, slow, late = (times_bytes, write, sync) if rank == HEAVY else (1, 1.0, 1.0)
        on_shared = slow if times_bytes == 1 else 1.0
        calls = []
        for _ in range(STEPS):
            noise = rng.uniform(0.95, 1.05, 3)
            calls += [Made("pwrite", 400 * slow * noise[0], MIB, n * MIB) for n in range(2 * more)]
            calls += [Made("fsync", 8000 * late * noise[1]), Made("MPI_Barrier", 10.0)]
            calls += [
                Made("pwrite", 300 * on_shared * noise[2], MIB // 4, (4 * rank + n) * MIB // 4, file=2)
                for n in range(4)
            ]
            calls += [Made("MPI_Barrier", 10.0)]
        tasks.append([call._replace(file=10 + rank) if call.file == 1 else call for call in calls])
    ends = _aligned(tasks)
    files = {2: "/scratch/mesh"} | {10 + rank: f"/scratch/part.{rank}" for rank in range(TASKS)}
    return io_run(folder, ends, files)


def _aligned(tasks: list[list[Made]]) -> list[list[Made]]:
    """Let barriers last until the last task is in them."""
    now, done = np.zeros(TASKS), [0] * TASKS
    made: list[list[Made]] = [[] for _ in tasks]
    for _ in range(2 * STEPS):
        for rank, calls in enumerate(tasks):
            while calls[done[rank]].name != "MPI_Barrier":
                made[rank].append(calls[done[rank]])
                now[rank] += calls[done[rank]].us + 1
                done[rank] += 1
        for rank, calls in enumerate(tasks):
            wait = now.max() - now[rank] + 10
            made[rank].append(calls[done[rank]]._replace(us=wait))
            done[rank] += 1
        now[:] = now.max() + 11
    return made


def ids(run: en.Run) -> list[str]:
    return [finding.id for finding in diagnose(run, [imbalance.rule, slow_calls.task]).findings]


@pytest.mark.parametrize(("write", "sync"), [(1.5, 2.4), (4.0, 3.0)])
def test_six_times_the_bytes_are_an_imbalance_whatever_its_calls_take(
    tmp_path: Path, write: float, sync: float
) -> None:
    run = checkpoints(tmp_path / "run", 6, write, sync)
    answer = diagnose(run, [imbalance.rule, slow_calls.task])
    assert [found.id for found in answer.findings] == ["imbalance"]
    assert "straggler-task" in answer.examined
    (found,) = answer.findings
    assert "up to 3.69 times the mean, and the others wait for it" in found.title
    checks = {check.name: check.holds for check in found.checks}
    assert checks["same-time-per-byte"] is (True if write < 3 else None)


def test_a_slow_task_with_the_bytes_of_the_others_is_a_straggler(tmp_path: Path) -> None:
    assert ids(checkpoints(tmp_path / "run", 1, 2.4, 2.4)) == ["straggler-task"]


def test_a_sync_compares_with_those_after_the_same_bytes(tmp_path: Path) -> None:
    run = checkpoints(tmp_path / "run", 6, 1.0, 2.4)
    evidence, uses = (run.summarize(kind.for_run) for kind in (Evidence, FileUses))
    case = case_of(run, evidence)
    syncs = case.op == "sync"
    heavy = syncs & (case.rows["rank"] == HEAVY)
    flushed = bytes_to_flush(case, uses)
    assert set(flushed[syncs & ~heavy]) == {2 * MIB}
    assert set(flushed[heavy]) == {12 * MIB}
    assert not flushed[~syncs].any()
    np.testing.assert_array_equal(flushes_alike(case, uses), ~heavy)

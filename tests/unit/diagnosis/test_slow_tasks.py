"""Slow tasks and nodes that a saturated server, or loaded targets, hide; and causes that share lost time."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from made_patterns import OPEN, model, operation, pattern, simulated, stage

import ensembles as en
from ensembles.diagnosis import slow_calls
from ensembles.diagnosis.diagnose import diagnose
from ensembles.diagnosis.evidence_rule import SUMMARY, case_of
from ensembles.diagnosis.slow_calls import LEAST_Z, z_of_largest
from ensembles.model.units import seconds_text

RECORDS = "((repetition * 8 + call) * tasks + rank) * MiB"
WRITES = pattern(
    OPEN,
    stage(
        "step",
        operation("write_at", times=8, offset=RECORDS, size="MiB"),
        repetitions=4,
        barrier="repetition",
    ),
    tasks=32,
    tasks_per_node=4,
)


def written(folder: Path, faults: list[str], **settings: float) -> en.Run:
    machine = {"cache_MiB": 0.0, "stripe_count": 1, "call_noise": 0.2, **settings}
    return simulated(folder, WRITES, model(faults, **machine), seed=2)


def test_a_slow_task_behind_one_target_is_found_by_its_first_calls(tmp_path: Path) -> None:
    # All tasks wait for the target: the slow one begins its last calls when the others have left it.
    slow = written(tmp_path / "slow", ["straggler-task=0.6"], straggler_task=9)
    (found,) = diagnose(slow, [slow_calls.task]).findings
    assert found.where.ranks == ((9, 9),)
    assert not diagnose(written(tmp_path / "healthy", []), [slow_calls.task]).findings


def test_what_is_said_of_a_slow_task_can_be_computed_with_numpy(tmp_path: Path) -> None:
    """Its time, and that of as many calls by the median of the other tasks' means in phase and function."""
    run = written(tmp_path / "slow", ["straggler-task=0.6"], straggler_task=9, stripe_count=16)
    (found,) = diagnose(run, [slow_calls.task]).findings
    events = run.events
    mine_ns = others_ns = 0.0
    for phase in np.unique(events.phase[events.phase > 0]):
        for call in np.unique(events.call):
            if events.calls[call].op == "wait":
                continue
            here = (events.phase == phase) & (events.call == call)
            mean_ns = [
                events.duration[here & (events.rank == rank)].mean() for rank in range(32) if here.any()
            ]
            if mean_ns:
                own_ns = events.duration[here & (events.rank == 9)]
                mine_ns += own_ns.sum()
                others_ns += len(own_ns) * np.median(np.delete(mean_ns, 9))
    assert found.evidence["time_s"] == pytest.approx(1e-9 * mine_ns)
    assert found.evidence["others_s"] == pytest.approx(1e-9 * others_ns)
    told = f"task 9 (on node00002) take {seconds_text(1e-9 * mine_ns)}, {mine_ns / others_ns:.2f} times the "
    assert told in found.title
    assert f"{seconds_text(1e-9 * others_ns)} of as many calls of others (median of" in found.title


def test_the_largest_of_normal_values_is_seldom_far_and_a_shifted_one_is() -> None:
    rng = np.random.default_rng(1)
    draws = rng.normal(size=(2_000, 40))
    z = np.array([z_of_largest(row) for row in draws])
    assert np.mean(z > LEAST_Z[False]) < 0.02
    shifted = draws.copy()
    shifted[:, 3] += 9.0
    assert np.mean([z_of_largest(row) > LEAST_Z[False] for row in shifted]) > 0.9
    # Tasks that are fast do not hide a slow one.
    draws[:, :10] -= 30.0
    draws[:, 20] += 9.0
    assert np.mean([z_of_largest(row) > LEAST_Z[False] for row in draws]) > 0.9


@pytest.mark.parametrize(("again", "least", "most"), [(True, 0.8, 1.0), (False, 0.0, 0.2)])
def test_only_waiting_for_the_same_task_again_is_unexplained(again, least, most, tmp_path) -> None:
    # 1 of 16 tasks is late in each of 16 phases: always the same one, or another one each time.
    from made_io import MIB, Made, io_run

    def calls(rank: int) -> list[Made]:
        made = []
        for phase in range(16):
            late = rank == (5 if again else phase)
            made += [Made("pwrite", 2000 if late else 1000, MIB, phase * MIB)]
            made += [Made("MPI_Barrier", 100 if late else 1100)]
        return made

    run = io_run(tmp_path / "a", [calls(rank) for rank in range(16)])
    rule = slow_calls.task
    case = case_of(run, run.summarize(dict(rule.NEEDS))[SUMMARY])
    assert len(case.windows) == 16
    assert least * 15 / 16 * 16e-3 <= case.model.waiting_s <= most * 16e-3

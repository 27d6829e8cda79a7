"""Nodes that are served one after the other are found, with what fewer turns would gain."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from made_io import KIB, MIB, Made, io_run, refusal

import ensembles as en
from ensembles.diagnosis.diagnose import diagnose
from ensembles.diagnosis.finding import Finding
from ensembles.diagnosis.rules import node_serialisation
from ensembles.structure.turns import Turns, chance_of_even, p_of_turns, turns_of, variation_of_gaps

NODES, TASKS_PER_NODE, STEPS, STEP_US = 12, 2, 10, 50_000.0
TASKS = NODES * TASKS_PER_NODE
NODE = np.arange(TASKS) // TASKS_PER_NODE


def in_turns(rng: np.random.Generator) -> np.ndarray:
    """Durations of writes of the tasks of nodes that are served in another order in each step."""
    order = rng.permutation(NODES) + 1 + rng.uniform(-0.15, 0.15, NODES)
    return STEP_US * order[NODE] + rng.uniform(0, 500, TASKS)


def at_random(rng: np.random.Generator) -> np.ndarray:
    """Durations of which those of nodes are independent."""
    return STEP_US * NODES * rng.random(NODES)[NODE] + rng.uniform(0, 500, TASKS)


def equal(rng: np.random.Generator) -> np.ndarray:
    """Durations that differ little."""
    return STEP_US * NODES + rng.normal(0, 500, TASKS)


def steps_run(
    folder: Path, durations, late_us=None, sizes=None, fast_us: float | None = 200_000.0, **how
) -> en.Run:
    """Steps in which each task writes 64 KiB; in the last three, 4 MiB each: 96 MiB in 0.2 s."""
    rng = np.random.default_rng(5)
    late_us = np.zeros(TASKS) if late_us is None else late_us
    sizes = np.full(TASKS, 64 * KIB) if sizes is None else sizes
    tasks: list[list[Made]] = [[] for _ in range(TASKS)]
    for step in range(STEPS + 3):
        fast = step >= STEPS
        if fast and fast_us is None:
            break
        us = rng.uniform(0.8, 1, TASKS) * (fast_us or 0) if fast else durations(rng)
        wait_us = np.zeros(TASKS) if fast else late_us
        size = np.full(TASKS, 4 * MIB) if fast else sizes
        whole_us = (wait_us + us).max() + 100
        for rank, calls in enumerate(tasks):
            calls.append(Made("MPI_Barrier", 1, gap_us=1 + wait_us[rank]))
            calls.append(Made("pwrite", us[rank], int(size[rank]), step * 64 * MIB + rank * 4 * MIB))
            calls.append(Made("MPI_Barrier", whole_us - wait_us[rank] - us[rank]))
    return io_run(folder, tasks, tasks_per_node=TASKS_PER_NODE, **how)


def found(run: en.Run) -> tuple[Finding, ...]:
    return diagnose(run, [node_serialisation.rule]).findings


def test_nodes_that_are_served_in_turns_are_found(tmp_path: Path) -> None:
    run = steps_run(tmp_path / "run", in_turns)
    (one,) = found(run)
    assert (one.id, one.severity, one.confidence) == ("node-serialisation", "critical", 0.95)
    assert one.title.startswith("12 nodes are served one after the other, ")
    assert "in 10 phases: " in one.title
    assert one.evidence["step_s"] == pytest.approx(STEP_US * 1e-6, rel=0.05)
    assert one.evidence["length_s"] == pytest.approx(STEPS * NODES * STEP_US * 1e-6, rel=0.03)
    assert one.evidence["phases_compared"] == STEPS
    assert one.evidence["p"] < 1e-10
    assert one.where.tasks == TASKS
    assert one.where.phases is not None
    assert len(one.where.phases) == STEPS
    # Half of the turns, or one in place of twelve, with 1.5 MiB a step at 480 MiB/s.
    assert one.gain_s is not None
    whole_s = STEPS * NODES * STEP_US * 1e-6
    assert one.gain_s[0] == pytest.approx(whole_s / 2 - STEPS * 0.003, rel=0.05)
    assert one.gain_s[1] == pytest.approx(whole_s * 11 / 12, rel=0.05)
    # The same steps are not reported as modes of a mixture.
    modes = run.ensemble(op="write", size="64KiB").modes()
    assert modes.turns is not None
    assert (modes.turns.unit, modes.turns.units, modes.turns.phases) == ("node", NODES, STEPS)
    assert modes.turns.step_s == pytest.approx(STEP_US * 1e-6, rel=0.05)
    assert modes.turns.share == 1
    assert modes.harmonics is None
    assert modes.time_slices is None
    assert modes.to_json()["turns"]["chance"] == pytest.approx(one.evidence["p"])
    assert str(modes).splitlines()[0].endswith(": steps of turns, not parts of a mixture")
    assert " ms apart: 12 nodes begin together and are served one after the other" in str(modes)
    all_sizes = run.ensemble(op="write", size="0..", per="MiB").modes()
    assert all_sizes.turns is not None
    assert all_sizes.turns.share == pytest.approx(STEPS / (STEPS + 3))


@pytest.mark.parametrize("durations", [at_random, equal], ids=["random", "equal"])
def test_other_ends_are_no_turns(tmp_path: Path, durations) -> None:
    run = steps_run(tmp_path / "run", durations)
    assert not found(run)
    assert "harmonics" in refusal(run, "node-serialisation")
    assert run.ensemble(op="write", size="64KiB").modes().turns is None


def test_turns_that_the_program_makes_are_not_of_the_storage(tmp_path: Path) -> None:
    # A token: each node begins when the one before has ended.
    run = steps_run(tmp_path / "run", lambda rng: np.full(TASKS, STEP_US), late_us=STEP_US * NODE)
    assert not found(run)


def test_unequal_bytes_are_not_turns(tmp_path: Path) -> None:
    def by_bytes(rng: np.random.Generator) -> np.ndarray:
        return STEP_US * (1.0 + NODE)

    run = steps_run(tmp_path / "run", by_bytes, sizes=(33 + 2 * NODE) * KIB)
    assert not found(run)
    assert run.ensemble(op="write", size="0..").modes().turns is None


def test_bytes_that_the_storage_moves_no_faster_are_not_called_turns(tmp_path: Path) -> None:
    # 1.5 MiB in 0.6 s; the 96 MiB of the other phases take a minute.
    assert not found(steps_run(tmp_path / "slow", in_turns, fast_us=60e6))
    only = steps_run(tmp_path / "only", in_turns, fast_us=None)
    assert not found(only)
    assert refusal(only, "node-serialisation").startswith("12 nodes are served one after the other")


def test_tasks_that_share_processors_may_take_turns_there(tmp_path: Path) -> None:
    def tasks_in_turns(rng: np.random.Generator) -> np.ndarray:
        return STEP_US * (rng.permutation(TASKS) + 1.0)

    alone = steps_run(tmp_path / "alone", tasks_in_turns, processors="64")
    (one,) = found(alone)
    assert one.title.startswith("24 tasks are served one after the other, 50.0 ms apart")
    assert "24 tasks begin together" in str(alone.ensemble(op="write", size="64KiB").modes().turns)
    crowded = steps_run(tmp_path / "crowded", tasks_in_turns, processors="1")
    assert not found(crowded)
    assert crowded.ensemble(op="write", size="64KiB").modes().turns is None


def test_gaps_of_independent_ends_vary_by_about_their_mean() -> None:
    rng = np.random.default_rng(1)
    ends = rng.random((400, 32))
    drawn = np.array([variation_of_gaps(each) for each in ends])
    # cv^2 = K G - 1 for Greenwood's G of K gaps, whose mean is 2 / (K + 1).
    assert np.mean(drawn**2) == pytest.approx(31 * 2 / 32 - 1, abs=0.06)
    assert variation_of_gaps(np.round(ends[0], 1)) > 1
    assert variation_of_gaps(np.zeros(9)) == np.inf


def test_the_chance_of_even_ends_is_that_of_random_ends() -> None:
    rng = np.random.default_rng(2)
    share = np.mean([variation_of_gaps(each) <= 0.5 for each in rng.random((20_000, 10))])
    assert chance_of_even(10) == pytest.approx(share, abs=0.008)
    assert chance_of_even(1000) == chance_of_even(65) <= chance_of_even(32) < chance_of_even(8)
    even, uneven = (Turns(10, 0.0, 1.0, 9.0, 0.0, variation) for variation in (0.1, 1.0))
    assert p_of_turns([uneven] * 4) == 1
    p = chance_of_even(10)
    assert p_of_turns([even, uneven]) == pytest.approx(1 - (1 - p) ** 2)
    assert p_of_turns([even] * 3) == pytest.approx(p**3)


def test_what_cannot_show_turns() -> None:
    unit, size = np.repeat(np.arange(10), 3), np.full(30, 100)
    start = np.arange(30)
    end = 1000 * (1 + unit)
    turns = turns_of(unit, start, end, size)
    assert turns is not None
    assert (turns.units, turns.step_ns, turns.are_even) == (10, 1000.0, True)
    assert turns_of(unit[:21], start[:21], end[:21], size[:21]) is None  # seven units
    assert turns_of(unit, start, end + 20_000, size) is None  # all are long
    assert turns_of(unit, start + 1000 * unit, end + 1000 * unit, size) is None  # begin apart
    assert turns_of(unit, start, end + 300 * (np.arange(30) % 3), size) is None  # tasks end apart
    assert turns_of(unit[:0], start[:0], end[:0], size[:0]) is None

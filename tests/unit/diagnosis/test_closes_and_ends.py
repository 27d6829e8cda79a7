"""What a close costs beyond its flush, and what ends inside stripes cost."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from made_io import MIB, Made, io_run
from made_patterns import model, operation, pattern, simulated, span_s, stage

import ensembles as en
from ensembles.diagnosis.diagnose import diagnose
from ensembles.diagnosis.evidence_rule import SUMMARY, case_of
from ensembles.diagnosis.rules import disk_waits
from ensembles.diagnosis.rules.one_run import misaligned, whole_in_stripes

RECORDS = "((repetition * 16 + call) * tasks + rank)"


def steps(at: str = f"{RECORDS} * 2 * MiB", size: str = "MiB + (call % 2) * slack") -> str:
    return pattern(
        stage("open", operation("open", when="reopen == 0")),
        stage(
            "step",
            operation("task.compute", duration_ns="compute_ms * 1000000", when="compute_ms > 0"),
            operation("open", when="reopen == 1"),
            operation("write_at", times=16, offset=at, size=size),
            operation("close", when="reopen == 1"),
            repetitions=8,
            barrier="repetition",
        ),
        **{"tasks": 8, "tasks_per_node": 2, "reopen": 0, "slack": 0, "shift": 0, "compute_ms": 0},
    )


UNCACHED = {"cache_MiB": 0.0, "stripe_count": 4, "stripe_MiB": 1}
CACHED = {"cache_MiB": 256.0, "stripe_count": 4, "stripe_MiB": 1, "absorb_MB_per_s": 4000.0}


def made(folder: Path, settings: dict[str, float], *faults: str, **parameters: int) -> en.Run:
    return simulated(folder, steps(), model(faults, **settings), seed=3, **parameters)


@pytest.mark.parametrize("strength", [0.0, 1.0])
def test_a_close_that_costs_more_than_its_flush_is_found(strength: float, tmp_path: Path) -> None:
    run = made(tmp_path / "run", UNCACHED, f"close-cost={strength}", reopen=1)
    found = diagnose(run, [disk_waits.close_cost])
    assert [finding.id for finding in found.findings] == ["close-cost"] * bool(strength)
    assert not found.not_examined
    if strength:
        cost_s = span_s(run) - span_s(made(tmp_path / "without", UNCACHED, reopen=1))
        low, high = found.findings[0].gain_s
        assert low <= cost_s <= 1.1 * high


def test_a_close_after_absorbed_writes_is_refused_with_what_to_record(tmp_path: Path) -> None:
    run = made(tmp_path / "run", CACHED, "close-cost=1.0", reopen=1)
    found = diagnose(run, [disk_waits.close_cost])
    assert not found.findings
    (refused,) = found.not_examined
    assert "record a run that keeps its files open" in refused.reason


def test_ends_inside_stripes_are_left_to_a_second_run(tmp_path: Path) -> None:
    run = made(tmp_path / "run", UNCACHED, "misaligned-requests=1.0", slack=4096)
    found = diagnose(run, [misaligned])
    (refused,) = found.not_examined
    assert (found.findings, refused.id, refused.suspected) == ((), "misaligned-requests", False)
    assert refused.at_most_s > 0.02 * found.run_s


def test_aligned_ends_are_clean(tmp_path: Path) -> None:
    found = diagnose(made(tmp_path / "run", UNCACHED), [misaligned])
    assert (found.findings, found.not_examined) == ((), ())


def test_closes_that_computation_could_hide_are_found_with_less_confidence(tmp_path: Path) -> None:
    # The cache takes all bytes, each close waits for their flush, and the program computes in between.
    runs = [made(tmp_path / f"{again}", CACHED, reopen=again, compute_ms=400) for again in (1, 0)]
    (found,) = diagnose(runs[0], [disk_waits.close_cost]).findings
    assert (found.id, found.confidence) == ("close-cost", pytest.approx(0.76))
    low, high = found.gain_s
    assert low <= span_s(runs[0]) - span_s(runs[1]) <= 1.1 * high
    assert not diagnose(runs[1], [disk_waits.close_cost]).findings


def test_records_that_stripes_hold_whole_are_aligned_and_shifted_ones_are_not(tmp_path: Path) -> None:
    # Four records of 256 KiB for each stripe: of their 8 ends, 6 are inside.
    def ends(name: str, **parameters: int) -> tuple[en.Run, np.ndarray]:
        small = steps(f"{RECORDS} * MiB / 4 + shift", "MiB / 4")
        machine = model(stripe_MiB=1, stripe_count=4)
        run = simulated(tmp_path / name, small, machine, seed=3, **parameters)
        case = case_of(run, run.summarize(dict(misaligned.NEEDS))[SUMMARY])
        return run, whole_in_stripes(case, case.evidence.ends.columns(), np.array([1 << 20]))

    run, whole = ends("whole")
    assert whole.all()
    assert not diagnose(run, [misaligned]).not_examined
    run, whole = ends("shifted", shift=4096)
    assert not whole.any()
    assert diagnose(run, [misaligned]).not_examined


@pytest.mark.parametrize(("size", "long_us"), [(26, 700), (MIB, 46)])
def test_closes_wait_for_the_cache_only_with_bytes_in_it(size: int, long_us: int, tmp_path: Path) -> None:
    """A mean of few long closes of a few bytes shows no cause: it may be the processor or a lock."""

    def step(number: int) -> list[Made]:
        close = Made("close", long_us if size == MIB or number % 15 == 0 else 1, gap_us=40)
        return [Made("open", 1), Made("pwrite", 2 + size / 1e5, size, number * size), close]

    run = io_run(tmp_path / "a", [[each for number in range(600) for each in step(number)]])
    (found,) = diagnose(run, [disk_waits.close_cost]).findings
    assert ("cache" in found.title) == ("sync before" in found.advice) == (size == MIB)
    assert ("usually" in found.title) == (size != MIB)


@pytest.mark.parametrize(
    ("mounts", "free"),
    [("/ ext4 /dev/vda", 64 * MIB), ("/ ext4 /dev/vda", 24 << 30), ("/ lustre l", 24 << 30)],
)
def test_a_cache_that_cannot_be_full_and_stripes_that_are_not_there_are_decided(
    mounts: str, free: int, tmp_path: Path
) -> None:
    """10 MiB never fill 24 GiB; a file system of one node has no stripes."""
    tasks = [
        [Made("pwrite", 50, 5000, (4 * number + rank) * 5000, gap_us=0) for number in range(500)]
        for rank in range(4)
    ]
    samples = [{"us": 100, "available_bytes": free, "dirty_bytes": 0}]
    found = en.diagnose(io_run(tmp_path / "a", tasks, samples=samples, mounts=mounts))
    causes = {"cache-cliff", "misaligned-requests"}
    is_local, is_small = "ext4" in mounts, free < 1 << 30
    expected = causes if not is_local else {"cache-cliff"} if is_small else set()
    assert causes & {each.id for each in found.undecided} == expected

"""The finding ``strided-readahead``: where a read-ahead fails it is found, and what it costs is told."""

from __future__ import annotations

from pathlib import Path

import pytest
from matrices import MIB, FileSystem, Matrices, run_matrices, write_run

import ensembles as en
from ensembles.answers.diagnose import FindingAnswer
from ensembles.diagnosis.finding import Finding

FAULTY = FileSystem(fault=1.0)


def findings(
    folder: Path, shape: Matrices, tasks: int, system: FileSystem, seed: int = 1
) -> tuple[Finding, ...]:
    program = run_matrices(shape, tasks, system, seed)
    every = en.diagnose(en.open(write_run(program, folder / "run"))).findings
    return tuple(finding for finding in every if finding.id == "strided-readahead")


SHAPES = {
    "as in the paper": (Matrices(), 24),
    "few reads": (Matrices(count=5), 12),
    "many reads": (Matrices(count=64, size_bytes=4 * MIB), 6),
    "two tasks": (Matrices(count=12), 2),
    "other sizes": (Matrices(size_bytes=3_000_000, gap_bytes=17_000), 8),
    "a file each": (Matrices(own_file=True), 8),
    "a write behind each read": (Matrices(head_reads=0), 8),
    "several phases, each from the first matrix on": (Matrices(phases="wmrmr"), 8),
    "no reads without writes": (Matrices(phases="wm"), 8),
    "no barriers": (Matrices(barriers=False), 8),
    "no seeks": (Matrices(lseek=False), 8),
    "MPI-IO over POSIX": (Matrices(layer="mpiio", pieces=3), 8),
    "streams": (Matrices(layer="stdio"), 8),
    "reads in pieces": (Matrices(pieces=5), 8),
    "two threads in turns": (Matrices(lanes="turns"), 8),
}


@pytest.mark.parametrize("name", SHAPES)
def test_it_is_found_once_with_its_stride_its_reads_and_its_phase(name, tmp_path):
    shape, tasks = SHAPES[name]
    (finding,) = findings(tmp_path, shape, tasks, FAULTY)
    assert finding.id == "strided-readahead"
    assert finding.severity == "critical"
    assert finding.confidence > 0.7
    assert finding.evidence["stride_bytes"] == shape.size_bytes + shape.gap_bytes
    assert finding.evidence["read_bytes"] == shape.size_bytes // shape.pieces * shape.pieces
    assert finding.evidence["positions"] == [4, shape.count]
    assert finding.where.tasks == tasks
    assert finding.where.ranks == ((0, tasks - 1),)
    assert finding.where.file_count == (tasks if shape.own_file else 1)
    if shape.pieces == 1:
        begin = [
            sum(shape.count for phase in shape.phases[:at] if phase != "w") for at in range(len(shape.phases))
        ]
        mixed = [b for b, phase in zip(begin, shape.phases, strict=True) if phase == "m"]
        assert finding.where.ordinals == tuple((b + 4, b + shape.count) for b in mixed)
    if shape.barriers and shape.lanes == "one":
        assert finding.where.phases == tuple(n for n, phase in enumerate(shape.phases, 1) if phase == "m")


def test_the_time_lost_and_the_gain_are_those_of_the_same_run_without_the_fault(tmp_path):
    held = {"lost": 0, "gain": 0}
    seeds = range(8)
    for seed in seeds:
        shape = Matrices(count=(6, 8, 12, 16)[seed % 4], phases="wmr")
        system = FileSystem(fault=(0.6, 1.5)[seed % 2])
        (finding,) = findings(tmp_path / str(seed), shape, 24, system, seed)
        faulty = run_matrices(shape, 24, system, seed)
        healthy = run_matrices(shape, 24, system.but(fault=0.0), seed)
        low, high = finding.evidence["time_lost_s"]
        held["lost"] += 0.97 * low <= faulty.slow_s <= 1.03 * high
        true_s = float(faulty.now_s.max() - healthy.now_s.max())
        held["gain"] += 0.9 * finding.gain_s[0] <= true_s <= 1.1 * finding.gain_s[1]
    assert held["lost"] >= len(seeds) - 1
    assert held["gain"] >= len(seeds) - 1


def test_the_slowdown_by_position_is_the_one_that_was_made(tmp_path):
    (finding,) = findings(tmp_path, Matrices(), 128, FileSystem(fault=1.0, shared_noise=0.0, noise=0.1))
    expected = [1, 1, 1, 2, 3, 4, 5, 6]
    assert finding.evidence["slowdown_by_position"] == pytest.approx(expected, rel=0.07)


def test_it_is_found_in_one_of_two_phases_with_writes_between(tmp_path):
    shape = Matrices(count=10, phases="wm")
    program = run_matrices(shape, 16, FileSystem(fault=0.0), seed=3)
    program.system = FAULTY
    later = run_matrices(shape, 16, FAULTY, seed=4)
    program.go_on_as(later, pause_s=1)
    (finding,) = en.diagnose(en.open(write_run(program, tmp_path / "run"))).findings
    assert finding.where.ordinals == ((14, 20),)


def test_little_time_lost_is_no_more_than_a_note(tmp_path):
    program = run_matrices(Matrices(size_bytes=MIB // 4, gap_bytes=4096), 8, FAULTY, seed=5)
    for number in range(100):
        program.call("write", (1 << 40) + number * 64 * MIB, 64 * MIB)
    found = en.diagnose(en.open(write_run(program, tmp_path / "run"))).findings
    assert {finding.severity for finding in found if finding.id == "strided-readahead"} <= {"note"}


def test_it_prints_what_where_why_and_what_to_do(tmp_path):
    (finding,) = findings(tmp_path, Matrices(), 8, FAULTY)
    text = " ".join(str(FindingAnswer(**vars(finding))).split())
    for words in (
        "strided-readahead",
        "/scratch/matrices.1",
        "8 tasks (0-7)",
        "reads (read) 4-8",
        "with holes of 341 KiB",
        "read-ahead",
        "shorter",
    ):
        assert words in text

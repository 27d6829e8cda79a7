"""Findings that are one habit of the program are joined: one mend removes both."""

from __future__ import annotations

from pathlib import Path

import pytest
from made_io import KIB, MIB, Made, io_run

import ensembles as en
from ensembles.diagnosis.finding import Finding

LINES, STEPS = 200, 4


def findings(run: en.Run) -> dict[str, Finding]:
    return {finding.id: finding for finding in en.diagnose(run).findings}


def log_run(folder: Path, close_us: float = 1.0, kept_open: bool = False) -> en.Run:
    """Task 0 of four writes a log by open, write and close of each line."""
    log: list[Made] = []
    for line in range(LINES):
        write = Made("pwrite", 20, 40, 40 * line, 2)
        whole = [Made("open", 30, file=2), write, Made("close", close_us, file=2)]
        log += [write] if kept_open else whole
    log_us = sum(call.us + call.gap_us for call in log)
    tasks: list[list[Made]] = [[], [], [], []]
    for rank, calls in enumerate(tasks):
        for step in range(STEPS):
            calls += [Made("MPI_Barrier", 1)]
            calls += log if rank == 0 else []
            calls += [Made("pwrite", 10_000, MIB, step * MIB)]
            calls += [Made("MPI_Barrier", 1 if rank == 0 else 1 + log_us)]
    return io_run(folder, tasks, {1: "/scratch/data", 2: "/scratch/log"})


def test_a_log_that_is_opened_for_each_line_is_one_habit(tmp_path: Path) -> None:
    found = findings(log_run(tmp_path / "run"))
    storm, small = found["metadata-storm"], found["small-requests"]
    first, second = sorted((storm, small), key=lambda each: each.weight, reverse=True)
    assert second.advice.startswith(f"part of the same habit as {first.id}, whose mend removes both")
    assert f"removes {second.id} too, which is the same habit" in first.advice
    assert "keep it open" in first.advice
    assert "keep it open" in second.advice
    # 800 times 30 µs and 1 µs, and 20 µs less a copy.
    assert storm.share_s + small.share_s == pytest.approx(LINES * STEPS * 51e-6, rel=0.1)


def test_closes_belong_to_the_gain_of_their_habit(tmp_path: Path) -> None:
    slow = findings(log_run(tmp_path / "slow", close_us=25.0))["metadata-storm"]
    fast = findings(log_run(tmp_path / "fast"))["metadata-storm"]
    assert slow.share_s - fast.share_s == pytest.approx(LINES * STEPS * 24e-6, rel=0.15)


def test_a_log_that_stays_open_is_no_habit(tmp_path: Path) -> None:
    found = findings(log_run(tmp_path / "run", kept_open=True))
    assert "same habit" not in found["small-requests"].advice


def journal_run(folder: Path, changes: int = 60) -> en.Run:
    """One task makes, syncs and removes a journal for each change, as SQLite does."""
    calls: list[Made] = []
    for number in range(changes):
        calls += [Made("open", 150, file=2), Made("pwrite", 5, 4 * KIB, 0, 2), Made("fsync", 250, file=2)]
        calls += [Made("pwrite", 5, 4 * KIB, 4 * KIB * (number % 3)), Made("fsync", 250, file=1)]
        calls += [Made("close", 2, file=2), Made("unlink", 100, file=2, gap_us=400)]
    return io_run(folder, [calls], {1: "/scratch/a.db", 2: "/scratch/a.db-journal"})


def test_a_journal_for_each_change_is_one_habit(tmp_path: Path) -> None:
    found = findings(journal_run(tmp_path / "run"))
    sync, storm = found["sync-per-write"], found["metadata-storm"]
    assert "one transaction for many changes" in sync.advice
    assert storm.advice.startswith("part of the same habit as sync-per-write")
    assert sync.severity == "critical"

"""Waits inside phases: a barrier between a read and a write of one named phase."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import ensembles as en
from ensembles import viz
from ensembles.cli.main import main
from ensembles.structure.phases.critical_path import CriticalIo


@pytest.fixture(scope="module")
def madbench(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("runs") / "madbench"
    assert (
        main(["simulate", "madbench", "--fs", "franklin", "--seed", "1", "--tasks", "16", "-o", str(path)])
        == 0
    )
    return path


def by_definition(run: en.Run) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Barriers, their phases and their waits, task by task."""
    events, phase = run.events, run.phases.phase_index(run.events)
    is_barrier = np.array([call.name == "MPI_Barrier" for call in events.calls])[events.call]
    barriers = np.flatnonzero(is_barrier & (phase > 0))
    waited = np.zeros(len(barriers), np.int64)
    for number, at in enumerate(barriers):
        same = ~is_barrier & (phase == phase[at])
        mine = same & (events.rank == events.rank[at])
        if mine.any() and events.end[at] <= events.end[mine].max():
            waited[number] = events.end[at] - max(events.start[at], events.start[same].min())
    return barriers, phase[barriers], waited


def test_waits_inside_named_phases_are_told_with_the_call_for_which_all_waited(
    madbench: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = en.open(madbench)
    events = run.events
    barriers, phase, waited = by_definition(run)
    assert main(["phases", str(madbench), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    inside = told["waiting_inside"]
    assert inside["time_s"] == pytest.approx(waited.sum() / 1e9, rel=1e-9)
    assert inside["share"] == pytest.approx(inside["time_s"] / (run.tasks * told["run_s"]))
    # The barriers after the reads are most of the waiting of the run, and none of it is idle time.
    assert inside["time_s"] > told["lost_s"]
    most = inside["most"]
    # Each task has two barriers in a phase: those that start before its last call, and those at its end.
    met = [
        (events.start[mine].max() - events.start[mine]).sum()
        for number in np.unique(phase)
        if len(mine := barriers[(phase == number) & (waited > 0)]) > 1
    ]
    assert most["time_s"] == pytest.approx(max(met) / 1e9, rel=1e-3)
    assert (most["name"], most["call"]) == ("update", "MPI_Barrier")
    mine = barriers[(phase == most["phase"]) & (waited > 0)]
    reads = np.array([call.name == "read" for call in events.calls])[events.call]
    reads &= run.phases.phase_index(events) == most["phase"]
    last = np.flatnonzero(reads)[np.argmax(events.end[reads])]
    assert most["last_task"] == events.rank[last]
    assert most["last_call"]["call"] == "read"
    assert most["last_call"]["duration_s"] == pytest.approx(events.duration[last] / 1e9)
    assert main(["phases", str(madbench)]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert f"in one MPI_Barrier: rank {most['last_task']} came last, right after its read" in text
    subtitles = [title.text for title in viz.phases(run).above if hasattr(title, "text")]
    assert any("in collective calls of MPI before their last I/O call" in line for line in subtitles)


def test_parts_of_a_run_add_up(madbench: Path) -> None:
    run = en.open(madbench)
    whole, parts = CriticalIo(run.phases), CriticalIo(run.phases)
    whole.add(run.events)
    for each in range(run.tasks):
        part = CriticalIo(run.phases)
        part.add(run.events[run.events.rank == each])
        parts.merge(part)
    assert parts.inside()[1].sum() == whole.inside()[1].sum() == by_definition(run)[2].sum()


def test_barriers_that_separate_phases_are_not_inside(
    madbench: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["phases", str(madbench), "--by", "barriers", "--json"]) == 0
    assert "waiting_inside" not in json.loads(capsys.readouterr().out)


def test_the_critical_path_changes_its_task_at_barriers_inside_named_phases(
    madbench: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = en.open(madbench)
    events = run.events
    is_barrier = np.array([call.name == "MPI_Barrier" for call in events.calls])[events.call]
    entries = np.sort(events.start[is_barrier].reshape(run.tasks, -1), axis=1).max(axis=0)
    window = np.searchsorted(np.sort(entries), events.start, side="right")
    path_ns = 0
    for number in np.unique(window[~is_barrier]):
        mine = np.flatnonzero((window == number) & ~is_barrier)
        last = events.rank[mine[np.argmax(events.end[mine])]]
        path_ns += events.duration[mine[events.rank[mine] == last]].sum()
    assert main(["info", str(madbench), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)["time_in_io"]
    assert told["io_s"] == pytest.approx(path_ns / 1e9, rel=1e-3)

"""Which task a process belongs to, and what is said where that is doubtful."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from made_spools import RUNNING, UNIX_NS, made_events, spool

import ensembles as en
from ensembles.cli.main import main


def ranks_by_pid(run: en.Run) -> dict[int, list[int]]:
    ranks: dict[int, list[int]] = {}
    for process in run.info.processes:
        ranks.setdefault(process.pid, []).append(process.rank)
    return ranks


def add(
    folder: Path, pid: int, events: int = 10, start: int = 0, seed: int = 0, **members: int | str
) -> None:
    name = f"{pid}-{len(list(folder.glob('*')))}.spool"
    recorded = [made_events(events, seed)] if events else []
    spool(folder / name, recorded, pid=pid, first_realtime_ns=UNIX_NS + start, **members)


def test_recorded_ranks_are_kept(tmp_path: Path) -> None:
    for rank in (2, 0, 1):
        add(tmp_path, 100 + rank, rank=rank, tasks=3)
    run = en.open(tmp_path)
    assert ranks_by_pid(run) == {100: [0], 101: [1], 102: [2]}
    assert (run.tasks, run.info.threads, run.notes) == (3, 3, [])


def test_ranks_without_a_spool_are_told(tmp_path: Path) -> None:
    for rank in (0, 5, 6):
        add(tmp_path, 100 + rank, rank=rank, tasks=8)
    run = en.open(tmp_path)
    assert run.tasks == 8
    assert [note for note in run.notes if note.startswith("5 of 8 ranks have no readable spool")]


def test_a_rank_beyond_the_recorded_number_of_tasks_counts(tmp_path: Path) -> None:
    add(tmp_path, 100, rank=7, tasks=4)
    assert en.open(tmp_path).tasks == 8


def test_without_any_rank_processes_are_numbered_by_their_start(tmp_path: Path) -> None:
    add(tmp_path, 300, start=20)
    add(tmp_path, 100, start=30)
    add(tmp_path, 200, start=10)
    run = en.open(tmp_path)
    assert ranks_by_pid(run) == {200: [0], 300: [1], 100: [2]}
    assert run.tasks == 3


def test_without_any_rank_programs_that_replace_each_other_are_one_task(tmp_path: Path) -> None:
    add(tmp_path, 100, start=0, state=RUNNING, program="/bin/sh")
    add(tmp_path, 200, start=5)
    add(tmp_path, 100, start=9, program="/bin/app")
    run = en.open(tmp_path)
    assert ranks_by_pid(run) == {100: [0, 0], 200: [1]}
    assert run.notes == []


def test_the_same_pid_on_another_host_is_another_task(tmp_path: Path) -> None:
    add(tmp_path, 100, start=0, host="alpha")
    add(tmp_path, 100, start=1, host="beta")
    assert en.open(tmp_path).tasks == 2


def test_without_any_rank_processes_that_made_no_call_are_no_tasks(tmp_path: Path) -> None:
    add(tmp_path, 100, start=0, events=0)
    add(tmp_path, 200, start=5)
    run = en.open(tmp_path)
    assert ranks_by_pid(run) == {100: [-1], 200: [0]}
    assert run.tasks == 1


def test_a_run_in_which_nobody_made_a_call_has_one_task(tmp_path: Path) -> None:
    add(tmp_path, 100, events=0)
    add(tmp_path, 200, events=0)
    run = en.open(tmp_path)
    assert (run.tasks, len(run.events), len(run.info.processes)) == (1, 0, 2)


def test_calls_outside_the_ranks_come_after_them_with_a_note(tmp_path: Path) -> None:
    for rank in range(2):
        add(tmp_path, 100 + rank, rank=rank, tasks=2)
    add(tmp_path, 50, program="/usr/bin/mpiexec", start=-5)
    add(tmp_path, 51, events=0)
    run = en.open(tmp_path)
    assert ranks_by_pid(run) == {100: [0], 101: [1], 50: [2], 51: [-1]}
    assert run.tasks == 3
    assert any("mpiexec (pid 50)" in note and "rank 2" in note for note in run.notes)


def test_forked_children_of_a_rank_have_threads_of_their_own(tmp_path: Path) -> None:
    parent = [made_events(20, 1), made_events(30, 2)]
    spool(tmp_path / "parent.spool", parent, rank=0, pid=100, first_realtime_ns=UNIX_NS)
    spool(tmp_path / "child.spool", [made_events(40, 3)], rank=0, pid=101, first_realtime_ns=UNIX_NS + 10**6)
    run = en.open(tmp_path)
    assert (run.tasks, run.info.threads) == (1, 3)
    assert np.bincount(run.events.thread).tolist() == [20, 30, 40]
    of_child = run.events[run.events.thread == 2]
    assert sorted(of_child.requested) == sorted(made_events(40, 3)["requested"])


def test_a_process_that_did_not_end_is_told_with_its_rank(tmp_path: Path) -> None:
    add(tmp_path, 1234, rank=3, tasks=4, state=RUNNING)
    notes = en.open(tmp_path).notes
    assert any("process 1234 (rank 3)" in note and "loses no call" in note for note in notes)
    (path,) = tmp_path.glob("*.spool")
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size - 100)
    notes = en.open(tmp_path).notes
    assert any("process 1234 (rank 3)" in note for note in notes)
    assert not any("loses no call" in note for note in notes)


def test_workers_that_their_pool_ends_are_one_note_with_its_cause(tmp_path: Path, capsys) -> None:
    """Each command said of each of them that it was still running, or killed."""
    for rank, parent in enumerate([1, 100, 100, 100]):
        worker = {"state": RUNNING} if rank in (1, 2) else {}
        program = {"program": "/usr/bin/python3.11", "properties": {"command": "python\x1fpool.py"}}
        add(tmp_path, 100 + rank, rank=rank, tasks=4, parent_pid=parent, **program, **worker)
    (note,) = en.open(tmp_path).notes
    assert note.startswith(
        "2 of 4 processes did not end their recording (killed, as Python's "
        "multiprocessing.Pool ends its workers): 101 (rank 1) on alpha and 102 (rank 2) on alpha; this"
    )
    assert main(["pattern", str(tmp_path)]) == 0
    assert capsys.readouterr().err == f"ensio: note: {note}\n"
    assert main(["info", str(tmp_path)]) == 0
    assert "101 (rank 1) on alpha" in " ".join(capsys.readouterr().out.split())


def test_a_process_that_went_on_as_another_program_has_not_been_killed(tmp_path: Path) -> None:
    add(tmp_path, 100, rank=0, start=0, state=RUNNING)
    add(tmp_path, 100, rank=0, start=9)
    run = en.open(tmp_path)
    assert run.notes == []
    assert all(process.ended for process in run.info.processes)


def test_many_killed_processes_are_one_note(tmp_path: Path) -> None:
    for rank in range(20):
        add(tmp_path, 100 + rank, rank=rank, tasks=20, state=RUNNING if rank else 1)
    (note,) = en.open(tmp_path).notes
    assert note.startswith("19 of 20 processes did not end their recording")


def test_lost_calls_are_told_with_their_number(tmp_path: Path) -> None:
    add(tmp_path, 100, rank=0, dropped_events=70)
    add(tmp_path, 101, rank=1, dropped_events=7)
    run = en.open(tmp_path)
    assert run.info.dropped_events == 77
    assert any("77 calls of 2 processes were not recorded" in note for note in run.notes)

"""The steps of a two-phase collective write that a program makes by itself: what it says is what is found."""

from pathlib import Path

import numpy as np
import pytest
from commands_here import told
from test_mpi import FLAVOURS, compiled

import ensembles
from ensembles.structure.collective_steps import NO_STORAGE

TASKS = 6
STEPS = ("ranges", "counts", "offsets", "data")
MEETINGS = ("MPI_Barrier", "MPI_Init", "MPI_Finalize")


Said = dict[str, list[tuple[int, int, int]]]


def executed(
    recorder, flavour: str, layers: str
) -> tuple[dict[str, list[tuple[int, int, int]]], ensembles.Run]:
    """What each step took in ns, its messages and their bytes, as each task says, and the run."""
    program = compiled(recorder, "two_phase_steps", f"mpicc.{flavour}")
    folder = recorder.folder / "data"
    folder.mkdir()
    run = recorder.tasks(flavour, program, folder, tasks=TASKS, ENSIO_LAYERS=layers)
    said: Said = {}
    for rank in range(TASKS):
        for line in Path(folder / f"log.{rank}").read_text().splitlines():
            step, *numbers = line.split()
            took_ns, messages, bytes_ = map(int, numbers)
            said.setdefault(step, []).append((took_ns, messages, bytes_))
    return said, run


@pytest.mark.parametrize("flavour", FLAVOURS)
def test_each_step_is_a_phase_with_its_messages_and_no_longer_than_the_program_says(recorder, flavour):
    said, run = executed(recorder, flavour, "default,mpimsg")
    found = told("phases", recorder.run)
    assert (found["rule"], found["count"]) == ("barriers", len(found["phases"]))
    rows = [row for row in found["phases"] if row["messages"]]
    assert len(rows) == len(STEPS)
    assert [row["phase"] for row in rows] == list(run.phases.message_steps)
    events = run.events
    names = np.array([call.name for call in run.calls])[events.call]
    for step, row in zip(STEPS, rows, strict=True):
        assert row["calls"] == row["bytes_read"] == row["bytes_written"] == 0
        assert row["tasks"] == TASKS
        assert row["messages"] == sum(messages for _, messages, _ in said[step])
        assert row["message_bytes"] == sum(bytes_ for *_, bytes_ in said[step])
        for rank, (took_ns, messages, _) in enumerate(said[step]):
            mine = events[(events.phase == row["phase"]) & (events.rank == rank) & ~np.isin(names, MEETINGS)]
            assert len(mine) == messages
            # The program's own interval contains the calls; its clock is another.
            assert mine.end.max() - mine.start.min() <= took_ns + 1_000 + took_ns // 1_000
    writes = [row for row in found["phases"] if row["calls"]]
    assert [row["bytes_written"] for row in writes[:2]] == [TASKS * 1312] * 2
    assert found["lost_s"] == pytest.approx(sum(row["lost_s"] for row in writes))
    assert found["without_io"]["steps"] == 1  # from MPI_Init to the first barrier


@pytest.mark.parametrize("flavour", FLAVOURS)
def test_the_parts_of_a_collective_call_are_all_of_it(recorder, flavour):
    said, run = executed(recorder, flavour, "default")
    found = told("phases", recorder.run)
    assert not any(row["messages"] and not row["calls"] for row in found["phases"])
    assert found["without_io"]["steps"] >= len(STEPS)
    steps = found["collective_steps"]
    if recorder.way == "relinked":  # what a shared library does inside is not visible
        assert (steps["rows"], steps["refused"]) == ([], NO_STORAGE)
        return
    (row,) = steps["rows"]
    assert (row["call"], row["collective_calls"], row["calls"], row["tasks"]) == (
        "MPI_File_write_at_all",
        1,
        TASKS,
        TASKS,
    )
    calls = run.select(call="MPI_File_write_at_all")
    assert row["time_s"] == pytest.approx(float(calls.duration.sum()) * 1e-9)
    parts = [row[key] for key in ("communication_s", "storage_s", "entry_s", "others_storage_s")]
    assert min(parts) >= 0
    assert sum(parts) == pytest.approx(row["time_s"])
    inside = run.select(layer="posix", op="read,write,sync")
    inside = inside[inside.depth > 0]
    own_ns = 0
    for call in range(len(calls)):
        mine = inside.rank == calls.rank[call]
        mine &= (inside.start >= calls.start[call]) & (inside.end <= calls.end[call])
        own_ns += int(inside.duration[mine].sum())  # one after the other
    assert row["storage_s"] == pytest.approx(own_ns * 1e-9)
    assert row["storage_s"] > 0
    took_s = sum(took_ns for took_ns, *_ in said["collective"]) * 1e-9
    assert row["time_s"] <= took_s * 1.001 + 1e-6 * TASKS

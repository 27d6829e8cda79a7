"""The call that made the last task of a phase late is named, not the one that happened to be its last."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from made_runs import run_of
from pages import unpacked

from ensembles import viz
from ensembles.cli.main import main
from ensembles.model.events import Call, Events
from ensembles.run.selection import Selection
from ensembles.structure.phases.late_calls import LateCalls, LateInPhase, without_waits_ns
from ensembles.viz.explorer.shown import structure_of
from ensembles.viz.report.page import write_report

MIB = 1 << 20


@pytest.fixture
def run(tmp_path: Path):
    """All write 1 s in each of two phases; rank 2 syncs 0.3 s more, then all close in 1 ms."""

    def of(rank: int, begin_s: float) -> list:
        calls = [("pwrite", begin_s + 0.25 * number, 0.25, MIB) for number in range(4)]
        at_s = begin_s + 1.0
        if rank == 2:
            calls += [("fsync", at_s + 0.1 * number, 0.1, 0, -1, 2) for number in range(3)]
            at_s += 0.3
        return [*calls, ("close", at_s, 1e-3 + 1e-5 * rank, 0)]

    tasks = [[*of(rank, 0.0), *of(rank, 5.0)] for rank in range(4)]
    return run_of(tmp_path / "run", tasks, lasted_s=8.0, path=("/scratch/a", "/scratch/b"))


def test_the_call_that_made_a_task_late_is_named(run, tmp_path: Path, capsys) -> None:
    assert main(["phases", run.path]) == 0
    text = capsys.readouterr().out
    assert re.search(r"\n +1 .* 2 fsync\n +2 .* 2 fsync\n", text)
    told = "rank 2 came last. It spent 300 ms in 3 calls of fsync, most on b; rank 1, in the middle, none."
    assert told in " ".join(text.split())
    assert "with close" not in text
    (first, _) = structure_of(run, Selection()).phases
    assert first.late_calls == LateCalls("fsync", "posix", "/scratch/b", 3, pytest.approx(0.3), 0.0)
    assert first.last_call.call == "close"
    assert first.later_s == pytest.approx(0.3, abs=1e-4)
    write_report(run, tmp_path / "a.html")
    page = (tmp_path / "a.html").read_text()
    page = (page + unpacked(page)).replace("Rank 2 came last", "rank 2 came last")
    assert "<td>2 fsync</td>" in page
    assert told in page
    sources = [
        each.data_source.data for each in viz.phases(run).renderers if "slowest" in each.data_source.data
    ]
    assert sources[0]["slowest"][0] == told.replace("rank", "Rank", 1)


def test_a_task_that_begins_late_is_not_late_by_its_last_call(tmp_path: Path, capsys) -> None:
    """Rank 1 computes for 0.3 s before the same calls as the others', or rank 2 between them."""
    tasks, halting = [], []
    for rank in range(3):
        late_s = 0.3 * (rank == 1)
        starts = [begin_s + late_s for begin_s in (0.0, 5.0)]
        tasks.append(
            [call for at in starts for call in (("pwrite", at, 0.5, MIB), ("close", at + 0.5, 1e-3, 0))]
        )
        at, again = ((0.0, 0.5), (0.2, 0.7), (0.0, 1.0))[rank]
        halting.append([("pwrite", at, 0.5, MIB), ("pwrite", again, 0.5, MIB)])
    run = run_of(tmp_path / "run", tasks, lasted_s=8.0)
    phase, _ = structure_of(run, Selection()).phases
    assert phase.late_calls is None
    assert phase.late_outside == LateInPhase(pytest.approx(0.3), 0.0, 0.0)
    assert (phase.slowest_task, phase.last_call.call, phase.reason) == (1, "close", "late start")
    assert main(["phases", run.path]) == 0
    told = " ".join(capsys.readouterr().out.split())
    later = "it began its first call 300 ms later than rank 0, in the middle: look at what it does before"
    assert f"rank 1 came last. I{later[1:]} (computation, messages, other I/O)." in told
    assert "close" not in told
    write_report(run, tmp_path / "a.html")
    page = (tmp_path / "a.html").read_text()
    page += unpacked(page)
    assert "<td>1 late start</td>" in page
    assert later[1:] in page
    sources = [
        each.data_source.data for each in viz.phases(run).renderers if "slowest" in each.data_source.data
    ]
    assert sources[0]["slowest"][0].startswith(f"Rank 1 came last. I{later[1:]}")
    phase, *_ = structure_of(run_of(tmp_path / "halting", halting, lasted_s=2.0), Selection()).phases
    assert phase.late_outside == LateInPhase(0.0, pytest.approx(0.5), 0.0)
    assert phase.reason == "between calls"
    assert phase.late_outside.text(0).startswith("it was 500 ms outside of these calls between the first and")
    alone = run_of(tmp_path / "alone", tasks[:1], lasted_s=8.0)
    phase, *_ = structure_of(alone, Selection()).phases
    assert (phase.middle_task, phase.later_s, phase.late_calls, phase.late_outside) == (None, 0.0, None, None)


def test_waits_inside_a_call_are_not_its_time() -> None:
    """A barrier inside a call of HDF5, one beside, and one whose enclosing call is in another chunk."""
    rows = [
        (0, 0, 1, 1, 20, 60),  # inside the next H5Fflush of its thread
        (0, 1, 0, 0, 10, 30),  # another thread
        (0, 0, 0, 0, 10, 100),
        (0, 0, 1, 0, 200, 50),
        (0, 0, 1, 1, 300, 40),
    ]
    rank, thread, call, depth, start, duration = np.array(rows, np.int64).T
    columns = {"rank": rank, "thread": thread, "call": call, "depth": depth, "start": start}
    calls = (Call("H5Fflush", "hdf5", "sync"), Call("MPI_Barrier", "mpisync", "wait"))
    events = Events.partly(columns | {"duration": duration}, calls, [""])
    assert without_waits_ns(events).tolist() == [60, 30, 40, 50, 40]

"""The call that made the last task of a phase late is named, not the one that happened to be its last."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from made_runs import run_of

from ensembles import viz
from ensembles.cli.main import main
from ensembles.run.selection import Selection
from ensembles.structure.phases.late_calls import LateCalls
from ensembles.viz.explorer.structure import structure_of
from ensembles.viz.report import write_report

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
    assert "2: fsync" in page
    assert "it spent 300 ms in 3 calls of fsync on b" in page
    sources = [
        each.data_source.data for each in viz.phases(run).renderers if "slowest" in each.data_source.data
    ]
    assert sources[0]["slowest"][0] == "rank 2, 300 ms in 3 calls of fsync, most on /scratch/b"


def test_where_no_call_explains_it_the_last_one_stays(tmp_path: Path) -> None:
    """Rank 1 computes for 0.3 s before the same calls as the others'."""
    tasks = []
    for rank in range(3):
        at_s = 0.3 * (rank == 1)
        tasks.append([("pwrite", at_s, 0.5, MIB), ("close", at_s + 0.5, 1e-3, 0)])
    run = run_of(tmp_path / "run", tasks, lasted_s=2.0)
    (phase,) = structure_of(run, Selection()).phases
    assert phase.late_calls is None
    assert (phase.slowest_task, phase.named_call) == (1, "close")
    alone = run_of(tmp_path / "alone", tasks[:1], lasted_s=2.0)
    (phase,) = structure_of(alone, Selection()).phases
    assert (phase.middle_task, phase.later_s, phase.late_calls) == (None, 0.0, None)

"""Waiting that no finding explains is told where there is any, and a run without calls is not healthy."""

import json
from pathlib import Path

import numpy as np
import pytest
from made_io import MIB, Made, io_run

import ensembles as en
from ensembles import viz
from ensembles.cli.main import main
from ensembles.run.information import collect_information
from ensembles.run.selection import Selection
from ensembles.structure.phases.late_calls import late_outside
from ensembles.viz.explorer.shown import about_causes, structure_of
from ensembles.viz.explorer.tables import phase_columns
from ensembles.viz.report.page import write_report

STEPS = 8


def computing(rank: int) -> list[Made]:
    """Rank 1 computes 150 ms before each step of 4 ms; the others wait for it in a barrier."""
    calls = []
    for step in range(STEPS):
        calls.append(Made("MPI_Barrier", 10, gap_us=150_000 if rank == 1 else 1))
        calls.append(Made("pwrite", 4000, MIB, step * MIB))
        calls.append(Made("MPI_Barrier", 10 if rank == 1 else 150_009))
    return calls


@pytest.fixture
def waiting(tmp_path: Path) -> en.Run:
    return io_run(tmp_path / "run", [computing(rank) for rank in range(3)])


def test_waiting_for_a_task_that_computes_is_a_note_with_its_reason(waiting: en.Run) -> None:
    found = en.diagnose(waiting)
    assert [each for each in found.findings if each.severity != "note"] == []
    assert found.unexplained_s is not None
    assert found.unexplained_s > 0.4 * STEPS * 0.15
    for text in (str(found), str(found.in_full())):
        words = " ".join(text.split())
        assert "note: late-task" in words
        assert "aiting for tasks that are late again and again" not in words  # one number for one waiting
        assert "rank 1 is late because it was 1.20 s outside of I/O calls" in words
    late = found.to_json()["late_outside"]
    assert late["rank"] == 1
    assert late["outside_s"] - late["others_s"] == pytest.approx(STEPS * 0.15, rel=0.01)


def test_a_task_that_leaves_a_barrier_late_does_not_compute(tmp_path: Path) -> None:
    def calls(rank: int) -> list[Made]:
        late = rank == 1
        meeting = Made("MPI_Barrier", 150_010 if late else 10)
        return [meeting, Made("pwrite", 4000, MIB), Made("MPI_Barrier", 10 if late else 150_010)] * STEPS

    found = en.diagnose(io_run(tmp_path / "run", [calls(rank) for rank in range(3)]))
    late = found.to_json()["late_outside"]
    assert (late["rank"], late["call"]) == (1, "MPI_Barrier")
    assert late["left_s"] == pytest.approx(STEPS * 0.15, rel=0.01)
    words = " ".join(str(found).split())
    assert "rank 1 is late because it leaves MPI_Barrier 1.20 s later than the others in all" in words
    assert "look at its computation" not in words


@pytest.mark.parametrize("inside", [False, True])
def test_phases_name_what_made_a_task_last_and_not_a_harmless_call(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], inside: bool
) -> None:
    """Rank 1 leaves the barrier 150 ms after the others, or it computes as long behind it."""
    others = [Made("MPI_Barrier", 10), Made("pwrite", 4000, MIB), Made("MPI_Barrier", 150_010)]
    meeting = Made("MPI_Barrier", 150_010) if inside else Made("MPI_Barrier", 10, gap_us=150_000)
    mine = [meeting, Made("pwrite", 4000, MIB), Made("MPI_Barrier", 10)]
    tasks = [others, mine, others]
    run = io_run(tmp_path / "run", tasks)
    assert main(["phases", run.path]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "rank 1 came last. It began its first call 150 ms later than rank 0, in the middle, " in text
    assert ("as it left MPI_Barrier 150 ms later, although all tasks had entered it" in text) == inside
    assert ("although it left MPI_Barrier no later: look at what it does before" in text) != inside
    assert "1 late start" in text
    assert "with pwrite" not in text
    assert main(["phases", run.path, "--json"]) == 0
    (told,) = json.loads(capsys.readouterr().out)["phases"]
    assert told["late_calls"] is None
    assert told["late_outside"]["begins_s"] == pytest.approx(0.15, rel=0.01)
    assert told["late_outside"]["left_s"] == pytest.approx(0.15 * inside, rel=0.01)


def test_tasks_without_a_call_in_a_phase_are_not_said_to_wait_for_nobody(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """All write for 4 ms, rank 0 2 ms longer; then rank 0 alone writes for 9 ms, and the others wait."""

    def calls(rank: int) -> list[Made]:
        first = Made("pwrite", 6000 if rank == 0 else 4000, MIB)
        alone = [Made("pwrite", 9000, MIB)] if rank == 0 else []
        waits = (10, 10) if rank == 0 else (2010, 9010)
        met = [Made("MPI_Barrier", us) for us in waits]
        return [Made("MPI_Barrier", 10), first, met[0], *alone, met[1]]

    run = io_run(tmp_path / "run", [calls(rank) for rank in range(4)])
    assert main(["phases", run.path, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["tasks"], told["lost_s"]) == (4, pytest.approx(0.006, rel=0.01))
    assert told["lost_share"] == pytest.approx(told["lost_s"] / (4 * told["run_s"]))
    assert told["lost_without_calls_s"] == pytest.approx(0.027, rel=0.01)
    of_run = f"{100 * told['lost_share']:.1f}".rstrip("0").rstrip(".")
    idle = f"6.00 ms summed over tasks, {of_run} % of the run (4 tasks × "
    absent = (
        "Tasks without a call in a phase are not counted: in 1 phase, where they could wait up to 27.0 ms"
    )
    assert main(["phases", run.path]) == 0
    text = " ".join(capsys.readouterr().out.split())
    write_report(run, tmp_path / "a.html")
    report = (tmp_path / "a.html").read_text().replace("\u00a0", " ")
    for page in (text, report):
        assert idle in page
        assert absent in page
        assert "≥ 0 ns" in page
    found = structure_of(run, Selection())
    assert phase_columns(found.phases, run.tasks)["idle"] == ["6.00 ms", "≥ 0 ns"]
    assert phase_columns(found.phases, run.tasks)["share"] == ["25 %", ""]
    assert absent in about_causes(en.diagnose(run), found, "", False)
    (under,) = [
        each.text.replace("\u00a0", " ")
        for each in viz.phases(run).above
        if "slowest" in getattr(each, "text", "")
    ]
    assert under == "Tasks waited 6.00 ms in all for the slowest task of each phase."


def test_nothing_left_is_not_told(tmp_path: Path) -> None:
    alike = [Made("pwrite", 4000, MIB), Made("MPI_Barrier", 10)] * STEPS
    found = en.diagnose(io_run(tmp_path / "run", [alike, alike]))
    assert found.unexplained_s is not None
    assert found.unexplained_s < 1e-3 * STEPS * 4e-3
    assert "aiting for tasks that" not in str(found) + str(found.in_full())


def test_a_task_whose_calls_made_it_late_was_not_outside() -> None:
    present = np.ones((2, 3), bool)
    arrival = np.array([[100, 10, 12], [90, 11, 9]])
    assert late_outside(arrival, arrival - 1, present) is None
    assert late_outside(arrival, np.full((2, 3), 5), present) == (0, 180.0, pytest.approx(11.0))
    assert late_outside(arrival[:, :1], arrival[:, :1] * 0, present[:, :1]) is None


def test_a_run_without_a_recorded_call_is_not_taken_for_healthy(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = io_run(tmp_path / "run", [[]])
    found = en.diagnose(run)
    assert (found.findings, found.examined) == ((), ())
    assert {entry.reason.partition(",")[0] for entry in found.not_examined} == {"no call was recorded"}
    assert main(["diagnose", run.path]) == 0
    out, _ = capsys.readouterr()
    assert "no call was recorded" in " ".join(out.split())
    assert "looked for" not in out
    assert main(["diagnose", run.path, "--fail-on", "warning"]) == 2
    assert "--fail-on warning cannot be answered: no call was recorded" in capsys.readouterr().err


def test_waits_inside_calls_of_a_library_are_not_on_the_critical_path(tmp_path: Path) -> None:
    """Each H5Dwrite takes 10 ms, of which a task waits 8 ms for others in a barrier that HDF5 makes."""
    inside = (Made("pwrite", 1000, MIB, 0), Made("MPI_Barrier", 8000))
    run = io_run(tmp_path / "run", [[Made("H5Dwrite", 10_000, MIB, inside=inside)] * 20] * 2)
    critical_s = collect_information(run)["time_in_io"]["critical_path_s"]
    assert critical_s == pytest.approx(20 * 2e-3, rel=0.01)
    assert critical_s <= sum(rank.io_time_s for rank in run.by_rank())

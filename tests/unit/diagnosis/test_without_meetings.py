"""Processes without MPI and threads: the run does not show who waits for whom, so gains are bounds."""

import json
from pathlib import Path

import numpy as np
import pytest
from made_io import KIB, MIB, Made, io_run
from made_runs import run_of as of_threads

import ensembles as en
from ensembles.answers.info import info_parts, share_in_io
from ensembles.cli.main import main
from ensembles.diagnosis.with_meetings import Cells, WithMeetings, WithoutMeetings
from ensembles.faces.text import answer_text
from ensembles.faces.words import sentence
from ensembles.model.statement import Interval, Statement
from ensembles.run.information import collect_information
from ensembles.viz.report.data import ReportData
from ensembles.viz.report.tables import facts

PLAIN = {"rank": -1, "tasks": 0}
"""What the spool of a process without MPI says of its rank."""

SYNCED = [Made("pwrite", 20, 4 * KIB), Made("fsync", 5000)] * 60
"""60 records of 4 KiB, each with an fsync of 5 ms: 300 ms in all."""

READ = [Made("stat", 10), Made("stat", 10)]


def run_of(folder: Path, tasks: list[list[Made]], starts_us: list[float], plain: bool = True) -> en.Run:
    return io_run(folder, tasks, head=PLAIN if plain else None, starts_us=starts_us, recorder="1.0.0")


@pytest.fixture
def one_after_the_other(tmp_path: Path) -> en.Run:
    """As a shell script that runs two programs: the first ends before the second begins."""
    return run_of(tmp_path / "run", [SYNCED, SYNCED], [0, 310_000])


@pytest.fixture
def pool(tmp_path: Path) -> en.Run:
    """As a pool of three: the parent makes the last call, and only waits before."""
    parent = [Made("stat", 10, gap_us=400_000), Made("stat", 10)]
    return run_of(tmp_path / "pool", [parent, SYNCED, SYNCED, SYNCED], [0, 50_000, 51_000, 52_000])


def test_programs_one_after_the_other_gain_the_time_of_both(one_after_the_other: en.Run) -> None:
    found = {each.id: each for each in en.diagnose(one_after_the_other).findings}["sync-per-write"]
    # 59 of 60 syncs of each: 295 ms if only the last program counts, 590 ms if one waits for the other.
    low, high = found.gain_s
    assert 0.1 < low <= 0.295
    assert 0.58 < high < 0.62


def test_nothing_is_explained_by_waiting_where_nobody_waits(one_after_the_other: en.Run) -> None:
    diagnosis = en.diagnose(one_after_the_other)
    assert diagnosis.unexplained_s is None
    assert "imbalance" in [entry.id for entry in diagnosis.not_examined]
    assert "waiting" not in str(diagnosis)


def test_a_parent_that_makes_the_last_call_hides_nothing(pool: en.Run) -> None:
    found = {each.id: each for each in en.diagnose(pool).findings}
    assert "not-io" not in found
    assert found["sync-per-write"].severity == "critical"
    low, high = found["sync-per-write"].gain_s
    assert (low, found["sync-per-write"].share_s) == (0.0, pytest.approx(0.295, rel=0.02))
    assert 0.295 < high < 0.31  # three at the same time: at most from the first sync to the last


def test_the_same_ranks_of_mpi_meet(tmp_path: Path) -> None:
    ranks = run_of(tmp_path / "run", [SYNCED, SYNCED], [0, 310_000], plain=False)
    told = collect_information(ranks)["time_in_io"]
    assert told["critical_path_s"] is not None
    assert "some_task_s" not in told


def test_info_and_account_bound_the_io_of_tasks_that_may_wait_for_each_other(
    one_after_the_other: en.Run, pool: en.Run, tmp_path: Path
) -> None:
    told = collect_information(one_after_the_other)["time_in_io"]
    assert told["critical_path_s"] == told["io_s"] == pytest.approx(2 * 60 * 5.02e-3, rel=1e-6)
    assert 0.3012 < collect_information(pool)["time_in_io"]["critical_path_s"] < 0.304
    half = run_of(tmp_path / "half", [SYNCED, SYNCED], [0, 150_600])
    told = collect_information(half)
    found = told["time_in_io"]
    assert (found["critical_path_s"], found["some_task_s"]) == (None, pytest.approx(1.5 * 0.3012, rel=1e-5))
    assert found["io_low_s"] == pytest.approx(0.3012, rel=1e-6)
    text = " ".join(answer_text(info_parts(told)).split())
    assert "at least one task in I/O for 452 ms" in text
    assert "critical path" not in text
    account = en.diagnose(half).account
    assert (account.io_s, account.io_low_s) == pytest.approx((found["some_task_s"], found["io_low_s"]))


def test_phases_do_not_tell_idle_times_of_tasks_that_had_ended(
    one_after_the_other: en.Run, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["phases", one_after_the_other.path]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "Idle times are not known" in text
    assert "came last" not in text
    assert main(["phases", one_after_the_other.path, "--json"]) == 0
    told = capsys.readouterr().out
    assert '"lost_s": null' in told
    assert "NaN" not in told


def test_io_below_a_twentieth_is_told_only_if_that_of_all_tasks_is(tmp_path: Path) -> None:
    """Thirty programs one after the other, each 3 % of the run in I/O and then in computation."""
    each = [Made("stat", 15_000, gap_us=1000), Made("stat", 15_000, gap_us=1000)]
    run = run_of(tmp_path / "run", [each] * 30, [33_000 * number for number in range(30)])
    assert "not-io" not in [finding.id for finding in en.diagnose(run).findings]
    little = run_of(tmp_path / "little", [READ, READ], [0, 1_000_000])
    (found,) = (finding for finding in en.diagnose(little).findings if finding.id == "not-io")
    assert found.evidence["io_s"] == pytest.approx(40e-6)
    assert "critical path" not in str(found)


def test_threads_of_a_task_count_once_where_they_overlap() -> None:
    rows = {"start_ns": np.array([0, 0, 500]), "end_ns": np.array([100, 100, 600]), "time_ns": np.zeros(3)}
    apart = WithoutMeetings(rows, np.zeros(3, np.int64), np.array([2]))
    time_ns = np.array([90.0, 80.0, 30.0])  # two at the same time, and one later
    assert apart.most_s(time_ns) == pytest.approx(130e-9)
    assert apart.likely_s(time_ns) == pytest.approx(130e-9)
    assert apart.least_s(time_ns) == 0.0


def test_tasks_of_one_thread_shorten_the_run_at_least_if_they_end_last() -> None:
    rows = {"start_ns": np.array([0, 99]), "end_ns": np.array([100, 200]), "time_ns": np.zeros(2)}
    apart = WithoutMeetings(rows, np.array([0, 1]), np.array([1, 1]))
    assert apart.least_s(np.array([80.0, 30.0])) == pytest.approx(30e-9)
    assert apart.likely_s(np.array([80.0, 30.0])) == pytest.approx(80e-9)
    assert apart.most_s(np.array([80.0, 30.0])) == pytest.approx(110e-9)


def test_threads_of_a_task_that_meets_others_count_once_too() -> None:
    rows = {"start_ns": np.array([0, 0, 500]), "end_ns": np.array([100, 100, 600])}
    rows["time_ns"] = np.array([90.0, 80.0, 30.0])
    first = np.zeros(3, np.int64)
    together = WithMeetings(Cells(rows, first, first), rows, np.array([0]), np.array([True]), None)
    assert together.most_s(rows["time_ns"]) == pytest.approx(130e-9)
    assert together.likely_s(rows["time_ns"]) == pytest.approx(130e-9)
    early = {"start_ns": np.array([-99]), "end_ns": np.array([-95])}  # the constructor of a library calls
    assert Cells(early, first[:1], first[:1]).present.all()
    low, high = together.interval_s(*[rows["time_ns"]] * 3)
    assert 0 < low <= 130e-9 <= high <= 600e-9


def test_no_gain_is_longer_than_the_time_in_which_its_calls_lie(tmp_path: Path) -> None:
    """As DFTracer's example of PyTorch: 20 threads look the same paths up at the same time."""
    calls = [
        (thread, name, 1_000_000 + 50_000 * at)
        for thread in range(20)
        for at, name in enumerate(("opendir", "__xstat64") * 2)
    ]
    event = {
        "cat": "POSIX",
        "pid": 7,
        "ph": "X",
        "args": {"hostname": "n1", "fname": "/data/train", "ret": 0},
    }
    lines = [
        json.dumps({"id": at, "name": name, "tid": 100 + thread, "ts": ts + thread, "dur": 49_995, **event})
        for at, (thread, name, ts) in enumerate(calls)
    ]
    lines.append(json.dumps({"id": 99, "name": "read", "tid": 100, "ts": 2_000_000, "dur": 2000, **event}))
    path = tmp_path / "threads.pfw"
    path.write_text("[\n" + "\n".join(lines) + "\n")
    diagnosis = en.diagnose(en.open(path))
    assert "metadata-storm" in {each.id for each in diagnosis.findings}
    assert all(each.gain_s[1] <= 0.21 for each in diagnosis.findings if each.gain_s)
    assert all((entry.at_most_s or 0) <= 0.21 for entry in diagnosis.not_examined)


@pytest.mark.parametrize("name", ["pwrite", "MPI_File_iwrite_at"])
def test_only_calls_that_were_made_are_named_as_non_blocking(tmp_path: Path, name: str) -> None:
    """Calls of one thread that overlap: of requests older recorders stored them so."""
    run = io_run(tmp_path / "run", [[Made(name, 100, 4096, gap_us=-50), Made(name, 100, 4096)]])
    named = [note for note in run.notes if "durations of non-blocking requests" in note]
    assert [name in note for note in named] == [True] * (name != "pwrite")


@pytest.mark.parametrize(
    ("starts_us", "lives"), [((0, 50_000, 100_000), 3), ((0, 10_000, 100_000), 2), ((0, 1_000, 2_000), 1)]
)
def test_programs_one_after_the_other_are_the_run_together(
    tmp_path: Path, starts_us: tuple[int, ...], lives: int
) -> None:
    each = [Made("stat", 10_000) for _ in range(4)]
    run = run_of(tmp_path / "run", [each] * 3, list(starts_us))
    found = en.diagnose(run)
    assert found.account is not None
    assert found.account.io_low_s == pytest.approx(lives * 0.04, rel=0.06)
    assert found.account.is_of_run == (lives != 2)  # if all overlap, the most is as long


def test_a_shell_around_programs_does_not_hide_that_they_live_one_after_the_other() -> None:
    start, end = np.array([0, 10, 50, 90]), np.array([100, 50, 90, 95])
    rows = {"start_ns": start, "end_ns": end, "time_ns": np.array([1.0, 30.0, 40.0, 5.0])}
    apart = WithoutMeetings(rows, np.arange(4), np.ones(4, np.int64))
    assert apart.likely_s(rows["time_ns"]) == pytest.approx(75e-9)
    assert apart.path(np.zeros(4)).rows.tolist() == [False, True, True, True]


@pytest.mark.parametrize(("threads", "late_s"), [(2, 0.0), (2, 0.01), (4, 0.005), (6, 0.02)])
def test_the_share_in_io_is_that_of_at_least_one_thread(threads: int, late_s: float, tmp_path: Path) -> None:
    """Calls of threads that lie in the same times count once, as in info, although they do not fill them."""
    calls = [
        ("pread", 0.05 * step + late_s * thread, 0.03, MIB, MIB * step)
        for step in range(20)
        for thread in range(threads)
    ]
    later_s = late_s * (threads - 1)
    union_s = 20 * min(0.03 + later_s, 0.05) + max(later_s - 0.02, 0)
    for name, head in (("plain", PLAIN), ("of one rank", {})):
        found = en.diagnose(of_threads(tmp_path / name, [calls], threads=threads, head=head)).account
        assert found is not None
        assert found.io_s == pytest.approx(union_s)


@pytest.mark.parametrize("late_us", [0, 150_600, 310_000])
def test_info_the_report_and_the_account_have_one_share_of_io(late_us: float, tmp_path: Path) -> None:
    run = run_of(tmp_path / "run", [SYNCED, SYNCED], [0, late_us])
    information, account = collect_information(run), en.diagnose(run).account
    assert account is not None
    share = share_in_io(information)
    ends = (share.low, share.high) if isinstance(share, Interval) else (share, share)
    assert ends == pytest.approx((account.io_low_s / account.run_s, account.io_s / account.run_s))
    shown = {name: value for name, value, _ in facts(run, ReportData.from_run(run)[0], information)}
    assert shown["I/O time"] == sentence(Statement("info.share", {"share": share}))

"""Several processes give the answers of one; a killed one gives none."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from arrays_of import arrays_of
from spool_writer import POSIX_CALLS, SpoolContent, write_spool
from summaries_that_kill import Killed
from synthetic_runs import synthetic_run

import ensembles as en
from ensembles.cli.main import main
from ensembles.model.c_layout import EVENT
from ensembles.model.errors import EnsioError
from ensembles.model.events import COLUMNS
from ensembles.passes.damage import DamageReport
from ensembles.passes.executors import ProcessExecutor
from ensembles.passes.reading import ReadRequest, divide, even_spans
from ensembles.passes.summary import ignoring_run
from ensembles.run.collect import collect
from ensembles.summaries.runtotals import EventCount
from ensembles.viz.report.data import ReportData

pytestmark = pytest.mark.slow

TASKS, EVENTS = 30, 502

COMMANDS = {
    "info": (),
    "rate": ("--op", "write", "--phase", "2-4"),
    "phases": (),
    "phases in steps": ("--by", "steps", "--rank", "3-20"),
    "ordinals": ("--op", "write"),
    "ordinals within phases": ("--by", "phase", "--op", "read"),
    "ordinals, some": ("--where", "ordinal=3-9", "--phase", "2"),
    "modes": ("--op", "write", "--where", "ordinal=1-40"),
    "tail": ("--op", "write", "--tasks", "8"),
    "split": (
        "--op",
        "write",
    ),
}


@pytest.fixture(scope="module")
def run_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("processes") / "run"
    synthetic_run(folder, TASKS, EVENTS, seed=5)
    return folder


@pytest.fixture(scope="module")
def pool() -> ProcessExecutor:
    return ProcessExecutor(2)


def answer(capsys: pytest.CaptureFixture, *arguments: str) -> dict:
    assert main(list(arguments)) == 0
    return json.loads(capsys.readouterr().out)


def assert_alike(found: object, expected: object, path: str = "") -> None:
    """Equal, but for the rounding of real numbers."""
    if isinstance(expected, dict):
        assert list(found) == list(expected), path
        for key, value in expected.items():
            assert_alike(found[key], value, f"{path}.{key}")
    elif isinstance(expected, list):
        assert len(found) == len(expected), path
        for number, value in enumerate(expected):
            assert_alike(found[number], value, f"{path}[{number}]")
    elif isinstance(expected, float):
        assert found == pytest.approx(expected, rel=1e-9, abs=1e-12), path
    else:
        assert found == expected, path


@pytest.mark.parametrize("name", COMMANDS)
def test_commands_answer_the_same(
    name: str,
    run_path: Path,
    pool: ProcessExecutor,
    capsys: pytest.CaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # So that the run is too long to be held, and goes by in one pass.
    monkeypatch.setattr("ensembles.ensemble.from_run.HELD_EVENTS", 0)
    arguments = (name.split()[0].rstrip(","), str(run_path), "--json", *COMMANDS[name])
    expected = answer(capsys, *arguments)
    monkeypatch.setattr("ensembles.passes.executors.executor_for", lambda wanted: pool)
    assert_alike(answer(capsys, *arguments, "--workers", "2"), expected)


def test_reports_show_the_same(run_path: Path, pool: ProcessExecutor) -> None:
    expected, found = (ReportData.from_run(en.open(run_path, workers))[0] for workers in (None, pool))
    for name in ("table", "totals", "sizes", "histogram", "rate", "raster"):
        theirs, mine = (arrays_of(getattr(summaries, name)) for summaries in (expected, found))
        for key, values in theirs.items():
            np.testing.assert_array_equal(mine[key], values, err_msg=f"{name} {key}")
    assert list(found.table.totals) == list(expected.table.totals)


def test_comparisons_are_the_same(
    run_path: Path,
    pool: ProcessExecutor,
    tmp_path: Path,
    capsys: pytest.CaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    synthetic_run(tmp_path / "other", TASKS, EVENTS, seed=6)
    monkeypatch.setattr("ensembles.ensemble.from_run.HELD_EVENTS", 0)
    arguments = ("compare", str(run_path), str(tmp_path / "other"), "--json", "--op", "write")
    arguments += ("--memory", "64GiB")  # the process of the tests has grown
    expected = answer(capsys, *arguments)
    monkeypatch.setattr("ensembles.passes.executors.executor_for", lambda wanted: pool)
    assert_alike(answer(capsys, *arguments, "--workers", "2"), expected)


@pytest.mark.parametrize("kind", ["spools", "trace.h5"])
def test_no_event_is_in_two_parts_and_none_is_left_out(run_path: Path, tmp_path: Path, kind: str) -> None:
    path = run_path
    if kind == "trace.h5":
        path, _ = collect(str(run_path), str(tmp_path / "trace.h5"))
    run = en.open(path)
    request = ReadRequest(max_events=100)
    for most in (1, 2, 7, 100):
        parts = divide(run.reading.source, request, most)
        assert 1 <= len(parts) <= most
        ranks = [rank for part in parts for low, high in part.ranks for rank in range(low, high + 1)]
        assert ranks == list(range(TASKS))
    chunks = [
        run.reading.source.chunks(part, DamageReport()) for part in divide(run.reading.source, request, 4)
    ]
    starts = np.concatenate([chunk.start for part in chunks for chunk in part])
    np.testing.assert_array_equal(starts, np.concatenate([chunk.start for chunk in run.chunks()]))


def test_parts_have_about_equally_many_events() -> None:
    assert even_spans([0, 1, 2, 3], [5, 5, 5, 5], 2) == [(0, 1), (2, 3)]
    assert even_spans([0, 4, 9], [1000, 1, 1], 2) == [(0, 0), (4, 9)]
    assert even_spans([7], [10], 5) == [(7, 7)]
    assert even_spans([], [], 5) == []
    assert even_spans([1, 2], [0, 0], 4) != []


def test_damage_is_counted_once(tmp_path: Path, pool: ProcessExecutor) -> None:
    events = np.zeros(5, EVENT.dtype)
    events["call"], events["start"], events["file"] = 4, np.arange(5), [1, 1, 77, 1, 1]
    events["duration"][1] = 1 << 60
    for rank in range(6):
        head = {"rank": rank, "tasks": 6, "pid": 100 + rank, "first_realtime_ns": 1, "last_realtime_ns": 10}
        content = SpoolContent([events], {1: "/a"}, POSIX_CALLS, {"mode": "trace"}, head)
        write_spool(tmp_path / f"{rank}.spool", content)
    (tmp_path / "trace.h5").touch()  # so that none is made
    notes = []
    for workers in (None, pool):
        run = en.open(tmp_path, workers)
        assert run.summarize(ignoring_run(EventCount), COLUMNS).events == 6 * 4
        notes.append(run.notes)
    assert notes[0] == notes[1]
    assert any("left out as damaged or incomplete" in note for note in notes[0]), notes[0]
    assert "6 calls are on files without a name in the spools" in notes[0]


def test_a_killed_worker_leaves_no_answer(run_path: Path, tmp_path: Path) -> None:
    run = en.open(run_path, ProcessExecutor(2))
    make = partial(Killed, str(tmp_path), os.getpid(), 1)
    with pytest.raises(EnsioError, match=r"a worker process ended before it had read .* fewer --workers"):
        run.summarize(make)
    # The next pass has workers again.
    assert run.summarize(make).events == TASKS * EVENTS


def test_the_command_tells_of_a_killed_worker_in_one_sentence(run_path: Path, tmp_path: Path) -> None:
    program = f"""
import os, sys
from functools import partial
sys.path.insert(0, {str(Path(__file__).parent)!r})
from summaries_that_kill import Killed
import ensembles.passes.executors as executors
import ensembles.run.information as info
from ensembles.cli.main import main

if __name__ == "__main__":
    executors.LEAST_EVENTS = 0
    info._region_times = partial(Killed, {str(tmp_path)!r}, os.getpid(), 1)
    sys.exit(main(["info", {str(run_path)!r}, "--workers", "2"]))
"""
    script = tmp_path / "script.py"
    script.write_text(program, encoding="utf-8")
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    assert "a worker process ended before it had read" in done.stderr


def test_workers_end_when_their_parent_is_killed(run_path: Path, tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        f"""
import os, sys, time
import ensembles as en
from ensembles.passes.executors import ProcessExecutor

if __name__ == "__main__":
    pool = ProcessExecutor(2)
    en.open({str(run_path)!r}, pool).reading.ranks
    print(*pool._pool._processes, flush=True)
    time.sleep(600)
""",
        encoding="utf-8",
    )
    with subprocess.Popen([sys.executable, script], stdout=subprocess.PIPE, text=True) as parent:
        workers = [int(word) for word in parent.stdout.readline().split()]
        assert len(workers) == 2
        parent.kill()
    for _ in range(600):
        if not any(is_running(pid) for pid in workers):
            return
        time.sleep(0.1)
    pytest.fail("workers outlive their parent")


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def test_another_run_at_the_same_place_is_noticed(
    run_path: Path, tmp_path: Path, pool: ProcessExecutor
) -> None:
    folder = tmp_path / "run"
    shutil.copytree(run_path, folder, ignore=shutil.ignore_patterns("trace.h5"))
    run = en.open(folder, pool)
    shutil.rmtree(folder)
    synthetic_run(folder, TASKS + 1, EVENTS)
    with pytest.raises(EnsioError, match="has changed while it was read"):
        run.summarize(ignoring_run(EventCount))


def test_runs_without_events_have_empty_summaries(tmp_path: Path, pool: ProcessExecutor) -> None:
    content = SpoolContent([], {}, POSIX_CALLS, {"mode": "trace"}, {"rank": 0, "tasks": 1})
    write_spool(tmp_path / "0.spool", content)
    assert en.open(tmp_path, pool).summarize(ignoring_run(EventCount)).events == 0

"""An archive of Darshan logs: experiments, damaged logs, and an interrupted command."""

from __future__ import annotations

import importlib.util
import shutil
from pathlib import Path

import pytest

if importlib.util.find_spec("darshan") is None or importlib.util.find_spec("cffi") is None:
    pytest.skip("the package darshan is not installed: its logs are not read", allow_module_level=True)

from made_darshan_logs import START_S, MadeLog

import ensembles as en
from ensembles.cli.main import main
from ensembles.history.additions import AT_ONCE, add_logs, experiment_of, find_logs
from ensembles.history.check import check
from ensembles.history.store import History
from ensembles.readers.foreign.darshan.source import CountedLog, read_counters

PACKAGE = Path(importlib.util.find_spec("darshan").submodule_search_locations[0])  # type: ignore
LOGS = sorted((PACKAGE / "examples").rglob("*.darshan"))


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    folder = tmp_path / "logs" / "2026" / "11"
    folder.mkdir(parents=True)
    for path in LOGS:
        shutil.copy(path, folder)
    whole = LOGS[0].read_bytes()
    (folder / "short.darshan").write_bytes(whole[:900])
    # The counters of this log do not decompress: only the library finds out.
    (folder / "garbled.darshan").write_bytes(whole[:-40] + bytes(40))
    (folder / "text.darshan").write_text("not a log")
    return tmp_path / "logs"


def test_damaged_logs_are_named_and_the_others_are_added(archive: Path, tmp_path: Path) -> None:
    history = History(str(tmp_path / "runs.db"), make=True)
    (*_, done) = add_logs(history, [str(archive / "**" / "*.darshan")])
    assert (done.added, done.known, done.logs) == (len(LOGS), 0, len(LOGS) + 3)
    for name in ("short", "garbled", "text"):
        assert sum(f"{name}.darshan" in sentence for sentence in done.damaged) == 1
    assert len(history.runs()) == len(LOGS)
    assert check(history, history.experiments()[0].name).verdict == "too-few-runs"


def test_the_counters_are_those_of_the_run(archive: Path) -> None:
    found = [
        log
        for _, log in read_counters([log] for log in find_logs([str(archive)]))
        if isinstance(log, CountedLog)
    ]
    assert len(found) == len(LOGS)
    for log in found:
        if log.has_segments:
            continue
        run = en.open(log.path)
        counted = {
            call: int(n)
            for call, n in zip(log.summary.cells["call"], log.summary.cells["count"], strict=True)
        }
        cells = run.summary.cells
        assert counted == {call: int(n) for call, n in zip(cells["call"], cells["count"], strict=True)}
        assert (log.tasks, log.job, log.start_ns) == (run.tasks, run.info.job, run.info.origin_unix_ns)


def test_a_second_call_reads_only_what_is_missing(archive: Path, tmp_path: Path) -> None:
    history = History(str(tmp_path / "runs.db"), make=True)
    some = [str(path) for path in sorted(archive.rglob("pq_app*.darshan"))]
    (*_, first) = add_logs(history, some)
    assert first.added == len(some) < AT_ONCE
    (*_, second) = add_logs(history, [str(archive)])
    assert (second.known, second.added) == (len(some), len(LOGS) - len(some))


def test_experiments_are_executable_tasks_and_size(archive: Path) -> None:
    names = {
        experiment_of(log)
        for _, log in read_counters([log] for log in find_logs([str(archive)]))
        if isinstance(log, CountedLog)
    }
    assert "macsio, 16 tasks, about 64.0 MiB" in names
    assert "ior, 4 tasks, about 16.0 MiB" in names


def test_a_log_of_counters_is_sent_to_the_option_for_logs(
    archive: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (log,) = archive.rglob("sample-badost.darshan")
    db = ["--db", str(tmp_path / "runs.db")]
    assert main(["history", "add", *db, str(log), "--experiment", "x"]) == 2
    assert f"ensio history add --darshan {log}" in capsys.readouterr().err
    assert main(["history", "add", *db, str(log)]) == 2
    assert "--darshan LOG" in capsys.readouterr().err


def test_processes_of_a_job_without_mpi_are_one_run(tmp_path: Path) -> None:
    """Two at one time, one later in the same job, and a copy elsewhere, which is not a third task."""
    for number, start_s in enumerate((START_S, START_S + 5, START_S + 500)):
        MadeLog(tasks=1, start_s=start_s).write(tmp_path / f"{number}.darshan")
    history = History(str(tmp_path / "runs.db"), make=True)
    assert [list(add_logs(history, [str(tmp_path)]))[-1].added for _ in range(2)] == [2, 0]
    assert sorted(run.tasks for run in history.runs()) == [1, 2]
    (tmp_path / "copy").mkdir()
    shutil.copy(tmp_path / "2.darshan", tmp_path / "copy")
    (*_, again) = add_logs(history, [str(tmp_path)])
    assert (again.added, again.known) == (0, 3)

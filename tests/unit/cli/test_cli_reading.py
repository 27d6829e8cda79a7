"""The commands that read runs, started as a person starts them."""

from __future__ import annotations

import csv
import errno
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from commands_here import executed as ensio
from synthetic_runs import SyntheticRun, synthetic_run

import ensembles as en
from ensembles.model.events import COLUMNS, OPS

pytestmark = pytest.mark.slow

TASKS, EVENTS = 5, 62

INFO_KEYS = {
    "tasks",
    "threads",
    "events",
    "dropped_events",
    "span_s",
    "io_time_s",
    "bytes_read",
    "bytes_written",
    "files",
    "mode",
    "layers",
    "calls",
    "frequent_sizes",
}


def refused(*arguments: str | Path) -> str:
    """The sentence with which a command refuses its arguments."""
    done = ensio(*arguments)
    assert done.returncode == 2, done
    assert done.stdout == ""
    assert done.stderr.startswith("ensio: ")
    assert done.stderr.count("\n") == 1
    return done.stderr


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("run")


@pytest.fixture(scope="module")
def made(folder: Path) -> SyntheticRun:
    return synthetic_run(folder, TASKS, EVENTS, seed=3, tasks_per_node=2)


def test_info_as_json_has_the_promised_keys_and_the_right_numbers(folder: Path, made: SyntheticRun) -> None:
    done = ensio("info", folder, "--json")
    assert (done.returncode, done.stderr) == (0, "")
    info = json.loads(done.stdout)
    assert set(info) >= INFO_KEYS
    duration_s, end_s = made.duration_ns / 1e9, (made.start_ns + made.duration_ns) / 1e9
    assert (info["tasks"], info["threads"], info["events"], info["files"]) == (
        TASKS,
        TASKS,
        TASKS * EVENTS,
        1,
    )
    assert info["hosts"] == ["node0000", "node0001", "node0002"]
    assert info["bytes_written"] == info["bytes_read"] == TASKS * 30 << 20
    assert info["io_time_s"] == pytest.approx(duration_s.sum(), rel=1e-6)
    assert info["span_s"] == pytest.approx(end_s.max() - made.start_ns.min() / 1e9, rel=1e-6)
    assert info["layers"]["posix"]["calls"] == TASKS * EVENTS
    write = info["calls"]["pwrite"]
    assert (write["layer"], write["count"], write["bytes"], write["errors"]) == (
        "posix",
        TASKS * 30,
        TASKS * 30 << 20,
        0,
    )
    assert write["time_s"] == pytest.approx(duration_s[:, made.call == 6].sum(), rel=1e-6)
    assert info["frequent_sizes"] == {"posix": [{"bytes": 1 << 20, "count": TASKS * 60}]}
    assert info["slowest_call"]["duration_s"] == pytest.approx(duration_s.max(), rel=1e-6)
    assert info["slowest_call"]["rank"] == np.argmax(duration_s.max(axis=1))
    assert (info["complete"], info["notes"], info["mode"], info["job"]) == (True, [], "trace", "1234")


def test_info_for_people_tells_the_same(folder: Path, made: SyntheticRun) -> None:
    done = ensio("info", folder)
    assert (done.returncode, done.stderr) == (0, "")
    assert "5 tasks · 5 threads · 1 file · 310 calls" in done.stdout
    assert "1 MiB × 300" in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 100
    (line,) = [line for line in done.stdout.splitlines() if line.startswith("pwrite")]
    assert line.split()[1:4] == ["150", "150", "MiB"]


def test_info_says_first_that_a_run_is_partial(tmp_path: Path) -> None:
    synthetic_run(tmp_path, 3, 12)
    (tmp_path / "1.spool").unlink()
    done = ensio("info", tmp_path)
    assert done.stdout.startswith("Data-quality warnings:\n  ! 1 of 3 ranks have no readable spool")
    assert json.loads(ensio("info", tmp_path, "--json").stdout)["complete"] is False


def expected_rows(folder: Path) -> list[dict[str, int | str]]:
    events = en.Events.concatenate(list(en.open(folder).chunks()))
    rows = []
    for i in range(len(events)):
        row: dict[str, int | str] = {name: int(getattr(events, name)[i]) for name in COLUMNS}
        call = events.calls[int(row["call"])]
        row |= {"call": call.name, "layer": call.layer, "op": call.op, "file": events.files[int(row["file"])]}
        row["site"] = events.sites[int(row["site"])]
        row["error_name"] = errno.errorcode[int(row["error"])] if row["error"] else ""
        rows.append(row)
    return rows


def test_json_lines_are_one_object_a_call(folder: Path, made: SyntheticRun) -> None:
    lines = ensio("events", folder, "--format", "jsonl").stdout.splitlines()
    assert [json.loads(line) for line in lines] == expected_rows(folder)


def test_csv_has_the_same_fields(folder: Path, made: SyntheticRun) -> None:
    rows = list(csv.DictReader(ensio("events", folder, "--format", "csv").stdout.splitlines()))
    assert rows == [{name: str(value) for name, value in row.items()} for row in expected_rows(folder)]


def test_parquet_has_the_same_rows(folder: Path, made: SyntheticRun, tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed")
    path = tmp_path / "events.parquet"
    assert ensio("events", folder, "--format", "parquet", "-o", path).returncode == 0
    assert parquet.read_table(path).to_pylist() == expected_rows(folder)


def test_filters_apply_to_what_is_written(folder: Path, made: SyntheticRun) -> None:
    done = ensio(
        "events", folder, "--format", "jsonl", "--op", "write", "--rank", "1-2", "--file", "*/shared.dat"
    )
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert rows == [row for row in expected_rows(folder) if row["op"] == "write" and row["rank"] in (1, 2)]


def test_a_table_stops_after_some_lines_and_says_that_there_are_more(
    folder: Path, made: SyntheticRun
) -> None:
    done = ensio("events", folder)
    assert _table_rows(done.stdout) == 50
    assert done.stderr == "ensio: more events are not shown: raise --limit to see them\n"
    assert _table_rows(ensio("events", folder, "--limit", "2").stdout) == 2


def _table_rows(text: str) -> int:
    """The rows below the heading of a table, and above the list of files."""
    return len(text.split("\n\n")[0].splitlines()) - 2


def test_collect_writes_a_file_that_info_reads(folder: Path, made: SyntheticRun, tmp_path: Path) -> None:
    path = tmp_path / "all.h5"
    done = ensio("collect", folder, "-o", path)
    assert (done.returncode, done.stdout) == (0, "")
    assert f"310 calls in {path}" in done.stderr
    collected, spools = (json.loads(ensio("info", run, "--json").stdout) for run in (path, folder))
    assert collected.pop("run") != spools.pop("run")
    assert collected == spools


def test_whoever_stops_reading_our_output_gets_no_complaint(folder: Path, made: SyntheticRun) -> None:
    command = f"{sys.executable} -m ensembles.cli.main events {folder} --format jsonl | head -n 1"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True)
    assert (len(done.stdout.splitlines()), done.stderr) == (1, "")


def test_wrong_usage_and_unreadable_input_are_one_sentence(
    folder: Path, made: SyntheticRun, tmp_path: Path
) -> None:
    (tmp_path / "letter.txt").write_text("Dear Sir or Madam")
    of_letter = refused("info", tmp_path / "letter.txt")
    assert "letter.txt is not a trace that ensio reads (no export to CSV or the like is): name a" in of_letter
    assert "spool" not in of_letter
    assert 'no argument "3rd": ensio report takes RUN [RUN]; see' in refused("report", folder, folder, "3rd")
    assert "nowhere cannot be read: No such file or directory" in refused("info", tmp_path / "nowhere")
    assert "is not a run directory" in refused("events", tmp_path)
    assert "did you mean write? it is one of close, meta, open" in refused("events", folder, "--op", "wrte")
    assert "not-there" in refused("collect", folder, "-o", tmp_path / "not-there" / "x.h5")
    assert "not-there" in refused("events", folder, "-o", tmp_path / "not-there" / "x.csv")
    assert "is not a number of events" in refused("events", folder, "--limit", "many")
    assert "-o FILE" in refused("events", folder, "--format", "parquet")
    assert "RUN" in refused("info")
    assert "unknown" in refused("unknown") or "invalid choice" in refused("unknown")


def test_operations_in_events_are_those_of_the_dictionary(folder: Path, made: SyntheticRun) -> None:
    events = en.open(folder).events
    assert {OPS[number] for number in np.unique(events.op)} == {"open", "close", "read", "write"}


@pytest.mark.parametrize("command", [[], ["info"], ["history", "check"]])
def test_help_is_a_command_too(command: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    from ensembles.cli.main import main

    printed = []
    for words in (["help", *command], [*command, "--help"]):
        with pytest.raises(SystemExit) as ended:
            main(words)
        printed.append((ended.value.code, *capsys.readouterr()))
    assert printed[0] == printed[1]
    assert printed[0][0] == 0
    assert f"usage: {' '.join(['ensio', *command])}" in printed[0][1]


def test_the_version_has_a_short_option(capsys: pytest.CaptureFixture[str]) -> None:
    from ensembles.cli.main import main

    with pytest.raises(SystemExit) as ended:
        main(["-V"])
    assert (ended.value.code, capsys.readouterr().out) == (0, f"ensio {en.__version__}\n")

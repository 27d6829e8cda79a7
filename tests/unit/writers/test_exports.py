"""Exports hold what the run holds, in files that appear whole or not at all."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commands_here import executed as ensio
from commands_here import limited
from made_spools import UNIX_NS, made_events, spool

import ensembles as en
from ensembles.model.events import COLUMNS
from ensembles.readers.native.records import open_run_directory

pytestmark = pytest.mark.slow

FORMATS = ("hdf5", "parquet", "csv", "perfetto")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two threads, nested calls, failures, a path that is not UTF-8 and one with a line end, three ranks."""
    folder = tmp_path_factory.mktemp("exported") / "run"
    first = made_events(1500, 1)
    first["moved"][::7] = -28
    first["file"][::3] = 2
    around = made_events(1, 1)  # a call around all of its thread
    around["start"], around["duration"] = first["start"][0], first["start"][-1] + 20_000
    around["call"], around["offset"], around["file"] = 1, -1, 0
    first["depth"] = 1
    files = {1: "/data/straße\n", 2: b"/data/\xff\xfe"}
    spool(
        folder / "a.spool",
        [np.concatenate([first, around]), made_events(300, 2)],
        rank=0,
        tasks=3,
        files=files,
        properties={"command": "solver\x1f-o", "job": "42", "mode": "trace"},
    )
    spool(folder / "b.spool", [made_events(50, 3)], rank=1, pid=7, excluded_calls=9)
    overlapping = made_events(4, 4)
    overlapping["start"], overlapping["duration"] = [990, 1490, 4000, 4100], [1000, 1000, 50, 50]
    spool(folder / "c.spool", [overlapping], rank=2, pid=8, first_realtime_ns=UNIX_NS - 77)
    return folder


@pytest.fixture(scope="module")
def run(folder: Path) -> en.Run:
    return en.Run(str(folder), open_run_directory(str(folder)))


def sums_of(run: en.Run) -> dict[tuple[int, int], tuple[int, ...]]:
    """What calls add up to by function and size. (Which of the calls of several threads on a file is the
    first, spools do not tell; where events are sorted it is derived from times.)"""
    cells = run.summary.cells
    sums: dict[tuple[int, int], np.ndarray] = defaultdict(lambda: np.zeros(7, np.int64))
    names = ("count", "errors", "moved", "outer_count", "outer_moved", "time_ns", "inner_ns")
    rows = zip(*(cells[name].tolist() for name in ("call", "size_class", *names)), strict=True)
    for call, size, *values in rows:
        sums[call, size] += np.array(values)
    return {key: tuple(values.tolist()) for key, values in sums.items()}


def exported(folder: Path, to: str, destination: Path, *filters: str) -> Path:
    done = ensio("export", folder, "--to", to, destination, *filters)
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr.startswith("ensio: ")
    assert f"in {destination} (" in done.stderr
    return destination


def test_hdf5_comes_back_equal_in_everything(folder: Path, run: en.Run, tmp_path: Path) -> None:
    first = exported(folder, "hdf5", tmp_path / "first.h5")
    second = exported(first, "hdf5", tmp_path / "second.h5")
    for path in (first, second):
        back = en.open(path)
        for name in COLUMNS:
            np.testing.assert_array_equal(getattr(back.events, name), getattr(run.events, name))
        len(run.events)  # what is damaged is noted when events are read
        assert back.reading.source.metadata == run.reading.source.metadata
        assert (back.reading.source.spool_identities, back.reading.source.is_complete) == (
            run.reading.source.spool_identities,
            run.reading.source.is_complete,
        )
        for name, column in run.reading.ranks.to_arrays().items():
            np.testing.assert_array_equal(back.reading.ranks.to_arrays()[name], column, err_msg=name)
        assert sums_of(back) == sums_of(run)
        for name, column in run.regions.columns.items():
            np.testing.assert_array_equal(back.regions.columns[name], column)


def test_a_part_of_a_run_as_hdf5_says_that_it_is_one(folder: Path, run: en.Run, tmp_path: Path) -> None:
    filters = ("--rank", "0", "--op", "write", "--file", "*straße*")
    back = en.open(exported(folder, "hdf5", tmp_path / "part.h5", *filters))
    expected = run.select(rank=0, op="write", file="*straße*")
    assert 0 < len(expected) < len(run.events)
    for name in COLUMNS:
        np.testing.assert_array_equal(getattr(back.events, name), getattr(expected, name))
    assert back.notes[-1] == ("this is an extract: only the calls of --op write --file *straße* --rank 0")
    assert back.summary.count == len(expected)


def test_csv_is_that_of_ensio_events(folder: Path, tmp_path: Path) -> None:
    for filters in ((), ("--op", "write", "--rank", "0-1")):
        path = exported(folder, "csv", tmp_path / "out.csv", *filters)
        assert (
            ensio("events", folder, "--format", "csv", "-o", tmp_path / "same.csv", *filters).returncode == 0
        )
        assert path.read_bytes() == (tmp_path / "same.csv").read_bytes()


def test_parquet_has_names_as_dictionaries_and_tells_of_the_run(
    folder: Path, run: en.Run, tmp_path: Path
) -> None:
    parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed")
    table = parquet.read_table(exported(folder, "parquet", tmp_path / "out.parquet"))
    assert table.num_rows == len(run.events)
    for name in ("call", "layer", "op", "file"):
        assert str(table.schema.field(name).type) == "dictionary<values=string, indices=int32, ordered=0>"
    assert table.schema.field("duration").metadata[b"unit"] == b"ns"
    facts = {
        name.decode(): json.loads(text) for name, text in table.schema.metadata.items() if b"ensio" in name
    }
    assert facts["ensio.tasks"] == 3
    assert facts["ensio.origin_unix_ns"] == run.info.origin_unix_ns
    for name in ("start", "duration", "moved", "offset"):
        assert np.sort(table[name].to_numpy()).tolist() == np.sort(getattr(run.events, name)).tolist()


def trace_of(path: Path) -> list[dict[str, Any]]:
    with open(path, encoding="utf-8") as file:
        return json.load(file, parse_float=Decimal)["traceEvents"]


def ns(microseconds: Decimal) -> int:
    assert microseconds.as_tuple().exponent == -3
    return int(microseconds * 1000)


def test_perfetto_has_every_call_once_with_its_times(folder: Path, run: en.Run, tmp_path: Path) -> None:
    entries = trace_of(exported(folder, "perfetto", tmp_path / "out.json"))
    slices = [entry for entry in entries if entry["ph"] == "X"]
    ends = {entry["id"]: ns(entry["ts"]) for entry in entries if entry["ph"] == "e"}
    begun = [entry for entry in entries if entry["ph"] == "b"]
    found = Counter(
        (entry["pid"] - 1, ns(entry["ts"]), ns(entry["dur"]), entry["name"], entry["args"]["moved"])
        for entry in slices
    ) + Counter(
        (
            entry["pid"] - 1,
            ns(entry["ts"]),
            ends[entry["id"]] - ns(entry["ts"]),
            entry["name"],
            entry["args"]["moved"],
        )
        for entry in begun
    )
    events = run.events
    names = [run.calls[call].name for call in events.call.tolist()]
    columns = (events.rank, events.start, events.duration, names, events.moved)
    expected = Counter(zip(*(np.asarray(column).tolist() for column in columns), strict=True))
    assert found == expected
    assert len(begun) == 1 == len(ends)  # the one of rank 2 that overlaps another in part
    assert min(events.start) < 0  # before the run's time 0 by its clock
    files = {entry["args"]["file"] for entry in slices}
    assert {"/data/straße\n", "/data/\ufffd\ufffd"} < files


def test_perfettos_slices_of_a_thread_lie_within_each_other_or_apart(folder: Path, tmp_path: Path) -> None:
    """As a viewer builds its stacks: sorted by time, what begins first is around what begins next."""
    entries = trace_of(exported(folder, "perfetto", tmp_path / "out.json"))
    threads = defaultdict(list)
    for entry in entries:
        if entry["ph"] == "X":
            threads[entry["tid"]].append((ns(entry["ts"]), ns(entry["ts"]) + ns(entry["dur"]), entry))
    assert len(threads) == 4
    for rows in threads.values():
        assert len({entry["pid"] for _, _, entry in rows}) == 1
        stack: list[int] = []
        for begin, end, entry in sorted(rows, key=lambda row: row[0]):
            while stack and stack[-1] <= begin:
                stack.pop()
            assert not stack or end <= stack[-1]
            assert len(stack) == entry["args"]["depth"]
            stack.append(end)


def test_perfetto_names_ranks_and_threads_and_counts_bytes(folder: Path, run: en.Run, tmp_path: Path) -> None:
    entries = trace_of(exported(folder, "perfetto", tmp_path / "out.json"))
    named = {entry["pid"]: entry["args"]["name"] for entry in entries if entry.get("name") == "process_name"}
    assert named[1].startswith("rank 0")
    assert named[max(named)] == "all ranks"
    threads = [entry["args"]["name"] for entry in entries if entry.get("name") == "thread_name"]
    assert sorted(threads) == ["thread 0", "thread 0", "thread 0", "thread 1"]
    counter = [entry for entry in entries if entry["ph"] == "C" and entry["name"] == "write"]
    times = np.array([float(entry["ts"]) for entry in counter]) * 1e-6
    rates = np.array([float(entry["args"]["bytes/s"]) for entry in counter])
    moved = run.events.moved[(run.events.moved > 0) & (run.events.op == 1)].sum()
    assert (rates[:-1] * np.diff(times)).sum() == pytest.approx(moved, rel=1e-3)
    assert rates[-1] == 0


@pytest.mark.parametrize("to", FORMATS)
def test_where_there_is_no_room_it_is_one_sentence_and_no_file(tmp_path: Path, folder: Path, to: str) -> None:
    for limit in (1, 9000):
        done = limited(limit, "export", folder, "--to", to, tmp_path / "out")
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr == f"ensio: {tmp_path}/out cannot be written: File too large\n"
        assert list(tmp_path.iterdir()) == []


def test_a_file_that_was_there_stays_until_the_new_one_is_whole(tmp_path: Path, folder: Path) -> None:
    path = tmp_path / "out.csv"
    path.write_text("old")
    assert ensio("export", folder, "--to", "csv", path, "--call", "nonsense").returncode == 2
    assert path.read_text() == "old"
    exported(folder, "csv", path)
    assert path.read_text(errors="surrogateescape").startswith("rank,thread,call")
    assert [found.name for found in tmp_path.iterdir()] == ["out.csv"]


def refused(*arguments: str | Path) -> str:
    done = ensio("export", *arguments)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    return done.stderr


def test_what_makes_no_sense_is_refused_in_one_sentence(tmp_path: Path, folder: Path) -> None:
    path = exported(folder, "hdf5", tmp_path / "out.h5")
    assert "is the run itself" in refused(path, "--to", "hdf5", path)
    assert "is a directory" in refused(folder, "--to", "csv", tmp_path)
    assert 'there is no --to "xml"' in refused(folder, "--to", "xml", tmp_path / "x")
    assert "--to" in refused(folder, tmp_path / "x")


def test_runs_without_all_events_are_exported_whole_or_not_at_all(tmp_path: Path) -> None:
    for mode in ("profile", "tail"):
        spool(tmp_path / mode / "a.spool", [made_events(5)], rank=0, properties={"mode": mode})
        sentence = refused(tmp_path / mode, "--to", "hdf5", tmp_path / "out.h5", "--op", "write")
        assert "without filters" in sentence
        exported(tmp_path / mode, "hdf5", tmp_path / f"{mode}.h5")
        assert en.open(tmp_path / f"{mode}.h5").mode == mode
    assert "keeps no events" in refused(tmp_path / "profile", "--to", "csv", tmp_path / "out.csv")

"""trace.h5 holds exactly what the spools hold, is made by itself, and is used only when it fits."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from commands_here import limited
from hypothesis import given
from hypothesis import strategies as st
from made_spools import RUNNING, TSC, UNIX_NS, made_events, spool
from synthetic_runs import synthetic_run

import ensembles as en
from ensembles.model.events import COLUMN_MEANINGS, COLUMNS, INDICES
from ensembles.readers.common import columns
from ensembles.readers.native.records import open_run_directory
from ensembles.run.collect import collect
from ensembles.writers.tracefile.tracefile import write_trace_file


def assert_equal_runs(run: en.Run, other: en.Run) -> None:
    for name in ("tasks", "calls", "files", "mode"):
        assert getattr(run, name) == getattr(other, name), name
    for name in ("threads", "origin_unix_ns", "processes", "hosts", "job", "program", "command", "start"):
        assert getattr(run.info, name) == getattr(other.info, name), name
    for name in ("dropped_events", "excluded_calls"):
        assert getattr(run.info, name) == getattr(other.info, name), name
    for name in COLUMNS:
        np.testing.assert_array_equal(getattr(run.events, name), getattr(other.events, name), err_msg=name)
    for name, column in by_thread(run).items():
        np.testing.assert_array_equal(column, by_thread(other)[name], err_msg=name)
    assert run.notes == other.notes


def by_thread(run: en.Run) -> dict[str, np.ndarray]:
    """The columns of all chunks, thread by thread, in the order in which a thread's calls come."""
    events = en.Events.concatenate(list(run.chunks(777)))
    order = np.lexsort((events.thread, events.rank))
    return {name: column[order] for name, column in events.columns.items()}


@pytest.fixture
def rich(tmp_path: Path) -> Path:
    """A run directory with about everything: failures, odd paths, children, clocks, damage, lost calls."""
    folder = tmp_path / "run"
    first = made_events(2000, 1)
    first["moved"][::7] = -28
    first["file"][::3] = 2
    first["depth"] = np.arange(2000) % 3
    files = {1: "/data/straße", 2: b"/data/\xff\xfe"}
    properties = {
        "command": "solver\x1f-o\x1fa b",
        "job": "42",
        "mode": "trace",
        "cwd": "/scratch",
        "user": "me",
    }
    spool(
        folder / "a.spool", [first, made_events(300, 2)], rank=0, tasks=4, files=files, properties=properties
    )
    spool(folder / "b.spool", [made_events(50, 3)], rank=1, pid=7, dropped_events=5, excluded_calls=9)
    spool(
        folder / "child.spool", [made_events(60, 4)], rank=1, pid=8, clock=TSC, first_realtime_ns=UNIX_NS + 99
    )
    damaged = made_events(10, 5)
    damaged["duration"][4] = 2**63
    spool(folder / "d.spool", [damaged], rank=2, pid=9, host="beta")
    return folder


def test_a_collected_run_equals_its_spools_in_everything(rich: Path, tmp_path: Path) -> None:
    spools = en.Run(str(rich), open_run_directory(str(rich)))
    collect(str(rich), str(tmp_path / "out.h5"))
    assert_equal_runs(en.open(tmp_path / "out.h5"), spools)


@pytest.mark.parametrize("count", [0, 1, 1024, 131_072, 131_073])
def test_any_number_of_events_can_be_collected(tmp_path: Path, count: int) -> None:
    written = made_events(count)
    spool(tmp_path / "s.spool", [written], rank=0)
    assert collect(str(tmp_path), str(tmp_path / "out.h5")) == (str(tmp_path / "out.h5"), count)
    events = en.open(tmp_path / "out.h5").events
    np.testing.assert_array_equal(events.requested, written["requested"])
    chunks = list(en.open(tmp_path / "out.h5").chunks())
    assert [chunk.requested.tolist() for chunk in chunks] == [written["requested"].tolist()] * bool(count)


def test_columns_tell_their_unit_and_meaning(rich: Path, tmp_path: Path) -> None:
    collect(str(rich), str(tmp_path / "out.h5"))
    with h5py.File(tmp_path / "out.h5") as file:
        for name, (unit, meaning) in COLUMN_MEANINGS.items():
            told = [file["events"][name].attrs[key].decode() for key in ("unit", "meaning")]
            assert told == [unit, f"{meaning}: {INDICES[name]}" if name in INDICES else meaning]


def test_the_hdf5_tools_read_the_same_numbers(rich: Path, tmp_path: Path) -> None:
    if shutil.which("h5dump") is None:
        pytest.skip("h5dump (hdf5-tools) is not installed")
    collect(str(rich), str(tmp_path / "out.h5"))
    command = ["h5dump", "-y", "-w", "1", "-d", "/events/duration", str(tmp_path / "out.h5")]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    data = printed.split("DATA {")[1].split("}")[0]
    chunks = list(en.open(tmp_path / "out.h5").chunks())
    assert [int(line.strip(" ,")) for line in data.split("\n") if line.strip()] == chunks[0].duration.tolist()


def test_a_file_that_was_repacked_without_compression_is_read(rich: Path, tmp_path: Path) -> None:
    if shutil.which("h5repack") is None:
        pytest.skip("h5repack (hdf5-tools) is not installed")
    collect(str(rich), str(tmp_path / "out.h5"))
    repack = ["h5repack", "--low=2", "-f", "NONE"]  # low=2: headers with checksums
    subprocess.run([*repack, tmp_path / "out.h5", tmp_path / "plain.h5"], check=True)
    assert_equal_runs(en.open(tmp_path / "plain.h5"), en.open(tmp_path / "out.h5"))


def test_readers_write_nothing_into_a_run_directory(rich: Path) -> None:
    before = {path.name: path.stat().st_mtime_ns for path in (rich, *rich.iterdir())}
    assert len(en.open(rich).events) > 0
    assert en.open(rich).summary.count > 0
    assert {path.name: path.stat().st_mtime_ns for path in (rich, *rich.iterdir())} == before


def test_a_collected_file_is_read_from_then_on(rich: Path, tmp_path: Path) -> None:
    first = en.open(rich)
    collect(str(rich))
    kept = tmp_path / "kept"
    kept.mkdir()
    for path in rich.glob("*.spool"):
        path.rename(kept / path.name)
    assert [path.name for path in rich.iterdir()] == ["trace.h5"]
    again = en.open(rich)
    assert_equal_runs(again, en.Run(str(kept), open_run_directory(str(kept))))
    assert again.info.processes == first.info.processes


def test_a_file_of_an_unfinished_run_does_not_hide_what_came_later(tmp_path: Path) -> None:
    spool(tmp_path / "s.spool", [made_events(5)], rank=0, state=RUNNING)
    collect(str(tmp_path))
    spool(tmp_path / "s.spool", [made_events(9)], rank=0, state=RUNNING)
    assert len(en.open(tmp_path).events) == 9


def test_a_file_that_does_not_fit_the_spools_is_passed_over(tmp_path: Path) -> None:
    spool(tmp_path / "a.spool", [made_events(5)], rank=0)
    collect(str(tmp_path))
    spool(tmp_path / "b.spool", [made_events(7)], rank=1)
    assert len(en.open(tmp_path).events) == 12


def test_spools_that_were_deleted_after_collecting_are_still_there(tmp_path: Path) -> None:
    spool(tmp_path / "a.spool", [made_events(5)], rank=0)
    spool(tmp_path / "b.spool", [made_events(7)], rank=1)
    collect(str(tmp_path))
    (tmp_path / "b.spool").unlink()
    assert len(en.open(tmp_path).events) == 12


def test_beside_spools_a_broken_trace_file_is_passed_over(tmp_path: Path) -> None:
    spool(tmp_path / "a.spool", [made_events(5)], rank=0)
    (tmp_path / "trace.h5").write_bytes(b"\x89HDF\r\n\x1a\n" + bytes(100))
    assert len(en.open(tmp_path).events) == 5


@pytest.fixture
def read_only(request: pytest.FixtureRequest) -> Iterator[Path]:
    """A directory with a spool that an unprivileged user can read but not write to."""
    folder = Path(tempfile.mkdtemp(prefix="ensio-read-only-"))
    spool(folder / "a.spool", [made_events(5)], rank=0)
    (folder / "a.spool").chmod(0o444)
    folder.chmod(0o555)
    yield folder
    folder.chmod(0o755)
    shutil.rmtree(folder)


def test_a_directory_that_cannot_be_written_to_is_read_all_the_same(read_only: Path) -> None:
    user = "nobody" if os.geteuid() == 0 else None
    program = "import sys, ensembles; print(len(ensembles.open(sys.argv[1]).events))"
    command = [sys.executable, "-B", "-c", program, str(read_only)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, user=user, cwd="/")
    except PermissionError:
        pytest.skip("the user nobody may not start this Python")
    if "ModuleNotFoundError" in done.stderr:
        pytest.skip("the user nobody may not read the installed package")
    assert (done.stdout, done.stderr) == ("5\n", "")
    assert not (read_only / "trace.h5").exists()


def test_a_foreign_hdf5_file_is_refused_in_one_sentence(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "other.h5", "w") as file:
        file["x"] = 1
    with pytest.raises(en.EnsioError, match=r"other\.h5 is not a complete trace\.h5") as caught:
        en.open(tmp_path / "other.h5")
    assert "\n" not in str(caught.value)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    folder = tmp_path_factory.mktemp("whole")
    spool(folder / "s.spool", [made_events(3000)], rank=0)
    collect(str(folder))
    return (folder / "trace.h5").read_bytes()


@given(share=st.floats(0, 1, exclude_max=True))
def test_a_truncated_file_is_refused(
    tmp_path_factory: pytest.TempPathFactory, whole: bytes, share: float
) -> None:
    path = tmp_path_factory.mktemp("cut") / "trace.h5"
    path.write_bytes(whole[: int(share * len(whole))])
    with pytest.raises(en.EnsioError, match=r"trace\.h5"):
        len(en.open(path).events)
    shutil.rmtree(path.parent)


def test_damaged_compressed_data_are_an_error_and_not_wrong_numbers(tmp_path: Path, whole: bytes) -> None:
    path = tmp_path / "trace.h5"
    path.write_bytes(whole)
    with h5py.File(path, "r") as file:
        where = file["events"]["duration"].id.get_chunk_info(0)
    data = bytearray(whole)
    middle = where.byte_offset + where.size // 2
    data[middle : middle + 8] = bytes(value ^ 0xFF for value in data[middle : middle + 8])
    path.write_bytes(data)
    run = en.open(path)
    with pytest.raises(en.EnsioError, match=r"trace\.h5 is not a complete"):
        len(run.events)


def test_nothing_is_left_behind_when_writing_fails(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    path = spool(folder / "a.spool", [made_events(5)], rank=0)
    source = open_run_directory(str(folder))
    path.unlink()
    with pytest.raises(en.EnsioError, match=r"a\.spool cannot be read"):
        write_trace_file(source, str(folder / "trace.h5"))
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("limit", [1, 100 << 10, 1 << 20])
def test_a_run_is_read_where_no_trace_file_can_be_written(tmp_path: Path, limit: int) -> None:
    spool(tmp_path / "a.spool", [made_events(200_000)], rank=0)
    done = limited(limit, "info", str(tmp_path))
    assert (done.returncode, done.stderr) == (0, "")
    assert "200,000 calls" in done.stdout
    assert [path.name for path in tmp_path.iterdir()] == ["a.spool"]


@pytest.mark.parametrize("limit", [1, 100 << 10, 1 << 20])
def test_collect_tells_in_one_sentence_that_there_is_no_room(tmp_path: Path, limit: int) -> None:
    spool(tmp_path / "a.spool", [made_events(200_000)], rank=0)
    done = limited(limit, "collect", str(tmp_path))
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"ensio: {tmp_path}/trace.h5 cannot be written: File too large\n"
    assert [path.name for path in tmp_path.iterdir()] == ["a.spool"]


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir, lambda path: os.symlink("nowhere", path)])
def test_what_is_called_trace_h5_and_is_no_file_is_passed_over(tmp_path: Path, make: Any) -> None:
    spool(tmp_path / "a.spool", [made_events(5)], rank=0)
    make(tmp_path / "trace.h5")
    before = (tmp_path / "trace.h5").lstat()
    program = "import sys, ensembles; print(len(ensembles.open(sys.argv[1]).events))"
    command = [sys.executable, "-c", program, str(tmp_path)]
    assert subprocess.run(command, capture_output=True, text=True, timeout=600).stdout == "5\n"
    assert (tmp_path / "trace.h5").lstat().st_ino == before.st_ino


def set_value(column: str, value: int) -> Callable[[h5py.File], None]:
    def forge(file: h5py.File) -> None:
        values = file["events"][column][:]
        values[5] = value
        put(file, f"events/{column}", data=values)

    return forge


def put(file: h5py.File, name: str, **content: Any) -> None:
    del file[name]
    file.create_dataset(name, **content)


def put_group(file: h5py.File, name: str) -> None:
    del file[name]
    file.create_group(name)


def claim(file: h5py.File, rows: int, **layout: Any) -> None:
    """Columns of this length of which nothing was ever written."""
    for name, dtype in COLUMNS.items():
        put(file, f"events/{name}", shape=(rows,), dtype=dtype, **layout)


FORGERIES = {
    "a negative duration": set_value("duration", -5),
    "a duration of centuries": set_value("duration", 1 << 62),
    "the last start of all": set_value("start", (1 << 63) - 1),
    "the first start of all": set_value("start", -(1 << 63)),
    "a call that moved an exabyte": set_value("moved", 1 << 60),
    "a call that moved less than nothing": set_value("moved", -2),
    "a rank that is not a task's": set_value("rank", 1),
    "a group in place of a column": lambda file: put_group(file, "events/duration"),
    "a group in place of a text": lambda file: put_group(file, "files"),
    "a group in place of numbers": lambda file: put_group(file, "processes/pid"),
    "chunks that are not there": lambda file: claim(
        file, 3000, chunks=(1024,), compression="gzip", shuffle=True
    ),
    "rows that are not there": lambda file: claim(file, 3000),
    "a million million rows": lambda file: claim(
        file, 10**12, chunks=(1024,), compression="gzip", shuffle=True
    ),
    "a million million plain rows": lambda file: claim(file, 10**12),
    "columns of columns": lambda file: put(file, "events/rank", data=np.zeros((2, 2), "u4")),
    "fractions of a process": lambda file: put(file, "processes/pid", data=np.array([1.5])),
    "a number for a host": lambda file: put(file, "processes/host", data=np.array([7])),
    "a text for a truth": lambda file: put(file, "processes/ended", data=np.array([b"no"])),
    "countless texts": lambda file: put(file, "files", shape=(10**12,), dtype=h5py.string_dtype()),
    "tasks beyond all machines": lambda file: file.attrs.create("tasks", 1 << 60),
    "less than no tasks": lambda file: file.attrs.create("tasks", -5),
    "half a version": lambda file: file.attrs.create("version", 1.5),
    "an origin of two": lambda file: file.attrs.create("origin_unix_ns", [1, 2]),
}


@pytest.mark.parametrize("kind", FORGERIES)
def test_a_forged_file_is_refused_in_one_sentence(tmp_path: Path, whole: bytes, kind: str) -> None:
    path = tmp_path / "trace.h5"
    path.write_bytes(whole)
    with h5py.File(path, "r+", libver="v110") as file:
        FORGERIES[kind](file)
    for read in (lambda run: len(run.events), lambda run: sum(map(len, run.chunks()))):
        with pytest.raises(en.EnsioError, match=r"trace\.h5 is not a complete trace\.h5") as caught:
            read(en.open(path))
        assert "\n" not in str(caught.value)


def test_successive_chunks_share_their_memory(tmp_path, monkeypatch):
    """The kernel clears and maps new memory page by page, which takes as long as decoding."""
    synthetic_run(tmp_path / "run", 2, 300_000, seed=1)
    collect(str(tmp_path / "run"))
    made = []
    make = columns.empty_columns
    monkeypatch.setattr(columns, "empty_columns", lambda *args: made.append(args) or make(*args))
    run = en.open(tmp_path / "run")
    chunks, events, places = run.chunks(1 << 17, ("start", "duration")), 0, set()
    while (chunk := next(chunks, None)) is not None:
        events += len(chunk)
        places.add(chunk.start.__array_interface__["data"][0])
        del chunk
    assert events == 600_000
    assert (len(made), len(places)) == (1, 1)

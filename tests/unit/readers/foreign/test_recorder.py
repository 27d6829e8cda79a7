"""Traces of Recorder, of each layout: calls, files, sizes, offsets, times, nesting."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from made_recorder_traces import MadeCall, MadeTrace

import ensembles as en
from ensembles.readers.foreign.recorder.source import GrammarError, expand, parse_grammar

LAYOUTS = [
    {"version": "2.3.3"},
    {"version": "2.4.0"},
    {"version": "2.5.0", "is_merged": True},
    {"version": "3.0.0"},
    {"version": "3.0.1", "is_merged": True, "packs_times": True},
]
IDS = [f"{each['version']}{'-merged' if each.get('is_merged') else ''}" for each in LAYOUTS]


def calls_of(rank: int) -> list[MadeCall]:
    """Some calls, among them a write of MPI-IO with a POSIX write inside, and calls other than I/O."""
    own, shared = f"/scratch/own.{rank}", "/scratch/shared"
    calls = [
        MadeCall("MPI_Comm_rank", ("MPI_COMM_WORLD", str(rank)), 5, 5),
        MadeCall("open", (own, "66", "384"), 10 + rank, 30),
        *(MadeCall("pwrite", (own, "%p", "4096", "8192"), 40 + 10 * i, 48 + 10 * i) for i in range(6)),
        MadeCall("lseek", (own, "512", "0"), 100, 101),
        MadeCall("read", (own, "%p", "100"), 110, 150),
        MadeCall("MPI_Barrier", ("MPI_COMM_WORLD",), 160, 400 - rank),
        MadeCall("MPI_File_open", ("MPI_COMM_WORLD", shared, "9", "%p", "0-1"), 500, 700),
        MadeCall("open", (shared, "66", "384"), 510, 600, depth=1),
        MadeCall("MPI_File_write_at", ("0-1", "65536", "%p", "1024", "MPI_DOUBLE", "st"), 800, 1000),
        MadeCall("pwrite", (shared, "%p", "8192", "65536"), 810, 990, depth=1),
        MadeCall("fread", ("%p", "16", "256", own), 1100, 1200),
        MadeCall("MPI_File_write_at", ("0-1", "0", "%p", "3", "MPI_TYPE_UNKNOWN", "st"), 1300, 1400),
        MadeCall("getcwd", ("%p", "4096"), 1500, 1501),
    ]
    return calls


@pytest.mark.parametrize("layout", LAYOUTS, ids=IDS)
def test_calls_are_those_that_were_written(tmp_path: Path, layout: dict[str, object]) -> None:
    trace = MadeTrace(**layout, ranks=[calls_of(rank) for rank in range(3)])  # type: ignore[arg-type]
    run = en.open(trace.write(tmp_path / "trace"))
    assert (run.tasks, run.mode, run.info.origin_unix_ns) == (3, "trace", 1_700_000_000 * 10**9)
    assert run.info.clock_step_s == 1e-7
    mine = run.select(rank="1")
    names = [run.calls[number].name for number in mine.call]
    expected = [call for call in calls_of(1) if call.function != "MPI_Comm_rank"]
    assert names == [call.function for call in expected]
    assert mine.start.tolist() == [100 * call.start for call in expected]
    assert mine.duration.tolist() == [100 * (call.end - call.start) for call in expected]
    assert mine.depth.tolist() == [call.depth for call in expected]
    by_name = {name: i for i, name in enumerate(names)}
    first = names.index("pwrite")
    assert run.files[mine.file[first]] == "/scratch/own.1"
    assert (mine.moved[first], mine.requested[first], mine.offset[first]) == (4096, 4096, 8192)
    assert mine.offset[by_name["lseek"]] == 512
    assert (mine.moved[by_name["read"]], mine.offset[by_name["read"]]) == (100, -1)
    assert (mine.moved[by_name["fread"]], run.files[mine.file[by_name["fread"]]]) == (4096, "/scratch/own.1")
    outer = names.index("MPI_File_write_at")
    assert (mine.moved[outer], mine.offset[outer], run.files[mine.file[outer]]) == (
        8192,
        65536,
        "/scratch/shared",
    )
    assert mine.carried[outer + 1] == 2
    assert mine.moved[by_name["MPI_File_write_at"]] == 0
    layers = {run.calls[number].layer for number in mine.call}
    assert layers == {"posix", "stdio", "mpiio", "mpisync"}
    assert any("no return values" in note for note in run.notes)
    assert any("MPI_File_write_at" in note for note in run.notes)
    assert any("left out 3 calls" in note for note in run.notes)


@pytest.mark.parametrize("layout", LAYOUTS, ids=IDS)
def test_bytes_of_nested_calls_count_once(tmp_path: Path, layout: dict[str, object]) -> None:
    from ensembles.passes.summary import ignoring_run
    from ensembles.summaries.runtotals import RunTotals

    trace = MadeTrace(**layout, ranks=[calls_of(rank) for rank in range(3)])  # type: ignore[arg-type]
    totals = en.open(trace.write(tmp_path / "trace")).summarize(ignoring_run(RunTotals))
    assert (totals.bytes_written, totals.bytes_read) == (3 * (6 * 4096 + 8192), 3 * (100 + 4096))


def test_arguments_that_patterns_replaced_are_refused(tmp_path: Path) -> None:
    trace = MadeTrace("3.0.1", ranks=[calls_of(0)], patterns=(True, False))
    with pytest.raises(en.EnsioError, match="RECORDER_INTERPROCESS_PATTERN_RECOGNITION=0"):
        en.open(trace.write(tmp_path / "trace"))


@pytest.mark.parametrize("version", ["2.1.9", "4.0.0"])
def test_other_versions_are_refused_with_a_remedy(tmp_path: Path, version: str) -> None:
    path = MadeTrace("2.5.0", ranks=[calls_of(0)]).write(tmp_path / "trace")
    (path / "VERSION").write_text(version)
    with pytest.raises(
        en.EnsioError, match=f"Recorder {version}; versions 2.3 to 3 are read: .*recorder2text"
    ):
        en.open(path)


def test_infinite_and_incomplete_grammars_are_refused() -> None:
    import struct

    def rules(*words: int) -> bytes:
        return struct.pack(f"<{len(words)}i", *words)

    for data, problem in [
        (rules(1, -1, 1, -1, 1), "infinite"),
        (rules(2, -1, 1, -2, 1, -2, 1, -1, 1), "infinite"),
        (rules(1, -1, 1, -2, 1), "lacks rule -2"),
        (rules(1, -1, 1, 5, 1), "not defined"),
        (rules(1, -1, 1, 0, 4), "makes 4 calls"),
        (rules(2, -1, 1, 0, 1), "cut off"),
    ]:
        with pytest.raises(GrammarError, match=problem):
            expand(parse_grammar(data), 3, 2)


def test_calls_that_end_before_they_begin_are_said(tmp_path: Path) -> None:
    calls = [MadeCall("pwrite", ("/data/f", "0x1", "4096", "0"), 100 * i, 100 * i + 50) for i in range(1, 9)]
    path = MadeTrace(version="2.4", ranks=[calls]).write(tmp_path / "trace")
    assert not [note for note in en.open(path).notes if "end before" in note]
    times = np.fromfile(path / "0.ts", "<u4").reshape(-1, 2)
    times[4, 0] |= 1 << 20
    times.tofile(path / "0.ts")
    run = en.open(path)
    assert run.events.duration.min() == 0
    assert [note for note in run.notes if note.startswith("calls that end before they begin")]


@pytest.mark.parametrize(("size", "path"), [(1 << 20, "/data/f"), (4096, "/data/f"), (1 << 20, "-1")])
def test_mapped_files_are_not_in_the_trace(tmp_path: Path, size: int, path: str) -> None:
    arguments = ("%p", str(size), "1", "1", path, "0")
    calls = [*calls_of(0), MadeCall("mmap", arguments, 1600, 1601)]
    run = en.open(MadeTrace(version="2.4", ranks=[calls]).write(tmp_path / "trace"))
    is_seen = size >= 1 << 20 and path.startswith("/")
    assert (run.unseen is not None and "accesses to mapped files" in run.unseen.sentence) == is_seen

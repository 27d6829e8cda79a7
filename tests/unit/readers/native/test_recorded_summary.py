"""The summary in a spool, laid out by hand."""

import struct
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import ensembles as en
from ensembles.model.holds import Holds
from ensembles.passes.summary import ignoring_run
from ensembles.run.selection import Selection
from ensembles.summaries.bysite import SitesByDuration
from ensembles.summaries.calltable import CallTable
from ensembles.viz.explorer.shown import Shown

UNIX_NS = 1_700_000_000 * 10**9
BIN_OF_100_NS = 64 + 18  # octave [64, 128) is cut into bins of 2 ns, and begins with bin 64


def event(start: int, duration: int, call: int = 6) -> bytes:
    return struct.pack("<QQqQqIHBB", start, duration, 4096, 512, 512, 3, call, 0, 0)


def spool(path: Path, cell: bytes, *, folding: int = 0, state: int = 1, mode: bytes = b"profile") -> Path:
    """A spool of one cell, the counts of its octave, and a scratch window with an event that is not in it
    yet.

    Owes nothing to the layout that is parsed: positions and types are those that event.h describes.
    """
    text = b"6 pwrite posix write\n"
    name = b"/data/a file"
    properties = b"mode=" + mode + b"\0"
    entries = struct.pack("<HHIII", 2, 0, 0, len(text), 0) + text + bytes(-len(text) % 8)
    entries += struct.pack("<HHIII", 1, 0, 3, len(name), 0) + name + bytes(-len(name) % 8)
    entries += struct.pack("<HHIII", 3, 0, 0, len(properties), 0) + properties + bytes(-len(properties) % 8)
    end = 65536 + 3 * 4096
    head = struct.pack(
        "<QIIQIIIIIiII", 0x4C50534F49534E45, 3, 48, end, len(entries), state, 2, 77, 1, 0, 1, 1
    )
    head += struct.pack("<9Q", *(500, 500, UNIX_NS), *(9000, 9000, UNIX_NS + 8500), *(0, 0, 0))
    head += struct.pack("<IIQQQII", 0, 0, 0, 0, 0, folding, 0)
    windows = [
        struct.pack("<IHHQIIIIQ", 0x4E495745, 3, 0, 4096, 78, 0, 1, 0, 0).ljust(64, b"\0") + cell,
        struct.pack("<IHHQIIIIQ", 0x4E495745, 4, 0, 4096, 78, 0, 0, 0, 0).ljust(64, b"\0")
        + struct.pack("<32Q", *(3 if i == 18 else 0 for i in range(32))),
        struct.pack("<IHHQIIIIQ", 0x4E495745, 5, 0, 4096, 78, 0, 1, 0, 1 << 32).ljust(64, b"\0")
        + event(1, 1, call=0)
        + event(5000, 33),
    ]
    data = (head.ljust(4096, b"\0") + entries).ljust(65536, b"\0")
    path.write_bytes(data + b"".join(window.ljust(4096, b"\0") for window in windows))
    return path


def cell(count: int = 3, block: int = 1, moved: int = 1536) -> bytes:
    """Three calls of 512 bytes that took 100, 101 and 100 ns, the second and third of their file."""
    head = struct.pack("<HBBI", 6, 10, 2, 0)
    sums = [count, 0, moved, 301, 40, 1, 512, 100]
    limits = [100, 100, 101, 512, 512, 700, 3000, 0]
    blocks = [0, 0, block] + [0] * 57
    longest = b"".join(event(start, duration) for start, duration in ((700, 100), (1500, 101), (2900, 100)))
    return (
        head
        + struct.pack("<16Q3d60H8H", *sums, *limits, 1.0, 1.0, 1.0, *blocks, *[0] * 8)
        + longest.ljust(8 * 48, b"\0")
    )


def test_a_summary_laid_out_by_hand_is_read(tmp_path: Path) -> None:
    run = en.open(spool(tmp_path / "by-hand", cell()))
    assert (run.mode, run.notes, len(run.events), run.info.threads) == ("profile", [], 0, 1)
    assert not run.info.has(Holds.ALL_CALLS)
    summary = run.summary
    rows = {name: column.tolist() for name, column in summary.cells.items()}
    # The event that was not added yet has no ordinal, and so its own cell.
    assert rows["ordinal_class"] == [0, 2]
    assert rows["count"] == [1, 3]
    assert rows["moved"] == [512, 1536]
    assert rows["time_ns"] == [33, 301]
    assert rows["inner_ns"] == [0, 40]
    assert rows["outer_count"] == [1, 2]
    assert rows["outer_moved"] == [512, 1024]
    assert rows["outer_ns"] == [33, 201]
    assert rows["start_ns"] == [4500, 200]
    assert rows["end_ns"] == [4533, 2500]
    assert (rows["min_ns"], rows["max_ns"]) == ([33, 100], [33, 101])
    # 100, 101, 100: mean 301 / 3, second central sum 2 / 3, third 2 / 9, fourth 2 / 9.
    np.testing.assert_allclose(
        [rows[name][1] for name in ("mean_ns", "m2", "m3", "m4")], [301 / 3, 2 / 3, 2 / 9, 2 / 9]
    )
    assert [part.tolist() for part in summary.histogram] == [[0, 1], [33, BIN_OF_100_NS], [1, 3]]
    longest_cell, longest = summary.longest
    assert longest_cell.tolist() == [0, 1, 1, 1]
    assert longest.duration.tolist() == [33, 101, 100, 100]
    assert longest.start.tolist() == [4500, 1000, 200, 2400]
    assert run.files[longest.file[1]] == "/data/a file"


@pytest.mark.parametrize("damaged", [cell(count=1 << 61), cell(block=77), cell(moved=1 << 63)])
def test_impossible_cells_are_left_out_and_told(tmp_path: Path, damaged: bytes) -> None:
    run = en.open(spool(tmp_path / "s", damaged))
    assert run.summary.count == 1
    assert any("damaged" in note and "summary" in note for note in run.notes)


def test_a_process_killed_while_it_added_a_call_is_told(tmp_path: Path) -> None:
    run = en.open(spool(tmp_path / "s", cell(), folding=1, state=0))
    assert any("of this one call" in note for note in run.notes)
    assert en.open(spool(tmp_path / "ended", cell(), folding=0, state=1)).notes == []


def test_calls_that_a_trace_holds_for_the_summary_only_are_dropped_events(tmp_path: Path) -> None:
    run = en.open(spool(tmp_path / "s", cell(), mode=b"trace", state=0))
    assert (run.info.dropped_events, run.info.lost_calls, run.summary.count) == (1, 0, 4)


def test_what_sums_do_not_know_is_none_or_empty(tmp_path: Path) -> None:
    run = en.open(spool(tmp_path / "by-hand", cell()))
    some = Selection.parse(size="512").for_run(run)
    assert run.summarize(ignoring_run(CallTable)).events == 4
    assert run.summarize(ignoring_run(CallTable), selection=Selection().for_run(run)).events == 4
    assert run.summarize(ignoring_run(CallTable), selection=some) is None
    sites = run.summarize(ignoring_run(partial(SitesByDuration, [1e6])), selection=some)
    assert sites.counts == [{}, {}]
    with pytest.raises(en.EnsioError, match=r"mode profile.* no calls to explore .*--mode trace"):
        Shown(run)

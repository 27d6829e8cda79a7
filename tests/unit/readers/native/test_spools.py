"""What is in a spool arrives in the columns."""

from __future__ import annotations

import errno
import os
import struct
from pathlib import Path

import numpy as np
import pytest
from made_spools import MONOTONIC, RUNNING, TSC, UNIX_NS, made_events, spool
from spool_writer import HEAD_BYTES

import ensembles as en
from ensembles.model.events import COLUMNS, Call
from ensembles.run.information import collect_information
from ensembles.summaries.calltable import CallTable

DAY_NS = 86_400 * 10**9


@pytest.mark.parametrize("last_is_spare", [0, 1])
@pytest.mark.parametrize(
    ("version", "file", "site"), [(3, 3, 0), (3, 70_003, 0), (4, 3, 5), (4, 0xFFFF, 0xFFFF)]
)
def test_bytes_laid_out_by_hand_are_read(
    tmp_path: Path, last_is_spare: int, version: int, file: int, site: int
) -> None:
    """Owes nothing to the layout that is parsed: positions and types are those that event.h describes.

    In version 3, the number of a file has 32 bits, and there are no sites.
    """
    text = b"6 pwrite posix write\n"
    name = b"/data/a file"
    entries = struct.pack("<HHIII", 2, 0, 0, len(text), 0) + text + bytes(-len(text) % 8)
    entries += struct.pack("<HHIII", 1, 0, file, len(name), 0) + name + bytes(-len(name) % 8)
    path_of_site = b"1139 0123abcd /opt/app"
    entries += struct.pack("<HHIII", 6, 0, site or 9, len(path_of_site), 0) + path_of_site
    entries += bytes(-len(entries) % 8)
    head = struct.pack(
        "<QIIQIIIIIiII", 0x4C50534F49534E45, version, 48, 131072, len(entries), 1, 2, 77, 1, 4, 5, 1
    )
    readings = [(1500, 1500, UNIX_NS + 1000), (1400, 1300, UNIX_NS + 800)]
    last, spare = readings[:: -1 if last_is_spare else 1]
    head += struct.pack("<9Q", 500, 500, UNIX_NS, *last, *spare) + struct.pack(
        "<IIQQ", last_is_spare, 0, 0, 9
    )
    window = struct.pack("<IHHQII", 0x4E495745, 1, 0, 65536, 78, 0).ljust(64, b"\0")
    numbers = struct.pack("<I", file) if version == 3 else struct.pack("<HH", file, site)
    event = struct.pack("<QQqQq", 700, 30, 4096, 512, 256) + numbers + struct.pack("<HBB", 6, 2, 1)
    data = head.ljust(4096, b"\0") + entries
    path = tmp_path / "by-hand"
    path.write_bytes((data.ljust(65536, b"\0") + window + event).ljust(131072, b"\0"))

    run = en.open(path)
    events = run.events
    assert len(events) == 1
    row = {column: int(getattr(events, column)[0]) for column in COLUMNS}
    assert run.calls[row.pop("call")] == Call("pwrite", "posix", "write")
    assert run.files[row.pop("file")] == "/data/a file"
    assert events.sites[row.pop("site")] == ("app+0x473" if site else "")
    assert len(events.sites) == 2
    assert (row.pop("flight"), row.pop("request")) == (-1, 0)
    assert row == {
        "rank": 4,
        "thread": 0,
        "depth": 2,
        "carried": 1,
        "offset": 4096,
        "requested": 512,
        "moved": 256,
        "error": 0,
        "start": 200,
        "duration": 30,
    }
    assert (run.tasks, run.info.origin_unix_ns, run.info.excluded_calls, run.info.processes[0].pid) == (
        5,
        UNIX_NS,
        9,
        77,
    )


@pytest.mark.parametrize("count", [0, 1, 1364, 1365, 40_000])
def test_every_event_arrives_whatever_the_number_of_windows(tmp_path: Path, count: int) -> None:
    written = made_events(count)
    events = en.open(spool(tmp_path / "s", [written], rank=0)).events
    assert len(events) == count
    for name in ("offset", "requested", "moved", "duration", "depth"):
        np.testing.assert_array_equal(getattr(events, name), written[name].astype(COLUMNS[name]))
    np.testing.assert_array_equal(events.start, (written["start"] - 1000).astype("i8"))


@pytest.mark.parametrize("max_events", [1, 7, 1000, 1 << 20])
def test_chunks_hold_all_events_once_and_no_more_than_asked(tmp_path: Path, max_events: int) -> None:
    threads = [made_events(700, 1), made_events(300, 2)]
    run = en.open(spool(tmp_path / "s", threads, rank=0))
    chunks = list(run.chunks(max_events))
    assert max(map(len, chunks)) <= max_events
    together = en.Events.concatenate(chunks)
    for thread, written in enumerate(threads):
        of_thread = together[together.thread == thread]
        np.testing.assert_array_equal(of_thread.requested, written["requested"])


def test_failed_calls_carry_their_errno(tmp_path: Path) -> None:
    written = made_events(3)
    written["moved"] = [10, -errno.ENOSPC, 0]
    events = en.open(spool(tmp_path / "s", [written], rank=0)).events
    assert events.moved.tolist() == [10, -1, 0]
    assert events.error.tolist() == [0, errno.ENOSPC, 0]


@pytest.mark.parametrize("torn", [0, 4, 9, [0, 1], [3, 8, 9], list(range(10))])
def test_calls_that_were_not_completed_are_skipped(tmp_path: Path, torn: int | list[int]) -> None:
    written = made_events(10)
    written["call"][torn] = 0
    events = en.open(spool(tmp_path / "s", [written], rank=0)).events
    np.testing.assert_array_equal(events.requested, np.delete(written["requested"], torn))


def test_a_window_whose_head_was_never_written_is_passed_over(tmp_path: Path) -> None:
    path = spool(tmp_path / "s", [made_events(1364, 1), made_events(1364, 2)], rank=0)
    with path.open("r+b") as file:
        file.seek(HEAD_BYTES)
        file.write(bytes(HEAD_BYTES))
    run = en.open(path)
    np.testing.assert_array_equal(run.events.requested, made_events(1364, 2)["requested"])


def test_holes_in_a_file_cost_neither_time_nor_memory(tmp_path: Path) -> None:
    events = made_events(1364)
    path = spool(tmp_path / "s", [events], rank=0, allocated_bytes=1 << 40)
    os.truncate(path, 1 << 40)
    assert len(en.open(path).events) == 1364


def test_ticks_become_nanoseconds_without_loss_over_ten_days(tmp_path: Path) -> None:
    """Against rational arithmetic, with a counter that has run for years."""
    first, per_second = 2**62, 2_899_885_000
    days_10_ns = 10 * 86_400 * 10**9
    written = made_events(1000, first_ticks=0)
    ticks = np.sort(np.random.default_rng(5).integers(0, per_second * 86_400 * 10, 1000))
    written["start"] = first + ticks.astype("u8")
    path = spool(
        tmp_path / "s",
        [written],
        rank=0,
        clock=TSC,
        first_ticks=first,
        first_monotonic_ns=5,
        last_ticks=first + per_second * 86_400 * 10,
        last_monotonic_ns=5 + days_10_ns,
    )
    expected = [(tick * 10**9 + per_second // 2) // per_second for tick in ticks.tolist()]
    assert np.abs(en.open(path).events.start - np.array(expected)).max() <= 1


def test_the_origin_is_the_start_of_the_first_process(tmp_path: Path) -> None:
    spool(tmp_path / "a.spool", [made_events(1, first_ticks=1000)], rank=0, first_realtime_ns=UNIX_NS + 50)
    spool(tmp_path / "b.spool", [made_events(1, first_ticks=1000)], rank=1, first_realtime_ns=UNIX_NS)
    run = en.open(tmp_path)
    assert run.info.origin_unix_ns == UNIX_NS
    assert run.events.start[0] - run.events.start[1] == 50


def test_texts_that_do_not_fit_into_the_first_window_are_read(tmp_path: Path) -> None:
    files = {number: f"/data/{number:05d}/" + "x" * 100 for number in range(1, 2001)}
    written = made_events(2000)
    written["file"] = np.arange(1, 2001)
    run = en.open(spool(tmp_path / "s", [written], files=files, rank=0))
    assert [run.files[number] for number in run.events.file] == [files[number] for number in range(1, 2001)]


def test_a_path_that_is_no_utf8_is_kept_byte_for_byte(tmp_path: Path) -> None:
    run = en.open(spool(tmp_path / "s", [made_events(1)], files={1: b"/data/\xff\xfe"}, rank=0))
    assert os.fsencode(run.files[run.events.file[0]]) == b"/data/\xff\xfe"


def test_unknown_and_missing_properties_do_not_matter(tmp_path: Path) -> None:
    run = en.open(spool(tmp_path / "s", properties={"colour": "blue", "job": "42"}, rank=0))
    assert (run.info.job, run.mode, run.info.command) == ("42", "", ())


def test_arguments_are_told_apart(tmp_path: Path) -> None:
    run = en.open(spool(tmp_path / "s", properties={"command": "solver\x1f-o\x1fa b"}, rank=0))
    assert run.info.command == ("solver", "-o", "a b")


@pytest.mark.parametrize(
    ("given", "programs", "expected"),
    [
        # One program, behind a launcher or started by a script.
        ("mpiexec\x1f-n\x1f2\x1f./solver\x1f-o", ("solver -o", "solver -o"), "solver -o"),
        ("bash\x1fjob.sh", ("solver -o", "solver -o"), "bash job.sh"),
        ("bash\x1fjob.sh", ("rm -f a", "sort a"), "bash job.sh"),
        # Not started by ensio run.
        ("", ("rm -f a", "sort a"), "rm -f a"),
        # Its words are too many.
        ("solver\x1f-o\x1f...", ("solver -o a", "solver -o a"), "solver -o a"),
    ],
)
def test_a_run_is_named_by_the_command_that_was_given(tmp_path, given, programs, expected) -> None:
    variable = {"env.ENSIO_COMMAND": given, "launch": "one"} if given else {"launch": "one"}
    for rank, command in enumerate(programs):
        own = {"command": command.replace(" ", "\x1f"), **variable}
        program = "/bin/" + command.split()[0]
        spool(
            tmp_path / f"{rank}.spool",
            [made_events(2)],
            properties=own,
            program=program,
            rank=rank,
            pid=9 + rank,
        )
    run = en.open(tmp_path)
    assert " ".join(run.info.command) == expected
    assert " ".join(run.info.task_command) == programs[0]


def test_a_run_of_several_programs_is_named_by_the_process_that_started_them(tmp_path) -> None:
    for number, (command, parent) in enumerate([("sort a", 3), ("make", 1), ("rm a", 3)]):
        spool(
            tmp_path / f"{number}.spool",
            [] if command == "make" else [made_events(2)],
            properties={"command": command.replace(" ", "\x1f"), "launch": "one"},
            program="/bin/" + command.split()[0],
            pid=(9, 3, 10)[number],
            parent_pid=parent,
        )
    assert en.open(tmp_path).info.command == ("make",)


def test_calls_and_files_without_a_name_are_told(tmp_path: Path) -> None:
    written = made_events(3)
    written["call"] = [6, 999, 6]
    written["file"] = [1, 1, 2]
    run = en.open(spool(tmp_path / "s", [written], rank=0))
    events = run.events
    assert [run.calls[number].name for number in events.call] == ["pwrite", "unknown", "pwrite"]
    assert [run.files[number] for number in events.file] == ["/data/one", "/data/one", ""]
    assert len(run.notes) == 2


def test_spools_number_the_same_call_and_path_differently(tmp_path: Path) -> None:
    calls = {1: Call("pwrite", "posix", "write"), 2: Call("fsync", "posix", "sync")}
    first, second = made_events(2), made_events(2)
    first["call"], first["file"] = [1, 2], [7, 8]
    spool(tmp_path / "a.spool", [first], calls=calls, files={7: "/x", 8: "/y"}, rank=0)
    second["call"], second["file"] = [6, 8], [1, 2]
    spool(tmp_path / "b.spool", [second], files={1: "/y", 2: "/x"}, rank=1)
    run = en.open(tmp_path)
    assert [run.calls[number].name for number in run.events.call] == ["pwrite", "fsync", "pwrite", "fsync"]
    assert [run.files[number] for number in run.events.file] == ["/x", "/y", "/y", "/x"]
    assert sorted(run.files) == ["", "/x", "/y"]


def test_a_process_that_was_killed_at_once_borrows_the_clock_of_its_host(tmp_path: Path) -> None:
    clock = {"clock": TSC, "first_ticks": 1000, "first_monotonic_ns": 0}
    whole = {**clock, "last_ticks": 1000 + 3 * 10**9, "last_monotonic_ns": 10**9}
    killed = {**clock, "last_ticks": 1000, "last_monotonic_ns": 0, "state": RUNNING}
    written = made_events(1, first_ticks=1000)
    written["start"], written["duration"] = 1000 + 300, 600
    spool(tmp_path / "whole.spool", [written], rank=0, **whole)
    spool(tmp_path / "killed.spool", [written], rank=1, pid=101, **killed)
    run = en.open(tmp_path)
    assert run.events.duration.tolist() == [200, 200]
    assert run.events.start.tolist() == [100, 100]
    assert not any("clock rate" in note for note in run.notes)


def test_a_clock_rate_that_nobody_knows_is_told(tmp_path: Path) -> None:
    killed = {"clock": TSC, "last_ticks": 1000, "last_monotonic_ns": 1000, "state": RUNNING}
    run = en.open(spool(tmp_path / "s", [made_events(1)], rank=0, **killed))
    assert any("clock rate of s is unknown" in note for note in run.notes)


def test_a_clock_rate_of_another_host_is_told(tmp_path: Path) -> None:
    killed = {"clock": TSC, "last_ticks": 1000, "last_monotonic_ns": 1000, "state": RUNNING}
    spool(tmp_path / "a.spool", [made_events(1)], rank=0, clock=TSC, host="alpha")
    spool(tmp_path / "b.spool", [made_events(1)], rank=1, host="beta", **killed)
    assert any("taken from host alpha" in note for note in en.open(tmp_path).notes)


def test_ticks_of_the_system_clock_are_nanoseconds_whatever_the_readings_say(tmp_path: Path) -> None:
    written = made_events(5)
    path = spool(tmp_path / "s", [written], rank=0, clock=MONOTONIC, last_ticks=1000, last_monotonic_ns=7)
    np.testing.assert_array_equal(en.open(path).events.duration, written["duration"].astype("i8"))


def test_an_event_of_impossible_duration_is_left_out_and_told(tmp_path: Path) -> None:
    written = made_events(10)
    written["duration"][3] = 2**63 + 5
    written["start"][7] = 2**60
    run = en.open(spool(tmp_path / "s", [written], rank=0))
    np.testing.assert_array_equal(run.events.requested, np.delete(written["requested"], [3, 7]))
    assert any("2 events left out as damaged" in note for note in run.notes)


def test_an_event_that_moved_more_than_any_call_can_is_left_out_and_told(tmp_path: Path) -> None:
    written = made_events(10)
    written["moved"][[3, 7]] = [(1 << 50) + 1, 1 << 50]
    run = en.open(spool(tmp_path / "s", [written], rank=0))
    np.testing.assert_array_equal(run.events.moved, np.delete(written["moved"], 3))
    assert any("1 event left out as damaged or incomplete" in note for note in run.notes)


@pytest.mark.parametrize(("moved", "error"), [(-5, 5), (-0xFFFF, 0xFFFF), (-70_000, 0), (-(2**63), 0)])
def test_whatever_is_below_zero_is_a_failed_call(tmp_path: Path, moved: int, error: int) -> None:
    written = made_events(3)
    written["moved"][1] = moved
    run = en.open(spool(tmp_path / "s", [written], rank=0))
    assert (run.events.moved[1], run.events.error.tolist()) == (-1, [0, error, 0])
    table = CallTable()
    table.add(run.events)
    assert [totals.errors for totals in table.totals.values()] == [1]


@pytest.mark.parametrize(
    "last", [(1001, 1000 + (1 << 61)), (1000 + (1 << 50), 1001), (1010, 900), (1010, 12_000)]
)
def test_a_clock_rate_that_no_machine_has_is_not_believed(tmp_path: Path, last: tuple[int, int]) -> None:
    damaged = {"clock": TSC, "last_ticks": last[0], "last_monotonic_ns": last[1]}
    run = en.open(spool(tmp_path / "s", [made_events(5)], rank=0, **damaged))
    np.testing.assert_array_equal(run.events.duration, made_events(5)["duration"].astype("i8"))
    assert any("the clock rate of s is unknown (its clock readings" in note for note in run.notes)
    whole = {"last_ticks": 1000 + 3 * 10**9, "last_monotonic_ns": 1000 + 10**9, "clock": TSC}
    written = made_events(1)
    written["duration"] = 600
    spool(tmp_path / "run" / "a.spool", [written], rank=0, **whole)
    spool(tmp_path / "run" / "b.spool", [written], rank=1, pid=101, **damaged)
    assert en.open(tmp_path / "run").events.duration.tolist() == [200, 200]


@pytest.mark.parametrize("member", ["first_monotonic_ns", "last_monotonic_ns"])
def test_an_absurd_reading_in_the_head_is_damage(tmp_path: Path, member: str) -> None:
    with pytest.raises(en.EnsioError, match="the numbers in its head are implausible"):
        en.open(spool(tmp_path / "s", [made_events(5)], rank=0, **{member: 1 << 62}))


@pytest.mark.parametrize(
    ("first_ns", "told"), [(0, "19,676 days behind"), (UNIX_NS + 3 * DAY_NS, "3 days ahead")]
)
def test_a_host_whose_clock_is_wrong_is_named_once(tmp_path: Path, first_ns: int, told: str) -> None:
    for rank in range(6):
        wrong = {"host": "beta", "first_realtime_ns": first_ns, "last_realtime_ns": first_ns + 10**9}
        spool(
            tmp_path / f"{rank}.spool",
            [made_events(5)],
            rank=rank,
            pid=rank,
            **(wrong if rank in (2, 3) else {}),
        )
    notes = [note for note in en.open(tmp_path).notes if "clock of" in note]
    assert len(notes) == 1
    assert "host beta" in notes[0]
    assert told in notes[0]


def test_processes_that_begin_within_a_day_of_each_other_need_no_note(tmp_path: Path) -> None:
    spool(tmp_path / "a.spool", [made_events(5)], rank=0)
    spool(tmp_path / "b.spool", [made_events(5)], rank=1, first_realtime_ns=UNIX_NS + DAY_NS)
    assert en.open(tmp_path).notes == []


def test_times_of_a_slow_clock_stay_within_the_range_of_integers(tmp_path: Path) -> None:
    written = made_events(3)
    written["duration"][1] = 1 << 54
    slow = {"clock": TSC, "last_ticks": 1000 + 10**7, "last_monotonic_ns": 1000 + 10**10}
    run = en.open(spool(tmp_path / "s", [written], rank=0, **slow))
    np.testing.assert_array_equal(run.events.duration, 1000 * written["duration"][[0, 2]].astype("i8"))
    assert any("1 event left out" in note for note in run.notes)


def test_events_are_sorted_by_rank_and_start(tmp_path: Path) -> None:
    for rank in (3, 1, 2):
        spool(tmp_path / f"{rank}.spool", [made_events(500, rank), made_events(500, rank + 10)], rank=rank)
    events = en.open(tmp_path).events
    assert len(events) == 3000
    order = np.lexsort((events.start, events.rank))
    np.testing.assert_array_equal(order, np.arange(3000))


def clock_of(span_ns: int, ns_per_tick: float) -> dict[str, int]:
    """Readings of a tick counter with this rate, this far apart."""
    ticks = round(span_ns / ns_per_tick)
    return {"clock": TSC, "last_ticks": 1000 + ticks, "last_monotonic_ns": 1000 + span_ns}


def test_a_process_that_was_killed_early_uses_the_longest_readings_of_its_host(tmp_path: Path) -> None:
    written = made_events(1)
    written["duration"] = 10**9
    spool(tmp_path / "whole.spool", [written], rank=0, **clock_of(60 * 10**9, 0.4))
    spool(tmp_path / "early.spool", [written], rank=1, pid=101, state=RUNNING, **clock_of(20_000, 0.41))
    spool(tmp_path / "other.spool", [written], rank=2, pid=102, host="beta", **clock_of(60 * 10**9, 0.3))
    run = en.open(tmp_path)
    assert run.events.duration.tolist() == [400_000_000, 400_000_000, 300_000_000]
    assert not any("clock rate" in note for note in run.notes)


def test_a_rate_from_readings_that_lie_close_together_is_told(tmp_path: Path) -> None:
    run = en.open(spool(tmp_path / "s", [made_events(1)], rank=0, state=RUNNING, **clock_of(10_000, 0.4)))
    assert any("clock rate of s is inaccurate" in note and "1.0 %" in note for note in run.notes)


def test_an_error_of_the_rate_that_would_be_told_as_nothing_is_not_told(tmp_path: Path) -> None:
    """Readings 0.3 ms apart give a rate to 0.03 %, which reads 0.0 %."""
    run = en.open(spool(tmp_path / "s", [made_events(1)], rank=0, state=RUNNING, **clock_of(300_000, 0.4)))
    assert not any("clock rate" in note for note in run.notes)


def test_two_machines_of_the_same_name_keep_their_own_rates(tmp_path: Path) -> None:
    written = made_events(1)
    written["duration"] = 10**6
    spool(tmp_path / "a.spool", [written], rank=0, **clock_of(60 * 10**9, 0.4))
    spool(tmp_path / "b.spool", [written], rank=1, pid=101, **clock_of(10**7, 0.3))
    assert en.open(tmp_path).events.duration.tolist() == [400_000, 300_000]


def test_a_run_lasts_at_least_from_its_first_call_to_the_end_of_its_last(tmp_path: Path) -> None:
    """A thread may make calls before the first and after the last reading of the process's clock."""
    events = made_events(2, first_ticks=500)
    events["start"][1] = 1_000_002_000 + 700_000_000
    spool(tmp_path / "0.spool", [events], rank=0)
    run = en.open(tmp_path)
    assert all(process.ended for process in run.info.processes)
    span = int(run.events.end.max() - run.events.start.min())
    assert span > 1_700_000_000
    assert run.length_s == span * 1e-9
    information = collect_information(en.open(tmp_path))
    assert information["run_s"] == pytest.approx(information["span_s"])
    assert en.diagnose(en.open(tmp_path)).run_s == span * 1e-9

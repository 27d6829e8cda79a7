"""What calls add up to is the same in all modes, and equal to what the events say."""

import json
import os
import subprocess

import commands_here
import numpy as np
import pytest
from test_mpi import compiled

import ensembles
from ensembles.answers.info import answer_info
from ensembles.cli.replay_program import ANY_TASKS
from ensembles.model.c_layout import CONSTANTS, EVENT
from ensembles.model.events import Events
from ensembles.readers.native.block_reader import BLOCK_EVENTS, coded_events
from ensembles.readers.native.spool import read_spool
from ensembles.run.collect import collect
from ensembles.summaries.bins import UNKNOWN_ORDINAL
from ensembles.summaries.cells import CENTRAL, KEYS, CellSummary
from ensembles.summaries.from_cells import totals_from_cells

pytestmark = pytest.mark.usefixtures("uncoded")

COUNTS = ("count", "errors", "moved", "outer_count", "outer_moved", "min_requested", "max_requested")
TIMES = ("time_ns", "inner_ns", "outer_ns", "min_ns", "max_ns", "start_ns")


def spools(recorder):
    return [read_spool(str(path)) for path in sorted(recorder.run.glob("*.spool"))]


def only_spool(recorder):
    (spool,) = spools(recorder)
    return spool


def exact_ns(ticks, rate):
    """Ticks in nanoseconds, as the recorder takes them: in integers, rounded."""
    bits = CONSTANTS["ENSIO_RATE_BITS"]
    return np.array([(int(tick) * rate + (1 << bits - 1)) >> bits for tick in ticks], np.int64)


def raw_events(spool):
    """The events of each window as they are stored, in their order."""
    room = np.empty(BLOCK_EVENTS, EVENT.dtype)
    with open(spool.path, "rb") as file:
        for window in spool.windows:
            if window.is_coded:
                for events, lost in coded_events(file.fileno(), window, room):
                    assert lost == 0
                    yield window, events
            else:
                raw = os.pread(file.fileno(), window.slots * EVENT.size, window.position)
                events = np.frombuffer(raw, EVENT.dtype)
                yield window, events[events["call"] != 0]


def summary_of_events(run, spool):
    """The summary of all events of a trace, with the rates of the recorder, and by Python alone."""
    durations = [exact_ns(events["duration"], window.rate) for window, events in raw_events(spool)]
    (chunk,) = run.chunks(1 << 24)
    chunk = Events(chunk.columns | {"duration": np.concatenate(durations)}, chunk.calls, chunk.files)
    summary = CellSummary()
    summary.add(chunk)
    return summary


def by_key(summary, names):
    return {
        tuple(row[: len(KEYS)]): tuple(row[len(KEYS) :])
        for row in zip(*(summary.cells[name].tolist() for name in (*KEYS, *names)), strict=True)
    }


def assert_equal_to_the_bin(found, expected):
    assert by_key(found, COUNTS + TIMES) == by_key(expected, COUNTS + TIMES)
    for mine, theirs in zip(found.histogram, expected.histogram, strict=True):
        np.testing.assert_array_equal(mine, theirs)
    for name in CENTRAL:
        scale = {"mean_ns": 1, "m2": 2, "m3": 3, "m4": 4}[name]
        # What is left of a difference of large numbers is right to the size of these.
        size = expected.cells["max_ns"].astype(float) ** scale * (expected.cells["count"] if scale > 1 else 1)
        difference = np.abs(found.cells[name] - expected.cells[name])
        assert (difference <= 1e-11 * size + 1e-6).all(), name
    np.testing.assert_array_equal(found.longest[0], expected.longest[0])
    mine, theirs = found.longest[1], expected.longest[1]
    # Of two calls that differ by less than a nanosecond, the recorder, who counts in ticks, may keep either.
    np.testing.assert_allclose(mine.duration, theirs.duration, rtol=1e-3, atol=2)
    same = mine.start == theirs.start
    assert np.count_nonzero(same) > 0.9 * len(same)
    for column in ("call", "file", "requested", "moved", "offset", "depth", "error"):
        np.testing.assert_array_equal(getattr(mine, column)[same], getattr(theirs, column)[same])


def test_the_recorders_summary_equals_that_of_the_events_bin_by_bin(recorder, tmp_path):
    recorder.execute(recorder.build("mixture"), tmp_path, 20_000, check=True)
    run = ensembles.open(only_spool(recorder).path)
    assert run.summary.count == len(run.events) > 45_000
    assert_equal_to_the_bin(run.summary, summary_of_events(run, only_spool(recorder)))
    assert UNKNOWN_ORDINAL not in run.summary.cells["ordinal_class"]
    # With the rates that readers use, a duration may come out at the other side of an edge.
    again = CellSummary()
    for chunk in run.chunks(1000):
        again.add(chunk)
    assert by_key(run.summary, COUNTS) == by_key(again, COUNTS)
    for name in TIMES:
        np.testing.assert_allclose(run.summary.cells[name], again.cells[name], rtol=1e-3, atol=2)


@pytest.mark.parametrize("mode", ["trace", "profile"])
def test_calls_inside_calls_are_told_apart_in_the_summary(recorder, tmp_path, mode):
    recorder.execute(
        recorder.build("calls_inside"), tmp_path, 3000, check=True, environment={"ENSIO_MODE": mode}
    )
    run = ensembles.open(only_spool(recorder).path)
    totals = totals_from_cells(run.summary)
    # Each fprintf counts its own bytes, and those of the fputs and the write inside it.
    assert totals.bytes_written == 3000 * 8
    if mode == "trace":
        expected = summary_of_events(run, only_spool(recorder))
        for name in (*COUNTS, "time_ns", "inner_ns", "outer_ns"):
            assert by_key(run.summary, (name,)) == by_key(expected, (name,)), name
    inner = {call.name: totals.layers.inner_ns[call] for call in totals.layers.calls}
    time = {call.name: totals.layers.time_ns[call] for call in totals.layers.calls}
    assert 0 < inner["fprintf"] == time["fputs"] + time["write"]


def test_threads_and_handlers_are_in_the_summary(recorder, tmp_path):
    program = recorder.build("threads")
    said = recorder.execute(program, tmp_path, 2, 20_000, 2, check=True).stdout
    handled = int(said.split()[0])
    run = ensembles.open(only_spool(recorder).path)
    found, expected = run.summary, summary_of_events(run, only_spool(recorder))
    assert found.count == expected.count

    def without_ordinals(summary, name):
        """The file of the handler is written by all threads: which of them comes when is the order of
        folding."""
        writes = summary.cells["size_class"] == 1
        table = {key: value for key, value in by_key(summary, (name,)).items() if key[1] != 1}
        return table, int(summary.cells[name][writes].sum())

    for name in ("count", "errors", "moved", "time_ns", "inner_ns", "outer_ns", "outer_count"):
        assert without_ordinals(found, name) == without_ordinals(expected, name), name
    assert without_ordinals(found, "count")[1] == handled


@pytest.mark.parametrize("mode", ["profile", "tail"])
@pytest.mark.parametrize(("program", "calls"), [("mixture", (5000,)), ("copies", ())])
def test_other_modes_count_what_trace_counts(recorder, tmp_path, mode, program, calls):
    program = recorder.build(program)
    recorder.execute(program, tmp_path, *calls, check=True)
    traced = ensembles.open(recorder.run)
    recorder.run = recorder.folder / mode
    recorder.execute(program, tmp_path, *calls, check=True, environment={"ENSIO_MODE": mode})
    run = ensembles.open(recorder.run)
    assert (run.mode, run.notes, run.info.dropped_events) == (mode, [], 0)
    assert by_key(run.summary, COUNTS) == by_key(traced.summary, COUNTS)
    assert run.summary.histogram[2].sum() == run.summary.count
    assert mode == "tail" or len(run.events) == 0
    assert (run.tasks, run.info.threads) == (1, 1)


def test_profile_of_threads_handlers_and_children(recorder, tmp_path):
    environment = {"ENSIO_MODE": "profile"}
    said = recorder.execute(
        recorder.build("threads"), tmp_path, 16, 500, 20, check=True, environment=environment
    ).stdout
    run = ensembles.open(recorder.run)
    assert run.notes == []
    summary = run.summary
    per_size = {size: summary.cells["count"][summary.cells["size_class"] == size].sum() for size in (1, 5)}
    assert per_size[5] == 16 * 500 * 20
    assert per_size[1] == int(said.split()[0])
    # 320 threads, 16 at a time: windows are handed on.
    assert only_spool(recorder).status.st_size < 3 << 20

    recorder.run = recorder.folder / "children"
    program = recorder.build("processes")
    recorder.execute(program, tmp_path / "shared", environment=environment)
    profiled = ensembles.open(recorder.run)
    recorder.run = recorder.folder / "traced children"
    recorder.execute(program, tmp_path / "shared")
    traced = ensembles.open(recorder.run)
    assert profiled.summary.count == traced.summary.count == len(traced.events) > 10


def test_a_profile_does_not_grow_with_the_run(recorder, tmp_path):
    environment = {"ENSIO_MODE": "profile"}
    recorder.execute(recorder.build("mixture"), tmp_path, 2000, check=True, environment=environment)
    small = only_spool(recorder).status.st_blocks
    recorder.run = recorder.folder / "long"
    recorder.execute(recorder.build("mixture"), tmp_path, 200_000, check=True, environment=environment)
    # A hundred times as many calls: slow ones on a busy machine add some cells.
    assert only_spool(recorder).status.st_blocks <= 4 * small
    assert ensembles.open(recorder.run).summary.count > 400_000


def test_tail_keeps_the_slow_calls(recorder, tmp_path):
    program = recorder.build("slow_calls")
    recorder.execute(program, tmp_path / "out", 20_000, check=True, environment={"ENSIO_MODE": "tail"})
    run = ensembles.open(recorder.run)
    slow = run.select(call="pwrite")
    slow = slow[slow.duration > 1_900_000]
    assert np.count_nonzero(slow.moved < 0) == 20
    assert len(run.events) < 2000
    assert run.summary.count == 20_001
    # Longest calls are there whole, whether kept as events or not.
    assert run.summary.longest[1].duration.max() >= slow.duration.max()


def test_tail_of_a_short_run_has_its_slowest_calls(recorder, tmp_path):
    """No cell has the 100 calls that a threshold needs."""
    program = recorder.build("mixture")
    recorder.execute(program, tmp_path, 20, check=True, environment={"ENSIO_MODE": "tail"})
    run = ensembles.open(recorder.run)
    found = {
        (run.calls[call].name, start, duration)
        for call, start, duration in zip(run.events.call, run.events.start, run.events.duration, strict=True)
    }
    assert len(found) == len(run.events)  # none of them twice
    cell, longest = run.summary.longest
    sizes = run.summary.cells["size_class"][cell]
    groups = {}
    for row in range(len(longest)):
        key = int(longest.call[row]), int(sizes[row])
        groups.setdefault(key, []).append((int(longest.duration[row]), int(longest.start[row])))
    assert len(groups) > 5
    for (call, _), calls in groups.items():
        for duration, start in sorted(calls, reverse=True)[:8]:
            assert (run.calls[call].name, start, duration) in found
    assert len(found) == sum(min(8, len(calls)) for calls in groups.values())


def test_tail_of_a_short_mpi_job_has_its_slowest_calls(preload, tmp_path):
    program = compiled(preload, "mpi_writes", "mpicc")
    environment = preload.environment(ENSIO_MODE="tail", ENSIO_JOBFILE="1", **ANY_TASKS)
    subprocess.run(["mpiexec", "-n", "2", program], env=environment, check=True, cwd=tmp_path)
    run = ensembles.open(preload.run)
    writes = run.select(call="write")
    assert np.bincount(writes.rank).tolist() == [8, 8]  # of 10 and 11
    longest = run.summary.longest[1]
    for rank in (0, 1):
        of_rank = (longest.rank == rank) & (longest.call == writes.call[0])
        assert writes.duration[writes.rank == rank].max() == longest.duration[of_rank].max()
    assert not list(preload.run.glob("*.spool"))


def test_budget_of_a_process_drops_events_and_counts_them(recorder, tmp_path):
    recorder.execute(
        recorder.build("acknowledge"), tmp_path / "out", 90_000, environment={"ENSIO_MAX_BYTES": "512KiB"}
    )
    run = ensembles.open(recorder.run)
    events = sum(len(chunk) for chunk in run.chunks())
    assert 25_000 < events < 90_000
    assert events + run.info.dropped_events == run.summary.count == 90_001
    assert run.info.lost_calls == 0
    # The summary is beyond the budget, and larger where durations vary more.
    assert only_spool(recorder).status.st_blocks * 512 <= 768 * 1024
    assert any("ENSIO_MAX_BYTES" in note for note in run.notes)


def test_budget_of_a_node_is_shared(recorder, tmp_path):
    program = recorder.build("acknowledge")
    environment = recorder.environment(ENSIO_MAX_BYTES="1GiB,768KiB")
    running = [
        subprocess.Popen([program, tmp_path / f"{i}", "90000"], env=environment, stdout=subprocess.DEVNULL)
        for i in range(3)
    ]
    assert [process.wait() for process in running] == [0, 0, 0]
    run = ensembles.open(recorder.run)
    assert run.summary.count == 3 * 90_001
    assert run.info.dropped_events == run.summary.count - len(run.events) > 0


@pytest.mark.parametrize(
    ("name", "value"),
    [("ENSIO_MODE", "everything"), ("ENSIO_MAX_BYTES", "64 MB"), ("ENSIO_MAX_BYTES", "1MiB,")],
)
def test_settings_that_make_no_sense_are_told_and_ignored(recorder, tmp_path, name, value):
    done = recorder.execute(
        recorder.build("acknowledge"), tmp_path / "out", 1000, check=True, environment={name: value}
    )
    message = done.stderr.decode()
    assert message.count("\n") == 1
    assert name in message
    assert value in message
    run = ensembles.open(recorder.run)
    assert (run.mode, len(run.events)) == ("trace", 1001)


@pytest.mark.parametrize("mode", ["profile", "tail"])
def test_commands_tell_what_a_mode_has(preload, tmp_path, mode):
    program = preload.build("mixture")
    environment = preload.environment()
    del environment["LD_PRELOAD"], environment["ENSIO_DIR"]
    environment["ENSIO_PRELOAD"] = str(preload.library)

    def ensio(*arguments):
        command = ["ensio", *map(str, arguments)]
        return commands_here.run(command, env=environment, capture_output=True, text=True)

    started = ensio("run", "-o", preload.run, "--mode", mode, "--", program, tmp_path, 3000)
    assert started.returncode == 0
    info = json.loads(ensio("info", "--json", preload.run).stdout)
    traced = tmp_path / "traced"
    ensio("run", "-o", traced, "--", program, tmp_path, 3000)
    expected = json.loads(ensio("info", "--json", traced).stdout)
    assert info["mode"] == mode
    assert info["recorded_calls"] == expected["events"]
    for key in ("tasks", "threads", "bytes_read", "bytes_written", "files", "dropped_events"):
        assert info[key] == expected[key], key
    for call, row in expected["calls"].items():
        assert {key: info["calls"][call][key] for key in ("layer", "count", "bytes", "errors")} == {
            key: row[key] for key in ("layer", "count", "bytes", "errors")
        }
    text = ensio("info", preload.run)
    assert f"{mode}: totals and histograms" in text.stdout
    events = ensio("events", preload.run)
    if mode == "profile":
        assert (events.returncode, events.stdout, events.stderr.count("\n")) == (2, "", 1)
        assert "mode profile" in events.stderr
    else:
        assert events.returncode == 0
        assert "slowest" in events.stderr
    page = tmp_path / "report.html"
    assert ensio("report", preload.run, "-o", page).returncode == 0
    assert "include all calls" in page.read_text()


def test_a_trace_file_keeps_the_summary(recorder, tmp_path):
    recorder.execute(
        recorder.build("mixture"), tmp_path, 3000, check=True, environment={"ENSIO_MODE": "tail"}
    )
    spool = only_spool(recorder).path
    read = ensembles.open(spool).summary
    collect(str(recorder.run))
    stored = ensembles.open(recorder.run / "trace.h5")
    assert (stored.mode, stored.summary.count) == ("tail", read.count)
    for name, column in read.to_arrays().items():
        np.testing.assert_array_equal(stored.summary.to_arrays()[name], column)


def test_sums_of_reads_alone_say_nothing_of_writes(preload, tmp_path):
    (tmp_path / "data").write_bytes(b"x" * 100_000)
    settings = {"ENSIO_MODE": "profile"}
    said = []
    for command in (["md5sum", "data"], ["cp", "data", "copy"]):
        assert preload.execute(*command, cwd=tmp_path, environment=settings).returncode == 0
        run = f"{preload.run}#2" if said else preload.run
        said.append(str(answer_info(ensembles.open(run))))
    assert "by the slowest task's time" in said[0]
    assert ["Written: time in writes" in text for text in said] == [False, True]

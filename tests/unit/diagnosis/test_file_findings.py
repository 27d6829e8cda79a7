"""Causes that lie in how files are opened, buffered and laid out, and in what libraries make of a call."""

from __future__ import annotations

import struct
from pathlib import Path

import darshan
import numpy as np
import pytest
from made_io import KIB, MIB, Made, found_ids, io_run, refusal

import ensembles as en
from ensembles.diagnosis.file_uses import METADATA, READ_TO_WRITE, SIEVED, FileUses
from ensembles.model.metadata import WAITS_FOR_DEVICE

TWO = {1: "/scratch/log", 2: "/scratch/data"}


def finding(run: en.Run, cause: str):
    (one,) = (each for each in en.diagnose(run).findings if each.id == cause)
    return one


def writes(file: int, us: float, count: int = 64, size: int = 64 * KIB) -> list[Made]:
    """Those of file 1 use a descriptor with flags."""
    begin = [Made("open", 20, file=file)]
    flags = WAITS_FOR_DEVICE if file == 1 else 0
    return begin + [Made("pwrite", us, size, number * size, file, carried=flags) for number in range(count)]


def test_writes_that_wait_because_of_o_sync_are_named_and_compared_with_others(tmp_path):
    calls = writes(1, 600) + writes(2, 20)
    run = io_run(tmp_path / "a", [calls], TWO, {1: {"open.flags": "O_SYNC"}})
    found = finding(run, "o-sync")
    assert (found.severity, found.evidence["writes"]) == ("critical", 64)
    assert [check.holds for check in found.checks] == [True, True]
    assert found.where.files == ("/scratch/log",)
    low, high = found.gain_s
    assert low < 64 * 580e-6 < high


def test_a_task_that_is_slow_because_of_o_sync_is_explained_by_it(tmp_path):
    def task(rank):
        steps = []
        for step in range(8):
            file, us = (1, 600) if rank == 2 else (2, 20)
            flags = WAITS_FOR_DEVICE if rank == 2 else 0
            places = range(16 * step * 4096, 16 * (step + 1) * 4096, 4096)
            steps += [Made("pwrite", us, 4096, at, file, carried=flags) for at in places]
            steps.append(Made("MPI_Barrier", 10 if rank == 2 else 9_290))
        return steps

    run = io_run(tmp_path / "a", [task(rank) for rank in range(6)], TWO, {1: {"open.flags": "O_SYNC"}})
    found = en.diagnose(run)
    assert found.findings[0].id == "o-sync"
    assert "straggler-task" in found.findings[0].symptoms
    (slow,) = (each for each in found.findings if each.id == "straggler-task")
    assert slow.severity == "note"


def test_without_other_writes_the_disk_may_be_slow_as_such(tmp_path):
    run = io_run(tmp_path / "a", [writes(1, 600)], TWO, {1: {"open.flags": "O_DIRECT"}})
    found = finding(run, "o-sync")
    assert [check.holds for check in found.checks] == [True, None]
    assert "O_DIRECT" in found.advice


@pytest.mark.parametrize("others_us", [600, 20])
def test_flags_that_cost_nothing_are_no_finding(others_us, tmp_path):
    """Writes to other files are as slow: the flags do not matter."""
    run = io_run(
        tmp_path / "a", [writes(1, others_us) + writes(2, others_us)], TWO, {1: {"open.flags": "O_SYNC"}}
    )
    assert "o-sync" not in found_ids(run)


def test_large_direct_writes_are_as_they_should_be(tmp_path):
    calls = writes(1, 5000, count=16, size=16 * MIB)
    assert "o-sync" not in found_ids(io_run(tmp_path / "a", [calls], TWO, {1: {"open.flags": "O_DIRECT"}}))


def test_a_record_that_does_not_say_which_writes_used_the_flags_is_refused(tmp_path):
    calls = [call._replace(carried=0) for call in writes(1, 600)]
    run = io_run(tmp_path / "a", [calls], TWO, {1: {"open.flags": "O_SYNC"}})
    assert "no event says that its write used such a descriptor" in refusal(run, "o-sync")


@pytest.mark.parametrize(("post_us", "wait_us"), [(20, 5000), (300, 2000)])
def test_waits_for_requests_are_of_their_bytes_and_may_be_those_of_flags(post_us, wait_us, tmp_path):
    requests = [
        each
        for number in range(40)
        for each in (Made("aio_write", post_us, MIB, number * MIB), Made("aio_suspend", wait_us))
    ]
    run = io_run(tmp_path / "a", [[Made("open", 20), *requests]], TWO, {1: {"open.flags": "O_DSYNC"}})
    told = refusal(run, "o-sync")
    assert "asynchronous requests" in told
    assert "record the run again" not in told
    entries = {each.id: each for each in en.diagnose(run).account.entries}
    assert entries["bytes"].call == "aio_suspend"
    assert entries["bytes"].time_s >= 40e-6 * wait_us


def test_without_an_open_the_flags_are_unknown(tmp_path):
    run = io_run(tmp_path / "a", [writes(1, 600)[1:]], TWO)
    assert "open" in refusal(run, "o-sync")


def streams(us: float = 4, count: int = 4096, every: int = 16) -> list[Made]:
    """256-byte records: every 16th passes 4 KiB on."""
    return [Made("fwrite", us if number % every == every - 1 else 0.02, 256) for number in range(count)]


def counted(pieces: int, total: int) -> list[dict[str, int]]:
    return [{"us": 0}, {"us": 30_000, "write_calls": pieces, "written_by_calls": total}]


def test_pieces_of_a_small_buffer_are_counted_by_the_kernel(tmp_path):
    total = 4096 * 256
    run = io_run(tmp_path / "a", [streams()], samples=counted(256, total))
    found = finding(run, "stdio-buffer")
    assert found.evidence["write_bytes"] == pytest.approx(4096)
    assert found.evidence["write_calls"] == 256
    # 256 pieces of 4 us, less copying 1 MiB.
    assert 0 < found.gain_s[0] < 0.7 * 256 * 4e-6 < found.gain_s[1] < 256 * 4e-6
    assert "glibc ignores the size" in found.advice


@pytest.mark.parametrize(
    ("every", "us", "long_us"), [(16, 4, 4_000), (16, 0.5, 8_000), (64, 4, 20_000), (16, 4, 400)]
)
def test_pieces_cost_what_they_usually_take_and_long_calls_wait_for_a_processor(tmp_path, every, us, long_us):
    calls = streams(us, 16 * 4096, every)
    pieces = len(calls) // every
    for number in range(every - 1, len(calls), 32 * every):  # more than `LEAST_CALLS` of them
        calls[number] = calls[number]._replace(us=long_us)
    total = 256 * len(calls)
    run = io_run(tmp_path / "a", [calls], samples=counted(pieces, total))
    found = en.diagnose(run)
    assert sum(each.share_s or 0 for each in found.findings if each.id == "stdio-buffer") < pieces * us * 1e-6
    assert not [each for each in found.findings if each.severity == "critical"]


def test_formatting_is_not_what_an_unbuffered_stream_costs(tmp_path):
    calls = [Made("fprintf", 6, 23)] * 4096
    found = en.diagnose(io_run(tmp_path / "a", [calls], samples=counted(4096, 4096 * 23))).findings
    assert [each.id for each in found] == ["stdio-buffer"]


def test_a_large_buffer_is_no_finding(tmp_path):
    run = io_run(tmp_path / "a", [streams(us=150, every=1024)], samples=counted(4, 4096 * 256))
    assert "stdio-buffer" not in found_ids(run)


def sieved(count: int = 16, reads: bool = True, read_bytes: int = 512 * KIB) -> list[Made]:
    """Writes of 64 KiB in pieces: each reads 512 KiB, or beyond the end of the file, and writes it again."""
    calls = []
    for number in range(count):
        at = number * 512 * KIB
        inside = [Made("pread", 100, read_bytes, at)] if reads else []
        inside.append(Made("pwrite", 200, 512 * KIB if reads else 64 * KIB, at))
        calls.append(Made("MPI_File_write_at", 350, 64 * KIB, at, inside=inside))
    return calls


@pytest.mark.parametrize("read_bytes", [512 * KIB, 0])
def test_reads_of_the_same_range_inside_a_write_are_data_sieving(tmp_path, read_bytes):
    run = io_run(tmp_path / "a", [sieved(read_bytes=read_bytes) for _ in range(4)])
    found = finding(run, "read-modify-write")
    assert found.severity == "critical"
    assert found.evidence["reads"] == 64
    assert found.evidence["written_bytes"] == 8 * found.evidence["asked_bytes"]
    # The reads are off at least; at most all but an eighth of the writes, and the call's exclusive time.
    assert found.gain_s[0] <= 16 * 100e-6 <= found.gain_s[1] <= 16 * 360e-6


def test_reads_inside_writes_without_holes_are_data_sieving_too(tmp_path):
    """As VPIC with HDF5 on GPFS: ROMIO reads each buffer, and writes all of it anew."""
    pieces = [
        Made(call, us, 512 * KIB, at)
        for at in (0, 512 * KIB)
        for call, us in (("pread", 100), ("pwrite", 50))
    ]
    calls = [
        Made(
            "MPI_File_write_at",
            400,
            MIB,
            at * MIB,
            inside=[piece._replace(offset=at * MIB + piece.offset) for piece in pieces],
        )
        for at in range(16)
    ]
    found = finding(io_run(tmp_path / "a", [calls] * 4), "read-modify-write")
    assert found.evidence["written_bytes"] == found.evidence["asked_bytes"]
    assert found.evidence["read_bytes"] == 4 * 16 * MIB
    assert "no holes" in found.title
    assert "romio_ds_write=disable" in found.advice
    assert "a collective write" not in found.advice
    # The reads are the gain, and what the call waits; the writes have to be made.
    assert 16 * 200e-6 * 0.9 < found.gain_s[1] < 16 * 310e-6


def test_writes_of_mpi_io_without_reads_are_no_data_sieving(tmp_path):
    assert "read-modify-write" not in found_ids(io_run(tmp_path / "a", [sieved(reads=False)] * 4))
    without = [[call._replace(inside=()) for call in sieved()]] * 2
    assert "layer posix" in refusal(io_run(tmp_path / "b", without), "read-modify-write")


def test_a_program_that_reads_and_writes_the_same_range_itself_is_not_data_sieving(tmp_path):
    calls = []
    for number in range(16):
        calls += [Made("pread", 100, MIB, number * MIB), Made("pwrite", 100, MIB, number * MIB)]
    assert "read-modify-write" not in found_ids(io_run(tmp_path / "a", [calls] * 2))


def layout(count: int) -> dict[str, str]:
    packed = struct.pack("<II16sIHH", 0x0BD10BD0, 1, bytes(16), MIB, count, 0)
    packed += b"".join(struct.pack("<20xI", target) for target in range(count))
    return {"lustre.lov": packed.hex()}


def shared(
    tasks: int = 16, together: bool = True, size: int = 4 * MIB
) -> tuple[list[list[Made]], list[float]]:
    calls = [
        [Made("pwrite", 4000, size, (rank + number * tasks) * size) for number in range(4)]
        for rank in range(tasks)
    ]
    return calls, [0.0 if together else rank * 20_000.0 for rank in range(tasks)]


def test_many_writers_on_one_target_are_named_and_the_gain_is_a_bound(tmp_path):
    calls, starts = shared()
    run = io_run(tmp_path / "a", calls, facts={1: layout(1)}, starts_us=starts)
    found = finding(run, "single-stripe")
    assert found.evidence["tasks"] == 16
    assert "lfs setstripe" in found.advice
    # How fast more targets are is not in this run: what the gain assumes is said.
    assert [check.holds for check in found.checks] == [True, True]
    assert "a stripe count of 8" in found.evidence["gain_assumes"]
    assert 0 < found.gain_s[0] < found.gain_s[1] <= 16e-3 * 7 / 8 * 1.2


@pytest.mark.parametrize("case", ["wide", "in turns", "few"])
def test_no_finding_where_one_target_is_not_crowded(case, tmp_path):
    turns = case == "in turns"
    calls, starts = shared(3 if case == "few" else 16, not turns, MIB if turns else 4 * MIB)
    run = io_run(tmp_path / "a", calls, facts={1: layout(4 if case == "wide" else 1)}, starts_us=starts)
    assert "single-stripe" not in found_ids(run)


def test_a_write_of_several_stripes_has_work_for_several_targets_also_in_turns(tmp_path):
    calls, starts = shared(together=False)
    found = finding(io_run(tmp_path / "a", calls, facts={1: layout(1)}, starts_us=starts), "single-stripe")
    # 256 ms of calls in 316 ms, each of four stripes.
    assert found.evidence["tasks_at_once"] == pytest.approx(4 * 256 / 316, rel=0.01)
    assert found.title == "16 tasks write 1 shared file on one storage target"


def test_without_a_layout_stripes_are_not_examined(tmp_path):
    assert "layout" in refusal(io_run(tmp_path / "a", shared()[0]), "single-stripe")


H5 = {1: "/scratch/a.h5"}


def objects(count: int = 200, small: int = 3) -> list[Made]:
    """Objects are created, each with some small requests, and one dataset is written in large pieces."""
    calls, at = [], 0
    for _ in range(count):
        inside = []
        for number in range(small):
            inside.append(Made("pwrite" if number else "pread", 30, 300, at))
            at += 600
        calls.append(Made("H5Gcreate", 100, inside=inside))
    for number in range(4):
        piece = Made("pwrite", 500, MIB, MIB * (1 + number))
        calls.append(Made("H5Dwrite", 600, MIB, inside=[piece]))
    return calls


@pytest.mark.parametrize("tasks", [1, 8])
def test_small_requests_inside_hdf5_that_move_no_data_are_metadata(tasks, tmp_path):
    run = io_run(tmp_path / "a", [objects()] * tasks, H5)
    found = finding(run, "hdf5-metadata")
    assert found.severity == "critical"
    assert found.evidence["requests"] == 600 * tasks
    assert found.evidence["data_calls"] == 4 * tasks
    assert found.gain_s[0] <= 600 * 29e-6 <= found.gain_s[1]
    assert ("H5Pset_all_coll_metadata_ops" in found.advice) == (tasks > 1)


def test_a_file_of_data_has_no_finding_about_metadata(tmp_path):
    assert "hdf5-metadata" not in found_ids(io_run(tmp_path / "a", [objects(count=5)], H5))
    without = [Made("pwrite", 30, 300, number * 300) for number in range(200)]
    assert "layer hdf5" in refusal(io_run(tmp_path / "b", [without], H5), "hdf5-metadata")


@pytest.mark.parametrize("held", [True, False])
def test_chunks_that_hdf5_held_in_its_cache_are_data(held, tmp_path):
    """As of h5py: chunks of 32 KiB are written when the file is flushed; or H5Dwrite wrote them itself."""
    size = 32 * KIB
    pieces = [Made("pwrite", 60, size, number * size) for number in range(200)]
    calls = [
        Made(
            "H5Dwrite", 80, size, inside=[] if held else [Made("pwrite", 60, size, 100 * MIB + piece.offset)]
        )
        for piece in pieces
    ]
    calls.append(Made("H5Gcreate", 15_000, inside=[*pieces, Made("pwrite", 20, 300, 90 * MIB)]))
    run = io_run(tmp_path / "a", [calls], H5)
    assert ("hdf5-metadata" in found_ids(run)) == (not held)


def filled(times: int, back: bool = False, chunks: int = 16, own_us: float = 600) -> list[Made]:
    """Chunks of 1 MiB are written so many times, and read back before the last; HDF5 works on each."""
    calls = [
        Made("H5Gcreate", 400, inside=[Made("pwrite", 300, MIB, chunk * MIB) for chunk in range(chunks)])
        for _ in range(times - 1)
    ]
    for chunk in range(chunks):
        inside = [Made("pread", 200, MIB, chunk * MIB)] if back else []
        calls.append(Made("H5Dwrite", own_us, MIB, inside=[*inside, Made("pwrite", 300, MIB, chunk * MIB)]))
    return calls


def test_bytes_that_are_written_twice_are_fill_values(tmp_path):
    found = finding(io_run(tmp_path / "a", [filled(2)], H5), "hdf5-refill")
    assert found.evidence["write_bytes"] == 2 * found.evidence["write_needed_bytes"] == 32 * MIB
    assert found.severity == "critical"
    assert found.gain_s[0] <= 16 * 300e-6 <= found.gain_s[1]


def test_chunks_that_are_read_back_are_named(tmp_path):
    found = finding(io_run(tmp_path / "a", [filled(1, back=True)], H5), "hdf5-refill")
    assert found.evidence["read_back_bytes"] == 16 * MIB
    assert "H5Pset_chunk_cache" in found.advice
    # What the run shows comes first, whatever fill values there may be.
    both = finding(io_run(tmp_path / "b", [filled(2, back=True)], H5), "hdf5-refill").advice
    assert 0 < both.index("H5Pset_chunk_cache") < both.index("H5Pset_fill_time")
    fill = finding(io_run(tmp_path / "c", [filled(2)], H5), "hdf5-refill").advice
    assert 0 < fill.index("H5Pset_fill_time") < fill.index("H5Pset_chunk_cache")


def test_filters_that_run_again_for_each_chunk_are_most_of_the_gain(tmp_path):
    """A chunk is unpacked and packed in each call: half of the packing would do, if it were written once."""
    found = finding(io_run(tmp_path / "a", [filled(1, back=True, own_us=50_000)], H5), "hdf5-refill")
    assert found.severity == "critical"
    assert found.gain_s[0] < 0.5 * 16 * 0.050 < found.gain_s[1] < 16 * 0.051
    assert found.gain_s[0] > 0.2 * 16 * 0.050


def test_a_dataset_that_is_written_once_or_rewritten_by_the_program_is_no_refill(tmp_path):
    assert "hdf5-refill" not in found_ids(io_run(tmp_path / "a", [filled(1)], H5))
    again = [call for _ in range(3) for call in filled(1)]
    assert "hdf5-refill" not in found_ids(io_run(tmp_path / "b", [again], H5))


LOGS = Path(darshan.__file__).parent / "examples" / "example_logs"


@pytest.mark.parametrize(("name", "sieves"), [("shane_macsio*", True), ("example.darshan", False)])
def test_data_sieving_shows_in_counters_of_mpi_io_and_posix(name, sieves):
    (log,) = LOGS.glob(name)
    found = en.diagnose(en.open(str(log)))
    assert "read-modify-write" in found.examined
    named = [each for each in found.findings if each.id == "read-modify-write"]
    assert len(named) == sieves
    for each in named:
        # MPIIO_BYTES_WRITTEN, POSIX_BYTES_WRITTEN and POSIX_BYTES_READ of the shared file, by PyDarshan.
        expected = {"asked_bytes": 13286360, "written_bytes": 54579416, "read_bytes": 39816960}
        assert expected.items() <= each.evidence.items()
        assert (each.severity, each.gain_s[0]) == ("note", 0.0)


RULES = ("o-sync", "stdio-buffer", "read-modify-write", "single-stripe", "hdf5-metadata", "hdf5-refill")


@pytest.mark.parametrize(
    "calls",
    [
        [[Made("pwrite", 5, 10, 0)]],
        [[Made("open", 5), Made("close", 3)]],
        [[Made("pread", 5, 10, 0)], []],
        [[Made("H5Gcreate", 5)]],
        [[Made("fread", 5, 10)]],
    ],
    ids=["one event", "metadata only", "an idle task", "one HDF5 call", "one stream"],
)
def test_runs_with_next_to_nothing_in_them_have_no_finding(calls, tmp_path):
    found = found_ids(io_run(tmp_path / "a", calls))
    assert not set(RULES) & set(found)


def test_profiles_and_lost_events_are_refused_with_what_to_record(tmp_path):
    profile = io_run(tmp_path / "a", [sieved()], mode="profile")
    lost = io_run(tmp_path / "b", [sieved()], head={"dropped_events": 5})
    for cause in RULES:
        assert "ensio run --mode trace" in refusal(profile, cause)
        assert "lacks the events of 5 calls" in refusal(lost, cause)


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
def test_uses_of_files_do_not_depend_on_the_chunks(size, tmp_path):
    run = io_run(tmp_path / "a", [sieved() + objects(20) + filled(1, back=True), sieved(3)], H5)
    whole, parts = FileUses.for_run(run), (FileUses.for_run(run), FileUses.for_run(run))
    events = run.events
    # As in a pass: the calls of a thread in the order of completion.
    events = events[np.lexsort((-events.depth.astype(int), events.start + events.duration, events.rank))]
    whole.add(events)
    for rank, part in enumerate(parts):
        mine = events[events.rank == rank]
        for low in range(0, len(mine), size):
            part.add(mine[low : low + size])
    for each in (whole, *parts):
        each.finalize()
    parts[0].merge(parts[1])
    expected, found = whole.to_arrays(), parts[0].to_arrays()
    for name, column in expected.items():
        np.testing.assert_array_equal(found[name], column, err_msg=name)
    count = {
        kind: int(expected["n"][expected["kind"] == kind].sum()) for kind in (SIEVED, METADATA, READ_TO_WRITE)
    }
    assert count == {SIEVED: 19, METADATA: 60, READ_TO_WRITE: 16}
    assert expected["time_ns"].sum() < events.duration.sum()


def test_a_small_gain_is_no_finding_of_a_long_run(tmp_path):
    # 0.2 ms beyond copying, and a loop of 5 ms, which may do other things.
    calls = [Made("fread", 0.06, 100) for _ in range(5000)]
    found = finding(io_run(tmp_path / "a", [calls]), "stdio-buffer")
    assert found.gain_s[0] < found.share_s <= found.gain_s[1] <= 5000 * 0.06e-6
    # Of a long run, the best estimate is not worth a line.
    rest = Made("pwrite", 400_000, 64 * MIB)
    assert "stdio-buffer" not in found_ids(io_run(tmp_path / "b", [[*calls, rest]]))


def test_without_the_kernels_counters_small_calls_on_streams_are_judged_by_their_times(tmp_path):
    calls = [Made("fwrite", 400, 4 * KIB) for _ in range(64)]
    found = finding(io_run(tmp_path / "a", [calls]), "stdio-buffer")
    assert "glibc ignores the size" in found.advice
    assert found.severity == "critical"


def test_time_in_formatting_is_named_with_its_calls_and_is_not_that_of_bytes(tmp_path):
    """1,000 fwrites of the same size take 0.1 us: formatting is what fprintf takes beyond."""
    rest = Made("pwrite", 20_000, MIB, file=2)
    plain = [Made("fwrite", 0.1, 24, file=2)] * 1000
    calls = [Made("fprintf", 1.1, 24)] * 20_000
    diagnosis = en.diagnose(io_run(tmp_path / "a", [[*plain, *calls, rest]], TWO))
    found = next(each for each in diagnosis.findings if each.id == "formatted-io")
    assert found.severity == "critical"
    assert found.share_s == pytest.approx(20_000 * 1.0e-6, rel=0.05)
    assert found.title.startswith("20,000 calls of fprintf of 24 B take 1.10")
    assert "fwrite" in found.advice
    times = {each.id: each.time_s for each in diagnosis.account.entries}
    assert times["formatted-io"] == pytest.approx(found.share_s)
    assert times.get("rate", 0.0) < 0.025  # the large write alone
    same = [each._replace(name="fwrite") for each in calls]
    assert "formatted-io" not in found_ids(io_run(tmp_path / "b", [[*plain, *same, rest]], TWO))

"""OTF2 archives that ensio did not write: made in Score-P's way by a C program that says what it did, and by
OTF2's own Python bindings. What is read is what was said, and what otf2-print shows."""

import os
import re
import subprocess
from collections import Counter, defaultdict

import numpy as np
import pytest
from places import BUILD, PROGRAMS

import ensembles

TICK_NS = 1000


@pytest.fixture(autouse=True)
def program_to_read_with(monkeypatch):
    """The tree's own ensio-otf2."""
    monkeypatch.setenv("PATH", f"{BUILD / 'bin'}:{os.environ['PATH']}")


@pytest.fixture(scope="module")
def archive(tmp_path_factory):
    """An archive as Score-P makes them, and what its maker says of each call."""
    folder = tmp_path_factory.mktemp("others")
    flags = subprocess.run(
        ["pkg-config", "--cflags", "--libs", "otf2"], check=True, capture_output=True, text=True
    )
    program = folder / "program"
    source = PROGRAMS / "otf2_of_others.c"
    subprocess.run(["gcc", "-w", source, "-o", program, *flags.stdout.split()], check=True)
    said = subprocess.run([program, folder / "archive"], check=True, capture_output=True, text=True)
    return folder / "archive", [line.split() for line in said.stdout.splitlines()]


def rows_of(run):
    events = run.events
    names = [run.calls[call].name for call in events.call]
    files = [run.files[file] or "-" for file in events.file]
    columns = (
        events.offset,
        events.requested,
        events.moved,
        events.depth,
        events.carried,
        events.start,
        events.start + np.maximum(events.flight, events.duration),  # the end of a request, not of its post
    )
    numbers = zip(*(column.tolist() for column in columns), strict=True)
    who = zip(events.rank.tolist(), events.thread.tolist(), strict=True)
    return [(*one, name, file, *row) for one, name, file, row in zip(who, names, files, numbers, strict=True)]


def test_calls_are_those_that_were_made(archive):
    folder, said = archive
    run = ensembles.open(folder)
    expected = [
        (int(rank), int(thread), name, file, *map(int, numbers), int(begin) * TICK_NS, int(end) * TICK_NS)
        for rank, thread, name, file, *numbers, begin, end in said
    ]
    assert sorted(rows_of(run)) == sorted(expected)
    assert (run.tasks, run.info.threads, run.info.origin_unix_ns) == (2, 3, 1_700_000_000_000_000_000)
    assert [process.host for process in run.info.processes] == ["node-a", "node-b"]
    assert run.info.hosts == ["node-a", "node-b"]


def test_functions_have_their_layers_and_operations(archive):
    folder, _ = archive
    run = ensembles.open(folder / "traces.otf2")
    assert {(call.name, call.layer, call.op) for call in run.calls[1:]} == {
        ("open", "posix", "open"),
        ("lseek", "posix", "seek"),
        ("read", "posix", "read"),
        ("pread", "posix", "read"),
        ("dup", "posix", "meta"),
        ("write", "posix", "write"),
        ("write", "stdio", "write"),
        ("readv", "posix", "read"),
        ("fopen", "stdio", "open"),
        ("fprintf", "stdio", "write"),
        ("fsync", "posix", "sync"),
        ("close", "posix", "close"),
        ("unlink", "posix", "meta"),
        ("access", "posix", "meta"),
        ("pwrite", "posix", "write"),
        ("aio_write", "posix", "write"),
        ("MPI_File_write_all", "mpiio", "write"),
        ("MPI_File_iwrite_at", "mpiio", "write"),
        ("MPI_Wait", "mpisync", "wait"),
        ("MPI_Barrier", "mpisync", "wait"),
    }
    assert Counter(run.regions.names[number] for number in run.regions.name) == {"solve": 2}


def test_what_is_left_out_is_told(archive):
    run = ensembles.open(archive[0])
    assert len(run.notes) == 3
    assert re.search(r": 1 operations have no end", run.notes[0])
    assert re.search(r": 1 calls were entered but not left", run.notes[1])
    assert re.search(r"by another tool: failed calls are known only", run.notes[2])


def printed_operations(anchor):
    """Location, file, mode, bytes asked for and moved, begin and end of operations, of otf2-print's lines."""
    done = subprocess.run(["otf2-print", anchor], capture_output=True, text=True, check=True)
    assert done.stderr == ""
    begun, whole = defaultdict(list), []
    for line in done.stdout.splitlines():
        if record := re.match(r"IO_OPERATION_(BEGIN|COMPLETE) +(\d+) +(\d+)  (.*)", line):
            kind, location, time, rest = record.groups()
            said = dict(part.split(": ", 1) for part in re.split(r", (?=[A-Z][A-Za-z ]+: )", rest))
            key = (said["Handle"], said["Matching Id"])
            if kind == "BEGIN":
                begun[key].append((location, said["Mode"], said["Bytes Request"], int(time)))
            else:
                place, mode, asked, start = begun[key].pop(0 if place_differs(begun[key], location) else -1)
                file = re.search(r"file://([^\"]*)", said["Handle"]).group(1)
                whole.append((place, file, mode, asked, said["Bytes Result"], start, int(time)))
    return whole


def place_differs(begun, location):
    return begun[-1][0] != location


def test_operations_are_those_that_otf2_print_shows(archive):
    folder, _ = archive
    run = ensembles.open(folder)
    modes = {"read": "READ", "write": "WRITE", "sync": "FLUSH"}
    place = {(0, 0): "0", (0, 1): str(1 << 32), (1, 0): "1"}
    ours = []
    for rank, thread, name, file, _, asked, moved, _, _, start, end in rows_of(run):
        op = next(call.op for call in run.calls if call.name == name)
        if op in modes:
            told = str(2**64 - 1) if name == "fprintf" or op == "sync" else str(asked)
            result = str(2**64 - 1) if moved == -1 else str(moved)
            ours.append(
                (
                    place[rank, thread],
                    file,
                    modes[op],
                    told,
                    result,
                    start // TICK_NS + 5000,
                    end // TICK_NS + 5000,
                )
            )
    assert sorted(ours) == sorted(printed_operations(folder / "traces.otf2"))


def test_an_archive_of_the_python_bindings(tmp_path):
    import otf2
    from otf2.enums import (
        IoAccessMode,
        IoOperationMode,
        IoParadigmClass,
        IoParadigmFlag,
        LocationGroupType,
        LocationType,
    )

    with otf2.writer.open(str(tmp_path / "archive"), timer_resolution=1_000_000_000) as trace:
        root = trace.definitions.system_tree_node("machine")
        node = trace.definitions.system_tree_node("n1", parent=root)
        paradigm = trace.definitions.io_paradigm(
            "POSIX", "POSIX I/O", IoParadigmClass.SERIAL, IoParadigmFlag.OS
        )
        file = trace.definitions.io_regular_file("/data/x", scope=root)
        handle = trace.definitions.io_handle("x", file=file, io_paradigm=paradigm)
        for rank in range(3):
            group = trace.definitions.location_group(
                f"rank {rank}", system_tree_parent=node, location_group_type=LocationGroupType.PROCESS
            )
            location = trace.definitions.location("thread", type=LocationType.CPU_THREAD, group=group)
            events = trace.event_writer_from_location(location)
            access = (IoAccessMode.READ_ONLY, IoAccessMode.WRITE_ONLY, IoAccessMode.READ_WRITE)[rank]
            events.io_create_handle(1000, handle, access, 0, 0)
            for number in range(100):
                begin = 2000 + 100 * number
                events.io_operation_begin(begin, handle, IoOperationMode.WRITE, 0, 64, number)
                events.io_operation_complete(begin + 10 + rank, handle, 60, number)
            events.io_destroy_handle(50_000, handle)
    run = ensembles.open(tmp_path / "archive")
    writes = run.select(op="write")
    assert [run.calls[call].name for call in np.unique(writes.call)] == ["POSIX write"]
    assert writes.rank.tolist() == [0] * 100 + [1] * 100 + [2] * 100
    assert writes.offset.tolist() == list(range(0, 6000, 60)) * 3
    assert (writes.duration == 10 + writes.rank).all()
    assert set(writes.moved.tolist()) == {60}
    assert set(writes.requested.tolist()) == {64}
    assert len(run.select(op="open")) == len(run.select(op="close")) == 3
    assert run.select(op="open").carried.tolist() == [16, 32, 48]


def test_an_end_in_another_process_is_not_that_of_an_operation(tmp_path):
    """Processes have common handles and numbers where they open a file together."""
    import otf2
    from otf2.enums import (
        IoOperationFlag,
        IoOperationMode,
        IoParadigmClass,
        IoParadigmFlag,
        LocationGroupType,
    )

    with otf2.writer.open(str(tmp_path / "archive"), timer_resolution=1_000_000_000) as trace:
        root = trace.definitions.system_tree_node("machine")
        paradigm = trace.definitions.io_paradigm(
            "MPI-IO", "MPI I/O", IoParadigmClass.PARALLEL, IoParadigmFlag.NONE
        )
        file = trace.definitions.io_regular_file("/data/x", scope=root)
        handle = trace.definitions.io_handle("x", file=file, io_paradigm=paradigm)
        for rank in range(2):
            group = trace.definitions.location_group(
                f"rank {rank}", system_tree_parent=root, location_group_type=LocationGroupType.PROCESS
            )
            threads = [trace.definitions.location(name, group=group) for name in ("main", "helper")]
            begins, ends = (trace.event_writer_from_location(thread) for thread in threads)
            if rank == 0:
                begins.io_operation_begin(
                    100, handle, IoOperationMode.WRITE, IoOperationFlag.NON_BLOCKING, 64, 5
                )
            else:
                begins.io_operation_begin(
                    150, handle, IoOperationMode.WRITE, IoOperationFlag.NON_BLOCKING, 32, 5
                )
                ends.io_operation_complete(200, handle, 32, 5)
                ends.io_operation_complete(300, handle, 64, 5)
    run = ensembles.open(tmp_path / "archive")
    assert (run.events.rank.tolist(), run.events.moved.tolist(), run.events.duration.tolist()) == (
        [1],
        [32],
        [50],
    )
    assert sum("1 operations have no end" in note for note in run.notes) == 1
    assert sum("1 operations have no beginning" in note for note in run.notes) == 1


def test_positions_are_those_of_a_process_that_has_handles_in_common_with_others(tmp_path):
    """Two threads of the first process use a file and a duplicate, of the second one thread alone."""
    import otf2
    from otf2.enums import IoAccessMode, IoOperationMode, IoParadigmClass, IoParadigmFlag, LocationGroupType

    with otf2.writer.open(str(tmp_path / "archive"), timer_resolution=1_000_000_000) as trace:
        root = trace.definitions.system_tree_node("machine")
        paradigm = trace.definitions.io_paradigm(
            "POSIX", "POSIX I/O", IoParadigmClass.SERIAL, IoParadigmFlag.OS
        )
        file = trace.definitions.io_regular_file("/data/x", scope=root)
        first, copy = (trace.definitions.io_handle(name, file=file, io_paradigm=paradigm) for name in "xy")
        for rank in range(2):
            group = trace.definitions.location_group(
                f"rank {rank}", system_tree_parent=root, location_group_type=LocationGroupType.PROCESS
            )
            threads = [trace.definitions.location(name, group=group) for name in ("main", "helper")]
            main, helper = (trace.event_writer_from_location(thread) for thread in threads)
            main.io_create_handle(1000, first, IoAccessMode.READ_WRITE, 0, 0)
            main.io_duplicate_handle(1100, first, copy, 0)
            for time, writer, handle in ((2000, main, first), (3000, helper if rank == 0 else main, copy)):
                writer.io_operation_begin(time, handle, IoOperationMode.WRITE, 0, 64, 0)
                writer.io_operation_complete(time + 10, handle, 64, 0)
    writes = ensembles.open(tmp_path / "archive").select(op="write")
    assert list(zip(writes.rank.tolist(), writes.offset.tolist(), strict=True)) == [
        (0, -1),
        (0, -1),
        (1, 0),
        (1, 64),
    ]


def test_requests_have_a_post_a_flight_and_a_wait(tmp_path):
    import otf2
    from otf2.enums import (
        IoOperationFlag,
        IoOperationMode,
        IoParadigmClass,
        IoParadigmFlag,
        LocationGroupType,
        Paradigm,
        RegionRole,
    )

    flag, write = IoOperationFlag.NON_BLOCKING, IoOperationMode.WRITE
    with otf2.writer.open(str(tmp_path / "archive"), timer_resolution=1_000_000_000) as trace:
        define = trace.definitions
        root = define.system_tree_node("machine")
        paradigm = define.io_paradigm("MPI-IO", "MPI I/O", IoParadigmClass.PARALLEL, IoParadigmFlag.NONE)
        file = define.io_regular_file("/data/x", scope=root)
        handle = define.io_handle("x", file=file, io_paradigm=paradigm)
        post = define.region("MPI_File_iwrite_at", region_role=RegionRole.FILE_IO, paradigm=Paradigm.MPI)
        wait = define.region("MPI_Waitall", region_role=RegionRole.POINT2POINT, paradigm=Paradigm.MPI)
        group = define.location_group(
            "rank 0", system_tree_parent=root, location_group_type=LocationGroupType.PROCESS
        )
        threads = [define.location(name, group=group) for name in ("main", "helper")]
        main, helper = (trace.event_writer_from_location(thread) for thread in threads)
        for number, begin in ((7, 100), (8, 200)):
            main.enter(begin, post)
            main.io_operation_begin(begin + 10, handle, write, flag, 64, number)
            main.io_operation_issued(begin + 20, handle, number)
            main.leave(begin + 30, post)
        main.enter(500, wait)
        main.io_operation_complete(550, handle, 64, 8)
        main.io_operation_complete(560, handle, 64, 7)
        main.leave(600, wait)
        helper.io_operation_begin(700, handle, write, flag, 64, 9)  # without calls
        helper.io_operation_issued(720, handle, 9)
        helper.io_operation_complete(790, handle, 64, 9)
        helper.io_operation_begin(800, handle, write, flag, 64, 9)  # and without the end of its post
        helper.io_operation_complete(880, handle, 64, 9)
    events = ensembles.open(tmp_path / "archive").events
    columns = (events.thread, events.start, events.duration, events.flight, events.request)
    assert sorted(zip(*(column.tolist() for column in columns), strict=True)) == [
        (0, 10, 20, 450, 1),
        (0, 110, 20, 340, 3),  # the threads of a process number in turn
        (0, 400, 100, -1, 1),
        (1, 600, 20, 90, 2),
        (1, 700, 80, -1, 0),
    ]

"""Access patterns: loops, order of transfers, unions of ranges, against plain loops and known programs."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from arrays_of import arrays_of
from builders import make_events
from hypothesis import given
from hypothesis import strategies as st

from ensembles.answers.pattern import _row
from ensembles.faces.words import cell
from ensembles.model.events import Call
from ensembles.model.units import bytes_text
from ensembles.structure.access.loops import MOST_LOOPS, find_loops, find_parts
from ensembles.structure.access.pattern import (
    AccessSummary,
    LoopPattern,
    Pattern,
    files_text,
    line_of,
    pattern_of,
)
from ensembles.structure.access.streams import ORDERS, follow, join_ranges
from ensembles.structure.access.uses import IoCalls, coverage_text

CALLS = (
    Call("unknown", "posix", "meta"),
    Call("pread", "posix", "read"),
    Call("pwrite", "posix", "write"),
    Call("lseek", "posix", "seek"),
    Call("MPI_File_set_view", "mpiio", "meta"),
    Call("fsync", "posix", "sync"),
)
NUMBER = {"read": 1, "write": 2, "seek": 3, "view": 4, "sync": 5}
MIB = 1 << 20


def pattern(*tasks: list[tuple], files: int = 4) -> Pattern:
    """The pattern of tasks that make these calls: operation, offset, size, and the file (default 1)."""
    return pattern_of(summary(tasks), ["", *(f"/f{number}" for number in range(1, files + 1))])


def events(tasks, files: int = 4):
    rows = [
        (rank, n, *call, *([1] * (4 - len(call))))
        for rank, calls in enumerate(tasks)
        for n, call in enumerate(calls)
    ]
    rank, start, op, offset, size, file = (np.array(column) for column in zip(*rows, strict=True))
    columns = {"rank": rank, "start": start * 10, "duration": np.full(len(rank), 5), "file": file}
    columns |= {"call": np.array([NUMBER[each] for each in op]), "offset": offset.astype(int)}
    columns |= {"requested": size.astype(int), "moved": size.astype(int)}
    return make_events(columns, CALLS, ["", *(f"/f{number}" for number in range(1, files + 1))])


def summary(tasks) -> AccessSummary:
    found = AccessSummary()
    found.add(events(tasks))
    return found


def out_of_core(stride: int = 301 * MIB) -> list[tuple]:
    calls: list[tuple] = []
    for number in range(8):
        at = number * stride
        calls += [("seek", at, 0), ("read", at, 300 * MIB), ("seek", at, 0), ("write", at, 300 * MIB)]
    return calls


def test_the_loop_of_an_out_of_core_solver_is_one_line():
    shifted = [(op, at + 8 * 301 * MIB, size) for op, at, size in out_of_core()]
    expected = "8 x (seek, read 300 MiB, seek, write 300 MiB), strided by 301 MiB; one shared file"
    assert line_of(pattern(out_of_core(), shifted)) == expected


def test_pieces_of_several_calls_have_a_stride_too():
    calls = [("write", block * 64 * MIB + part * MIB, MIB) for block in range(10) for part in range(16)]
    found = pattern(calls)
    (loop,) = found.groups[0].loops
    assert (loop.times, loop.order, loop.strides_bytes, loop.piece_calls) == (160, "strided", (64 * MIB,), 16)
    assert line_of(found) == "160 x write 1 MiB, in pieces of 16 calls strided by 64 MiB; one file"


@pytest.mark.parametrize(
    ("offsets", "order"),
    [
        (np.arange(20) * 4096, "sequential"),
        (np.arange(20) * 8192, "strided"),
        (np.arange(20)[::-1] * 8192, "strided"),
        (np.zeros(20, int), "repeated"),
        (np.random.default_rng(3).permutation(40000)[:200] * 4096, "random"),
        (np.full(20, -1), "unknown"),
    ],
)
def test_orders_of_a_stream(offsets, order):
    found = pattern([("read", int(at), 4096) for at in offsets])
    assert found.groups[0].loops[0].order == found.files[0].order == order


def test_private_and_shared_files_overlap_and_repeated_reads():
    one = [("write", 0, MIB, 1), ("read", 0, MIB, 2), ("read", 0, MIB, 2)]
    other = [("write", 0, MIB, 3), ("read", MIB // 2, MIB, 2)]
    files = {(group.op, group.access): group for group in pattern(one, other).files}
    private, shared = files["write", "private"], files["read", "shared"]
    assert (private.files, private.tasks, private.overlap_bytes) == (2, 1, 0)
    assert (shared.calls, shared.bytes, shared.repeated_by_task_bytes) == (3, 3 * MIB, MIB)
    assert shared.overlap_bytes == MIB // 2
    assert shared.alignment_bytes == MIB // 2


def test_a_view_may_leave_holes_so_that_the_overlap_is_not_known():
    calls = [("view", -1, 0), *(("write", number * 3000, 1000) for number in range(5))]
    (group,) = pattern(calls, calls).files
    assert (group.overlap_bytes, group.repeated_by_task_bytes) == (None, None)


def test_tasks_with_the_same_loops_are_one_group_and_others_are_named():
    worker = [("write", number * MIB, MIB, 1) for number in range(10)]
    first = [*worker, *(("write", number * 100, 100, 2) for number in range(5000))]
    found = pattern(first, worker, worker)
    assert [group.ranks for group in found.groups] == [(1, 2), (0,)]
    assert line_of(found).startswith("2 of 3 tasks: 10 x write 1 MiB")


def test_a_log_beside_the_data_hides_no_loop():
    plain = [("write", number * MIB, MIB) for number in range(8)] * 3
    logging = list(plain)
    for place in (23, 15, 11, 10, 2, 0):
        logging[place:place] = [("write", -1, 7 * size, 2) for size in (1, 3, 2)]
    assert line_of(pattern(logging, plain)) == line_of(pattern(plain, plain))
    # A stream with a considerable part of the bytes is not a log.
    assert len(pattern([*plain, *[("write", -1, MIB, 2)] * 8], plain).groups) == 2


def test_pieces_are_counted_where_all_steps_have_the_same():
    calls = []
    for step in range(20):
        start = 4 * step * MIB
        calls += [("read", start + part * MIB // 8, MIB // 8) for part in range(8)] + [("write", start, MIB)]
    assert line_of(pattern(calls)).startswith("20 x (8 x read 128 KiB, write 1 MiB), strided by 4 MiB")
    many = [("write", (row * 2 * 1040 + part) * 1024, 1024) for row in range(8) for part in range(1040)]
    assert "in pieces of 1,040 calls strided by" in line_of(pattern(many))


def test_sizes_without_number_become_octaves():
    rng = np.random.default_rng(1)
    calls = [("read", number * MIB, int(size)) for number, size in enumerate(rng.integers(4096, 8192, 100))]
    (loop,) = pattern(calls).groups[0].loops
    assert loop.steps == (("read", 4096, 8191, 1),)
    assert "read 4 KiB to 8 KiB" in line_of(pattern(calls))


def test_a_loop_that_starts_again_at_its_beginning_keeps_its_order():
    """As IOR with repetitions: four segments of 16 transfers, three times."""

    def turn(op):
        starts = [segment * 16 * MIB for segment in range(4)]
        return [(op, start + piece * MIB // 4, MIB // 4) for start in starts for piece in range(16)]

    found = pattern([*turn("write"), *turn("read")] * 3)
    assert "in pieces of 16 calls strided by 16 MiB" in line_of(found)
    assert {group.order for group in found.files} == {"strided"}


def checkpoints(task, size=MIB, syncs=True, steps=6):
    """As a program with two files of each task in turn, and one of all, in rows."""
    calls = []
    for step in range(steps):
        own = 2 + 2 * task + step % 2
        for number in range(8):
            calls.append(("write", number * size, size, own))
            calls += [("sync", 0, 0, own)] * syncs
        if not syncs:
            calls.append(("sync", 0, 0, own))
        calls += [("write", (2 * number + task) * MIB, MIB, 1) for number in range(4)]
    return calls + [("read", number * size, size, 2 + 2 * task) for number in range(8)]


@pytest.mark.parametrize(
    ("syncs", "body"), [(True, "8 x (write 1 MiB, sync)"), (False, "(8 x write 1 MiB, sync)")]
)
def test_no_loop_runs_over_a_change_of_file(syncs, body):
    """The first write to the common file is like those before it, and its strides are not theirs."""
    found = pattern(checkpoints(0, MIB, syncs), checkpoints(1, MIB, syncs), files=5)
    assert line_of(found) == (
        f"6 x ({body}, sequential, 2 files for each task; 4 x write 1 MiB, strided by 2 MiB, "
        "the same bytes again, one shared file); 8 x read 1 MiB, sequential, a file for each task"
    )
    (group,) = found.groups
    assert [(loop.block, loop.block_times, loop.times) for loop in group.loops][1:] == [(0, 6, 4), (1, 1, 8)]
    assert [loop.bytes // MIB for loop in group.loops] == [96, 48, 16]
    assert [loop.piece_calls for loop in group.loops] == [None, None, None]


def test_a_loop_over_files_in_turn_is_that_of_its_calls():
    turns = [call for n in range(50) for call in (("write", n * 64, 64, 1), ("write", n * 16, 16, 2))]
    assert line_of(pattern(turns)) == "50 x (write 64 B, write 16 B), sequential; 2 files"
    # The orders differ: each file has its words.
    turns = [call for n in range(50) for call in (("write", n * 64, 64, 1), ("write", n * 256, 16, 2))]
    assert line_of(pattern(turns)) == (
        "50 x (write 64 B, sequential; write 16 B, strided by 256 B); one file for each loop"
    )
    # Data in a row, and a header that is written again each time, in one file.
    turns = [call for n in range(50) for call in (("write", 4096 + n * 64, 64, 1), ("write", 0, 16, 1))]
    assert line_of(pattern(turns)) == (
        "50 x (write 64 B, sequential; write 16 B, the same bytes again); one file"
    )
    (group,) = pattern(turns, turns).groups
    assert group.loops[0].step_orders == ("sequential", "repeated")
    # Loops inside a loop, which ends with a sync.
    calls, one, two = [], 0, 0
    for _ in range(6):
        for _ in range(8):
            calls += [("write", one + n * 32, 32, 1) for n in range(4)] + [("write", two, 1024, 2)]
            one, two = one + 128, two + 1024
        calls.append(("sync", 0, 0, 2))
    assert line_of(pattern(calls)) == "6 x (8 x (4 x write 32 B, write 1 KiB), sequential; sync); 2 files"


def again(outer, calls):
    return [call for _ in range(outer) for call in calls]


NESTED = {
    # Columns of a matrix in rows: each goes back to the top.
    "8 x (64 x write 8 B, strided by 64 B), each 8 B further": [
        ("write", row * 64 + column * 8, 8) for column in range(8) for row in range(64)
    ],
    "4 x (16 x write 8 B, strided by 64 B), each 8 B back": [
        ("write", row * 64 + column * 8, 8) for column in reversed(range(4)) for row in range(16)
    ],
    "5 x (64 x (read 8 B, write 8 B), sequential), the same bytes again": again(
        5, [(op, at * 8, 8) for at in range(64) for op in ("read", "write")]
    ),
    "20 x (5 x (read 8 B, write 8 B), the same bytes again), each 32 B further": [
        (op, at * 32, 8) for at in range(20) for _ in range(5) for op in ("read", "write")
    ],
    "10 x (6 x read 8 B, sequential), the same bytes again": again(
        10, [("read", n * 8, 8) for n in range(6)]
    ),
    "5 x (8 x write 8 B, sequential; sync), the same bytes again": again(
        5, [*(("write", n * 8, 8) for n in range(8)), ("sync", 0, 0)]
    ),
    "20 x (6 x write 4 B, sequential; read 64 B, the same bytes again)": [
        call
        for turn in range(20)
        for call in [*(("write", (turn * 6 + n) * 4, 4) for n in range(6)), ("read", 0, 64)]
    ],
    "20 x (write 64 B, strided by 100 B; read 8 B, sequential)": [
        call for turn in range(20) for call in [("write", turn * 100, 64), ("read", 8 * turn, 8)]
    ],
    "40 x (write 64 B, sequential; read 8 B, random)": [
        call
        for turn, at in enumerate(np.random.default_rng(5).permutation(9999)[:40].tolist())
        for call in [("write", turn * 64, 64), ("read", 8 * at, 8)]
    ],
    # Blocks of loops that begin elsewhere each time, with their sync.
    "9 x (4 x (write 32 B, read 32 B), sequential, each time 4.88 KiB further; sync)": [
        call
        for turn in range(9)
        for call in [
            *((op, turn * 5000 + n * 32, 32) for n in range(4) for op in ("write", "read")),
            ("sync", 0, 0),
        ]
    ],
    # More outer iterations than loops that are named one by one.
    "60 x (5 x (write 32 B, read 8 B), sequential; sync)": [
        call
        for turn in range(60)
        for call in [
            *(
                (op, (turn * 5 + n) * size, size)
                for n in range(5)
                for op, size in (("write", 32), ("read", 8))
            ),
            ("sync", 0, 0),
        ]
    ],
}


@pytest.mark.parametrize("line", NESTED)
def test_a_line_is_that_from_which_its_loop_can_be_written(line):
    assert line_of(pattern(NESTED[line])) == f"{line}; one file"


def test_loops_of_files_in_turn_have_an_order_each():
    calls, one, two = [], 0, 0
    for _ in range(6):
        for _ in range(8):
            calls += [*(("write", one + n * 32, 32, 1) for n in range(4)), ("write", two, 1024, 2)]
            one, two = one + 128, two + 4096
        calls.append(("sync", 0, 0, 2))
    assert line_of(pattern(calls)) == (
        "6 x (8 x (4 x write 32 B, sequential; write 1 KiB, strided by 4 KiB); sync); 2 files"
    )


def test_sizes_that_vary_make_one_loop_without_accidents():
    sizes = np.random.default_rng(6).integers(1000, 100_000, 200).tolist()
    calls = [("write", sum(sizes[:n]), size) for n, size in enumerate(sizes)]
    low, high = bytes_text(min(sizes)), bytes_text(max(sizes))
    assert line_of(pattern(calls)) == f"200 x write {low} to {high}, sequential; one file"
    # Tasks with other sizes are one group.
    others = [("write", sum(sizes[n:]), size - 9) for n, size in enumerate(sizes)][::-1]
    others = [("write", at - others[0][1], size) for _, at, size in others]
    assert [len(group.ranks) for group in pattern(calls, others).groups] == [2]


def test_sizes_that_are_meant_are_named():
    sizes = [64 << n for n in range(5) for _ in range(6)]
    calls = [("write", sum(sizes[:n]), size) for n, size in enumerate(sizes)]
    assert line_of(pattern(calls)).startswith("6 x write 64 B, sequential; 6 x write 128 B, sequential; ")


def test_sizes_that_print_alike_are_one_loop():
    turns = [("write", 0, 2413 + n // 10 % 2) for n in range(40)]
    assert line_of(pattern(turns)) == "40 x write 2.36 KiB, the same bytes again; one file"


def test_loops_that_a_small_one_parts_are_one():
    halves = [("write", n * 8 * MIB, 2 * MIB) for n in range(8)]
    log = [("write", n * 100, 100, 2) for n in range(20)]
    lines = [[*halves[:4], *log, *halves[4:]], [call for half in halves for call in [half, *log]], halves]
    found = pattern(*lines)
    assert [group.ranks for group in found.groups] == [(0, 1, 2)]
    assert line_of(found) == "8 x write 2 MiB, strided by 8 MiB; one shared file"


def test_threads_make_loops_each():
    calls = [[*(("write", n * 64, 64, file) for n in range(100)), ("sync", 0, 0, file)] for file in (1, 2, 3)]
    thread = np.random.default_rng(7).permutation(np.repeat([0, 1, 2], 101))
    rest = [iter(each) for each in calls]
    made = events([[next(rest[which]) for which in thread.tolist()]])
    made.columns["thread"][:] = thread
    found = AccessSummary()
    found.add(made)
    line = line_of(pattern_of(found, ["", *(f"/f{number}" for number in range(1, 5))]))
    assert line == "3 x (100 x write 64 B, sync), sequential; 3 files"
    # Threads that share the work of one file are a loop of the task.
    shared = events([[("write", n * 64, 64) for n in range(303)]])
    shared.columns["thread"][:] = thread
    found = AccessSummary()
    found.add(shared)
    assert line_of(pattern_of(found, ["", "/f1"])) == "303 x write 64 B, sequential; one file"


def test_data_and_a_header_in_turn_are_not_random_in_the_table():
    turns = [call for n in range(50) for call in (("write", 4096 + n * 64, 64), ("write", 0, 16))]
    found = pattern(turns, [("read", 0, 16, 2)], [("read", -1, 8, 3)])
    aligned = [64, 0, None]
    assert [group.alignment_bytes for group in found.files] == aligned
    assert [group.order for group in found.files] == ["mixed", "single", "unknown"]
    assert [cell(_row(group)[6], "bytes exactly") for group in found.files] == ["64 B", "any", "?"]
    # A stream of one step in random order is.
    places = np.random.default_rng(5).permutation(9999)[:40].tolist()
    reads = [call for n, at in enumerate(places) for call in (("write", n * 64, 64), ("read", at * 8, 8))]
    assert {group.op: group.order for group in pattern(reads).files} == {
        "read": "random",
        "write": "sequential",
    }


def test_loops_of_many_files_say_how_much_goes_to_each():
    calls = [("write", number * 4096, 4096, 1 + file) for file in range(4) for number in range(5)]
    assert line_of(pattern(calls)) == "4 x (5 x write 4 KiB), sequential; 4 files"
    alone = [("write", 0, 4096, 1 + file) for file in range(4)]
    assert line_of(pattern(alone)) == "4 x write 4 KiB; 4 files"
    # Of files that take turns without repetition, the loop is that of the calls.
    turns = np.random.default_rng(2).integers(1, 5, 200).tolist()
    assert line_of(pattern([("write", -1, 4096, file) for file in turns])).startswith("200 x write 4 KiB")


def test_tasks_with_sizes_that_print_alike_are_one_group():
    """As VPIC: each task writes some bytes more or less, and a header of another size."""
    tasks = [
        [("write", 0, 40 + 8 * task)] + [("write", n * 6 * MIB, 5529200 + 10 * task) for n in range(8)]
        for task in range(70)
    ]
    found = pattern(*tasks)
    (group,) = found.groups
    assert (len(group.ranks), found.other_tasks) == (70, 0)
    assert group.loops[0].steps == (("write", 5529200, 5529200 + 690, 1),)
    assert (group.smaller_loops, group.smaller_bytes) == (1, sum(40 + 8 * task for task in range(70)))
    assert line_of(found) == "8 x write 5.27 MiB, strided by 6 MiB; one shared file"
    # Smaller loops that only some tasks have do not divide them.
    some = pattern(tasks[0], [("write", 9, 70, 1), ("read", 0, 9, 1), *tasks[1]])
    assert [len(group.ranks) for group in some.groups] == [2]


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(1, 3)), max_size=40))
def test_parts_between_files_are_all_calls(rows):
    token, file = (np.array([row[n] for row in rows], int) for n in range(2))
    parts = find_parts(token, file, np.zeros(len(rows), int), np.array([True, True, False]))
    covered = sorted(at for part in parts for low, high in part.ranges for at in range(low, high))
    assert covered == list(range(len(rows)))
    for part in parts:
        body = [number for number, count in part.body for _ in range(count)]
        calls = [number for low, high in part.ranges for number in token[low:high].tolist()]
        assert not body or calls == body * part.times * part.block_times


@given(st.lists(st.integers(0, 3), max_size=60))
def test_loops_are_the_sequence(tokens):
    loops = find_loops(np.array(tokens, int))
    unrolled = []
    for loop in loops:
        body = [token for token, count in loop.body for _ in range(count)]
        unrolled += body * loop.times if loop.body else tokens[loop.begin : loop.end]
        assert loop.end == len(unrolled)
    assert unrolled == tokens
    assert len(loops) <= MOST_LOOPS + 1


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 40), st.integers(1, 9)), max_size=40))
def test_joined_ranges_hold_the_same_bytes(rows):
    key, low, size = (np.array([row[n] for row in rows], int) for n in range(3))
    found = join_ranges(key, low, low + size)
    expected = {(k, b) for k, at, n in rows for b in range(at, at + n)}
    ranges = list(zip(*(column.tolist() for column in found), strict=True))
    assert sum(high - begin for _, begin, high in ranges) == len(expected)
    assert {(k, b) for k, begin, high in ranges for b in range(begin, high)} == expected
    for (k, _, high), (next_k, begin, _) in pairwise(ranges):
        assert (k, high) < (next_k, begin)


@given(st.lists(st.tuples(st.integers(0, 1), st.integers(0, 6), st.integers(1, 2)), max_size=30))
def test_orders_by_a_plain_loop(rows):
    stream, offset, size = (np.array([row[n] for row in rows], int) for n in range(3))
    found = follow(stream, offset, size)
    for each in np.unique(stream):
        mine = np.flatnonzero(stream == each)
        heads = [
            n for n, i in enumerate(mine) if n == 0 or offset[mine[n - 1]] + size[mine[n - 1]] != offset[i]
        ]
        starts = [int(offset[mine[n]]) for n in heads]
        steps = [None, *(b - a for a, b in pairwise(starts))]
        for n, i in enumerate(mine):
            name = ORDERS[found.order[i]]
            if n not in heads:
                assert name == "sequential"
                continue
            h = heads.index(n)
            around = [steps[j] for j in (h - 1, h + 1) if 0 < j < len(steps)]
            kind = "strided" if steps[h] in around else "first" if starts[h] == starts[0] else "random"
            assert name == ("first" if h == 0 else "repeated" if steps[h] == 0 else kind)


@pytest.mark.parametrize("parts", [2, 3])
def test_parts_merged_are_the_whole(parts):
    rng = np.random.default_rng(5)
    tasks = [
        [
            ("read" if rng.random() < 0.5 else "write", int(rng.integers(0, 50)) * 512, 512, 1)
            for _ in range(40)
        ]
        for _ in range(6)
    ]
    every = events(tasks)
    whole, pieces = summary(tasks), [AccessSummary() for _ in range(parts)]
    for number, piece in enumerate(pieces):
        for rank in range(number * 6 // parts, (number + 1) * 6 // parts):
            piece.add(every[every.rank == rank])
    for piece in pieces[1:]:
        pieces[0].merge(piece)
    merged = pieces[0]
    assert merged.union_bytes() == whole.union_bytes()
    assert merged.patterns.keys() == whole.patterns.keys()
    for name, column in arrays_of(whole).items():
        np.testing.assert_array_equal(arrays_of(merged)[name], column)


def test_a_program_that_asks_for_all_there_is_has_no_negative_size():
    every = (1 << 64) - 4096
    chunk = events([[("read", 0, 4096), ("read", 4096, 4096)]])
    chunk.requested[:] = every
    found = AccessSummary()
    found.add(chunk)
    (loop,) = pattern_of(found, ["", "/f1"]).groups[0].loops
    assert (loop.bytes, loop.order) == (8192, "sequential")
    assert loop.steps == (("read", 1 << 62, 1 << 62, 1),)


def test_lines_have_their_own_sizes_not_that_of_the_room_for_them():
    lines = [[("read", -1, 20 + 7 * number % 21) for number in range(200)]]
    chunk = events(lines)
    chunk.requested[:] = 10_000
    chunk.calls = tuple(Call("fgets", "stdio", "read") if each.op == "read" else each for each in CALLS)
    found = AccessSummary()
    found.add(chunk)
    (loop,) = pattern_of(found, ["", "/f1"]).groups[0].loops
    assert (loop.times, loop.steps) == (200, (("read", 20, 34, 1),))


def test_a_run_without_reads_and_writes_says_so():
    assert line_of(pattern([("seek", 0, 0)])) == "no reads or writes"


def test_small_reads_beside_large_writes_are_named():
    writes = [("write", number * MIB, MIB) for number in range(256)]
    reads = [("read", 2048 * number, 32) for number in range(300)]
    expected = "256 x write 1 MiB, sequential; one file; besides 300 reads of 9.38 KiB in all"
    assert line_of(pattern(writes + reads)) == expected
    assert "besides" not in line_of(pattern(writes))


def test_the_files_of_a_single_task_are_not_those_of_each_task():
    loop = LoopPattern(1, (), "sequential", (), None, 4096, "private", 238)
    assert files_text(loop, 2, 1) == files_text(loop, 1, 1) == "238 files"
    assert files_text(loop, 4, 4) == files_text(loop, 4, 2) == "238 files for each task"


def test_variables_one_behind_the_other_and_a_header_last_are_sequential():
    """HACC-IO, a file for each task: nine variables, then the header at 0; it was called random."""
    tasks = [
        [("write", (24 << 20) + 80_000 * n, 80_000, task) for n in range(9)] + [("write", 0, 64, task)]
        for task in range(1, 5)
    ]
    (group,) = pattern(*tasks).files
    assert group.order == "sequential"


def test_several_jumps_in_a_file_stay_random():
    offsets = [0, 1, 2, 3, 40, 41, 42, 43, 17, 18, 19, 29, 30]
    (group,) = pattern([("write", offset * MIB, MIB) for offset in offsets]).files
    assert group.order == "random"


@pytest.mark.parametrize(("step", "words"), [(-4096, "backwards"), (-8192, "strided by -8 KiB")])
def test_pieces_that_end_where_the_last_one_began_are_backwards(step, words):
    reads = [("read", 10**7 + step * number, 4096) for number in range(64)]
    assert line_of(pattern(reads)) == f"64 x read 4 KiB, {words}; one file"


def test_calls_that_are_in_no_loop_are_named_with_what_loops_cover():
    """Views are neither reads nor writes; their number and time are counted one by one."""
    rows = [("write", number * MIB, MIB) for number in range(30)]
    rows += [("view", 0, 0) for _ in range(50)]
    made = events([rows, rows[:30]])
    made.columns["duration"][made.columns["call"] == NUMBER["view"]] = 20
    counted = IoCalls()
    half = len(made) // 2
    for part in (made[:half], made[half:]):
        other = IoCalls()
        other.add(part)
        counted.merge(other)
    found = counted.coverage()
    assert (found.calls, found.all_calls) == (60, 110)
    assert found.time_s == pytest.approx(60 * 5e-9)
    assert found.all_time_s == pytest.approx(60 * 5e-9 + 50 * 20e-9)
    assert [(one.call, one.count) for one in found.others] == [("MPI_File_set_view", 50)]
    text = coverage_text(found)
    assert text.startswith("Transfers, seeks and syncs are 60 of 110 I/O calls, 23.1 % of their time")
    assert text.endswith("of all tasks: 50 x MPI_File_set_view.")
    alone = IoCalls()
    alone.add(events([rows[:30]]))
    assert coverage_text(alone.coverage()) == ""

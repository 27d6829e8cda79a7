"""Strided runs among the reads of tasks, and what is kept of them."""

from __future__ import annotations

import numpy as np
import pytest
from arrays_of import arrays_of
from matrices import CALLS, MIB, NUMBERS, FileSystem, Matrices, run_matrices

from ensembles.model.events import Events
from ensembles.model.levels import MOST_KINDS
from ensembles.structure.strides import StridedReads

TASKS = 6


def strided(events: Events, **more) -> StridedReads:
    found = StridedReads(**more)
    found.add(events)
    return found


def reads_at(offsets, sizes=MIB, call="read", writes_before=()) -> Events:
    """One task reads at these offsets; before those that are numbered it writes a MiB."""
    rows = []
    for number, offset in enumerate(offsets):
        if number in writes_before:
            rows.append((NUMBERS["write"], 1 << 40, MIB))
        rows.append((NUMBERS[call], offset, sizes))
    number, offset, size = np.array(rows, np.int64).T
    start = np.arange(len(rows)) * 1000
    constant = np.zeros(len(rows), np.int64)
    columns = {
        "rank": constant,
        "thread": constant,
        "call": number,
        "depth": constant,
        "carried": constant,
        "file": constant + 1,
        "offset": offset,
        "requested": size,
        "moved": size,
        "error": constant,
        "start": start,
        "duration": constant + 500,
    }
    return Events(columns, CALLS, ["", "/data"])


def positions(events: Events) -> list[tuple[int, int, int]]:
    """Run, position and stride in MiB of each strided read."""
    rows = strided(events).rows
    return [(int(r["run"]), int(r["position"]), int(r["stride_bytes"]) // MIB) for r in rows]


def test_reads_without_a_hole_or_a_constant_stride_are_no_strided_run():
    assert positions(reads_at(np.arange(20) * MIB)) == []
    assert positions(reads_at(np.random.default_rng(0).permutation(20) * 3 * MIB)) == []
    assert positions(reads_at([0, 10 * MIB, 20 * MIB])) == []
    assert positions(reads_at(np.arange(20)[::-1] * 3 * MIB)) == []


def test_positions_begin_again_behind_a_rewind():
    events = reads_at([*(np.arange(5) * 3 * MIB), *(np.arange(4) * 3 * MIB)])
    assert positions(events) == [(0, p, 3) for p in range(1, 6)] + [(1, p, 3) for p in range(1, 5)]


def test_another_stride_begins_with_the_last_read_of_the_one_before():
    events = reads_at([0, 3 * MIB, 6 * MIB, 9 * MIB, 14 * MIB, 19 * MIB, 24 * MIB])
    assert positions(events) == [(0, p, 3) for p in (1, 2, 3, 4)] + [(1, p, 5) for p in (2, 3, 4)]


def test_reads_in_pieces_count_as_one():
    pieces = [9 * MIB * k + piece * MIB for k in range(6) for piece in range(4)]
    rows = strided(reads_at(pieces)).rows
    assert rows["position"].tolist() == [1, 2, 3, 4, 5, 6]
    assert set(rows["bytes"].tolist()) == {4 * MIB}
    assert set(rows["calls"].tolist()) == {4}
    assert set(rows["duration_ns"].tolist()) == {2000}
    assert rows["ordinal"].tolist() == [1, 5, 9, 13, 17, 21]


def test_writes_between_are_counted_and_tell_interleaved_runs():
    offsets = np.arange(6) * 3 * MIB
    rows = strided(reads_at(offsets, writes_before=(0, 2, 3, 4, 5))).rows
    assert (rows["written_bytes"] / MIB).tolist() == [0, 0, 1, 1, 1, 1]
    assert rows["writing_ns"].tolist() == [0, 0, 500, 500, 500, 500]
    assert rows["interleaved"].all()
    assert not strided(reads_at(offsets, writes_before=(0, 1, 2))).rows["interleaved"].any()


def test_long_runs_are_kept_up_to_a_position_and_added_up_beyond():
    rows = strided(reads_at(np.arange(200) * 3 * MIB)).rows
    assert len(rows) == MOST_KINDS + 1
    assert set(rows["reads"].tolist()) == {200}
    assert rows["bytes"][-1] == (200 - MOST_KINDS) * MIB
    assert rows["duration_ns"].sum() == 200 * 500
    assert rows["calls"].sum() == 200


def test_a_read_of_mpi_io_and_the_posix_reads_inside_of_it_do_not_count_twice():
    program = run_matrices(Matrices(layer="mpiio", pieces=4, phases="m"), TASKS, FileSystem())
    found = strided(program.events)
    assert len(found.rows) == 2 * TASKS * 8
    nearest = found.rows_nearest_to_disk
    assert len(nearest) == TASKS * 8
    assert set(nearest["layer"].tolist()) == {0}
    assert found.reads == found.reads_with_offset == TASKS * 8


@pytest.mark.parametrize("lanes", ["one", "turns"])
@pytest.mark.parametrize("own_file", [False, True])
def test_threads_that_take_turns_read_one_stream(lanes, own_file):
    program = run_matrices(Matrices(lanes=lanes, own_file=own_file), TASKS, FileSystem())
    rows = strided(program.events).rows
    assert rows["position"].tolist() == [*range(1, 9)] * 2 * TASKS


def test_threads_with_places_of_their_own_have_a_stream_each():
    one, other = reads_at(np.arange(6) * 3 * MIB), reads_at(2000 * MIB + np.arange(6) * 3 * MIB)
    other.thread[:] = 1
    other.start[:] += 300
    rows = strided(Events.concatenate([one, Events(other.columns, one.calls, one.files)])).rows
    assert sorted(rows["position"].tolist()) == sorted([1, 2, 3, 4, 5, 6] * 2)
    assert set(rows["run"].tolist()) == {0, 1}


def test_parts_merged_are_the_whole():
    events = run_matrices(Matrices(), TASKS, FileSystem()).events
    whole, merged = strided(events), StridedReads()
    for ranks in ([0, 1, 2], [3], [4, 5]):
        merged.merge(strided(events[np.isin(events.rank, ranks)]))
    for name, values in arrays_of(whole).items():
        np.testing.assert_array_equal(arrays_of(merged)[name], values)
    assert vars(merged).keys() == vars(whole).keys()
    for name in ("reads", "io_time_ns", "read_time_ns", "bytes_by_layer", "share"):
        assert getattr(merged, name) == getattr(whole, name)


def test_of_many_tasks_the_same_ones_are_kept_however_they_come():
    events = run_matrices(Matrices(), 64, FileSystem()).events
    whole, merged = strided(events, most_rows=300), StridedReads(most_rows=300)
    for rank in range(64):
        merged.merge(strided(events[events.rank == rank], most_rows=300))
    assert 0 < len(whole.rows) <= 300
    assert whole.share == merged.share < 1
    np.testing.assert_array_equal(whole.rows, merged.rows)
    assert len(np.unique(whole.rows["rank"])) * 16 == len(whole.rows)


def test_calls_that_failed_or_moved_nothing_are_no_reads():
    events = reads_at(np.arange(6) * 3 * MIB)
    events.moved[3] = -1
    assert strided(events).reads == 5
    assert positions(events) == []

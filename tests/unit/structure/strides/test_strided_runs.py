"""Strided runs found in C and in NumPy are equal, whatever tasks do; the order of both."""

from __future__ import annotations

import numpy as np
import pytest
from builders import EventRows, make_events
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import numpy_strides

from ensembles import _compiled
from ensembles.model.events import Call, Events
from ensembles.model.levels import MOST_KINDS
from ensembles.passes.start_order import order_by_start
from ensembles.structure.strides import ROW, find_strides

CALLS = (
    Call("unknown", "", "meta"),
    Call("read", "posix", "read"),
    Call("write", "posix", "write"),
    Call("MPI_File_read_at", "mpiio", "read"),
    Call("MPI_Barrier", "mpisync", "wait"),
    Call("nc_get", "pnetcdf", "read"),
)

whatever_the_load = settings(deadline=None)


def calls_of_rank(random: np.random.Generator, rank: int, n: int, threads: int, files: int) -> dict:
    """Calls of a task that mostly goes on as it does: the same stride, the same size, the same file."""
    stay = np.repeat(random.choice([10, 30, 50], n), random.integers(1, 9, n))[:n]
    step = np.where(random.random(n) < 0.9, stay, random.choice([10, 30, 50, -200, 0], n))
    start = np.cumsum(random.integers(0, 30, n))
    duration = random.integers(0, 40, n)
    columns = {
        "rank": np.full(n, rank),
        "thread": random.integers(0, threads, n),
        "call": random.choice(len(CALLS), n, p=[0.02, 0.68, 0.2, 0.05, 0.03, 0.02]),
        "depth": random.random(n) < 0.1,
        "carried": random.choice(4, n, p=[0.9, 0.04, 0.03, 0.03]),
        "file": np.where(random.random(n) < 0.8, 1, random.integers(0, files + 1, n)),
        "offset": np.where(random.random(n) < 0.02, -1, np.cumsum(step) % 100_000),
        "moved": np.where(random.random(n) < 0.03, random.integers(-1, 1, n), 10),
        "start": start,
        "duration": duration,
    }
    if random.random() < 0.3:
        columns["call"][columns["call"] == 1] = 3
    by_thread = np.lexsort((start + duration, columns["thread"]))
    as_they_come = [np.arange(n), np.argsort(start + duration, kind="stable"), by_thread]
    order = as_they_come[random.integers(len(as_they_come))]
    return {name: values[order] for name, values in columns.items()}


def events_of(parts: list[dict]) -> Events:
    rows = EventRows()
    for part in parts:
        rows.add(**part)
    return make_events(rows.columns(), CALLS, ["", *(f"/data.{number}" for number in range(1, 9))])


@st.composite
def tasks(draw: st.DrawFn) -> Events:
    """All calls of a few tasks, which come as a reader gives them."""
    random = np.random.default_rng(draw(st.integers(0, 2**32)))
    lengths = draw(st.lists(st.integers(1, 300), min_size=1, max_size=4))
    threads, files = draw(st.integers(1, 3)), draw(st.sampled_from([1, 2, 8]))
    ranks = sorted(random.choice(20, len(lengths), replace=False).tolist())
    return events_of(
        [calls_of_rank(random, rank, n, threads, files) for rank, n in zip(ranks, lengths, strict=True)]
    )


def fresh(events: Events) -> Events:
    """The same events, which remember nothing."""
    return Events(events.columns, events.calls, events.files)


def bytes_of(found) -> dict[tuple[int, int], int]:
    total: dict[tuple[int, int], int] = {}
    for count, file, layer in found.bytes.tolist():
        total[file, layer] = total.get((file, layer), 0) + count
    return total


@whatever_the_load
@given(events=tasks())
def test_compiled_runs_equal_those_of_numpy(events: Events) -> None:
    mine, theirs = find_strides(fresh(events)), numpy_strides.find_strides(fresh(events))
    for name in ROW.names:
        np.testing.assert_array_equal(mine.rows[name], theirs.rows[name], err_msg=name)
    assert mine[2:] == theirs[2:]
    assert bytes_of(mine) == bytes_of(theirs)


def test_generated_tasks_have_what_the_two_could_differ_in() -> None:
    random = np.random.default_rng(1)
    events = [events_of([calls_of_rank(random, 3, 300, threads, 2)]) for threads in (1, 2, 3) * 40]
    rows = np.concatenate([find_strides(each).rows for each in events])
    assert rows["interleaved"].any()
    assert not rows["interleaved"].all()
    assert (rows["calls"] > 1).any()
    assert set(rows["layer"].tolist()) >= {0, 2}
    # A run that begins with the last read of the one before has no position 1.
    first = rows[np.flatnonzero(np.diff(rows["run"].astype(int), prepend=-1))]
    assert set(first["position"].tolist()) == {1, 2}
    assert sum(order_by_start(each) is None for each in events) not in (0, len(events))


@pytest.mark.parametrize("reads", [4, MOST_KINDS, MOST_KINDS + 1, MOST_KINDS + 40])
def test_long_runs_are_added_up_alike(reads: int) -> None:
    number = np.arange(reads)
    part = {
        "rank": np.full(reads, 7),
        "call": np.ones(reads),
        "file": np.ones(reads),
        "offset": number * 30,
        "moved": np.full(reads, 10),
        "start": number * 100,
        "duration": number,
    }
    mine, theirs = find_strides(events_of([part])), numpy_strides.find_strides(events_of([part]))
    assert len(mine.rows) == min(reads, MOST_KINDS + 1)
    assert mine.rows["duration_ns"].sum() == number.sum()
    np.testing.assert_array_equal(mine.rows, theirs.rows)


def test_many_files_and_threads_are_kept_apart() -> None:
    number, files = np.arange(40_000), 5_000
    part = {
        "rank": number * 0,
        "thread": number // files % 2,
        "call": number * 0 + 1,
        "file": number % files,
        "offset": number // files * 30,
        "moved": number * 0 + 10,
        "start": number,
    }
    mine, theirs = find_strides(events_of([part])), numpy_strides.find_strides(events_of([part]))
    assert len(np.unique(mine.rows["file"])) == files
    np.testing.assert_array_equal(mine.rows, theirs.rows)


def test_calls_without_a_number_and_arrays_that_do_not_fit_are_refused() -> None:
    events = events_of([{"rank": np.zeros(2), "call": np.array([1, 9])}])
    for find in (find_strides, numpy_strides.find_strides):
        with pytest.raises(IndexError, match="out of range"):
            find(events)
    arrays = (np.zeros(2, "u4"),) * 14
    with pytest.raises(TypeError, match="thread must have items of 2 bytes"):
        _compiled.strided_reads(arrays, 4, 64, 0.1, ROW.itemsize)
    for numbers in ((2, 64, 0.1, ROW.itemsize), (4, 1 << 16, 0.1, ROW.itemsize), (4, 64, 0.1, 8)):
        with pytest.raises(ValueError, match="not those"):
            _compiled.strided_reads(arrays, *numbers)


@whatever_the_load
@given(events=tasks())
def test_order_is_that_of_starts_within_each_task(events: Events) -> None:
    order = order_by_start(fresh(events))
    expected = np.lexsort((np.arange(len(events)), events.start, events.rank))
    np.testing.assert_array_equal(np.arange(len(events)) if order is None else order, expected)

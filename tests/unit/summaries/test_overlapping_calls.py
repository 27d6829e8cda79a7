"""Exclusive time of calls whose inner calls overlap each other, as requests of non-blocking I/O do."""

from __future__ import annotations

import numpy as np
import pytest

from ensembles.model.events import Call, Events
from ensembles.summaries.nesting import Nesting
from ensembles.summaries.ranktable import RankTable
from ensembles.summaries.runtotals import LayerTimes, RunTotals

CALLS = (
    Call("aio_write", "posix", "write"),
    Call("MPI_File_write_all", "mpiio", "write"),
    Call("MPI_Wait", "mpiio", "wait"),
    Call("MPI_Wait", "mpisync", "wait"),
)


def events(rows: list[tuple[int, int, int, int]]) -> Events:
    """Events from rows of call, depth, start and duration, in the order of completion."""
    call, depth, start, duration = (np.array(column) for column in zip(*rows, strict=True))
    zeros = np.zeros(len(rows), int)
    columns = {"call": call, "depth": depth, "start": start, "duration": duration, "offset": zeros - 1}
    others = ("rank", "thread", "file", "requested", "moved", "error")
    return Events(columns | dict.fromkeys(others, zeros), CALLS, ("",))


def test_the_union_of_overlapping_calls_counts_within_the_call_around_them() -> None:
    rows = [(0, 1, 12, 80), (0, 1, 11, 88), (0, 1, 60, 90), (1, 0, 10, 90), (0, 0, 200, 5)]
    assert Nesting().inner_ns(events(rows)).tolist() == [0, 0, 0, 89, 0]


def test_a_call_that_began_before_lies_in_no_later_call() -> None:
    rows = [(0, 1, 3, 5), (0, 1, 102, 5), (0, 1, 110, 7), (1, 0, 100, 50)]
    assert Nesting().inner_ns(events(rows)).tolist() == [0, 0, 0, 12]


@pytest.mark.parametrize("seed", range(20))
def test_the_union_is_that_of_marked_nanoseconds(seed: int) -> None:
    random = np.random.default_rng(seed)
    rows, expected, now = [], [], 0
    for _ in range(30):
        length = int(random.integers(1, 200))
        covered = np.zeros(length, bool)
        for _ in range(int(random.integers(0, 6))):
            start, duration = int(random.integers(0, length)), int(random.integers(0, 300))
            covered[start : start + duration] = True
            rows.append((0, 1, now + start, duration))
            expected.append(0)
        rows.append((1, 0, now, length))
        expected.append(int(covered.sum()))
        now += length + int(random.integers(0, 10))
    whole = events(rows)
    assert Nesting().inner_ns(whole).tolist() == expected
    # In parts: never more than the call itself, whatever the cut.
    for cut in range(1, len(whole), 7):
        nesting = Nesting()
        for part in (whole[:cut], whole[cut:]):
            inner = nesting.inner_ns(part)
            assert inner is None or np.all((inner >= 0) & (inner <= part.duration))


def test_waiting_for_io_is_io_time_and_waiting_for_tasks_is_not() -> None:
    chunk = events([(1, 0, 0, 10), (2, 0, 20, 100), (3, 0, 200, 1000)])
    totals, table = RunTotals(), RankTable(CALLS)
    for summary in (totals, table):
        summary.add(chunk)
    assert totals.io_time_ns == 110
    assert table.io_time_ns(1).tolist() == [110]


def test_no_exclusive_time_is_negative() -> None:
    times = LayerTimes()
    times.add(events([(0, 1, i, 10_000) for i in range(1, 100)] + [(1, 0, 0, 500)]))
    assert times.exclusive_ns(CALLS[1]) == 1
    assert all(layer.exclusive_ns >= 0 for layer in times.layers.values())

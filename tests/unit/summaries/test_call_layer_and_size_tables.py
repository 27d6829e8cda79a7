"""Tables of calls, layers and sizes against plain loops."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from generated_events import CALLS, events_of
from hypothesis import given
from hypothesis import strategies as st

from ensembles.model.events import COLUMNS, Call, Events
from ensembles.summaries import sizes
from ensembles.summaries.calltable import CallTable, SlowestCall
from ensembles.summaries.runtotals import LayerTimes
from ensembles.summaries.sizes import SizeTable

LAYERED = (
    Call("H5Dwrite", "hdf5", "write"),
    Call("MPI_File_write", "mpiio", "write"),
    Call("pwrite", "posix", "write"),
)


def made(count: int, seed: int) -> Events:
    random = np.random.default_rng(seed)
    moved = random.integers(-1, 1 << 40, count)
    return events_of(
        rank=random.integers(0, 5, count),
        call=random.integers(0, len(CALLS), count),
        moved=moved,
        error=np.where(moved < 0, 28, 0),
        requested=random.integers(0, 6, count) * 512,
        start=random.integers(0, 10**15, count),
        duration=random.integers(0, 10**12, count),
    )


@given(seed=st.integers(0, 1000), count=st.integers(1, 300))
def test_totals_of_each_call_are_those_of_a_plain_loop(seed: int, count: int) -> None:
    events, table = made(count, seed), CallTable()
    table.add(events)
    rows = list(zip(events.call, events.duration.tolist(), events.moved.tolist(), events.error, strict=True))
    for number, call in enumerate(CALLS):
        mine = [row for row in rows if row[0] == number]
        if not mine:
            assert call not in table.totals
            continue
        totals = table.totals[call]
        moves = call.op in ("read", "write")
        assert totals.count == len(mine)
        assert totals.time_ns == sum(row[1] for row in mine)
        assert totals.max_ns == max(row[1] for row in mine)
        assert totals.errors == sum(row[3] != 0 for row in mine)
        assert totals.bytes == (sum(max(row[2], 0) for row in mine) if moves else 0)
    assert table.span_ns == events.end.max() - events.start.min()
    assert table.events == count


@given(seed=st.integers(0, 1000), cuts=st.lists(st.integers(0, 300), max_size=4))
def test_splitting_and_merging_changes_nothing(seed: int, cuts: list[int]) -> None:
    events = made(300, seed)
    whole, merged = (CallTable(), SizeTable()), (CallTable(), SizeTable())
    edges = [0, *sorted(cuts), 300]
    for summary in whole:
        summary.add(events)
    for low, high in pairwise(edges):
        for target in merged:
            part = type(target)()
            part.add(events[low:high])
            target.merge(part)
    assert {call: merged[0].totals[call] for call in whole[0].totals} == whole[0].totals
    assert merged[0].slowest == whole[0].slowest
    assert (merged[0].span_ns, merged[0].files) == (whole[0].span_ns, whole[0].files)
    assert merged[1].frequent("posix", 100) == whole[1].frequent("posix", 100)


def test_the_slowest_call_is_the_first_of_equals() -> None:
    events = events_of(
        rank=np.array([3, 1, 1, 0]), start=np.array([5, 9, 7, 0]), duration=np.array([50, 50, 50, 49])
    )
    table = CallTable()
    table.add(events)
    assert table.slowest == SlowestCall(CALLS[0], rank=1, start_ns=7, duration_ns=50, bytes=0, file="")


def test_an_empty_table_has_no_span_and_no_slowest_call() -> None:
    table = CallTable()
    table.add(events_of(start=np.empty(0)))
    assert (table.events, table.span_ns, table.slowest) == (0, 0, None)


@given(seed=st.integers(0, 1000))
def test_sizes_are_counted_exactly(seed: int) -> None:
    events, table = made(500, seed), SizeTable()
    for low in range(0, 500, 150):
        table.add(events[low : low + 150])
    pairs = zip(events.requested.tolist(), events.call, strict=True)
    expected = Counter(size for size, call in pairs if CALLS[call].op in ("read", "write"))
    assert dict(table.frequent("posix", 1000)) == dict(expected)
    counts = [count for _, count in table.frequent("posix")]
    assert counts == sorted(counts, reverse=True)
    assert table.uncertainty == {}


def test_too_many_sizes_keep_the_frequent_ones_within_a_stated_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sizes, "LIMIT", 64)
    random = np.random.default_rng(1)
    requested = np.where(random.random(20_000) < 0.3, 4096, random.integers(0, 10**6, 20_000)).astype("u8")
    table = SizeTable()
    for low in range(0, 20_000, 500):
        part = requested[low : low + 500]
        table.add(events_of(start=np.zeros(500), requested=part))
    ((size, count),) = table.frequent("posix", 1)
    true_count = int((requested == 4096).sum())
    assert size == 4096
    assert true_count - table.uncertainty["posix"] <= count <= true_count
    assert len(table.frequent("posix", 1000)) <= 64


def nested(random: np.random.Generator, depth: int, start: int, calls: list[tuple[int, ...]]) -> int:
    """Append a call and the calls in it in the order of their completion; its end."""
    now = start + int(random.integers(1, 10))
    inner_ns = 0
    for _ in range(int(random.integers(0, 3)) if depth < 2 else 0):
        inside = nested(random, depth + 1, now, calls)
        inner_ns += inside - now
        now = inside + int(random.integers(1, 5))
    now += int(random.integers(1, 10))
    calls.append((depth, start, now - start, now - start - inner_ns))
    return now


@given(seed=st.integers(0, 10_000), max_events=st.integers(1, 40))
def test_exclusive_time_is_that_of_a_walk_over_the_calls(seed: int, max_events: int) -> None:
    random = np.random.default_rng(seed)
    rows = []
    for thread in range(3):
        calls: list[tuple[int, ...]] = []
        now = 0
        for _ in range(6):
            now = nested(random, 0, now, calls) + 1
        rows += [(thread, *call) for call in calls]
    position = np.array([sum(other[0] == row[0] for other in rows[:i]) for i, row in enumerate(rows)])
    table = np.array(rows)[np.argsort(position, kind="stable")]
    columns = {name: np.zeros(len(table), dtype) for name, dtype in COLUMNS.items()}
    columns |= {"thread": table[:, 0], "depth": table[:, 1], "call": table[:, 1]}
    columns |= {"start": table[:, 2], "duration": table[:, 3]}
    events = Events(columns, LAYERED, [""])
    summary = LayerTimes()
    for low in range(0, len(events), max_events):
        summary.add(events[low : low + max_events])
    for depth, call in enumerate(LAYERED):
        mine = table[table[:, 1] == depth]
        layer = summary.layers.get(call.layer)
        if layer is None:
            assert len(mine) == 0
        else:
            assert (layer.calls, layer.time_ns) == (len(mine), mine[:, 3].sum())
            assert layer.exclusive_ns == mine[:, 4].sum()


def test_a_call_whose_encloser_was_not_recorded_is_taken_from_nobody() -> None:
    columns = {name: np.zeros(2, dtype) for name, dtype in COLUMNS.items()}
    columns |= {"depth": np.array([1, 0]), "call": np.array([2, 0])}
    columns |= {"start": np.array([100, 500]), "duration": np.array([50, 20])}
    events = Events(columns, LAYERED, [""])
    for parts in ([events], [events[:1], events[1:]]):
        summary = LayerTimes()
        for part in parts:
            summary.add(part)
        assert summary.layers["hdf5"].exclusive_ns == 20

"""The summary by call, size class and ordinal class: its classes, and that splitting and merging change
nothing."""

import numpy as np
import pytest

from ensembles.model.events import COLUMNS, Call, Events
from ensembles.summaries.bins import Ordinals, ordinal_class, ordinal_range, size_class, size_range_bytes
from ensembles.summaries.calltable import CallTable
from ensembles.summaries.cells import CellSummary
from ensembles.summaries.from_cells import (
    histogram_from_cells,
    moments_from_cells,
    sizes_from_cells,
    table_from_cells,
    totals_from_cells,
)
from ensembles.summaries.histogram import LogHistogram
from ensembles.summaries.moments import CallMoments
from ensembles.summaries.runtotals import RunTotals

CALLS = (
    Call("unknown", "", "meta"),
    Call("write", "posix", "write"),
    Call("read", "posix", "read"),
    Call("w", "x", "write"),
)
FILES = ["", "/a", "/b", "/c"]


def events(n=5000, seed=0):
    random = np.random.default_rng(seed)
    duration = random.lognormal(8, 1, n).astype(np.int64)
    columns = {name: np.zeros(n, dtype) for name, dtype in COLUMNS.items()}
    columns |= {
        "rank": np.sort(random.integers(0, 3, n)),
        "call": random.integers(1, 4, n),
        "file": random.integers(0, 4, n),
        "requested": random.choice([0, 1, 512, 700, 4096], n),
        "moved": random.integers(-1, 4000, n),
        "start": np.cumsum(duration + 10),
        "duration": duration,
    }
    return Events(columns, CALLS, FILES)


def assert_same(one, other):
    for (name, mine), theirs in zip(one.to_arrays().items(), other.to_arrays().values(), strict=True):
        if mine.dtype.kind == "f":
            np.testing.assert_allclose(mine, theirs, rtol=1e-9, atol=1e-3, err_msg=name)
        else:
            np.testing.assert_array_equal(mine, theirs, err_msg=name)


def whole(chunks):
    summary = CellSummary()
    for chunk in chunks:
        summary.add(chunk)
    return summary


@pytest.mark.parametrize("size", [1, 77, 1000])
def test_splitting_changes_nothing(size):
    all_events = events()
    parts = [all_events[low : min(low + size, 2000)] for low in range(0, 2000, size)]
    assert_same(whole([all_events[:2000]]), whole(parts))


def test_merging_ranks_changes_nothing_whatever_the_numbers_of_calls_and_files():
    all_events = events()
    first, rest = all_events[all_events.rank == 0], all_events[all_events.rank > 0]
    swapped = Events(
        rest.columns | {"call": np.array([0, 3, 1, 2])[rest.call], "file": np.array([0, 2, 3, 1])[rest.file]},
        [CALLS[i] for i in (0, 2, 3, 1)],
        [FILES[i] for i in (0, 3, 1, 2)],
    )
    merged = whole([first])
    merged.merge(whole([swapped]))
    assert_same(whole([all_events]), merged)


def test_other_summaries_come_out_as_from_the_events():
    all_events = events()
    cells = whole([all_events])
    table, totals, histogram, moments = CallTable(), RunTotals(), LogHistogram(), CallMoments()
    for part in (table, totals, histogram, moments):
        part.add(all_events)
    found = table_from_cells(cells, FILES)
    assert found.totals == table.totals
    assert (found.slowest, found.start_ns, found.end_ns) == (table.slowest, table.start_ns, table.end_ns)
    mine = totals_from_cells(cells)
    assert (mine.bytes_read, mine.bytes_written, mine.io_time_ns) == (
        totals.bytes_read,
        totals.bytes_written,
        totals.io_time_ns,
    )
    assert mine.layers.layers == totals.layers.layers
    for call, counts in histogram.counts.items():
        np.testing.assert_array_equal(histogram_from_cells(cells).counts[call], counts)
    for call, expected in moments.moments.items():
        got = moments_from_cells(cells).moments[call]
        assert (got.n, got.min_ns, got.max_ns) == (expected.n, expected.min_ns, expected.max_ns)
        np.testing.assert_allclose([got.mean_ns, *got.sums], [expected.mean_ns, *expected.sums], rtol=1e-9)


def test_sizes_are_exact_where_a_class_has_one_and_a_range_where_it_has_more():
    all_events = events()
    table = sizes_from_cells(whole([all_events]))
    posix = all_events.requested[np.isin(all_events.call, [1, 2])]
    assert dict(table.frequent("posix")) == {size: int((posix == size).sum()) for size in (0, 1, 4096)}
    assert table.classes["posix"] == [(512, 700, int(np.isin(posix, [512, 700]).sum()))]


def test_longest_calls_are_the_longest_of_each_cell():
    all_events = events(300)
    summary = whole([all_events])
    cell, longest = summary.longest
    key = all_events.call.astype(int) << 16 | size_class(all_events.requested) << 8
    key |= ordinal_class(Ordinals().count(all_events))
    for number in range(len(summary)):
        own = summary.cells["call"][number] << 16 | summary.cells["size_class"][number] << 8
        own |= summary.cells["ordinal_class"][number]
        expected = np.sort(all_events.duration[key == own])[::-1][:8]
        np.testing.assert_array_equal(longest.duration[cell == number], expected)


def test_every_size_and_ordinal_lies_in_the_range_of_its_class():
    sizes = np.array([0, 1, 2, 3, 4, 511, 512, 513, 1 << 40, (1 << 63) + 5, (1 << 64) - 1], np.uint64)
    for size, number in zip(sizes.tolist(), size_class(sizes).tolist(), strict=True):
        low, high = size_range_bytes(number)
        assert low <= size <= high
    ordinals = np.concatenate([np.arange(1, 200), [1023, 1024, 1 << 40]])
    for ordinal, number in zip(ordinals.tolist(), ordinal_class(ordinals).tolist(), strict=True):
        low, high = ordinal_range(number)
        assert low <= ordinal <= high
        assert low == high or number > 16
    assert ordinal_class(np.array([16, 17, 31, 32, 63, 64])).tolist() == [16, 17, 17, 18, 18, 19]


def test_ordinals_count_over_chunks():
    all_events = events(1000)
    ordinals = Ordinals()
    found = np.concatenate([ordinals.count(all_events[low : low + 33]) for low in range(0, 1000, 33)])
    seen = {}
    op = [call.op for call in CALLS]
    for i in range(1000):
        key = (all_events.rank[i], op[all_events.call[i]], all_events.file[i])
        seen[key] = seen.get(key, 0) + 1
        assert found[i] == seen[key]

"""From events that are sorted by start, the order of completion comes back, as the recorder stored it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ensembles.model.events import COLUMNS, Call, Events
from ensembles.passes.start_order import sort_by_rank_and_start
from ensembles.readers.common.columns import CompletionOrder
from ensembles.summaries.nesting import Nesting

CALLS = (Call("unknown", "", "meta"), Call("write", "posix", "write"))


def nested_calls(random: np.random.Generator, now: int, depth: int, most: int) -> tuple[list[list[int]], int]:
    """Depth, start and duration of a call and all inside it, in the order in which they return; and when the
    last does."""
    start = now + int(random.integers(1, 5))
    rows, now = [], start
    while len(rows) < most and random.random() < 0.5 / (depth + 1):
        inside, now = nested_calls(random, now, depth + 1, most - len(rows))
        rows += inside
    now += int(random.integers(1, 40))
    return [*rows, [depth, start, now - start]], now


def program(seed: int, tasks: int, threads: int, calls: int, missing: float = 0.0) -> Events:
    """What the recorder would store: ranks one after the other, threads too, calls as they return. A share
    of them is missing, as those around others may be."""
    random = np.random.default_rng(seed)
    found = []
    for rank in range(tasks):
        for thread in range(threads):
            now, rows = int(random.integers(0, 50)), []
            while len(rows) < calls:
                more, now = nested_calls(random, now, 0, 20)
                rows += more
            kept = [row for row in rows if random.random() >= missing]
            found += [[rank, thread, *row] for row in kept]
    table = np.array(found, np.int64).reshape(-1, 5)
    n = len(table)
    columns = {name: np.zeros(n, dtype) for name, dtype in COLUMNS.items()}
    columns |= dict(zip(("rank", "thread", "depth", "start", "duration"), table.T, strict=True))
    columns["call"] = np.ones(n)
    columns["requested"] = np.arange(n)  # tells each call
    return Events(columns, CALLS, ("",))


def in_completion_order(stored: Events, rows: int) -> tuple[list[dict[str, np.ndarray]], int]:
    """The chunks that come out when the sorted events go in by so many rows; and the most that was kept."""
    columns = {name: column.copy() for name, column in stored.columns.items()}
    sort_by_rank_and_start(columns)
    order, chunks, given_rows, most_kept, n = CompletionOrder(), [], 0, 0, len(stored)
    for low in range(0, n, rows):
        high = min(low + rows, n)
        key = None if high == n else (int(columns["rank"][high]), int(columns["start"][high]))
        part = {name: column[low:high] for name, column in columns.items()}
        chunks.append(order.put(part, key))
        given_rows += len(chunks[-1]["rank"])
        most_kept = max(most_kept, high - given_rows)
    return chunks, most_kept


@given(
    seed=st.integers(0, 2**32),
    tasks=st.integers(1, 3),
    threads=st.integers(1, 3),
    calls=st.integers(0, 60),
    rows=st.integers(1, 80),
)
def test_each_thread_comes_as_it_was_stored(
    seed: int, tasks: int, threads: int, calls: int, rows: int
) -> None:
    stored = program(seed, tasks, threads, calls, missing=0.1)
    chunks, most_kept = in_completion_order(stored, rows)
    if not len(stored):
        return
    back = {name: np.concatenate([chunk[name] for chunk in chunks]) for name in COLUMNS}
    assert (np.diff(back["rank"].astype(int)) >= 0).all()
    order = np.lexsort((back["thread"], back["rank"]))
    np.testing.assert_array_equal(back["requested"][order], np.arange(len(stored)))
    assert most_kept <= threads * (int(stored.depth.max()) + 1)


@given(seed=st.integers(0, 2**32), rows=st.integers(1, 80))
def test_the_time_inside_calls_is_that_of_the_order_as_stored(seed: int, rows: int) -> None:
    stored = program(seed, 2, 2, 40)
    expected = Nesting().inner_ns(stored)
    if expected is None:
        return
    nesting, found = Nesting(), np.zeros(len(stored), np.int64)
    for chunk in in_completion_order(stored, rows)[0]:
        events = Events(chunk, CALLS, ("",))
        inner_ns = nesting.inner_ns(events)
        found[events.requested] = 0 if inner_ns is None else inner_ns
    np.testing.assert_array_equal(found, expected)


def test_a_call_around_a_million_others_is_all_that_is_kept() -> None:
    n = 10_000
    columns = {name: np.zeros(n + 1, dtype) for name, dtype in COLUMNS.items()}
    columns["start"][1:] = np.arange(n) * 10 + 1
    columns["duration"] = np.append(n * 10 + 5, np.full(n, 5))
    columns["depth"][1:] = 1
    stored = Events({name: np.roll(column, -1) for name, column in columns.items()}, CALLS, ("",))
    chunks, most_kept = in_completion_order(stored, 100)
    assert most_kept == 1
    assert chunks[-1]["duration"][-1] == n * 10 + 5


def test_calls_that_overlap_as_asynchronous_ones_do_stay_in_order_of_start() -> None:
    columns = {name: np.zeros(4, dtype) for name, dtype in COLUMNS.items()}
    columns["start"][:], columns["duration"][:] = [0, 10, 20, 30], [1000, 1000, 5, 5]
    for rows in (1, 2, 4):
        stored = Events(columns, CALLS, ("",))
        chunks, _ = in_completion_order(stored, rows)
        assert np.concatenate([chunk["start"] for chunk in chunks]).tolist() == [0, 10, 20, 30]


@pytest.mark.parametrize("levels", [255])
def test_the_deepest_nesting_is_put_in_order(levels: int) -> None:
    columns = {name: np.zeros(levels, dtype) for name, dtype in COLUMNS.items()}
    columns["start"][:] = np.arange(levels)
    columns["duration"][:] = 2 * levels - 2 * np.arange(levels)
    columns["depth"][:] = np.arange(levels)
    out = CompletionOrder().put(columns, None)
    assert out["depth"].tolist() == list(range(levels))[::-1]

"""Events are sorted by rank and start whatever their number, and equals keep their order."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ensembles.model.events import COLUMNS, Call, Events
from ensembles.writers.tracefile.sorted_rows import sorted_blocks

CALLS = (Call("unknown", "", "meta"),)


def events_of(rank: np.ndarray, start: np.ndarray) -> Events:
    columns = {name: np.zeros(len(rank), dtype) for name, dtype in COLUMNS.items()}
    columns |= {"rank": rank, "start": start, "requested": np.arange(len(rank))}
    return Events(columns, CALLS, ("",))


def chunks_of(events: Events, sizes: list[int]) -> Iterator[Events]:
    low = 0
    while low < len(events):
        for size in sizes:
            if low < len(events):
                yield events[low : low + size]
            low += size


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    seed=st.integers(0, 2**32),
    of_rank=st.lists(st.integers(0, 300), min_size=1, max_size=6),
    span=st.sampled_from([1, 20, 10_000]),
    sorted_share=st.floats(0, 1),
    sizes=st.lists(st.integers(1, 200), min_size=1, max_size=3),
    held=st.integers(1, 400),
    rows=st.integers(1, 500),
)
def test_it_is_what_a_stable_sort_gives(
    tmp_path: Path,
    seed: int,
    of_rank: list[int],
    span: int,
    sorted_share: float,
    sizes: list[int],
    held: int,
    rows: int,
) -> None:
    random = np.random.default_rng(seed)
    rank = np.repeat(np.arange(len(of_rank)) * 3, of_rank)
    start = random.integers(-span, span, len(rank))
    low = 0
    for count in of_rank:  # threads one after the other, each in order
        cut = low + int(sorted_share * count)
        start[low:cut].sort()
        start[cut : low + count].sort()
        low += count
    events = events_of(rank, start)
    blocks = list(sorted_blocks(chunks_of(events, sizes), rows, str(tmp_path), held))
    assert all(len(block["rank"]) == rows for block in blocks[:-1])
    order = np.lexsort((start, rank))
    for name, column in events.columns.items():
        got = np.concatenate([block[name] for block in blocks] or [column[:0]])
        np.testing.assert_array_equal(got, column[order])
    assert list(tmp_path.iterdir()) == []


def test_long_ranks_are_merged_from_blocks(tmp_path: Path) -> None:
    """Runs longer than the blocks in which they are read back, and starts that are all alike."""
    random = np.random.default_rng(0)
    for start in (random.integers(0, 1 << 40, 300_000), np.zeros(300_000, np.int64)):
        events = events_of(np.zeros(len(start)), start)
        blocks = list(sorted_blocks(chunks_of(events, [50_000]), 1 << 17, str(tmp_path), 100_000))
        order = np.argsort(start, kind="stable")
        got = np.concatenate([block["requested"] for block in blocks])
        np.testing.assert_array_equal(got, order)


def test_ranks_that_do_not_ascend_are_refused(tmp_path: Path) -> None:
    events = events_of(np.array([1, 0]), np.array([0, 0]))
    with pytest.raises(ValueError, match="rank"):
        list(sorted_blocks(iter([events]), 10, str(tmp_path)))

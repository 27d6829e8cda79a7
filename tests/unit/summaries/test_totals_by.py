"""Totals by file and by rank are sums over the events, however these are divided."""

import numpy as np
import pytest
from generated_events import CALLS, TASKS, events_of

from ensembles.model.events import OPS, Events
from ensembles.summaries.runtotals import DIRECTIONS, direction_of_events
from ensembles.summaries.totals_by import TotalsBy


def random_events(length: int, seed: int) -> Events:
    """Events of several tasks on four files, in the order of ranks, none inside another."""
    random = np.random.default_rng(seed)
    start = random.integers(0, 100_000, length)
    return events_of(
        start=start,
        duration=random.integers(0, 2000, length),
        moved=random.integers(-1, 1000, length),
        rank=np.sort(random.integers(0, TASKS, length)),
        call=random.integers(0, len(CALLS), length),
        file=random.integers(0, 4, length),
    )


def in_parts(events: Events, key: str, parts: int) -> TotalsBy:
    whole = TotalsBy(key)
    for ranks in np.array_split(np.unique(events.rank), parts):
        one = TotalsBy(key)
        mine = events[np.isin(events.rank, ranks)]
        for low in range(0, len(mine), 57):
            one.add(mine[low : low + 57])
        whole.merge(one)
    return whole


def union_ns(start, end):
    total, until = 0, -(2**62)
    for begin, stop in sorted(zip(start.tolist(), end.tolist(), strict=True)):
        total += max(stop - max(begin, until), 0)
        until = max(until, stop)
    return total


@pytest.mark.parametrize("key", ["file", "rank"])
@pytest.mark.parametrize("parts", [1, 3])
def test_rows_are_sums_over_the_events(key, parts):
    events = random_events(600, seed=parts)
    found = in_parts(events, key, parts).totals()
    assert [each.key for each in found] == np.unique(getattr(events, key)).tolist()
    direction = direction_of_events(events)
    for each in found:
        mine = getattr(events, key) == each.key
        assert sum(each.ops.values()) == np.count_nonzero(mine)
        assert each.errors == np.count_nonzero(events.moved[mine] < 0)
        assert each.tasks == len(np.unique(events.rank[mine]))
        for op, calls in each.ops.items():
            assert calls == np.count_nonzero(events.op[mine] == OPS.index(op))
        for number, name in enumerate(DIRECTIONS):
            moves = mine & (direction == number)
            assert each.bytes[name] == events.moved[moves].sum()
            assert each.active_ns[name] == union_ns(events.start[moves], events.end[moves])
        assert each.start_ns == events.start[mine].min()
        assert each.end_ns == events.end[mine].max()


def test_division_does_not_matter():
    events = random_events(500, seed=7)
    for key in ("file", "rank"):
        assert in_parts(events, key, 1).totals() == in_parts(events, key, 4).totals()


def test_rates_are_unknown_beyond_the_calls_that_are_kept(monkeypatch):
    monkeypatch.setattr("ensembles.summaries.held_calls.MOST_EXACT", 10)
    assert all(each.active_ns is None for each in in_parts(random_events(500, seed=1), "rank", 2).totals())
    assert TotalsBy("file").totals() == []


def test_time_in_calls_inside_belongs_to_these():
    events = events_of(
        start=[10, 0, 40], duration=[5, 30, 7], depth=[1, 0, 0], moved=[3, 3, -1], carried=[3, 0, 0],
        rank=[0, 0, 1], call=[0, 0, 0], file=[2, 1, 1],
    )  # fmt: skip
    by_file = in_parts(events, "file", 2).totals()
    assert [(each.key, each.io_ns, each.longest_ns, each.tasks, each.errors) for each in by_file] == [
        (1, 25 + 7, 30, 2, 1),
        (2, 5, 5, 1, 0),
    ]
    assert [sum(each.bytes.values()) for each in by_file] == [3, 0]


def test_ranks_out_of_order_in_a_chunk_count_once():
    events = random_events(400, seed=5)
    mixed = events[np.random.default_rng(1).permutation(len(events))]
    one = TotalsBy("file")
    one.add(mixed)
    for each in one.totals():
        assert each.tasks == len(np.unique(events.rank[events.file == each.key]))

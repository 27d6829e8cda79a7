"""I/O by phase and region, against looking at every call and every region by itself."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from ensembles.model.events import COLUMNS, Call, Events
from ensembles.model.regions import COLUMNS as REGION_COLUMNS
from ensembles.model.regions import KINDS, RegionTable
from ensembles.summaries.regiontimes import RegionTimes

CALLS = (Call("unknown", "", "meta"), Call("write", "posix", "write"), Call("MPI_Barrier", "mpisync", "wait"))


def some_events(random: np.random.Generator, count: int, ranks: int, until: int) -> Events:
    columns = {name: np.zeros(count, dtype) for name, dtype in COLUMNS.items()}
    columns["rank"][:] = random.integers(0, ranks, count)
    columns["start"][:] = random.integers(0, until, count)
    columns["duration"][:] = random.integers(0, 9, count)
    columns["call"][:] = random.integers(1, 3, count)
    columns["depth"][:] = random.integers(0, 2, count)
    return Events(columns, CALLS, [""])


def some_regions(random: np.random.Generator, count: int, names: int, ranks: int, until: int) -> RegionTable:
    columns = {name: np.zeros(count, dtype) for name, dtype in REGION_COLUMNS.items()}
    for name, most in (("rank", ranks), ("kind", 2), ("name", names), ("start", until), ("ended", 2)):
        columns[name][:] = random.integers(0, most, count)
    columns["duration"][:] = random.integers(0, until // 3, count)
    return RegionTable(columns, [f"n{i}" for i in range(names)])


@settings(max_examples=150, deadline=None)
@given(
    seed=st.integers(0, 2**32), regions=st.integers(0, 60), names=st.integers(1, 8), ranks=st.integers(1, 4)
)
def test_totals_are_those_of_all_calls_and_regions(seed: int, regions: int, names: int, ranks: int) -> None:
    random = np.random.default_rng(seed)
    table, events = some_regions(random, regions, names, ranks, 100), some_events(random, 200, ranks + 1, 120)
    times = RegionTimes(table)
    for part in (events[:70], events[70:71], events[71:71], events[71:]):
        times.add(part)
    rows = list(zip(*(table.columns[name].tolist() for name in REGION_COLUMNS), strict=True))
    calls = [(int(r), int(s), int(d)) for r, s, d, c, deep in zip(
        events.rank, events.start, events.duration, events.call, events.depth, strict=True
    ) if c == 1 and deep == 0]  # fmt: skip
    expected = {}
    for rank, _, kind, name, start, duration, ended in rows:
        entry = expected.setdefault((KINDS[kind], f"n{name}"), [0, set(), 0, 0, set(), start])
        entry[0] += 1
        entry[1].add(rank)
        entry[2] += not ended
        entry[3] += duration
        entry[4] |= {i for i, (r, s, _) in enumerate(calls) if r == rank and start <= s < start + duration}
        entry[5] = min(entry[5], start)
    found = {(totals.kind, totals.name): totals for totals in times.totals}
    assert found.keys() == expected.keys()
    for key, (count, tasks, not_ended, time_ns, inside, _) in expected.items():
        got = found[key]
        assert (got.count, got.tasks, got.not_ended, got.time_ns) == (count, len(tasks), not_ended, time_ns)
        assert got.io_time_ns == sum(calls[i][2] for i in inside)
    first = [expected[key][5] for key in found]
    assert first == sorted(first)


def test_tens_of_thousands_of_names_add_up() -> None:
    """Of a program whose functions are all traced: no work for each pair of name and call."""
    random = np.random.default_rng(1)
    table, events = some_regions(random, 100_000, 50_000, 4, 1 << 30), some_events(random, 10_000, 4, 1 << 30)
    times = RegionTimes(table)
    times.add(events)
    assert sum(totals.count for totals in times.totals) == len(table)
    assert sum(totals.time_ns for totals in times.totals) == int(table.duration.sum())
    assert sum(totals.io_time_ns for totals in times.totals) > 0

"""The tables of the evidence against the same tables made in plain Python, a call at a time."""

from __future__ import annotations

import math
from collections import defaultdict
from typing import Any

import numpy as np
import pytest

from ensembles import _compiled
from ensembles.diagnosis.evidence import Evidence
from ensembles.diagnosis.file_uses import FileUses
from ensembles.model.events import Call, Events
from ensembles.structure.phases.result import Phases

CALLS = (
    Call("unknown", "posix", "meta"),
    Call("pread", "posix", "read"),
    Call("pwrite", "posix", "write"),
    Call("close", "posix", "close"),
    Call("MPI_Barrier", "mpisync", "wait"),
    Call("fopen", "stdio", "open"),
    Call("fclose", "stdio", "close"),
)
STRIPES = np.array([[0, 0, 0, 0], [4096, 3, 2, 5], [1000, 1, 0, 4], [512, 2, 1, 0]])
CUTS = np.array([3_000, 9_000])
PHASES = Phases.between("steps", 1.0, CUTS, [np.array([0, 5_000, 20_000])])


def made(seed: int, in_order: bool) -> Events:
    """Calls of three ranks without calls inside calls, in the order of start or not."""
    rng = np.random.default_rng(seed)
    n = 300
    start = rng.integers(0, 20_000, n)
    rank = np.sort(rng.integers(0, 3, n))
    order = np.lexsort((start, rank)) if in_order else np.argsort(rank, kind="stable")
    columns: dict[str, Any] = {
        "rank": rank,
        "thread": rng.integers(0, 1 if in_order else 3, n),
        "call": rng.integers(0, len(CALLS), n),
        "depth": np.zeros(n, int),
        "file": rng.integers(0, 5, n),
        "offset": rng.integers(-1, 4, n) * 512,
        "requested": rng.choice([0, 1, 512, 513, 4096, 1 << 40, (1 << 63) + 5], n).astype(np.uint64),
        "moved": rng.choice([-1, 0, 512, 4096], n),
        "error": np.zeros(n, int),
        "start": start,
        "duration": rng.choice([0, 1, 2, 3, 1023, 1024, 70_000], n),
    }
    return Events({name: column[order] for name, column in columns.items()}, CALLS, ["", "a", "b", "c", "d"])


def expected_tables(events: Events, in_order: bool) -> dict[str, dict[tuple[int, ...], list[float]]]:
    """The tables by key, with their values in the order of `VALUES`."""
    tables: dict[str, dict[tuple[int, ...], list[float]]] = defaultdict(dict)

    def add(table: str, key: tuple[int, ...], *values: float) -> None:
        row = tables[table].setdefault(key, [0.0] * len(values))
        for place, value in enumerate(values):
            row[place] += value

    def limit(table: str, key: tuple[int, ...], low: int, high: int) -> None:
        row = tables[table].setdefault(key, [low, high])
        row[:] = min(row[0], low), max(row[1], high)

    rows = [{name: int(getattr(events, name)[i]) for name in events.columns} for i in range(len(events))]
    io = [row for row in rows if row["call"] != 4]
    for row in io:
        row["phase"] = sum(row["start"] >= cut for cut in CUTS.tolist()) + 1
    before: dict[tuple[int, int], int] = {}
    reads = []
    for row in io:
        log, moved = math.log(max(row["duration"], 1)), max(row["moved"], 0)
        size = len(f"{row['requested']:b}") if row["requested"] and row["moved"] >= 0 else 0
        base = row["phase"], row["rank"], row["call"], size, 0
        repeats = before.get((row["rank"], row["call"])) == row["file"]
        before[row["rank"], row["call"]] = row["file"]
        add("calls", base, 1, row["duration"], moved, log, repeats)
        limit("calls ends", base, row["start"], row["start"] + row["duration"])
        mates = [each["start"] for each in io if all(each[n] == row[n] for n in ("phase", "rank"))]
        quarter = int((row["start"] - min(mates)) / (max(mates) - min(mates) + 1) * 4)
        add("quarters", (*base, quarter), 1, row["duration"], moved, log)
        add("durations", (row["call"], size, int(math.log2(max(row["duration"], 1)) * 4)), 1)
        if row["call"] not in (1, 2) or row["offset"] < 0 or moved == 0:
            continue
        low, high = row["offset"], row["offset"] + moved
        add("uses", (row["file"], row["rank"]), moved)
        width, count, first, listed = STRIPES[min(row["file"], 3)].tolist()
        if width:
            add("ends", (row["call"], size, (low % width != 0) + (high % width != 0)), 1)
            if listed and (count == 1 or low // width == (high - 1) // width):
                target = (first + low // width % max(count, 1)) % listed
                add("targets", (row["call"], size, target, row["rank"]), 1, row["duration"], log)
        if row["call"] == 1:
            reads.append((row, base, low, high, log))
    if not in_order:
        reads.sort(key=lambda read: (read[0]["rank"], read[0]["start"]))
    reached: dict[tuple[int, int], tuple[int, int]] = {}
    for row, base, low, high, log in reads:
        place = row["file"], row["rank"]
        last_low, last_end = reached.get(place, (low, low))
        jumps = 0 if low == last_end else 2 if high <= last_low else 1
        add("order", (*base[:4], int(jumps)), 1, row["duration"], log)
        reached[place] = low, high
    return tables


VALUES = {
    "calls": ("n", "time_ns", "bytes", "log_ns", "repeats"),
    "quarters": ("n", "time_ns", "bytes", "log_ns"),
    "durations": ("n",),
    "uses": ("bytes",),
    "ends": ("n",),
    "targets": ("n", "time_ns", "log_ns"),
    "order": ("n", "time_ns", "log_ns"),
}
LIMITS = {"calls": ("start_ns", "end_ns")}


@pytest.mark.parametrize("in_order", [True, False])
@pytest.mark.parametrize("seed", range(3))
def test_tables_are_those_of_a_loop_in_python(seed, in_order):
    events = made(seed, in_order)
    evidence = Evidence(PHASES, STRIPES)
    evidence.add(events)
    expected = expected_tables(events, in_order)
    for name, values in VALUES.items():
        table = getattr(evidence, name)
        columns = table.columns()
        keys = list(zip(*(columns[key].tolist() for key in table.keys), strict=True))
        assert keys == sorted(expected[name]), name
        found = np.stack([columns[value] for value in values], axis=1)
        np.testing.assert_allclose(found, [expected[name][key] for key in keys], rtol=1e-12, err_msg=name)
        for place, limit in enumerate(LIMITS.get(name, ())):
            told = [expected[f"{name} ends"][key][place] for key in keys]
            assert columns[limit].tolist() == told, (name, limit)


def test_chunks_that_have_no_nested_call_use_files_as_those_that_may():
    """A call inside another in a later part makes no difference to the calls before it."""
    events = made(7, True)
    one, other = FileUses(PHASES), FileUses(PHASES)
    one.add(events)
    # The other way of the same sums: row by row, by what encloses each call.
    rows = {name: getattr(events, name).astype(np.int64) for name in FileUses.columns}
    rows["phase"] = PHASES.phase_index(events)
    other._calls = CALLS
    other._add_nested(rows | {"flags": np.zeros(len(events), np.int64)}, last=True)
    expected = other.table.columns()
    assert len(expected["n"]) > 20
    for name, column in one.table.columns().items():
        np.testing.assert_array_equal(column, expected[name], name)


def test_columns_that_do_not_fit_are_refused():
    events = made(1, True)
    evidence = Evidence(None, STRIPES)
    broken = Events(events.columns | {"call": np.full(len(events), 9)}, CALLS, events.files)
    with pytest.raises(IndexError):
        evidence.add(broken)
    numbers, cuts = np.zeros(4, np.int64), np.zeros(2, np.int64)
    with pytest.raises(ValueError, match="before, between and after"):
        _compiled.numbers_between(numbers, numbers.copy(), cuts, cuts)


def test_phases_of_any_times_are_those_that_a_search_finds():
    rng = np.random.default_rng(5)
    cuts = np.sort(rng.integers(-50, 50, 12))
    phases = Phases.between("steps", 1.0, cuts, [np.arange(-60, 60, 7)])
    for times in (rng.integers(-70, 70, 500), np.sort(rng.integers(-70, 70, 500)), np.array([], int)):
        events = Events.partly({"rank": times * 0, "start": times}, CALLS, [""])
        expected = phases.number[np.searchsorted(cuts, times, side="right")]
        assert phases.phase_index(events).tolist() == expected.tolist()

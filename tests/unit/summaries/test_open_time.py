"""The rate from open to close is that of IOR: bytes by the time in which the files were open."""

import itertools

import numpy as np
import pytest

from ensembles.model.events import Call, Events
from ensembles.summaries import open_time
from ensembles.summaries.open_time import OpenTime

CALLS = (
    Call("open", "posix", "open"),
    Call("close", "posix", "close"),
    Call("write", "posix", "write"),
    Call("read", "posix", "read"),
    Call("H5Dclose", "hdf5", "close"),
    Call("H5Idec_ref", "hdf5", "close"),
    Call("fsync", "posix", "sync"),
)
OPEN, CLOSE, WRITE, READ, DCLOSE, RELEASE, SYNC = range(7)
FILES = ["", "/a", "/b", "/log"]


def events_of(rows):
    """Rows of rank, call, file, start, duration, bytes."""
    rank, call, file, start, duration, moved = np.array(rows).T
    n = len(rows)
    columns = dict.fromkeys(("thread", "depth", "error"), np.zeros(n))
    columns |= {"rank": rank, "call": call, "file": file, "start": start, "duration": duration}
    columns |= {"moved": moved, "requested": np.maximum(moved, 0), "offset": np.full(n, -1)}
    return Events(columns, CALLS, FILES)


def phase(rank, begun, call=WRITE, file=1, moved=1000, wait=0):
    """Open, two transfers and close: 100 ns."""
    return [
        (rank, OPEN, file, begun, 10, 0),
        (rank, call, file, begun + 20, 20, moved),
        (rank, call, file, begun + 60 + wait, 20, moved),
        (rank, CLOSE, file, begun + 90 + wait, 10, 0),
    ]


def found_in(rows, parts=1):
    events = events_of(sorted(rows, key=lambda row: (row[0], row[3] + row[4])))
    whole = OpenTime()
    ranks = np.unique(events.rank)
    for some in np.array_split(ranks, parts):
        one = OpenTime()
        mine = events[np.isin(events.rank, some)]
        for low in range(0, len(mine), 3):
            one.add(mine[low : low + 3])
        one.finalize()
        whole.merge(one)
    return whole


@pytest.mark.parametrize("parts", [1, 2, 3])
def test_from_the_first_open_to_the_last_close_of_all_tasks(parts):
    rows = [row for rank, begun in ((0, 0), (1, 30), (2, 50)) for row in phase(rank, begun)]
    found = found_in(rows, parts).open_to_close("write")
    assert (found.bytes, found.sessions, found.time_s) == (6000, 3, pytest.approx(150e-9))
    assert found_in(rows, parts).open_to_close("read") is None


@pytest.mark.parametrize("parts", [1, 2])
def test_time_between_phases_does_not_count_and_reads_are_apart(parts):
    rows = [
        row for rank in (0, 1) for row in phase(rank, 0) + phase(rank, 10_000, READ) + phase(rank, 20_000)
    ]
    whole = found_in(rows, parts)
    assert whole.open_to_close("write").time_s == pytest.approx(200e-9)
    assert whole.open_to_close("read").time_s == pytest.approx(100e-9)


def test_a_file_that_stays_open_counts_until_it_is_closed():
    assert found_in(phase(0, 0, wait=5000)).open_to_close("write").time_s == pytest.approx(5100e-9)


def test_closing_a_dataset_does_not_close_the_file():
    rows = phase(0, 0)
    rows.insert(2, (0, DCLOSE, 1, 45, 5, 0))
    assert found_in(rows).open_to_close("write").time_s == pytest.approx(100e-9)


def test_releasing_a_reference_closes_the_file_only_if_it_does():
    """h5py closes datasets and files by the same function; only inside of one the file is closed."""
    rows = [(0, OPEN, 1, 0, 10, 0), (0, READ, 1, 20, 20, 1000), (0, RELEASE, 1, 41, 2, 0)]
    rows += [(0, READ, 1, 50, 20, 1000), (0, RELEASE, 1, 72, 2, 0)]
    rows += [(0, READ, 1, 81, 1, 10), (0, CLOSE, 1, 83, 5, 0), (0, RELEASE, 1, 80, 20, 0)]
    rows += [(0, call, file, start + 1000, *rest) for _, call, file, start, *rest in rows]
    columns = dict(events_of(rows).columns)
    columns["depth"] = np.array([row[1] == CLOSE or row[3] % 1000 == 81 for row in rows])
    columns["carried"] = np.zeros(len(rows))
    found = OpenTime()
    found.add(Events(columns, CALLS, FILES))
    assert found.open_to_close("read").time_s == pytest.approx(200e-9)
    assert found.open_to_close("read").sessions == 2


def test_a_small_log_that_is_open_all_the_time_is_left_out():
    log = [(0, OPEN, 3, 0, 10, 0), (0, WRITE, 3, 50, 1, 9), (0, CLOSE, 3, 90_000, 10, 0)]
    rows = sorted([*log, *phase(0, 1000)], key=lambda row: row[3] + row[4])
    found = found_in(rows).open_to_close("write")
    assert (found.bytes, found.time_s) == (2000, pytest.approx(100e-9))


def test_files_of_one_size_are_never_left_out():
    rows = [row for rank in range(200) for row in phase(rank, 100 * rank)]
    found = found_in(rows).open_to_close("write")
    assert (found.bytes, found.sessions, found.time_s) == (400_000, 200, pytest.approx(20_000e-9))


def test_without_an_open_the_time_is_unknown():
    rows = [(0, WRITE, 1, 100, 50, 10), (0, WRITE, 1, 200, 50, 10)]
    assert found_in(rows).open_to_close("write") is None
    more = [row for rank in (1, 2) for row in phase(rank, 1000, moved=10_000)]
    found = found_in([*rows, *more]).open_to_close("write")
    assert (found.bytes, found.time_s) == (40_000, pytest.approx(100e-9))


def test_a_file_that_is_never_closed_counts_until_its_last_use():
    assert found_in(phase(0, 0)[:-1]).open_to_close("write").time_s == pytest.approx(80e-9)


def test_a_sync_is_a_use_of_a_file_that_is_never_closed():
    sync = (0, SYNC, 1, 90, 500, 0)
    assert found_in([*phase(0, 0)[:-1], sync]).open_to_close("write").time_s == pytest.approx(590e-9)
    # The next session begins with its open, and not with a sync before it.
    again = [sync, (0, CLOSE, 1, 600, 10, 0), (0, SYNC, 1, 700, 10, 0), *phase(0, 1000)]
    found = found_in([*phase(0, 0)[:-1], *again]).open_to_close("write")
    assert (found.sessions, found.time_s) == (2, pytest.approx(710e-9))


def test_more_sessions_than_are_kept_are_refused(monkeypatch):
    monkeypatch.setattr(open_time, "MOST_EXACT", 10)
    rows = [row for rank in range(100) for row in phase(rank, 100 * rank)]
    assert found_in(rows).open_to_close("write") is None
    few = [row for rank in range(100) for row in phase(rank, 100 * rank, moved=10**6 if rank < 10 else 1)]
    assert found_in(few).open_to_close("write").sessions == 10


def test_bytes_of_sessions_equal_a_plain_loop_over_random_calls() -> None:
    rng = np.random.default_rng(11)
    calls = (
        Call("open", "posix", "open"),
        Call("close", "posix", "close"),
        Call("pread", "posix", "read"),
        Call("pwrite", "posix", "write"),
        Call("fsync", "posix", "sync"),
    )
    n = 4000
    start = np.sort(rng.integers(0, 10**6, n))
    columns = {
        "rank": np.sort(rng.integers(0, 5, n)),
        "thread": rng.integers(0, 2, n),
        "call": rng.integers(0, len(calls), n),
        "carried": rng.integers(0, 4, n) * (rng.random(n) < 0.1),
        "depth": (rng.random(n) < 0.1).astype(int),
        "file": rng.integers(0, 3, n),
        "moved": rng.integers(-1, 1000, n),
        "start": start,
        "duration": rng.integers(0, 3, n),
    }
    expected = {(rank, op): 0 for rank in range(5) for op in ("read", "write")}
    for i in range(n):
        op = calls[columns["call"][i]].op
        bit = {"read": 1, "write": 2}.get(op, 0)
        if bit and columns["moved"][i] > 0 and not columns["carried"][i] & bit:
            expected[columns["rank"][i], op] += columns["moved"][i]
    for pieces in (1, 7, 400):
        found = OpenTime()
        edges = np.linspace(0, n, pieces + 1).astype(int)
        for low, high in itertools.pairwise(edges):
            part = {name: column[low:high] for name, column in columns.items()}
            found.add(Events.partly(part, calls, ("", "/a", "/b")))
        found.finalize()
        assert found._bytes == [
            sum(bytes_ for (_, op), bytes_ in expected.items() if op == direction)
            for direction in ("read", "write")
        ]

"""Slices of a trace.h5 read only the chunks in which they lie; a wrong index never gives wrong answers."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import h5py
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from made_spools import made_events, spool

import ensembles as en
from ensembles.model.events import COLUMNS
from ensembles.passes.damage import DamageReport
from ensembles.passes.reading import ReadRequest, divide
from ensembles.readers.tracefile.chunks import TraceColumns
from ensembles.readers.tracefile.index import TraceIndex
from ensembles.readers.tracefile.tracefile import TraceFileSource
from ensembles.run.collect import collect
from ensembles.run.selection import Selection
from ensembles.writers.tracefile import events

RANKS, EVENTS, ROWS = 6, 5000, 1024
CHUNKS = -(-RANKS * EVENTS // ROWS)


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Six ranks of five thousand calls each, in chunks of 1024."""
    folder = tmp_path_factory.mktemp("index")
    for rank in range(RANKS):
        spool(folder / f"{rank}.spool", [made_events(EVENTS, rank)], rank=rank, pid=rank + 1, tasks=RANKS)
    before = events.CHUNK_ROWS
    events.CHUNK_ROWS = ROWS
    try:
        collect(str(folder), str(folder / "out.h5"))
    finally:
        events.CHUNK_ROWS = before
    return folder / "out.h5"


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The chunks that are read, one after the other."""
    seen: list[int] = []
    plain = TraceColumns.read

    def counted(self, numbers, *args):
        seen.extend(numbers.tolist())
        return plain(self, numbers, *args)

    monkeypatch.setattr(TraceColumns, "read", counted)
    return seen


def same(events: en.Events, expected: en.Events) -> None:
    for name in COLUMNS:
        np.testing.assert_array_equal(getattr(events, name), getattr(expected, name), err_msg=name)


@pytest.mark.parametrize("most", [300, ROWS, 3 * ROWS])
@pytest.mark.parametrize("names", [None, ("rank", "start"), ("moved",)])
def test_chunks_that_somebody_holds_are_not_written_over(trace: Path, most: int, names) -> None:
    """The memory of chunks is used again, but only where it is not in use any more."""
    source = TraceFileSource(str(trace))
    held, columns = [], []
    for number, chunk in enumerate(source.chunks(ReadRequest(most, names), DamageReport())):
        copies = {name: getattr(chunk, name).copy() for name in names or COLUMNS}
        if number % 3 == 0:
            held.append((chunk, copies))
        elif number % 3 == 1:  # of one column only a view
            columns.append((getattr(chunk, (names or ("duration",))[-1])[1:], copies))
        del chunk
    assert len(held) > 3
    for chunk, copies in held:
        for name, copy in copies.items():
            np.testing.assert_array_equal(getattr(chunk, name), copy, err_msg=name)
    for view, copies in columns:
        np.testing.assert_array_equal(view, copies[(names or ("duration",))[-1]][1:])


def test_a_rank_is_read_from_its_own_chunks(trace: Path, read: list[int]) -> None:
    found = en.open(trace).select(rank="3")
    low, high = 3 * EVENTS // ROWS, (4 * EVENTS - 1) // ROWS
    assert read == list(range(low, high + 1))
    same(found, en.open(trace).events[3 * EVENTS : 4 * EVENTS])


def test_a_time_of_a_rank_is_read_from_the_chunk_in_which_it_lies(trace: Path, read: list[int]) -> None:
    everything = en.open(trace).events
    read.clear()
    middle = 2 * EVENTS + EVENTS // 2
    begin, end = everything.start[middle] * 1e-9, everything.start[middle + 20] * 1e-9
    found = en.open(trace).select(rank=2, time=f"{begin:.9f}..{end:.9f}")
    assert read == [middle // ROWS]
    same(found, everything[middle : middle + 20])


def test_a_time_of_all_ranks_is_read_from_few_chunks(trace: Path, read: list[int]) -> None:
    run = en.open(trace)
    starts = en.open(trace).events.start
    read.clear()
    low, high = (int(time) for time in np.quantile(starts, [0.48, 0.5]))
    found = run.select(time=f"{low * 1e-9:.9f}..{high * 1e-9:.9f}")
    assert len(read) <= 2 * RANKS < CHUNKS
    assert len(found) == np.count_nonzero((starts >= low) & (starts < high))


def test_ordinals_count_the_calls_before_a_time_too(trace: Path) -> None:
    everything = en.open(trace).events
    assert everything.ordinal is not None
    low, high = (int(time) for time in np.quantile(everything.start, [0.4, 0.6]))
    ordinals = [int(ordinal) for ordinal in np.quantile(everything.ordinal, [0.3, 0.7])]
    chosen = (everything.start >= low) & (everything.start < high)
    chosen &= (everything.ordinal >= ordinals[0]) & (everything.ordinal <= ordinals[1])
    found = en.open(trace).select(
        time=f"{low * 1e-9:.9f}..{high * 1e-9:.9f}", ordinal=f"{ordinals[0]}-{ordinals[1]}"
    )
    assert 0 < len(found) < len(everything)
    same(found, everything[chosen])


def test_events_of_the_command_line_read_no_more(
    trace: Path, read: list[int], capsys: pytest.CaptureFixture[str]
) -> None:
    from ensembles.cli.main import main

    assert main(["events", str(trace), "--rank", "5", "--format", "csv"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == EVENTS + 1
    assert read == list(range(5 * EVENTS // ROWS, CHUNKS))


def test_a_rank_without_calls_is_found_missing_by_looking(trace: Path, read: list[int]) -> None:
    assert len(en.open(trace).select(rank="6-99")) == 0
    assert read == [CHUNKS - 1]


def test_other_columns_alone_need_no_index(trace: Path) -> None:
    chunks = list(en.open(trace).chunks(1 << 20, ("call", "duration")))
    assert sum(map(len, chunks)) == RANKS * EVENTS


@pytest.mark.parametrize("most", [1, 2, 7, 1000])
def test_parts_together_are_the_whole(trace: Path, most: int) -> None:
    run = en.open(trace)
    request = ReadRequest(500, ("start", "duration"), is_ordered=False)
    parts = [
        list(run.reading.source.chunks(part, DamageReport()))
        for part in divide(run.reading.source, request, most)
    ]
    assert len(parts) == min(most, CHUNKS)
    assert max(len(chunk) for part in parts for chunk in part) <= 500
    starts = np.concatenate([chunk.start for part in parts for chunk in part])
    np.testing.assert_array_equal(starts, run.events.start)


ranges = st.lists(st.tuples(st.integers(0, 7), st.integers(0, 7)).map(sorted), min_size=1, max_size=2)
times = st.lists(
    st.tuples(st.integers(-5, 60), st.integers(1, 30)).map(lambda pair: (pair[0], pair[0] + pair[1])),
    min_size=1,
    max_size=2,
)


@given(
    seed=st.integers(0, 2**32),
    of_rank=st.lists(st.integers(0, 9), min_size=1, max_size=6),
    rows=st.integers(1, 8),
    ranks=st.none() | ranges,
    times_ns=st.none() | times,
)
def test_chunks_that_are_passed_over_hold_nothing_and_the_others_prove_it(
    seed: int, of_rank: list[int], rows: int, ranks: list | None, times_ns: list | None
) -> None:
    """Whatever sorted rows there were in the chunks that are not read, none could be wanted."""
    random = np.random.default_rng(seed)
    rank = np.repeat(np.arange(len(of_rank)), of_rank).astype("u4")
    start = np.concatenate([np.sort(random.integers(0, 50, count)) for count in of_rank]).astype("i8")
    builder = events.IndexBuilder(rows)
    for low in range(0, len(rank), rows):
        columns = {"rank": rank[low : low + rows], "start": start[low : low + rows]}
        count = len(columns["rank"])
        others = {"duration": "i8", "call": "u2", "file": "u4", "requested": "u8"}
        builder.add(columns | {name: np.ones(count, kind) for name, kind in others.items()})
    index = builder.index()
    wanted = index.chunks_with(ranks, times_ns)

    def is_wanted(one_rank: int, one_start: int) -> bool:
        return (ranks is None or any(low <= one_rank <= high for low, high in ranks)) and (
            times_ns is None or any(low <= one_start <= high for low, high in times_ns)
        )

    read_rows = np.repeat(wanted, rows)[: len(rank)]
    for place in np.flatnonzero(~read_rows).tolist():
        assert not is_wanted(int(rank[place]), int(start[place]))
    # All that sorted rows could be between two rows that are read, or before the first, or after the last.
    kept = [(int(rank[i]), int(start[i])) for i in np.flatnonzero(read_rows)]
    edges = [(-1, -99), *kept, (9, 999)]
    gaps = np.flatnonzero(np.diff(np.append(np.append(-1, np.flatnonzero(read_rows)), len(rank))) > 1)
    for gap in gaps.tolist():
        for possible in ((r, s) for r in range(9) for s in range(-6, 92)):
            assert not (edges[gap] < possible < edges[gap + 1] and is_wanted(*possible))


def lie(name: str, change: Callable[[np.ndarray], None]) -> Callable[[h5py.File], None]:
    def forge(file: h5py.File) -> None:
        values = file["index"][name][:]
        change(values)
        file["index"][name][:] = values

    return forge


def later(by: int) -> Callable[[np.ndarray], None]:
    def change(values: np.ndarray) -> None:
        values[len(values) // 2] += by

    return change


def swap_rows(file: h5py.File) -> None:
    start = file["events/start"][:]
    start[2 * ROWS + 5 : 2 * ROWS + 7] = start[2 * ROWS + 5 : 2 * ROWS + 7][::-1]
    file["events/start"][:] = start


LIES = {
    "a rank begins earlier": lie("row", later(-1)),
    "a rank begins later": lie("row", later(300)),
    "a rank has another number": lie("rank", later(100)),
    "a chunk begins earlier": lie("first_start", later(-1)),
    "a chunk begins later": lie("first_start", later(1)),
    "a chunk ends earlier": lie("last_start", later(-1)),
    "a chunk ends later": lie("last_start", later(1)),
    "an end is late": lie("max_end", later(1)),
    "rows of no length": lambda file: file["index"].attrs.create("rows", 0),
    "rows beyond memory": lambda file: file["index"].attrs.create("rows", 1 << 40),
    "other rows": lambda file: file["index"].attrs.create("rows", ROWS // 2),
    "no index": lambda file: file.__delitem__("index"),
    "rows that are not sorted": swap_rows,
}


@pytest.mark.parametrize("kind", LIES)
def test_an_index_that_lies_is_refused_when_its_events_are_read(
    tmp_path: Path, trace: Path, kind: str
) -> None:
    path = tmp_path / "trace.h5"
    shutil.copy(trace, path)
    with h5py.File(path, "r+", libver="v110") as file:
        LIES[kind](file)
    for reading in (lambda run: len(run.events), lambda run: sum(map(len, run.chunks(100)))):
        with pytest.raises(en.EnsioError, match=r"trace\.h5 is not a complete trace\.h5") as caught:
            reading(en.open(path))
        assert "\n" not in str(caught.value)


@pytest.mark.slow
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=30)
@given(
    name=st.sampled_from(("rank", "row", "first_start", "last_start", "max_end")),
    place=st.floats(0, 1, exclude_max=True),
    by=st.integers(-1 << 20, 1 << 20) | st.integers(-(2**62), 2**62) | st.integers(-3, 3),
    rank=st.none() | st.integers(0, RANKS),
    begin=st.none() | st.floats(0, 1),
)
def test_whatever_the_index_says_a_slice_is_right_or_refused(
    tmp_path_factory: pytest.TempPathFactory,
    trace: Path,
    name: str,
    place: float,
    by: int,
    rank: int | None,
    begin: float | None,
) -> None:
    filters: dict[str, str] = {} if rank is None else {"rank": str(rank)}
    if begin is not None:
        filters["time"] = f"{begin * 0.05!r}..{begin * 0.05 + 0.001!r}"
    expected = Selection.parse(**filters).apply(en.open(trace).events)
    path = tmp_path_factory.mktemp("lie") / "trace.h5"
    shutil.copy(trace, path)
    with h5py.File(path, "r+", libver="v110") as file:
        values = file["index"][name][:]
        values[int(place * len(values))] += by
        file["index"][name][:] = values
    found = None
    with suppress(en.EnsioError):
        found = en.open(path).select(**filters)
    if found is not None:
        same(found, expected)
    shutil.rmtree(path.parent)


def test_parts_that_contradict_each_other_are_refused() -> None:
    numbers = [np.array([0, 1]), np.array([0, 2])]
    times = [np.array([5, 5]), np.array([9, 9]), np.array([9, 9])]
    assert TraceIndex(4, 2, *numbers, *times).chunks == 2
    for length, rows, parts in (
        (5, 2, (*numbers, *times)),
        (4, 2, (np.array([1, 0]), numbers[1], *times)),
        (4, 2, (numbers[0], np.array([0, 4]), *times)),
        (4, 2, (numbers[0], np.array([1, 2]), *times)),
        (4, 2, (*numbers, times[0], np.array([4, 9]), times[2])),
        (0, 2, (*numbers, *times)),
    ):
        with pytest.raises(ValueError, match="contradict"):
            TraceIndex(length, rows, *parts)

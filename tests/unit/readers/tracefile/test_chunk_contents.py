"""What is known of chunks decides what is read, and is not believed where the file is another one."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import h5py
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_spools import made_events, spool

import ensembles as en
from ensembles.model.events import COLUMNS
from ensembles.passes.damage import DamageReport
from ensembles.passes.kept import name_of, restore, seal, to_bytes, unseal
from ensembles.passes.reading import Contents, ReadRequest, set_of
from ensembles.readers.tracefile.checked_parts import content_identity
from ensembles.readers.tracefile.chunks import TraceColumns, find_places, known_places
from ensembles.readers.tracefile.index import KEY, ChunkContents, IndexBuilder
from ensembles.readers.tracefile.tracefile import TraceFileSource
from ensembles.run.collect import collect
from ensembles.run.selection import Selection
from ensembles.writers.tracefile import events as written

RANKS, EVENTS, ROWS = 4, 4096, 512


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Each rank has another function and size than the rank before it."""
    folder = tmp_path_factory.mktemp("contents")
    for rank in range(RANKS):
        made = made_events(EVENTS, rank)
        made["call"], made["requested"] = (5, 6)[rank % 2], 1000 * (rank + 1)
        spool(folder / f"{rank}.spool", [made], rank=rank, pid=rank + 1, tasks=RANKS)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(written, "CHUNK_ROWS", ROWS)
        collect(str(folder), str(folder / "out.h5"))
    return folder / "out.h5"


@pytest.fixture
def rows_read(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    seen: list[int] = []
    plain = TraceColumns.read

    def counted(self, numbers, *args):
        seen.extend(high - low for low, high in self._index.spans_of(numbers))
        return plain(self, numbers, *args)

    monkeypatch.setattr(TraceColumns, "read", counted)
    return seen


@pytest.mark.parametrize(
    ("filters", "share"), [({"size": "2000"}, 4), ({"size": "..1500"}, 4), ({"size": "1..2500"}, 2), ({}, 1)]
)
def test_only_chunks_that_can_match_are_read(trace: Path, rows_read: list[int], filters, share: int) -> None:
    found = en.open(trace).select(**filters)
    assert len(found) == sum(rows_read) == RANKS * EVENTS // share


def test_functions_without_a_call_are_found_missing_without_reading(
    trace: Path, rows_read: list[int]
) -> None:
    run = en.open(trace)
    made = {call.name for call in run.calls} - {run.calls[number].name for number in {5, 6}}
    name = next(iter(sorted(name for name in made if name != "unknown")))
    assert len(run.select(call=name)) == 0
    assert not rows_read


@given(numbers=st.lists(st.integers(0, 500), max_size=5), wanted=st.lists(st.integers(0, 500), max_size=5))
def test_sets_with_a_common_number_have_a_common_bit(numbers: list[int], wanted: list[int]) -> None:
    if set(numbers) & set(wanted):
        assert set_of(numbers) & set_of(wanted)
    assert bool(set_of(numbers)) == bool(numbers)


@given(
    seed=st.integers(0, 2**32),
    rows=st.integers(1, 9),
    calls=st.none() | st.lists(st.integers(0, 9), max_size=3),
    files=st.none() | st.lists(st.integers(60, 140), max_size=3),
    sizes=st.none() | st.lists(st.tuples(st.integers(0, 20), st.integers(0, 5)), max_size=2),
    under_way=st.none() | st.tuples(st.integers(-1, 60), st.integers(0, 60)),
)
def test_chunks_that_do_not_match_hold_nothing(seed, rows, calls, files, sizes, under_way) -> None:
    random, n = np.random.default_rng(seed), 40
    columns = {
        "rank": np.sort(random.integers(0, 4, n)).astype("u4"),
        "start": random.integers(0, 50, n),
        "duration": random.integers(0, 9, n),
        "call": random.integers(0, 10, n).astype("u2"),
        "file": random.integers(60, 140, n).astype("u4"),
        "requested": random.integers(0, 20, n).astype("u8"),
    }
    columns["start"] = columns["start"][np.lexsort((columns["start"], columns["rank"]))]
    builder = IndexBuilder(rows)
    for low in range(0, n, rows):
        builder.add({name: column[low : low + rows] for name, column in columns.items()})
    ranges = None if sizes is None else tuple((low, low + more) for low, more in sizes)
    wanted = Contents(
        None if calls is None else set_of(calls), None if files is None else set_of(files), ranges, under_way
    )
    read = np.repeat(builder.contents().matching(wanted), rows)[:n]
    match = np.ones(n, bool)
    match &= True if calls is None else np.isin(columns["call"], calls)
    match &= True if files is None else np.isin(columns["file"], files)
    if ranges is not None:
        match &= np.logical_or.reduce(
            [(columns["requested"] >= low) & (columns["requested"] <= high) for low, high in ranges]
            or [np.zeros(n, bool)]
        )
    if under_way is not None:
        match &= (columns["start"] + columns["duration"] > under_way[0]) & (columns["start"] < under_way[1])
    assert read[match].all()


def test_a_window_of_time_skips_chunks_between_the_end_of_a_rank_and_the_next(
    tmp_path: Path, rows_read: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each rank has one chunk and a half, so that every other chunk holds the end of one and the next one."""
    for rank in range(RANKS):
        spool(tmp_path / f"{rank}.spool", [made_events(3 * ROWS // 2, rank)], rank=rank, tasks=RANKS)
    monkeypatch.setattr(written, "CHUNK_ROWS", ROWS)
    collect(str(tmp_path), str(tmp_path / "out.h5"))
    run = en.open(tmp_path / "out.h5")
    events = run.events
    mine = events[events.rank == 0]
    low, high = int(mine.start[3 * ROWS // 4]), int(mine.start[3 * ROWS // 4 + 4])
    inside = (events.start < high) & (events.start + np.maximum(events.duration, 1) > low)
    rows_read.clear()
    found = en.open(tmp_path / "out.h5").reading.chosen_by(Selection(under_way_ns=(low, high)))
    assert found.start.tolist() == events.start[inside].tolist()
    assert sum(rows_read) == RANKS * ROWS


def changed(trace: Path, folder: Path, change: Callable[[h5py.File], None]) -> Path:
    copy = folder / "copy.h5"
    shutil.copy(trace, copy)
    with h5py.File(copy, "r+", libver=("v110", "v110")) as file:
        change(file)
    return copy


def hide(file: h5py.File) -> None:
    """Claim that no chunk has a call, as an unsealed column would let one."""
    name = name_of(content_identity(file), KEY)
    data = file["kept"][name][:].tobytes()
    contents = ChunkContents()
    restore(contents, unseal(content_identity(file), KEY, data), None)  # type: ignore[arg-type]
    contents.calls[:] = 0
    packed = to_bytes(contents, None)  # type: ignore[arg-type]
    del file["kept"][name]
    file["kept"].create_dataset(name, data=np.frombuffer(seal(b"another", KEY, packed), "u1"), chunks=True)


def swap_sizes(file: h5py.File) -> None:
    """Another program reverses the sizes of all calls."""
    file["events/requested"][:] = file["events/requested"][:][::-1]


@pytest.mark.parametrize("change", [hide, swap_sizes])
def test_contents_of_another_file_are_not_believed(trace: Path, tmp_path: Path, change) -> None:
    copy = changed(trace, tmp_path, change)
    assert TraceFileSource(str(copy))._contents is None
    everything = en.open(copy).events
    for size in (1000, 2000):
        found = en.open(copy).select(size=size)
        expected = everything[everything.requested == size]
        assert len(found) == EVENTS
        np.testing.assert_array_equal(found.rank, expected.rank)


def test_chunks_at_other_places_are_found(trace: Path, tmp_path: Path) -> None:
    """A copy by another program has the same chunks, and the same kept results, at other places."""
    copy = tmp_path / "copy.h5"
    with h5py.File(trace) as old, h5py.File(copy, "w", libver=("v110", "v110")) as new:
        for name, value in old.attrs.items():
            new.attrs.create(name, value, dtype=old.attrs.get_id(name).dtype)
        for name in sorted(old, reverse=True):
            old.copy(name, new)
    with h5py.File(trace) as old, h5py.File(copy) as new:
        assert content_identity(old) == content_identity(new)
        assert (find_places(old["events/start"]) != find_places(new["events/start"])).any()
    source = TraceFileSource(str(copy))
    assert source._contents is not None
    assert (source._contents.places["start"] == find_places(h5py.File(trace)["events/start"])).all()
    found, expected = en.open(copy).events, en.open(trace).events
    for name in COLUMNS:
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))


@pytest.mark.parametrize(("row", "chunk"), [(0, 0), (1, 0), (0, -1), (1, -1)])
def test_places_that_are_not_those_of_the_file_are_not_believed(trace: Path, row: int, chunk: int) -> None:
    """The first place is compared with HDF5's, the last one by what lies there."""
    source = TraceFileSource(str(trace))
    assert source._contents is not None
    with h5py.File(trace) as file:
        column, told = file["events/start"], source._contents.places["start"]
        assert known_places(column, told) is told
        wrong = told.copy()
        wrong[row, chunk] += 1
        np.testing.assert_array_equal(known_places(column, wrong), told)
        np.testing.assert_array_equal(known_places(column, told[:, :-1]), told)
        np.testing.assert_array_equal(known_places(column, None), told)


@pytest.mark.parametrize(
    ("events", "rows"),
    [(0, 1024), (5000, 5000), (10**8, 8192), (10**9, 8192), (2 * 10**9, 1 << 14), (10**12, 1 << 15)],
)
def test_chunks_of_very_long_runs_have_more_rows(events: int, rows: int) -> None:
    assert written.rows_of_chunk(events) == rows


def test_files_without_contents_are_read_as_before(trace: Path, tmp_path: Path, rows_read: list[int]) -> None:
    def without(file: h5py.File) -> None:
        del file["kept"]

    copy = changed(trace, tmp_path, without)
    assert len(en.open(copy).select(size=2000)) == EVENTS
    assert sum(rows_read) == RANKS * EVENTS
    request = ReadRequest(contents=Contents(calls=0))
    read = sum(map(len, TraceFileSource(str(copy)).chunks(request, DamageReport())))
    assert read == RANKS * EVENTS

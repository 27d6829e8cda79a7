"""Calls of any number are put in order, in memory or through files, with the same result."""

import os
import resource
import tempfile

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ensembles.api.run import Run
from ensembles.model.errors import EnsioError
from ensembles.model.events import COLUMNS, Call
from ensembles.model.metadata import RunMetadata
from ensembles.model.regions import RegionTable
from ensembles.passes.damage import DamageReport
from ensembles.passes.reading import ReadRequest, divide
from ensembles.readers.foreign.common.import_table import ImportedSource, MemoryTable, sorted_table


def block_of(ranks, starts, first=0):
    """A block whose other columns tell every call from every other."""
    number = first + np.arange(len(ranks))
    columns = {
        name: (number * 7 + place).astype(dtype) for place, (name, dtype) in enumerate(COLUMNS.items())
    }
    columns["rank"], columns["start"] = np.array(ranks, "u4"), np.array(starts, "i8")
    columns["call"] = np.zeros(len(ranks), "u2")
    columns["requested"] += 7  # more than moved
    return columns


def blocks_of(keys, length):
    for low in range(0, len(keys), length):
        part = keys[low : low + length]
        yield block_of([rank for rank, _ in part], [start for _, start in part], low)


def independently_sorted(keys, length):
    """By Python's own stable sort of rows."""
    blocks = list(blocks_of(keys, length))
    rows = [row for block in blocks for row in zip(*(block[name].tolist() for name in COLUMNS), strict=True)]
    rank, start = list(COLUMNS).index("rank"), list(COLUMNS).index("start")
    rows.sort(key=lambda row: (row[rank], row[start]))
    return rows


def rows_of(columns):
    return list(zip(*(columns[name].tolist() for name in COLUMNS), strict=True))


KEYS = st.lists(st.tuples(st.integers(0, 3), st.integers(-3, 3)), max_size=120)


@settings(max_examples=150, derandomize=True)
@given(KEYS, st.integers(1, 40), st.integers(1, 60), st.integers(1, 30), st.integers(1, 9))
def test_files_and_memory_give_the_same_rows_in_the_order_of_a_stable_sort(
    keys, length, in_memory, merged, window
):
    from ensembles.readers.common import row_files

    expected = independently_sorted(keys, length)
    least, row_files._LEAST_WINDOW = row_files._LEAST_WINDOW, window
    try:
        through_files = sorted_table(blocks_of(keys, length), "a trace", in_memory, merged)
    finally:
        row_files._LEAST_WINDOW = least
    whole = sorted_table(blocks_of(keys, length), "a trace")
    assert rows_of(whole.read(0, len(whole))) == expected
    assert rows_of(through_files.read(0, len(through_files))) == expected
    assert rows_of(through_files.read(0, len(expected))) == expected
    third = len(expected) // 3
    assert rows_of(through_files.read(third, 2 * third)) == expected[third : 2 * third]


class Trace:
    """Calls as a reader of a format gives them."""

    def __init__(self, keys, length=7, fails_after=None):
        self.keys, self.length, self.fails_after = keys, length, fails_after
        tasks = max((rank for rank, _ in keys), default=-1) + 1
        calls = (Call("unknown", "posix", "meta"),)
        self.metadata = RunMetadata(tasks, tasks, 0, calls, [""], [], [])

    def blocks(self, max_events):
        for number, block in enumerate(blocks_of(self.keys, self.length)):
            if number == self.fails_after:
                raise EnsioError("it is torn")
            yield block

    def regions(self):
        return RegionTable.empty()

    def summary(self):
        return None

    def ranks(self):
        return None


@pytest.fixture
def few_in_memory(monkeypatch):
    monkeypatch.setattr("ensembles.readers.foreign.common.import_table.HELD_EVENTS", 50)
    monkeypatch.setattr("ensembles.readers.foreign.common.import_table.MERGED_EVENTS", 20)


def random_keys(count=500, ranks=9):
    draw = np.random.default_rng(3)
    return list(
        zip(draw.integers(0, ranks, count).tolist(), draw.integers(0, 99, count).tolist(), strict=True)
    )


def test_chunks_parts_and_ranks_of_a_run_in_files_are_those_of_one_in_memory(few_in_memory, monkeypatch):
    keys = random_keys()
    stored = ImportedSource("t", Trace(keys))
    monkeypatch.undo()
    held = ImportedSource("t", Trace(keys))
    assert isinstance(held._table, MemoryTable)
    assert not isinstance(stored._table, MemoryTable)
    expected = rows_of(Run("t", held).events.columns)
    assert rows_of(Run("t", stored).events.columns) == expected
    in_chunks = [
        [row for chunk in Run("t", source).chunks(33) for row in rows_of(chunk.columns)]
        for source in (held, stored)
    ]
    assert in_chunks[0] == in_chunks[1]
    assert sorted(in_chunks[0]) == sorted(expected)  # calls come behind those that are inside them
    for source in (held, stored):
        parts = divide(source, ReadRequest(33), 4)
        assert len(parts) == 4
        chunks = [list(source.chunks(part, DamageReport())) for part in parts]
        in_parts = [row for part in chunks for chunk in part for row in rows_of(chunk.columns)]
        assert sorted(in_parts) == sorted(expected)
        ranks = [{rank for chunk in part for rank in chunk.rank.tolist()} for part in chunks]
        assert sum(map(len, ranks)) == len(set().union(*ranks)) == 9
        rows = divide(source, ReadRequest(33, is_ordered=False), 4)
        assert [part.rows for part in rows] == [(0, 125), (125, 250), (250, 375), (375, 500)]
        found = [
            row
            for part in rows
            for chunk in source.chunks(part, DamageReport())
            for row in rows_of(chunk.columns)
        ]
        assert found == expected
        some = Run("t", source).reading.some_ranks(100, 3)
        assert sorted(set(some.rank.tolist())) == [0, 4, 8]
        assert rows_of(some.columns) == [row for row in expected if row[0] in (0, 4, 8)]


def test_only_the_columns_that_are_asked_for_are_read(few_in_memory):
    chunk = next(iter(Run("t", ImportedSource("t", Trace(random_keys()))).chunks(10, ("duration", "call"))))
    assert len(chunk) == 10
    with pytest.raises(AttributeError):
        _ = chunk.offset


def test_a_run_without_calls_has_no_part():
    source = ImportedSource("t", Trace([]))
    assert source.capacity == 0
    for is_ordered in (True, False):
        assert divide(source, ReadRequest(10, is_ordered=is_ordered), 4) == []
    run = Run("t", source)
    assert len(run.reading.some_ranks(10, 3)) == len(run.events) == len(list(run.chunks())) == 0


def test_temporary_files_are_in_tmpdir_and_have_no_name(few_in_memory, tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    source = ImportedSource("t", Trace(random_keys()))
    links = [os.readlink(entry.path) for entry in os.scandir("/proc/self/fd") if os.path.islink(entry.path)]
    ours = [link for link in links if link.startswith(str(tmp_path))]
    assert len(ours) == 1
    assert ours[0].endswith("(deleted)")
    assert list(tmp_path.iterdir()) == []
    assert os.fstat(source._table._file._file.fileno()).st_mode & 0o777 == 0o600


def test_after_an_error_no_temporary_file_is_left_open(few_in_memory, tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with pytest.raises(EnsioError, match="torn"):
        ImportedSource("t", Trace(random_keys(), fails_after=20))
    links = [
        os.readlink(f"/proc/self/fd/{fd}")
        for fd in os.listdir("/proc/self/fd")
        if os.path.islink(f"/proc/self/fd/{fd}")
    ]
    assert not [link for link in links if link.startswith(str(tmp_path))]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("room_bytes", [1000, 40_000])
def test_too_little_room_is_told_in_one_sentence(few_in_memory, room_bytes):
    unlimited = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (room_bytes, unlimited[1]))
    try:
        with pytest.raises(
            EnsioError, match=r"^the calls of t do not fit into \S+ \(File too large\): set TMPDIR"
        ):
            ImportedSource("t", Trace(random_keys(1000)))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, unlimited)


def test_a_tmpdir_that_does_not_exist_is_told(few_in_memory, tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "none"))
    with pytest.raises(EnsioError, match=r"do not fit into .*none"):
        ImportedSource("t", Trace(random_keys()))

"""Chunks of a trace.h5 into columns: with libdeflate and without it, against HDF5 itself."""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import h5py
import numpy as np
import pytest

from ensembles.model.events import COLUMNS
from ensembles.readers.tracefile import chunks
from ensembles.readers.tracefile.chunks import (
    DAMAGE,
    ChunkReader,
    ChunkRows,
    Column,
    Limits,
    read_without_libdeflate,
)

ROWS = 1000

Read = Callable[[int, Sequence[ChunkRows], Limits], None]


def compiled(descriptor: int, parts: Sequence[ChunkRows], limits: Limits) -> None:
    assert chunks._chunks is not None, "the compiled reader is missing: libdeflate-dev, then ./dev setup"
    ChunkReader(limits).read(descriptor, parts)


BOTH = pytest.mark.parametrize("read", [compiled, read_without_libdeflate])


class Stored:
    """Columns in a file, and parts of them."""

    def __init__(self, path: Path, columns: dict[str, np.ndarray], level: int = 4) -> None:
        filters = {"shuffle": True, "compression": "gzip", "compression_opts": level}
        with h5py.File(path, "w") as file:
            for name, values in columns.items():
                file.create_dataset(name, data=values, chunks=(ROWS,), **filters)
        self.places: dict[tuple[str, int], tuple[int, int]] = {}
        with h5py.File(path) as file:
            for name in columns:
                for number in range(file[name].id.get_num_chunks()):
                    found = file[name].id.get_chunk_info(number)
                    first = found.chunk_offset[0]
                    self.places[name, first] = (found.byte_offset, found.size)
        self.descriptor = os.open(path, os.O_RDWR)

    def part(self, name: str, low: int, high: int, zeroed: bool = False) -> ChunkRows:
        """Rows of one chunk, and new memory for them."""
        first = low // ROWS * ROWS
        out = (np.zeros if zeroed else np.empty)(high - low, COLUMNS[name])
        if not zeroed:
            out.view("u1")[:] = 0xA5
        return ChunkRows(name, *self.places[name, first], ROWS, low - first, out, zeroed)

    def column(self, name: str, rows: int, zeroed: bool = False) -> Column:
        """New memory for so many rows of whole chunks of a column."""
        places = [self.places[key] for key in sorted(self.places) if key[0] == name]
        out = np.zeros(rows, COLUMNS[name]) if zeroed else np.full(rows, -91, "i8").astype(COLUMNS[name])
        return Column(name, np.array(places, "i8").T.copy(), out, zeroed)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Callable[..., Stored]]:
    made: list[Stored] = []

    def make(columns: dict[str, np.ndarray], level: int = 4) -> Stored:
        made.append(Stored(tmp_path / f"{len(made)}.h5", columns, level))
        return made[-1]

    yield make
    for stored in made:
        os.close(stored.descriptor)


def drawn(name: str, rows: int, seed: int = 0) -> np.ndarray:
    """Any values, with runs of one value among them."""
    dtype = COLUMNS[name]
    random = np.random.default_rng([seed, list(COLUMNS).index(name)])
    values = random.integers(0, 256, rows * dtype.itemsize, "u1").view(dtype)
    values[rows // 3 : rows // 2] = values[0]
    return values


@BOTH
@pytest.mark.parametrize("level", [0, 1, 9])
def test_rows_are_those_that_hdf5_stored(read: Read, level: int, store: Callable[..., Stored]) -> None:
    columns = {name: drawn(name, 3 * ROWS) for name in COLUMNS}
    stored = store(columns, level)
    spans = ((0, ROWS), (17, 18), (ROWS + 5, 2 * ROWS), (2 * ROWS, 3 * ROWS - 1))
    parts = [stored.part(name, *span) for span in spans for name in COLUMNS]
    read(stored.descriptor, parts, {})
    for part, (low, high) in zip(parts, [span for span in spans for _ in COLUMNS], strict=True):
        np.testing.assert_array_equal(part.out, columns[part.name][low:high], err_msg=part.name)


@BOTH
@pytest.mark.parametrize("zeroed", [False, True])
def test_chunks_of_one_value_come_back_in_any_order(read: Read, zeroed: bool, store) -> None:
    """Such chunks are remembered: what follows on them must be its own."""
    values = (7, 7, 0, 0, 0x0102030405060708, 7, 0x0102030405060708, None, 0)
    whole = np.concatenate([drawn("offset", ROWS) if v is None else np.full(ROWS, v) for v in values])
    columns = {name: whole.astype(COLUMNS[name]) for name in COLUMNS}
    stored = store(columns)
    spans = [(low, low + ROWS) for low in range(0, len(whole), ROWS)]
    spans += [(3, 900), (ROWS + 999, 2 * ROWS), (4 * ROWS + 1, 5 * ROWS)]
    parts = [stored.part(name, *span, zeroed) for span in spans for name in COLUMNS]
    read(stored.descriptor, parts, {})
    for part, (low, high) in zip(parts, [span for span in spans for _ in COLUMNS], strict=True):
        np.testing.assert_array_equal(part.out, columns[part.name][low:high], err_msg=part.name)


def test_threads_read_side_by_side(store) -> None:
    columns = {name: drawn(name, 50 * ROWS) for name in COLUMNS}
    stored = store(columns)
    reader = ChunkReader({})
    work = [[stored.part(name, low, low + ROWS) for name in COLUMNS] for low in range(0, 50 * ROWS, ROWS)]
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda parts: reader.read(stored.descriptor, parts), work))
    for number, parts in enumerate(work):
        for part in parts:
            expected = columns[part.name][number * ROWS : (number + 1) * ROWS]
            np.testing.assert_array_equal(part.out, expected)


@BOTH
def test_any_flipped_bit_is_damage(read: Read, store) -> None:
    stored = store({"moved": drawn("moved", ROWS)}, 6)
    position, length = stored.places["moved", 0]
    for place in np.random.default_rng(3).integers(0, length, 300).tolist():
        before = os.pread(stored.descriptor, 1, position + place)
        for bit in range(8):
            os.pwrite(stored.descriptor, bytes([before[0] ^ 1 << bit]), position + place)
            if place == 1 and bit >= 6:  # says how hard it was tried, beside a sum that no longer fits
                continue
            with pytest.raises(DAMAGE):
                read(stored.descriptor, [stored.part("moved", 0, ROWS)], {})
        os.pwrite(stored.descriptor, before, position + place)
    read(stored.descriptor, [stored.part("moved", 0, ROWS)], {})


@BOTH
def test_lengths_that_lie_are_told(read: Read, store) -> None:
    stored = store({"start": drawn("start", ROWS)})
    part = stored.part("start", 0, ROWS)
    end = os.fstat(stored.descriptor).st_size
    wrong = {
        "data are damaged": part._replace(stored_bytes=part.stored_bytes - 7),
        "length of its compressed data differs": part._replace(rows=ROWS + 1),
        "lies beyond its end": part._replace(position=end - 20),
    }
    for message, lie in wrong.items():
        with pytest.raises(ValueError, match=message):
            read(stored.descriptor, [lie], {})
    fewer = part._replace(rows=ROWS - 1, out=part.out[: ROWS - 1])
    with pytest.raises(ValueError, match="the length of its compressed data differs"):
        read(stored.descriptor, [fewer], {})


def test_parts_that_fit_no_chunk_are_refused_before_anything_is_read(store) -> None:
    stored = store({"start": drawn("start", ROWS)})
    part = stored.part("start", 0, ROWS)
    wrong = (
        part._replace(first=1),
        part._replace(first=-1),
        part._replace(rows=0),
        part._replace(rows=1 << 60),
        part._replace(position=-1),
        part._replace(position=(1 << 63) - 2),
        part._replace(stored_bytes=0),
        part._replace(stored_bytes=1 << 40),
        part._replace(out=part.out[:0]),
    )
    for lie in wrong:
        with pytest.raises(ValueError, match=r"does not fit its chunk|has an impossible length"):
            compiled(stored.descriptor, [part, lie], {})
    compiled(stored.descriptor, [part], {})


def test_a_bomb_is_no_longer_than_its_chunk(store, tmp_path: Path) -> None:
    """What unpacks to 64 MiB is given up at the length of the chunk."""
    bomb = zlib.compress(bytes(1 << 26))
    place = tmp_path / "bomb"
    place.write_bytes(bomb)
    descriptor = os.open(place, os.O_RDONLY)
    try:
        part = ChunkRows("start", 0, 8000, ROWS, 0, np.empty(ROWS, "i8"), False)
        for stored_bytes in (len(bomb), 8000):
            with pytest.raises(DAMAGE):
                compiled(descriptor, [part._replace(stored_bytes=stored_bytes)], {})
            with pytest.raises(DAMAGE):
                read_without_libdeflate(descriptor, [part._replace(stored_bytes=stored_bytes)], {})
    finally:
        os.close(descriptor)


@BOTH
@pytest.mark.parametrize(
    ("name", "least", "most", "good", "bad"),
    [
        ("rank", 0, 63, [0, 63], [64, 2**32 - 1]),
        ("rank", 0, 2**32 - 1, [0, 2**32 - 1], []),
        ("rank", 0, 2**40, [0, 2**32 - 1], []),
        ("rank", 0, -1, [], [0]),
        ("call", 0, 65535, [0, 65535], []),
        ("depth", 0, 254, [254], [255]),
        ("moved", -1, 2**50, [-1, 0, 2**50], [-2, 2**50 + 1, -(2**63), 2**63 - 1]),
        ("start", -1000, 2**62, [-1000, 2**62], [-1001, 2**62 + 1, -(2**63), 2**63 - 1]),
    ],
)
def test_values_beyond_their_limits_are_damage(read: Read, name, least, most, good, bad, store) -> None:
    for value in good + bad:
        values = np.full(ROWS, good[0] if good else value, COLUMNS[name])
        values[ROWS - 1] = value
        stored = store({name: values})
        limits = {name: (least, most)}
        if value in good:
            read(stored.descriptor, [stored.part(name, 0, ROWS)], limits)
            continue
        for low in (0, ROWS - 1):
            sentence = f"its column {name} has values outside of {least} to {most}"
            with pytest.raises(ValueError, match=sentence):
                read(stored.descriptor, [stored.part(name, low, ROWS)], limits)
        if good:  # a row that is not asked for may be anything
            read(stored.descriptor, [stored.part(name, 0, ROWS - 1)], limits)


def whole(stored: Stored, numbers: Sequence[int], columns: Sequence[Column], limits: Limits) -> None:
    ChunkReader(limits).read_whole(stored.descriptor, np.array(numbers, "i8"), ROWS, columns)


@pytest.mark.parametrize("zeroed", [False, True])
@pytest.mark.parametrize("numbers", [[0], [2], [0, 1, 2, 3], [3, 1], [1, 1, 0], [0, 3, 4]])
def test_whole_chunks_are_those_that_hdf5_stored(numbers: list[int], zeroed: bool, store) -> None:
    """The last of them is the last of the file, and has fewer rows."""
    length = 4 * ROWS + 17
    values = {name: drawn(name, length) for name in COLUMNS}
    for name in ("thread", "depth"):
        values[name][ROWS : 3 * ROWS] = 0  # chunks of one value
    stored = store(values)
    expected = {
        name: np.concatenate([column[number * ROWS : (number + 1) * ROWS] for number in numbers])
        for name, column in values.items()
    }
    columns = [stored.column(name, len(expected[name]), zeroed) for name in COLUMNS]
    whole(stored, numbers, columns, {})
    for column in columns:
        np.testing.assert_array_equal(column.out, expected[column.name], err_msg=column.name)


def test_damage_of_whole_chunks_is_told(store) -> None:
    stored = store({"moved": drawn("moved", 3 * ROWS), "rank": np.full(3 * ROWS, 7, "u4")})
    columns = [stored.column(name, 3 * ROWS) for name in ("moved", "rank")]
    whole(stored, [0, 1, 2], columns, {"rank": (0, 7)})
    with pytest.raises(ValueError, match="its column rank has values outside of 0 to 6"):
        whole(stored, [0, 1, 2], columns, {"rank": (0, 6)})
    position, length = stored.places["moved", ROWS]
    before = os.pread(stored.descriptor, 1, position + length // 2)
    os.pwrite(stored.descriptor, bytes([before[0] ^ 8]), position + length // 2)
    with pytest.raises(DAMAGE):
        whole(stored, [0, 1, 2], columns, {})
    short = columns[0]._replace(out=columns[0].out[: 2 * ROWS])
    whole(stored, [0, 2], [short], {})
    places = short.places.copy()
    places[0, 2] = os.fstat(stored.descriptor).st_size - 20
    with pytest.raises(ValueError, match="lies beyond its end"):
        whole(stored, [0, 2], [short._replace(places=places)], {})


def test_whole_chunks_that_fit_no_column_are_refused_before_anything_is_read(store) -> None:
    stored = store({"start": drawn("start", 3 * ROWS)})
    column = stored.column("start", 2 * ROWS)
    untouched = column.out.copy()

    def lying(row: int, number: int) -> Column:
        places = column.places.copy()
        places[row, 1] = number
        return column._replace(places=places)

    wrong: list[tuple[list[int], Column]] = [
        ([0, 3], column),
        ([0, -1], column),
        ([0], column),
        ([0, 1, 2], column),
        ([], column),
        ([0, 1], column._replace(out=column.out[:ROWS])),
        ([0, 1], column._replace(places=column.places.astype("i4"))),
        ([0, 1], column._replace(places=column.places.reshape(-1)[:3].copy())),
        ([0, 1], lying(0, -8)),
        ([0, 1], lying(0, (1 << 63) - 2)),
        ([0, 1], lying(1, 0)),
        ([0, 1], lying(1, -1)),
        ([0, 1], lying(1, 1 << 40)),
    ]
    for numbers, lie in wrong:
        with pytest.raises(ValueError, match=r"do(es)? not fit|has an impossible length"):
            whole(stored, numbers, [lie], {})
    for rows in (0, -1, ROWS - 1, 1 << 40):
        with pytest.raises(ValueError, match="do not fit"):
            ChunkReader({}).read_whole(stored.descriptor, np.array([0, 1]), rows, [column])
    np.testing.assert_array_equal(column.out, untouched)

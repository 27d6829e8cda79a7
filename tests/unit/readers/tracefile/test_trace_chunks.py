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
    Column,
    Limits,
    read_without_libdeflate,
)

ROWS = 1000

Read = Callable[[int, np.ndarray, int, Sequence[Column], Limits], None]


def compiled(
    descriptor: int, numbers: np.ndarray, rows: int, columns: Sequence[Column], limits: Limits
) -> None:
    assert chunks._chunks is not None, "the compiled reader is missing: libdeflate-dev, then ./dev setup"
    ChunkReader(limits).read(descriptor, numbers, rows, columns)


BOTH = pytest.mark.parametrize("read", [compiled, read_without_libdeflate])


class Stored:
    """Columns in a file, and chunks of them."""

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

    def column(self, name: str, rows: int, zeroed: bool = False) -> Column:
        """New memory for so many rows of whole chunks of a column."""
        places = [self.places[key] for key in sorted(self.places) if key[0] == name]
        out = np.zeros(rows, COLUMNS[name]) if zeroed else np.full(rows, -91, "i8").astype(COLUMNS[name])
        return Column(name, np.array(places, "i8").T.copy(), out, zeroed)

    def read(self, read: Read, numbers: Sequence[int], columns: Sequence[Column], **limits) -> None:
        """Read chunks by one of the two ways."""
        read(self.descriptor, np.array(numbers, "i8"), ROWS, columns, limits)


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
@pytest.mark.parametrize("zeroed", [False, True])
@pytest.mark.parametrize("numbers", [[0], [2], [0, 1, 2, 3], [3, 1], [1, 1, 0], [0, 3, 4]])
def test_chunks_are_those_that_hdf5_stored(
    read: Read, level: int, zeroed: bool, numbers: list[int], store: Callable[..., Stored]
) -> None:
    """The last of them is the last of the file, and has fewer rows."""
    length = 4 * ROWS + 17
    values = {name: drawn(name, length) for name in COLUMNS}
    for name in ("thread", "depth"):
        values[name][ROWS : 3 * ROWS] = 0  # chunks of one value
    stored = store(values, level)
    expected = {
        name: np.concatenate([column[number * ROWS : (number + 1) * ROWS] for number in numbers])
        for name, column in values.items()
    }
    columns = [stored.column(name, len(expected[name]), zeroed) for name in COLUMNS]
    stored.read(read, numbers, columns)
    for column in columns:
        np.testing.assert_array_equal(column.out, expected[column.name], err_msg=column.name)


@BOTH
@pytest.mark.parametrize("zeroed", [False, True])
def test_chunks_of_one_value_come_back_in_any_order(read: Read, zeroed: bool, store) -> None:
    """Such chunks are remembered: what follows on them must be its own."""
    values = (7, 7, 0, 0, 0x0102030405060708, 7, 0x0102030405060708, None, 0)
    whole = np.concatenate([drawn("offset", ROWS) if v is None else np.full(ROWS, v) for v in values])
    values_of = {name: whole.astype(COLUMNS[name]) for name in COLUMNS}
    stored = store(values_of)
    columns = [stored.column(name, len(whole), zeroed) for name in COLUMNS]
    stored.read(read, range(len(values)), columns)
    for column in columns:
        np.testing.assert_array_equal(column.out, values_of[column.name], err_msg=column.name)


def test_threads_read_side_by_side(store) -> None:
    values = {name: drawn(name, 50 * ROWS) for name in COLUMNS}
    stored = store(values)
    reader = ChunkReader({})
    work = [(number, [stored.column(name, ROWS) for name in COLUMNS]) for number in range(50)]
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda each: reader.read(stored.descriptor, np.array(each[:1]), ROWS, each[1]), work))
    for number, columns in work:
        for column in columns:
            expected = values[column.name][number * ROWS : (number + 1) * ROWS]
            np.testing.assert_array_equal(column.out, expected)


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
                stored.read(read, [0], [stored.column("moved", ROWS)])
        os.pwrite(stored.descriptor, before, position + place)
    stored.read(read, [0], [stored.column("moved", ROWS)])


@BOTH
def test_lengths_that_lie_are_told(read: Read, store) -> None:
    stored = store({"start": drawn("start", ROWS)})
    column = stored.column("start", ROWS)
    end = os.fstat(stored.descriptor).st_size
    wrong = {"data are damaged": (0, -7), "lies beyond its end": (end - 20 - column.places[0, 0], 0)}
    for message, more in wrong.items():
        with pytest.raises(ValueError, match=message):
            stored.read(read, [0], [column._replace(places=column.places + np.array(more)[:, None])])
    for rows in (ROWS - 1, ROWS + 1):
        lie = column._replace(out=np.empty(min(rows, ROWS), "i8"))
        with pytest.raises(ValueError, match="the length of its compressed data differs"):
            read(stored.descriptor, np.array([0]), rows, [lie], {})


@BOTH
def test_a_bomb_is_no_longer_than_its_chunk(read: Read, store, tmp_path: Path) -> None:
    """What unpacks to 64 MiB is given up at the length of the chunk."""
    bomb = zlib.compress(bytes(1 << 26))
    place = tmp_path / "bomb"
    place.write_bytes(bomb)
    descriptor = os.open(place, os.O_RDONLY)
    try:
        for stored_bytes in (len(bomb), 8000):
            column = Column("start", np.array([[0], [stored_bytes]]), np.empty(ROWS, "i8"), False)
            with pytest.raises(DAMAGE):
                read(descriptor, np.array([0]), ROWS, [column], {})
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
            stored.read(read, [0], [stored.column(name, ROWS)], **limits)
            continue
        sentence = f"its column {name} has values outside of {least} to {most}"
        with pytest.raises(ValueError, match=sentence):
            stored.read(read, [0], [stored.column(name, ROWS)], **limits)
        if good:  # a row that the file does not have may be anything
            stored.read(read, [0], [stored.column(name, ROWS - 1)], **limits)


@BOTH
def test_damage_of_one_of_several_chunks_is_told(read: Read, store) -> None:
    stored = store({"moved": drawn("moved", 3 * ROWS), "rank": np.full(3 * ROWS, 7, "u4")})
    columns = [stored.column(name, 3 * ROWS) for name in ("moved", "rank")]
    stored.read(read, [0, 1, 2], columns, rank=(0, 7))
    with pytest.raises(ValueError, match="its column rank has values outside of 0 to 6"):
        stored.read(read, [0, 1, 2], columns, rank=(0, 6))
    position, length = stored.places["moved", ROWS]
    before = os.pread(stored.descriptor, 1, position + length // 2)
    os.pwrite(stored.descriptor, bytes([before[0] ^ 8]), position + length // 2)
    with pytest.raises(DAMAGE):
        stored.read(read, [0, 1, 2], columns)
    short = columns[0]._replace(out=columns[0].out[: 2 * ROWS])
    stored.read(read, [0, 2], [short])
    places = short.places.copy()
    places[0, 2] = os.fstat(stored.descriptor).st_size - 20
    with pytest.raises(ValueError, match="lies beyond its end"):
        stored.read(read, [0, 2], [short._replace(places=places)])


def test_chunks_that_fit_no_column_are_refused_before_anything_is_read(store) -> None:
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
            stored.read(compiled, numbers, [lie])
    for rows in (0, -1, ROWS - 1, 1 << 40):
        with pytest.raises(ValueError, match="do not fit"):
            compiled(stored.descriptor, np.array([0, 1]), rows, [column], {})
    np.testing.assert_array_equal(column.out, untouched)

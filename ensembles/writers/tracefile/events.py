"""Write the events of a run into a ``trace.h5``: columns sorted by rank and start, and their index.

Several threads compress the columns in the format of HDF5's filters. HDF5 stores the result unchanged.

The filters are shuffle and gzip, which every HDF5 has. The shuffle groups bytes by significance into planes.
A plane that does not compress is noise (the low bytes of times) and is stored uncompressed, which is faster
to read. ISA-L deflates several times as fast as zlib; without it, zlib is used.
"""

from __future__ import annotations

import os
import struct
import zlib
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import h5py
import numpy as np

from ensembles.model.events import COLUMN_MEANINGS, COLUMNS, INDICES, Events
from ensembles.model.units import ROWS_AT_ONCE
from ensembles.readers.native.job_file_codec import shuffle
from ensembles.readers.tracefile.chunks import THREADS, find_places
from ensembles.readers.tracefile.index import ChunkContents, IndexBuilder, TraceIndex
from ensembles.writers.tracefile.filters import GZIP, Filter
from ensembles.writers.tracefile.sorted_rows import sorted_blocks

try:
    from isal import isal_zlib as _deflate
except ImportError:  # no wheel for this processor
    import zlib as _deflate  # type: ignore[no-redef]

_HEAD = b"\x78\x01"
_LAST_BLOCK = b"\x01\x00\x00\xff\xff"
_STORED_BYTES = 0xFFFF
_GAIN = 0.9
"""Planes with a compression ratio above this value are stored uncompressed."""


class ColumnDeflater:
    """Compressor of the chunks of one column.

    Most chunks contain a single value. The result for such a chunk is reused.
    """

    def __init__(self, rows: int) -> None:
        self._rows = rows
        self._single: tuple[Any, bytes] | None = None

    def deflate(self, column: np.ndarray) -> bytes:
        """Compress a chunk."""
        return self._deflated(np.ascontiguousarray(column), set())

    def deflate_all(self, column: np.ndarray) -> list[bytes]:
        """Compress successive chunks.

        Planes that do not compress in the first chunk are stored uncompressed in all of them.
        """
        column, noise = np.ascontiguousarray(column), set[int]()
        return [
            self._deflated(column[low : low + self._rows], noise) for low in range(0, len(column), self._rows)
        ]

    def _deflated(self, column: np.ndarray, noise: set[int]) -> bytes:
        """Compress a chunk; planes of `noise` are stored, and those that do not compress are added to it."""
        planes = np.empty((column.itemsize, self._rows), "u1")
        if not shuffle(column, planes.reshape(-1)):
            known = self._single
            if known is None or known[0] != column[0]:
                planes[:] = column[:1].view("u1")[:, None]
                # Thread-safe: the pair of value and result is replaced at once.
                known = self._single = (column[0], self._packed(planes, set()))
            return known[1]
        return self._packed(planes, noise)

    def _packed(self, planes: np.ndarray, noise: set[int]) -> bytes:
        machine = _deflate.compressobj(1, zlib.DEFLATED, -zlib.MAX_WBITS)
        parts = [_HEAD]
        for number, plane in enumerate(planes):
            if number not in noise:
                # A full flush ends at a byte boundary, and later data do not refer to earlier data.
                shorter = machine.compress(plane) + machine.flush(zlib.Z_FULL_FLUSH)
                if len(shorter) < _GAIN * self._rows:
                    parts.append(shorter)
                    continue
                noise.add(number)
            parts.append(_stored(plane.tobytes()))
        checksum = _deflate.adler32(planes.reshape(-1))
        return b"".join([*parts, _LAST_BLOCK, struct.pack(">I", checksum)])


def _stored(plane: bytes) -> bytes:
    """Encode bytes as uncompressed blocks (RFC 1951, section 3.2.4)."""
    pieces = (plane[low : low + _STORED_BYTES] for low in range(0, len(plane), _STORED_BYTES))
    return b"".join(
        struct.pack("<BHH", 0, len(piece), len(piece) ^ _STORED_BYTES) + piece for piece in pieces
    )


CHUNK_ROWS = 1 << 13
"""Rows of a chunk: few, so that a short time of every task is read from little more than its calls."""

_MOST_CHUNKS = 1 << 17
"""Chunks of longer runs have more rows: what they hold, and where they are, is read with any events."""

INDEX_MEANINGS = {
    "rank": ("", "tasks that made calls, ascending"),
    "row": ("", "first row of each of these tasks in the events"),
    "first_start": ("ns", "start of the first event of each chunk of rows"),
    "last_start": ("ns", "start of the last event of each chunk of rows"),
    "max_end": ("ns", "latest end (start + duration) of the events of each chunk of rows"),
}
"""Unit and meaning of each column of the index."""


def write_events(
    file: h5py.File,
    chunks: Iterator[Events],
    most_events: int,
    compression: Filter,
    folder: str,
) -> tuple[int, ChunkContents]:
    """Write the groups ``events`` and ``index``."""
    group = file.create_group("events")
    rows = rows_of_chunk(most_events)
    datasets = {name: _create_column(group, name, rows, compression) for name in COLUMNS}
    builder, count = IndexBuilder(rows), 0
    store = _deflating if compression is GZIP else _plain
    block_rows = max(ROWS_AT_ONCE // rows, 1) * rows
    with ThreadPoolExecutor(THREADS) as pool:
        for columns in store(datasets, sorted_blocks(chunks, block_rows, folder), pool):
            for low in range(0, len(columns["rank"]), rows):
                builder.add({name: columns[name][low : low + rows] for name in IndexBuilder.columns})
            count += len(columns["rank"])
    for dataset in datasets.values():
        dataset.resize((count,))
    _write_index(file.create_group("index"), builder.index())
    contents = builder.contents()
    if compression is GZIP and count:
        contents.places = {name: find_places(dataset) for name, dataset in datasets.items()}
    return count, contents


def rows_of_chunk(most_events: int) -> int:
    """Return the number of rows of a chunk of a run with at most so many events."""
    rows = min(CHUNK_ROWS, max(1024, most_events))
    while rows < ROWS_AT_ONCE and most_events > rows * _MOST_CHUNKS:
        rows *= 2
    return rows


def _create_column(group: h5py.Group, name: str, rows: int, compression: Filter) -> h5py.Dataset:
    dataset = group.create_dataset(
        name, shape=(0,), maxshape=(None,), dtype=COLUMNS[name], chunks=(rows,), **compression.options()
    )
    unit, meaning = COLUMN_MEANINGS[name]
    describe(dataset, unit, f"{meaning}: {INDICES[name]}" if name in INDICES else meaning)
    return dataset


def _deflating(
    datasets: Mapping[str, h5py.Dataset], blocks: Iterator[dict[str, np.ndarray]], pool: ThreadPoolExecutor
) -> Iterator[dict[str, np.ndarray]]:
    """Store blocks that the threads of the pool compress; yield each block when its compression has begun."""
    deflaters = {name: ColumnDeflater(dataset.chunks[0]) for name, dataset in datasets.items()}
    waiting: deque[dict[str, Future[list[bytes]]]] = deque()
    stored = _Stored(datasets)
    for columns in blocks:
        waiting.append(
            {name: pool.submit(deflaters[name].deflate_all, column) for name, column in columns.items()}
        )
        yield columns
        if len(waiting) > 2:
            stored.append(waiting.popleft())
    while waiting:
        stored.append(waiting.popleft())


class _Stored:
    """Columns that grow by compressed chunks."""

    def __init__(self, datasets: Mapping[str, h5py.Dataset]) -> None:
        self._datasets = datasets
        self._rows = next(iter(datasets.values())).chunks[0]
        self._position = self._length = 0

    def append(self, jobs: Mapping[str, Future[list[bytes]]]) -> None:
        """Store the chunks of all columns."""
        found = {name: job.result() for name, job in jobs.items()}
        end = self._position + self._rows * max(map(len, found.values()))
        if end > self._length:  # HDF5 takes as long for each change of the length
            self._length = max(2 * self._length, end)
            for dataset in self._datasets.values():
                dataset.resize((self._length,))
        for name, chunks in found.items():
            write = self._datasets[name].id.write_direct_chunk
            for number, chunk in enumerate(chunks):
                write((self._position + number * self._rows,), chunk)
        self._position = end


def _plain(
    datasets: Mapping[str, h5py.Dataset], blocks: Iterator[dict[str, np.ndarray]], pool: ThreadPoolExecutor
) -> Iterator[dict[str, np.ndarray]]:
    """Store blocks with HDF5's filters."""
    position = 0
    for columns in blocks:
        end = position + len(columns["rank"])
        for name, dataset in datasets.items():
            dataset.resize((end,))
            dataset[position:end] = columns[name]
        position = end
        yield columns


def _write_index(group: h5py.Group, index: TraceIndex) -> None:
    group.attrs["rows"] = index.rows
    put_text(group, "meaning", "locations of ranks and times among the events; a chunk has `rows` rows")
    for name, (unit, meaning) in INDEX_MEANINGS.items():
        put_column(group, name, getattr(index, name), unit, meaning)


_CHUNK_BYTES = 1 << 18
_PACKED_BYTES = 1 << 10
"""Columns of texts are compressed above this length."""


def put_text(thing: h5py.Group | h5py.Dataset, name: str, text: str) -> None:
    """Store a text as an attribute."""
    data = os.fsencode(text)
    thing.attrs.create(name, np.bytes_(data), dtype=h5py.string_dtype("utf-8", max(len(data), 1)))


def put_column(group: h5py.Group, name: str, data: np.ndarray, unit: str = "", meaning: str = "") -> None:
    """Store a column of numbers, with unit and meaning as its attributes."""
    dataset = _created(group, name, len(data), data.dtype, data.itemsize)
    if len(data):
        dataset[:] = data
    if unit or meaning:
        describe(dataset, unit, meaning)


def put_texts(group: h5py.Group, name: str, texts: Sequence[str], meaning: str) -> None:
    """Store a column of texts, with the length of the longest one."""
    coded = [os.fsencode(text) for text in texts]
    width = max(map(len, coded), default=0) or 1
    packing = {"compression": "gzip", "compression_opts": 1} if len(coded) * width > _PACKED_BYTES else {}
    dataset = _created(group, name, len(coded), _text_type(width), width + 1, **packing)
    put_text(dataset, "meaning", meaning)
    rows = dataset.chunks[0] if dataset.chunks else 1
    for first in range(0, len(coded), rows):
        some = coded[first : first + rows]
        dataset[first : first + rows] = np.array(some, h5py.string_dtype("utf-8", width))


def describe(dataset: h5py.Dataset, unit: str, meaning: str) -> None:
    """Store unit and meaning of a column as its attributes."""
    put_text(dataset, "unit", unit)
    put_text(dataset, "meaning", meaning)


def _text_type(width: int) -> h5py.Datatype:
    """Make a type of null-terminated texts; of null-padded ones, h5dump prints the padding."""
    kind = h5py.h5t.C_S1.copy()
    kind.set_size(width + 1)
    kind.set_cset(h5py.h5t.CSET_UTF8)
    return h5py.Datatype(kind)


def _created(
    group: h5py.Group,
    name: str,
    length: int,
    dtype: np.dtype | h5py.Datatype,
    item_bytes: int,
    **packing: Any,
) -> h5py.Dataset:
    if length == 0:  # HDF5 does not allow chunks of length 0
        return group.create_dataset(name, (0,), dtype)
    rows = min(length, max(_CHUNK_BYTES // item_bytes, 1))
    return group.create_dataset(name, (length,), dtype, chunks=(rows,), fletcher32=True, **packing)

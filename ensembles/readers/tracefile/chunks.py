"""Read columns of a ``trace.h5``, with several threads that decompress and check chunks.

HDF5 shuffles the bytes of a chunk and then deflates them. The module `_chunks` (C, with libdeflate) reads,
inflates, unshuffles and checks several chunks without the GIL. It is the only compiled module that may be
missing, because libdeflate may be: then ISA-L or zlib inflates one chunk at a time, with equal results.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, NamedTuple

import h5py
import numpy as np

from ensembles.model.events import COLUMNS
from ensembles.model.units import ROWS_AT_ONCE
from ensembles.readers.native.job_file_codec import unshuffle
from ensembles.readers.tracefile.checked_parts import open_column, open_descriptor
from ensembles.readers.tracefile.index import TraceIndex

try:
    from ensembles.readers.tracefile import _chunks
except ImportError:  # no libdeflate
    _chunks = None  # type: ignore[assignment]
try:
    from isal import isal_zlib as _inflate
except ImportError:  # no wheel for this processor
    import zlib as _inflate  # type: ignore[no-redef]

DAMAGE: tuple[type[Exception], ...] = (  # type: ignore[assignment] # isal declares its error as an instance
    OSError,
    KeyError,
    ValueError,
    TypeError,
    RuntimeError,
    IndexError,
    zlib.error,
    _inflate.error,
)
"""Exceptions of HDF5, zlib and the checks for damaged and missing parts."""

Limits = Mapping[str, tuple[int, int]]

_NUMBERS = {name: number for number, name in enumerate(COLUMNS)}

THREADS = min(4, len(os.sched_getaffinity(0)))
"""Number of threads that compress or decompress. Both release the GIL."""

_ORDER = ("rank", "start", "duration")
"""Columns that the index describes."""


class Column(NamedTuple):
    """A column of which whole chunks are wanted."""

    name: str
    places: np.ndarray  # Position and length in the file of all of its chunks, bytes; shape (2, chunks)
    out: np.ndarray  # Receives the rows of the wanted chunks, one after the other; shape (n,)
    zeroed: bool  # Whether `out` is all zeros


class ChunkReader:
    """A thread-safe reader of chunks of columns.

    Many columns have the same value in successive chunks. Identical compressed chunks are inflated once.
    """

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._workspaces: list[Any] = []

    def read(self, descriptor: int, chunks: np.ndarray, rows: int, columns: Sequence[Column]) -> None:
        """Read chunks of an open file: those of all columns with these numbers, of so many rows each."""
        if _chunks is None:
            read_without_libdeflate(descriptor, chunks, rows, columns, self._limits)
            return
        told = tuple(
            [
                (_NUMBERS[name], name, out.dtype.kind == "i", zeroed, places, out, self._limits.get(name))
                for name, places, out, zeroed in columns
            ]
        )
        with self._workspace() as workspace:
            _chunks.read_chunks(workspace, descriptor, chunks, rows, told)

    @contextmanager
    def _workspace(self) -> Iterator[Any]:
        """Lend memory that no other thread uses."""
        try:
            workspace = self._workspaces.pop()
        except IndexError:
            workspace = _chunks.workspace()
        try:
            yield workspace
        finally:
            self._workspaces.append(workspace)


def read_without_libdeflate(
    descriptor: int, chunks: np.ndarray, rows: int, columns: Sequence[Column], limits: Limits
) -> None:
    """Read chunks as `ChunkReader.read`, one at a time."""
    for name, places, out, _ in columns:
        for low, (position, stored_bytes) in zip(
            range(0, len(out), rows), places[:, chunks].T.tolist(), strict=True
        ):
            raw = os.pread(descriptor, stored_bytes, position)
            if len(raw) != stored_bytes:
                raise ValueError(f"a part of its column {name} lies beyond its end")
            unshuffle(_inflated(raw, rows * out.itemsize), 0, out[low : low + rows])
            check_limits(name, out[low : low + rows], limits.get(name))


def _inflated(raw: bytes, length: int) -> bytes:
    # One byte more than expected makes zlib check the checksum; the limit stops decompression bombs.
    decompressor = _inflate.decompressobj()
    data = decompressor.decompress(raw, length + 1)
    if len(data) > length or (decompressor.eof and len(data) < length):
        raise ValueError("the length of its compressed data differs from the number of rows")
    if not decompressor.eof:
        raise ValueError("its compressed data are damaged")
    return data


def check_limits(name: str, values: np.ndarray, limits: tuple[int, int] | None) -> None:
    """Check that the values of a column lie within the limits, if it has any."""
    if limits is None or not len(values):
        return
    least, most = limits
    if values.max() > most or values.min() < least:
        raise ValueError(f"its column {name} has values outside of {least} to {most}")


class TraceColumns:
    """Columns of the events of an open ``trace.h5``, whose rows `index` describes."""

    def __init__(
        self,
        group: h5py.Group,
        names: Sequence[str],
        limits: Limits,
        index: TraceIndex,
        places: Mapping[str, np.ndarray],
    ) -> None:
        self.names = tuple(names)
        self._datasets = {name: open_column(group, name, name in places) for name in names}
        self._limits, self._index = limits, index
        for name, dataset in self._datasets.items():
            if dataset.shape[0] != index.length:
                raise ValueError("its columns have different lengths")
            if dataset.dtype != COLUMNS[name]:
                raise ValueError(f"its column {name} has the type {dataset.dtype}")
        self._ordering = [name for name in _ORDER if name in self._datasets]
        # Those with ensio's filters and chunks. HDF5 reads the others.
        self._plain = [
            name
            for name, dataset in self._datasets.items()
            if _is_plain_gzip(dataset) and dataset.chunks[0] == index.rows
        ]
        for name in places.keys() & self._datasets.keys() - set(self._plain):
            open_column(group, name)  # whether all chunks are there
        self._told_places = places
        self._places: dict[str, np.ndarray] = {}
        self._reader = ChunkReader(limits)
        self._descriptor = open_descriptor(next(iter(self._datasets.values())))

    def read(
        self, chunks: np.ndarray, pool: ThreadPoolExecutor, out: dict[str, np.ndarray] | None = None
    ) -> dict[str, np.ndarray]:
        """Read chunks of the index of all columns, into `out` or new arrays, and check their order."""
        index, zeroed, spans = self._index, out is None, self._index.spans_of(chunks)
        if out is None:
            length = sum(high - low for low, high in spans)
            out = {name: np.zeros(length, COLUMNS[name]) for name in self._datasets}
        for name in self._plain:
            if name not in self._places:  # here, and not in the threads
                self._places[name] = known_places(self._datasets[name], self._told_places.get(name))
        # Many chunks are checked as they are read, in the cache; the threads share few by columns.
        at_once = [self._plain] if len(chunks) >= THREADS else [[name] for name in self._plain]
        some = max(ROWS_AT_ONCE // THREADS // index.rows, 1)
        jobs = [
            pool.submit(self._read_some, chunks[at : at + some], at * index.rows, names, out, zeroed)
            for at in range(0, len(chunks), some)
            for names in at_once
        ]
        for name in self._datasets.keys() - set(self._plain):
            place = 0
            for low, high in spans:
                rows = np.s_[place : place + high - low]
                self._datasets[name].read_direct(out[name], np.s_[low:high], rows)
                place += high - low
            jobs.append(pool.submit(check_limits, name, out[name], self._limits.get(name)))
        for job in jobs:
            job.result()
        if self._ordering and not any(self._shows_order(names) for names in at_once):
            index.check(chunks, {name: out[name] for name in self._ordering})
        return out

    def _read_some(
        self, chunks: np.ndarray, place: int, names: Sequence[str], out: dict[str, np.ndarray], zeroed: bool
    ) -> None:
        """Read chunks of some columns to a place of the result."""
        end = place + len(chunks) * self._index.rows
        some = {name: out[name][place:end] for name in names}
        columns = [Column(name, self._places[name], column, zeroed) for name, column in some.items()]
        self._reader.read(self._descriptor, chunks, self._index.rows, columns)
        if self._ordering and self._shows_order(names):
            self._index.check(chunks, {name: some[name] for name in self._ordering})

    def _shows_order(self, names: Sequence[str]) -> bool:
        return set(self._ordering) <= set(names)


def _is_plain_gzip(dataset: h5py.Dataset) -> bool:
    """Test whether a column has ensio's filters; another program may have repacked it."""
    return (
        dataset.chunks is not None
        and dataset.compression == "gzip"
        and dataset.shuffle
        and not dataset.fletcher32
        and dataset.scaleoffset is None
        # Old HDF5 cannot list chunks; with a user block, offsets do not count from the start of the file.
        and hasattr(dataset.id, "chunk_iter")
        and dataset.file.userblock_size == 0
    )


def find_places(dataset: h5py.Dataset) -> np.ndarray:
    """Find where the chunks of a column are: HDF5 takes as long for a single chunk as for all."""
    rows = dataset.chunks[0]
    places = np.zeros((2, dataset.id.get_num_chunks()), np.int64)
    masks = set()

    def tell(stored: h5py.h5d.StoreInfo) -> None:
        places[:, stored.chunk_offset[0] // rows] = stored.byte_offset, stored.size
        masks.add(stored.filter_mask)

    dataset.id.chunk_iter(tell)
    if masks - {0}:
        name = dataset.name.rsplit("/")[-1]
        raise ValueError(f"a part of its column {name} is stored without compression")
    return places


def known_places(dataset: h5py.Dataset, told: np.ndarray | None) -> np.ndarray:
    """Return the places of chunks: those that the file tells if HDF5 has its first and last chunk there.

    A copy that another program made has the same chunks at other places. HDF5 looks for the place of a chunk
    among those before it, which takes long for the last one: of it, the stored bytes are compared.

    `told`: places by the file's own account; None: it has none.
    """
    chunks, rows = -(-dataset.shape[0] // dataset.chunks[0]), dataset.chunks[0]
    if told is None or not chunks:
        return find_places(dataset)
    if told.shape == (2, chunks):
        first = dataset.id.get_chunk_info_by_coord((0,))
        found = (first.byte_offset, first.size) == tuple(told[:, 0].tolist()) and not first.filter_mask
        mask, stored = dataset.id.read_direct_chunk(((chunks - 1) * rows,)) if found else (0, b"")
        position, length = told[:, -1].tolist()
        found = found and not mask and len(stored) == length and position >= 0
        if found and os.pread(open_descriptor(dataset), length, position) == stored:
            return told
    open_column(dataset.parent, dataset.name.rsplit("/")[-1])  # whether all chunks are there
    return find_places(dataset)

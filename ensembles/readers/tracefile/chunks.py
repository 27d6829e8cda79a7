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
from typing import Any, NamedTuple, TypeAlias

import h5py
import numpy as np

from ensembles.model.events import COLUMNS
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


class ChunkRows(NamedTuple):
    """Wanted rows of a chunk, and their destination."""

    name: str  # Name of the column
    # position, stored_bytes: Offset and length of the chunk in the file, bytes
    position: int
    stored_bytes: int
    rows: int  # Number of rows of the whole chunk
    first: int  # First wanted row within the chunk
    out: np.ndarray  # Receives n rows; n is at least 1; shape (n,)
    # Whether `out` is all zeros. Zeros are not written then, so that untouched pages stay untouched.
    zeroed: bool


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

    def read(self, descriptor: int, parts: Sequence[ChunkRows]) -> None:
        """Read chunks of an open file."""
        if _chunks is None:
            read_without_libdeflate(descriptor, parts, self._limits)
            return
        with self._workspace() as workspace:
            _chunks.read_parts(workspace, descriptor, tuple([self._told(part) for part in parts]))

    def read_whole(self, descriptor: int, chunks: np.ndarray, rows: int, columns: Sequence[Column]) -> None:
        """Read whole chunks of columns with libdeflate, in one call, whatever their number."""
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

    def _told(self, part: ChunkRows) -> tuple[object, ...]:
        name, position, stored_bytes, rows, first, out, zeroed = part
        is_signed = out.dtype.kind == "i"
        where = (position, stored_bytes, rows, first)
        return (_NUMBERS[name], name, is_signed, zeroed, *where, out, self._limits.get(name))


def read_without_libdeflate(descriptor: int, parts: Sequence[ChunkRows], limits: Limits) -> None:
    """Read chunks as `ChunkReader.read`, one at a time."""
    for part in parts:
        raw = os.pread(descriptor, part.stored_bytes, part.position)
        if len(raw) != part.stored_bytes:
            raise ValueError(f"a part of its column {part.name} lies beyond its end")
        data = _inflated(raw, part.rows * part.out.itemsize)
        unshuffle(data, part.first, part.out)
        check_limits(part.name, part.out, limits.get(part.name))


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
    """Columns of the events of an open ``trace.h5``.

    `length`: number of rows.
    """

    def __init__(
        self,
        group: h5py.Group,
        names: Sequence[str],
        limits: Limits,
        places: Mapping[str, np.ndarray] | None = None,
    ) -> None:
        self.names = tuple(names)
        told = {} if places is None else places
        self._datasets = {name: open_column(group, name, name in told) for name in names}
        self._limits = limits
        lengths = {dataset.shape[0] for dataset in self._datasets.values()}
        if len(lengths) != 1:
            raise ValueError("its columns have different lengths")
        self.length: int = lengths.pop()
        for name, dataset in self._datasets.items():
            if dataset.dtype != COLUMNS[name]:
                raise ValueError(f"its column {name} has the type {dataset.dtype}")
        self._ordering = [name for name in _ORDER if name in self._datasets]
        # Rows per chunk of the columns with ensio's filters; cached, because h5py is slow to return them.
        self._plain_gzip = {
            name: dataset.chunks[0] for name, dataset in self._datasets.items() if _is_plain_gzip(dataset)
        }
        for name in told.keys() & self._datasets.keys() - self._plain_gzip.keys():
            open_column(group, name)  # HDF5 reads it: whether all chunks are there
        self._told_places = told
        self._places: dict[str, np.ndarray] = {}
        self._reader = ChunkReader(limits)
        self._descriptor = open_descriptor(next(iter(self._datasets.values())))

    def read(
        self,
        spans: Sequence[tuple[int, int]],
        pool: ThreadPoolExecutor,
        index: TraceIndex | None = None,
        out: dict[str, np.ndarray] | None = None,
    ) -> dict[str, np.ndarray]:
        """Read rows of all columns, into `out` or new arrays."""
        zeroed, length = out is None, sum(high - low for low, high in spans)
        if out is None:
            out = {name: np.zeros(length, COLUMNS[name]) for name in self._datasets}
        whole = self._whole_chunks(spans, index)
        if index is not None and whole is not None:
            for name in self._datasets:
                self._places_of(name)  # here, and not in the threads
            some = max(_ROWS_OF_JOB // index.rows, 1)
            told = [(whole[at : at + some], at * index.rows) for at in range(0, len(whole), some)]
            for job in [pool.submit(self._read_whole, index, *each, out, zeroed) for each in told]:
                job.result()
            return out
        checked: set[int] = set()
        jobs = []
        for work in self._jobs(spans, out, zeroed):
            chunks = [None if index is None else self._chunk_in(index, *unit) for unit in work]
            checked.update(chunk for chunk in chunks if chunk is not None)
            jobs.append(pool.submit(self._read_checked, work, index, chunks))
        for name, dataset in self._datasets.items():
            if name in self._plain_gzip:
                continue
            for place, low, high in _placed(spans):
                dataset.read_direct(out[name], np.s_[low:high], np.s_[place : place + high - low])
            jobs.append(pool.submit(check_limits, name, out[name], self._limits.get(name)))
        for job in jobs:
            job.result()
        if index is not None and self._ordering:
            for place, low, high in _placed(spans):
                for chunk in range(low // index.rows, -(-high // index.rows)):
                    if chunk not in checked:
                        begin = place + chunk * index.rows - low
                        end = place + min((chunk + 1) * index.rows, high) - low
                        index.check(chunk, {name: out[name][begin:end] for name in self._ordering})
        return out

    def _whole_chunks(self, spans: Sequence[tuple[int, int]], index: TraceIndex | None) -> np.ndarray | None:
        """Return the numbers of the chunks of spans; None: they have to be read in another way."""
        if _chunks is None or index is None or set(self._plain_gzip.values()) != {index.rows}:
            return None
        if len(self._plain_gzip) < len(self._datasets):
            return None
        rows = index.rows
        if any(low % rows or (high % rows and high != self.length) for low, high in spans):
            return None
        numbers = [np.arange(low // rows, -(-high // rows)) for low, high in spans]
        return np.concatenate(numbers) if sum(map(len, numbers)) >= THREADS else None

    def _read_whole(
        self, index: TraceIndex, chunks: np.ndarray, place: int, out: dict[str, np.ndarray], zeroed: bool
    ) -> None:
        """Read whole chunks to a place of the result, and check their order while they are in the cache."""
        end = place + len(chunks) * index.rows
        some = {name: column[place:end] for name, column in out.items() if name in self._datasets}
        columns = [Column(name, self._places_of(name), column, zeroed) for name, column in some.items()]
        self._reader.read_whole(self._descriptor, chunks, index.rows, columns)
        if self._ordering:
            index.check_chunks(chunks, {name: some[name] for name in self._ordering})

    def _places_of(self, name: str) -> np.ndarray:
        if name not in self._places:
            self._places[name] = known_places(self._datasets[name], self._told_places.get(name))
        return self._places[name]

    def _jobs(
        self, spans: Sequence[tuple[int, int]], out: dict[str, np.ndarray], zeroed: bool
    ) -> list[list[_Unit]]:
        """Divide the work among threads."""
        units = [
            unit for place, low, high in _placed(spans) for unit in self._units(place, low, high, out, zeroed)
        ]
        if len(units) >= THREADS:
            jobs: list[list[_Unit]] = []
            rows = _ROWS_OF_JOB
            for unit in units:
                if rows >= _ROWS_OF_JOB:
                    jobs.append([])
                    rows = 0
                jobs[-1].append(unit)
                rows += len(unit[1][0].out)
            return jobs
        each = [(first, part) for first, parts in units for part in parts]
        each.sort(key=lambda one: -one[1].stored_bytes)
        return [[(first, [part])] for first, part in each]

    def _units(
        self, place: int, low: int, high: int, out: dict[str, np.ndarray], zeroed: bool
    ) -> Iterator[_Unit]:
        """Yield the chunks of rows that are wanted at a place of the result, by their first row."""
        by_row: dict[int, list[ChunkRows]] = {}
        for name, rows in self._plain_gzip.items():
            some = self._places_of(name)[:, low // rows : -(-high // rows)].tolist()
            column = out[name]
            for first, position, stored_bytes in zip(
                range(low // rows * rows, high, rows), *some, strict=True
            ):
                begin, end = max(first, low), min(first + rows, high)
                target = column[place + begin - low : place + end - low]
                part = ChunkRows(name, position, stored_bytes, rows, begin - first, target, zeroed)
                by_row.setdefault(first, []).append(part)
        yield from by_row.items()

    def _chunk_in(self, index: TraceIndex, first: int, parts: list[ChunkRows]) -> int | None:
        """Return the chunk of the index that these parts form with all its columns, or None."""
        if not self._ordering or first % index.rows:
            return None
        whole = {part.name for part in parts if part.rows == index.rows and part.first == 0}
        return first // index.rows if whole.issuperset(self._ordering) else None

    def _read_checked(
        self, work: Sequence[_Unit], index: TraceIndex | None, chunks: Sequence[int | None]
    ) -> None:
        """Read chunks, and check the order of those of the index while they are in the cache."""
        for (_, parts), chunk in zip(work, chunks, strict=True):
            self._reader.read(self._descriptor, parts)
            if index is not None and chunk is not None:
                index.check(chunk, {part.name: part.out for part in parts if part.name in self._ordering})


_Unit: TypeAlias = tuple[int, list[ChunkRows]]
"""First row of chunks, and what is wanted of them."""

_ROWS_OF_JOB = 1 << 16
"""Rows that a thread reads at a time."""


def _placed(spans: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int, int]]:
    """Yield for each span of rows its place in the result, and the span."""
    place = 0
    for low, high in spans:
        yield place, low, high
        place += high - low


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

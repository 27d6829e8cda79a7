"""The columns of a ``trace.h5``, chunks of which several threads decompress and check."""

from __future__ import annotations

import os
import zlib
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor

import h5py
import numpy as np

from ensembles.events import COLUMNS
from ensembles.readers.coding import unshuffle
from ensembles.readers.trace_index import TraceIndex
from ensembles.readers.trace_parts import column_of

try:
    from isal import isal_zlib as _inflate
except ImportError:  # no wheel for this processor
    _inflate = zlib  # type: ignore[assignment]

DAMAGE = (OSError, KeyError, ValueError, TypeError, RuntimeError, IndexError, zlib.error, _inflate.error)
"""What HDF5, zlib and a missing part raise."""

THREADS = min(4, len(os.sched_getaffinity(0)))
"""Threads that compress and decompress; both let them run side by side."""

Limits = Mapping[str, tuple[int, int]]


class TraceColumns:
    """Columns of events.

    Parameters
    ----------
    group : h5py.Group
    names : sequence of str
    limits : dict of str to (int, int)
        Least and largest value of columns; others are damage.

    Attributes
    ----------
    length : int
        Number of rows.
    """

    def __init__(self, group: h5py.Group, names: Sequence[str], limits: Limits) -> None:
        self._datasets = {name: column_of(group, name) for name in names}
        self._limits = limits
        lengths = {dataset.shape[0] for dataset in self._datasets.values()}
        if len(lengths) != 1:
            raise ValueError("its columns have different lengths")
        self.length = lengths.pop()
        for name, dataset in self._datasets.items():
            if dataset.dtype != COLUMNS[name]:
                raise ValueError(f"its column {name} has the type {dataset.dtype}")
        self._last: dict[str, tuple[bytes, np.ndarray]] = {}

    def read(
        self, low: int, high: int, pool: ThreadPoolExecutor, index: TraceIndex | None = None
    ) -> dict[str, np.ndarray]:
        """Rows `low` to `high`; with an index, of whose chunks they must be, they are checked against it."""
        out = {name: np.empty(high - low, COLUMNS[name]) for name in self._datasets}
        jobs: list[Future[None]] = []
        for name, dataset in self._datasets.items():
            limit = self._limits.get(name)
            if not _is_plain_gzip(dataset):
                dataset.read_direct(out[name], np.s_[low:high])
                jobs.append(pool.submit(_check_limits, name, out[name], limit))
                continue
            rows = dataset.chunks[0]
            for first in range(low // rows * rows, high, rows):
                mask, raw = dataset.id.read_direct_chunk((first,))
                if mask:
                    raise ValueError(f"a part of its column {name} is stored without compression")
                begin, end = max(first, low), min(first + rows, high)
                place = out[name][begin - low : end - low]
                jobs.append(pool.submit(self._decode, name, raw, rows, begin - first, place))
        for job in jobs:
            job.result()
        if index is not None:
            _check_order(index, out, low, high, pool)
        return out

    def _decode(self, name: str, raw: bytes, rows: int, first: int, place: np.ndarray) -> None:
        """Decompress a chunk, and put its rows from `first` on into `place`. Columns of a single value have
        chunks that are alike to the last bit, and these are decompressed once."""
        known = self._last.get(name)
        if known is not None and known[0] == raw and len(known[1]) >= first + len(place):
            place[:] = known[1][first : first + len(place)]
            return
        _decompress(raw, rows, first, place)
        _check_limits(name, place, self._limits.get(name))
        if first == 0 and len(raw) * 64 < place.nbytes:
            self._last[name] = (raw, place.copy())


def _check_limits(name: str, values: np.ndarray, limits: tuple[int, int] | None) -> None:
    if limits is None or not len(values):
        return
    least, most = limits
    if values.max() > most or values.min() < least:
        raise ValueError(f"its column {name} has values beyond {least} to {most}")


def _check_order(
    index: TraceIndex, columns: dict[str, np.ndarray], low: int, high: int, pool: ThreadPoolExecutor
) -> None:
    def check(chunk: int) -> None:
        begin, end = chunk * index.rows - low, min((chunk + 1) * index.rows, high) - low
        index.check(chunk, {name: column[begin:end] for name, column in columns.items()})

    for _ in pool.map(check, range(low // index.rows, -(-high // index.rows))):
        pass


def _is_plain_gzip(dataset: h5py.Dataset) -> bool:
    """Whether a column is stored as ours are; another program may have repacked it."""
    return (
        dataset.chunks is not None
        and dataset.compression == "gzip"
        and dataset.shuffle
        and not dataset.fletcher32
        and dataset.scaleoffset is None
    )


def _decompress(raw: bytes, rows: int, first: int, place: np.ndarray) -> None:
    """Decompress a chunk, and put its rows from `first` on into `place`, undoing HDF5's shuffle of bytes."""
    width = place.itemsize
    # Asked for one byte more than there is, it goes on to the checksum; the limit keeps bombs small.
    decompressor = _inflate.decompressobj()
    data = decompressor.decompress(raw, rows * width + 1)
    if not decompressor.eof:
        raise ValueError("its compressed data are damaged")
    if len(data) != rows * width:
        raise ValueError("its compressed data have another length than they are said to have")
    unshuffle(data, first, place)

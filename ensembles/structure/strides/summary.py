"""Strided reads: reads with a constant stride and holes between them.

A *stream* is the sequence of reads of one task (or thread) on one file through one layer, in the order of
start. Successive reads without a hole between them count as one, as a library may divide a read. A *strided
run* is a part of a stream along which offsets grow by a constant stride that is larger than the reads: for
example, the reads of a matrix with padded rows. Its reads have *positions* from 1. With each read, the bytes
and the time of the task's writes since the read before are kept.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ensembles.model.events import Events
from ensembles.passes.summary import BY_RANK, Summary
from ensembles.structure.strides.detect import COLUMNS, MOST_POSITIONS, ROW, find_strides

__all__ = ["COLUMNS", "MOST_POSITIONS", "ROW", "StridedReads"]

MOST_ROWS = 1 << 18
"""Largest number of reads that are held; of more, those of randomly chosen tasks."""


class StridedReads(Summary):
    """A mergeable summary: the strided reads of a run.

    Parameters
    ----------
    most_rows : int
        Largest number of reads that are held.

    Attributes
    ----------
    reads, reads_with_offset : int
        Number of outermost reads that moved bytes, and of those with a known file offset.
    bytes_by_layer : dict of (int, int) to int
        Bytes of reads with a known offset, by file and layer (index into
        `ensembles.structure.strides.detect.LAYERS`).
    io_time_ns, read_time_ns : int
        Time in outermost calls without waiting, and in the reads among them.
    share : float
        Share of the tasks whose rows are held.
    """

    columns = COLUMNS
    requires = BY_RANK
    results = (
        *("reads", "reads_with_offset", "io_time_ns", "read_time_ns"),
        *("bytes_by_layer", "share", "_columns"),
    )

    def __init__(self, _: Any = None, most_rows: int = MOST_ROWS) -> None:
        self.reads = self.reads_with_offset = 0
        self.io_time_ns = self.read_time_ns = 0
        self.bytes_by_layer: dict[tuple[int, int], int] = {}
        self.share = 1.0
        self._most_rows = most_rows
        self._parts: list[np.ndarray] = []
        self._held = 0

    def add(self, events: Events) -> None:
        """Add all calls of some tasks."""
        if not len(events):
            return
        found = find_strides(events)
        self.reads += found.reads
        self.reads_with_offset += found.reads_with_offset
        self.io_time_ns += found.io_time_ns
        self.read_time_ns += found.read_time_ns
        for count, file, layer in found.bytes.tolist():
            self.bytes_by_layer[file, layer] = self.bytes_by_layer.get((file, layer), 0) + count
        if len(found.rows):
            self._keep(found.rows)

    def merge(self, other: StridedReads) -> None:
        """Add the reads of other tasks."""
        self.reads += other.reads
        self.reads_with_offset += other.reads_with_offset
        self.io_time_ns += other.io_time_ns
        self.read_time_ns += other.read_time_ns
        for key, count in other.bytes_by_layer.items():
            self.bytes_by_layer[key] = self.bytes_by_layer.get(key, 0) + count
        self.share = min(self.share, other.share)
        self._parts += other._parts
        self._held += other._held
        self._choose(always=True)

    @property
    def _columns(self) -> dict[str, np.ndarray]:
        return self.to_arrays()

    @_columns.setter
    def _columns(self, columns: dict[str, np.ndarray]) -> None:
        rows = np.empty(len(columns["rank"]), ROW)
        for name in ROW.names or ():
            rows[name] = columns[name]
        self._parts, self._held = [rows], len(rows)

    def to_arrays(self) -> dict[str, np.ndarray]:
        """Return the columns of `ROW`, sorted by rank, layer, file, run and position."""
        rows = self.rows
        return {name: rows[name] for name in ROW.names or ()}

    @property
    def rows(self) -> np.ndarray:
        """The reads that are held: ndarray of `ROW`.

        Rows are sorted by rank, layer, file, run and position.
        """
        rows = np.concatenate([np.empty(0, ROW), *self._parts])
        return rows[np.lexsort([rows[name] for name in ("position", "run", "file", "layer", "rank")])]

    @property
    def rows_nearest_to_disk(self) -> np.ndarray:
        """`rows` of the lowest layer that read half of the bytes of each file.

        A read of MPI-IO and the POSIX reads inside it do not count twice.
        """
        rows = self.rows
        most: dict[int, int] = {}
        for (file, _), count in self.bytes_by_layer.items():
            most[file] = max(most.get(file, 0), count)
        layer_of: dict[int, int] = {}
        for (file, layer), count in sorted(self.bytes_by_layer.items()):
            if 2 * count >= most[file]:
                layer_of.setdefault(file, layer)
        files, where = np.unique(rows["file"], return_inverse=True)
        wanted = np.array([layer_of.get(file, 0) for file in files.tolist()], np.uint8)
        return rows[rows["layer"] == wanted[where.reshape(-1)]] if len(rows) else rows

    def _keep(self, rows: np.ndarray) -> None:
        self._parts.append(rows)
        self._held += len(rows)
        self._choose()

    def _choose(self, always: bool = False) -> None:
        """Drop the rows of more and more tasks until the others fit."""
        if not always and self._held <= self._most_rows:
            return
        rows = np.concatenate([np.empty(0, ROW), *self._parts])
        lot = _lot_of(rows["rank"])
        kept = lot < self.share
        while np.count_nonzero(kept) > self._most_rows and len(np.unique(rows["rank"][kept])) > 1:
            self.share /= 2
            kept = lot < self.share
        self._parts = [rows[kept]]
        self._held = int(np.count_nonzero(kept))


def _lot_of(rank: np.ndarray) -> np.ndarray:
    """Compute a reproducible random number from 0 to 1 for each rank.

    It is the finaliser of SplitMix64 (Steele, Lea and Flood, 2014).
    """
    x = rank.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return (x ^ (x >> np.uint64(31))) / 2.0**64

"""Reads with a constant stride: strided runs, which C code detects."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ensembles import _compiled
from ensembles.model.events import OPS, Call, Events, of_calls, op_of_calls
from ensembles.model.levels import AGAIN, MOST_KINDS, MOST_RANGES
from ensembles.passes.start_order import order_by_start
from ensembles.passes.summary import BY_RANK, Summary

LAYERS = ("posix", "stdio", "mpiio", "hdf5")
"""Layers from the file system up; others count as the last."""

COLUMNS = ("rank", "thread", "call", "depth", "carried", "file", "offset", "moved", "start", "duration")
"""Columns of events that the detection reads."""

ROW = np.dtype(
    [
        ("start_ns", "i8"),
        ("end_ns", "i8"),
        ("duration_ns", "i8"),
        ("bytes", "i8"),
        ("stride_bytes", "i8"),
        ("written_bytes", "i8"),
        ("writing_ns", "i8"),
        ("rank", "u4"),
        ("file", "u4"),
        ("run", "u4"),
        ("reads", "u4"),
        ("ordinal", "u4"),
        ("calls", "u4"),
        ("call", "u2"),
        ("position", "u2"),
        ("layer", "u1"),
        ("interleaved", "?"),
    ],
    align=True,
)
"""One row for each read. ``run``: index of the strided run of its task, layer and file by time, from 0;
``reads``: number of reads of the run; ``position``: position in the run, from 1, and `MOST_KINDS` + 1 for
the sum of the following ones; ``ordinal``: index of the read of its task, layer and file; ``written_bytes``,
``writing_ns``: bytes and time of the writes of the task since the read before."""

BYTES = np.dtype([("bytes", "i8"), ("file", "u4"), ("layer", "u4")])
"""Bytes that a task read of a file through a layer (index into `LAYERS`)."""

_WRITTEN_SHARE = 1 / 16
_KINDS = {"read": 1, "write": 2, "wait": 3}


class StrideRuns(NamedTuple):
    """The strided runs of some tasks, and sums over their reads."""

    rows: np.ndarray  # Reads of strided runs, sorted by rank, layer, file, run and position
    bytes: np.ndarray  # Bytes read; a file may have several entries
    # reads, reads_with_offset, io_time_ns, read_time_ns: As in
    # `ensembles.structure.strides.StridedReads`
    reads: int
    reads_with_offset: int
    io_time_ns: int
    read_time_ns: int


def find_strides(events: Events) -> StrideRuns:
    """Find the strided reads of some tasks."""
    sums = np.zeros(4, np.int64)
    columns = [np.ascontiguousarray(getattr(events, name)) for name in COLUMNS]
    tables = (_kind_of_calls(events.calls), _layer_of_calls(events.calls))
    arrays = (*columns, *tables, sums, order_by_start(events))
    rows, amounts = _compiled.strided_reads(arrays, AGAIN, MOST_KINDS, _WRITTEN_SHARE, ROW.itemsize)
    return StrideRuns(np.frombuffer(rows, ROW), np.frombuffer(amounts, BYTES), *sums.tolist())


@of_calls
def _kind_of_calls(calls: Sequence[Call]) -> np.ndarray:
    """Return the kind of each function for the compiled loop."""
    return np.array([_KINDS.get(op, 0) for op in OPS], np.uint8)[op_of_calls(calls)]


@of_calls
def _layer_of_calls(calls: Sequence[Call]) -> np.ndarray:
    """Return the index into `LAYERS` of each function's layer: uint8, (len(calls),)."""
    last = len(LAYERS) - 1
    return np.array([LAYERS.index(call.layer) if call.layer in LAYERS else last for call in calls], np.uint8)


class StridedReads(Summary):
    """A mergeable summary: the strided reads of a run.

    `reads`, `reads_with_offset`: number of outermost reads that moved bytes, and of those with a known file
    offset.
    `bytes_by_layer`: bytes of reads with a known offset, by file and layer (index into
    `ensembles.structure.strides.LAYERS`).
    `io_time_ns`, `read_time_ns`: time in outermost calls without waiting, and in the reads among them.
    `share`: share of the tasks whose rows are held.
    """

    columns = COLUMNS
    requires = BY_RANK
    _sums = ("reads", "reads_with_offset", "io_time_ns", "read_time_ns", "bytes_by_layer")
    results = (*_sums, "share", "_columns")
    added_up = (*_sums, "_parts", "_held")

    def __init__(self, _: Any = None, most_rows: int = MOST_RANGES) -> None:
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
        super().merge(other)
        self.share = min(self.share, other.share)
        self._choose(always=True)

    @property
    def _columns(self) -> dict[str, np.ndarray]:
        rows = self.rows
        return {name: rows[name] for name in ROW.names or ()}

    @_columns.setter
    def _columns(self, columns: dict[str, np.ndarray]) -> None:
        rows = np.empty(len(columns["rank"]), ROW)
        for name in ROW.names or ():
            rows[name] = columns[name]
        self._parts, self._held = [rows], len(rows)

    @property
    def rows(self) -> np.ndarray:
        """The reads that are held: ndarray of `ROW`, sorted by rank, layer, file, run and position."""
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
    """Reproducible random number from 0 to 1 for each rank: SplitMix64 (Steele, Lea and Flood, 2014)."""
    x = rank.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return (x ^ (x >> np.uint64(31))) / 2.0**64

"""Reads with a constant stride and holes between them: a mergeable summary.

A *stream* is what one task (or one of its threads) reads of one file through one layer, in the order of
start. Successive reads without a hole between them count as one, for a library may have cut a read into
pieces. A *strided run* is a part of a stream along which offsets grow by the same stride, which is larger
than what is read: the reads of a matrix whose rows are padded, for example. Its reads have *positions* from
1. Some of what tells runs apart is kept beside the reads: how much the task wrote since the read before, and
how long that took.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ensembles.events import OPS, Events
from ensembles.structure.read_streams import LAYERS, reads_of, runs_of

MOST_ROWS = 1 << 18
"""Reads that are held; of more, those of some tasks, chosen by chance."""

MOST_POSITIONS = 64
"""Reads of a run that are held one by one; those that follow are added up in one row more."""

LEAST_READS = 4
"""Shorter runs are left out."""

COLUMNS = ("rank", "thread", "call", "depth", "carried", "file", "offset", "moved", "start", "duration")
"""Columns of events that are needed."""

ROW = np.dtype(
    [
        ("rank", "u4"),
        ("file", "u4"),
        ("layer", "u1"),
        ("call", "u2"),
        ("run", "u4"),
        ("reads", "u4"),
        ("position", "u2"),
        ("ordinal", "u4"),
        ("interleaved", "?"),
        ("calls", "u4"),
        ("start_ns", "i8"),
        ("end_ns", "i8"),
        ("duration_ns", "i8"),
        ("bytes", "i8"),
        ("stride_bytes", "i8"),
        ("written_bytes", "i8"),
        ("writing_ns", "i8"),
    ]
)
"""A row a read. ``run``: which strided run of its task, layer and file by time, from 0; ``reads``: of the
run; ``position``: in the run, from 1, and `MOST_POSITIONS` + 1 for the sum of those that follow; ``ordinal``:
which read of its task, layer and file; ``written_bytes``, ``writing_ns``: by the task since the read
before."""

_WRITTEN_SHARE = 1 / 16


class StridedReads:
    """The strided reads of a run.

    Calls of a task have to come together (`whole_ranks`).

    Attributes
    ----------
    reads, reads_with_offset : int
        Reads that moved bytes and are in no other read, and those of them whose place in the file is known
        (in some layer: then the reads inside them count).
    bytes_by_layer : dict of (int, int) to int
        Bytes read of each file through each layer (index into `LAYERS`), where the place is known.
    io_time_ns, read_time_ns : int
        Time in outermost calls that are no waiting, and in reads among them.
    first_ns, last_ns : int or None
        When the first call began and the last one ended.
    share : float
        Share of the tasks whose rows are held.
    """

    whole_ranks = True

    def __init__(self, _: Any = None, most_rows: int = MOST_ROWS) -> None:
        self.reads = self.reads_with_offset = 0
        self.io_time_ns = self.read_time_ns = 0
        self.first_ns: int | None = None
        self.last_ns: int | None = None
        self.bytes_by_layer: dict[tuple[int, int], int] = {}
        self.share = 1.0
        self._most_rows = most_rows
        self._parts: list[np.ndarray] = []
        self._held = 0

    def add(self, events: Events) -> None:
        """Add all calls of some tasks."""
        if not len(events):
            return
        op = events.op
        end = events.end
        low, high = int(events.start.min()), int(end.max())
        self.first_ns = low if self.first_ns is None else min(self.first_ns, low)
        self.last_ns = high if self.last_ns is None else max(self.last_ns, high)
        outer = (events.depth == 0) & (op != OPS.index("wait"))
        is_read = (op == OPS.index("read")) & (events.moved > 0)
        self.io_time_ns += int(events.duration[outer].sum())
        self.read_time_ns += int(events.duration[outer & is_read].sum())
        alone = is_read & ((events.carried & 1) == 0)
        self.reads += int(np.count_nonzero(alone))
        self.reads_with_offset += int(np.count_nonzero(alone & (events.offset >= 0)))
        reads = reads_of(events)
        self._count_bytes(reads)
        rows = runs_of(reads, LEAST_READS)
        if len(rows["rank"]):
            self._keep(_table_of(rows))

    def merge(self, other: StridedReads) -> None:
        """Add those of other tasks."""
        self.reads += other.reads
        self.reads_with_offset += other.reads_with_offset
        self.io_time_ns += other.io_time_ns
        self.read_time_ns += other.read_time_ns
        for name, choose in (("first_ns", min), ("last_ns", max)):
            both = [value for value in (getattr(self, name), getattr(other, name)) if value is not None]
            setattr(self, name, choose(both) if both else None)
        for key, count in other.bytes_by_layer.items():
            self.bytes_by_layer[key] = self.bytes_by_layer.get(key, 0) + count
        self.share = min(self.share, other.share)
        self._parts += other._parts
        self._held += other._held
        self._choose(always=True)

    def to_arrays(self) -> dict[str, np.ndarray]:
        """The columns of `ROW`, sorted by rank, layer, file, run and position."""
        rows = self.rows
        return {name: rows[name] for name in ROW.names}

    @property
    def rows(self) -> np.ndarray:
        """The reads that are held: ndarray of `ROW`, sorted by rank, layer, file, run and position."""
        rows = np.concatenate([np.empty(0, ROW), *self._parts])
        return rows[np.lexsort([rows[name] for name in ("position", "run", "file", "layer", "rank")])]

    @property
    def rows_nearest_to_disk(self) -> np.ndarray:
        """`rows`, each file's through one layer: the lowest through which half of its bytes were read. So a
        read of MPI-IO and the POSIX reads inside of it do not count twice."""
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

    def _count_bytes(self, reads: dict[str, np.ndarray]) -> None:
        code = reads["file"].astype(np.int64) * len(LAYERS) + reads["layer"]
        codes, where = np.unique(code, return_inverse=True)
        sums = np.bincount(where.reshape(-1), reads["bytes"], minlength=len(codes))
        for number, count in zip(codes.tolist(), sums.tolist(), strict=True):
            key = divmod(number, len(LAYERS))
            self.bytes_by_layer[key] = self.bytes_by_layer.get(key, 0) + int(count)

    def _keep(self, rows: np.ndarray) -> None:
        self._parts.append(rows)
        self._held += len(rows)
        self._choose()

    def _choose(self, always: bool = False) -> None:
        """Give up the rows of more and more tasks, until the others fit."""
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
    """A number from 0 to 1 for each rank, always the same, like one drawn by chance (the finaliser of
    SplitMix64: Steele, Lea and Flood, 2014)."""
    x = rank.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return (x ^ (x >> np.uint64(31))) / 2.0**64


def _table_of(reads: dict[str, np.ndarray]) -> np.ndarray:
    """Rows of the reads of strided runs, those beyond `MOST_POSITIONS` added up."""
    new = reads["position_in_run"] == 0
    run = np.cumsum(new) - 1
    count = np.bincount(run)
    late = reads["position_in_run"] >= 3
    mixed = reads["written_bytes"] >= _WRITTEN_SHARE * reads["bytes"]
    of_run = np.bincount(run, late & mixed) >= 0.5 * np.maximum(np.bincount(run, late), 1)
    place = np.minimum(reads["position_in_run"], MOST_POSITIONS)
    first = np.flatnonzero(np.diff(run * (MOST_POSITIONS + 1) + place, prepend=-1))
    rows = np.empty(len(first), ROW)
    for name in ("rank", "file", "layer", "call", "run", "ordinal", "start_ns", "stride_bytes"):
        rows[name] = reads[name][first]
    for name in ("calls", "duration_ns", "bytes", "written_bytes", "writing_ns"):
        rows[name] = np.add.reduceat(reads[name], first)
    rows["end_ns"] = np.maximum.reduceat(reads["end_ns"], first)
    rows["reads"] = count[run[first]]
    rows["position"] = place[first] + 1 + reads["begun_before"][first]
    rows["interleaved"] = of_run[run[first]]
    return rows

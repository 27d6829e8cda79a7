"""Convert segments of Darshan's DXT to columns of events."""

from __future__ import annotations

from dataclasses import dataclass, field
from mmap import mmap

import numpy as np

from ensembles.model.events import Call
from ensembles.model.units import LONGEST_S, MOST_THREADS
from ensembles.readers.foreign.common.import_table import CARRIED_BY
from ensembles.readers.foreign.darshan.header import DamagedLog

CALLS = {
    "DXT_POSIX": (Call("read", "posix", "read"), Call("write", "posix", "write")),
    "DXT_MPIIO": (Call("MPI_File_read", "mpiio", "read"), Call("MPI_File_write", "mpiio", "write")),
}
"""Calls for the reads and writes of a module; DXT does not record the function."""

Columns = dict[str, np.ndarray]


@dataclass(frozen=True, slots=True)
class SegmentBlocks:
    """Blocks of consecutive segments of one file, rank and kind."""

    module: str
    rank: np.ndarray  # Rank of each block; shape (n,)
    count: np.ndarray  # Number of segments of each block; shape (n,)
    is_write: np.ndarray  # 1: writes, 0: reads; shape (n,)
    file: np.ndarray  # File number in the run; shape (n,)
    # has_threads, has_offsets: Whether segments have threads and offsets; old versions lack them
    has_threads: bool
    has_offsets: bool
    swapped: bool  # Whether segments have the other byte order
    after_s: float = 0.0  # Start of their log, since that of the run

    @property
    def length(self) -> int:
        """Number of segments."""
        return int(self.count.sum())


@dataclass(slots=True)
class Converter:
    """Converter of segments to columns of events.

    It keeps MPI-IO calls to find the POSIX calls inside them, so that segments of DXT_MPIIO must come first.
    """

    calls: tuple[Call, ...]  # Calls of the run, including those of `CALLS`
    turned: int = 0  # Number of segments with an end before the start, whose duration is set to 0
    # Thread number within the rank, by rank and pthread id
    threads: dict[tuple[int, int], int] = field(default_factory=dict)
    _per_rank: dict[int, int] = field(default_factory=dict)
    _around: list[Columns] = field(default_factory=list)
    _sorted: dict[int, tuple[tuple[np.ndarray, np.ndarray], ...]] | None = None

    def columns(self, parts: SegmentBlocks, memory: mmap | bytes) -> Columns:
        """Convert segments to columns."""
        fields = [("offset", "i8"), ("length", "i8"), ("start", "f8"), ("end", "f8")]
        fields += [("thread", "u8")] if parts.has_threads else []
        order = ">" if parts.swapped else "<"
        shape = np.dtype([(name, order + kind) for name, kind in fields])
        segments = np.frombuffer(memory, shape, parts.length)
        start_s, end_s = segments["start"].astype("f8"), segments["end"].astype("f8")
        # Comparisons with NaN are false.
        if not (np.abs(start_s).max() < LONGEST_S and np.abs(end_s).max() < LONGEST_S):
            raise DamagedLog("the time of a call is impossible")
        length = segments["length"].astype("i8")
        if length.min() < 0:
            raise DamagedLog("a call moved a negative number of bytes")
        start, end = (_ns(times_s) + round(parts.after_s * 1e9) for times_s in (start_s, end_s))
        duration = end - start
        self.turned += int((duration < 0).sum())
        numbers = np.array([self.calls.index(call) for call in CALLS[parts.module]], "u2")
        rank = np.repeat(parts.rank, parts.count)
        thread = segments["thread"].astype("u8") if parts.has_threads else np.zeros(len(segments), "u8")
        columns = {
            "rank": rank.astype("u4"),
            "thread": self._numbered(rank, thread),
            "call": np.repeat(numbers[parts.is_write], parts.count),
            "file": np.repeat(parts.file, parts.count).astype("u4"),
            "offset": segments["offset"].astype("i8") if parts.has_offsets else np.full(len(length), -1),
            "requested": length.astype("u8"),
            "moved": length,
            "start": start,
            "duration": np.maximum(duration, 0),
        }
        if parts.module == "DXT_MPIIO":
            columns["depth"] = columns["carried"] = np.zeros(len(length), "u1")
            kind = np.where(parts.is_write, CARRIED_BY["write"], CARRIED_BY["read"])
            what = np.repeat(kind.astype("u1"), parts.count)
            self._sorted = None
            self._around.append(
                {name: columns[name] for name in ("rank", "thread", "start")} | {"end": end, "what": what}
            )
        elif self._around:
            columns["carried"] = self._carried(columns, start, end)
            columns["depth"] = (columns["carried"] > 0).astype("u1")
        return columns

    def _numbered(self, rank: np.ndarray, thread: np.ndarray) -> np.ndarray:
        """Number the threads of each rank from 0, in the order in which they occur."""
        change = np.flatnonzero((rank[1:] != rank[:-1]) | (thread[1:] != thread[:-1])) + 1
        first = np.concatenate([[0], change])
        pairs = np.stack([rank[first].astype("u8"), thread[first]])
        known, place = np.unique(pairs, axis=1, return_inverse=True)
        numbers = np.empty(known.shape[1], "u2")
        for i, (of_rank, pthread) in enumerate(zip(*known.tolist(), strict=True)):
            number = self.threads.get((of_rank, pthread))
            if number is None:
                number = self.threads[of_rank, pthread] = self._per_rank.get(of_rank, 0)
                self._per_rank[of_rank] = number + 1
                if number > MOST_THREADS:
                    raise DamagedLog(f"rank {of_rank} has more than {MOST_THREADS + 1:,} threads")
            numbers[i] = number
        return np.repeat(numbers[place.ravel()], np.diff(np.append(first, len(rank))))

    def _carried(self, columns: Columns, start: np.ndarray, end: np.ndarray) -> np.ndarray:
        """Find the MPI-IO calls of the same thread around each call: 1: a read, 2: a write, 3: both."""
        if self._sorted is None:
            self._sorted = self._by_thread()
        key = columns["rank"].astype("i8") << 16 | columns["thread"]
        order = np.argsort(key, kind="stable")
        found = np.zeros(len(key), "u1")
        unique, first = np.unique(key[order], return_index=True)
        for thread, mine in zip(unique.tolist(), np.split(order, first[1:]), strict=True):
            for what, (starts, ends) in zip(CARRIED_BY.values(), self._sorted.get(thread, ()), strict=False):
                if len(starts):
                    before = np.searchsorted(starts, start[mine], side="right")
                    inside = (before > 0) & (ends[np.maximum(before, 1) - 1] >= end[mine])
                    found[mine[inside]] |= what
        return found

    def _by_thread(self) -> dict[int, tuple[tuple[np.ndarray, np.ndarray], ...]]:
        """Return starts and running maximum of ends of each thread's MPI-IO reads, and of its writes."""
        around = {name: np.concatenate([part[name] for part in self._around]) for name in self._around[0]}
        key = around["rank"].astype("i8") << 16 | around["thread"]
        order = np.lexsort((around["start"], key))
        unique, first = np.unique(key[order], return_index=True)
        found = {}
        for thread, mine in zip(unique.tolist(), np.split(order, first[1:]), strict=True):
            parts = (mine[around["what"][mine] == what] for what in CARRIED_BY.values())
            found[thread] = tuple(
                (around["start"][part], np.maximum.accumulate(around["end"][part])) for part in parts
            )
        return found


def _ns(seconds: np.ndarray) -> np.ndarray:
    return np.rint(seconds * 1e9).astype("i8")

"""The index of a ``trace.h5``: locations of ranks and times among the events, which are sorted by both.

An index may be damaged or forged, so that rows are checked against it when they are read. The choice of
chunks makes this check sufficient. For each sequence of skipped chunks, the rows before and after it are
read. Since rows are sorted, no wanted row can lie between them.

What the chunks of a ``trace.h5`` hold: functions, files and sizes of requests.

The rows that are read prove the index (`ensembles.readers.tracefile.index`). What chunks hold cannot be
proved without reading them. Therefore it is one of the kept results of the file, with a checksum over the
identity of the run: if any part of the file differs from what was written, all chunks are read.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ensembles import _compiled
from ensembles.passes.reading import Contents, Ranges

MOST_ROWS = 1 << 24
_LIMITS = np.iinfo(np.int64)
_NO_SPAN = int(_LIMITS.max), int(_LIMITS.min)


@dataclass(frozen=True)
class TraceIndex:
    """Locations of ranks and times among sorted events."""

    length: int  # Number of events
    rows: int  # Events per chunk; the last chunk may have fewer
    # rank, row: Ranks with events, ascending, and the first row of each; shape (ranks,)
    rank: np.ndarray
    row: np.ndarray
    # first_start, last_start, max_end: Start of the first and of the last event of each chunk, and the latest
    # end in the chunk, ns; shape (chunks,)
    first_start: np.ndarray
    last_start: np.ndarray
    max_end: np.ndarray

    def __post_init__(self) -> None:
        chunks = -(-self.length // self.rows) if 0 < self.rows <= MOST_ROWS else -1
        sound = len(self.first_start) == len(self.last_start) == len(self.max_end) == chunks
        sound &= len(self.rank) == len(self.row) and bool(len(self.rank)) == bool(self.length)
        if sound and self.length:
            sound &= self.rank[0] >= 0 and bool((self.rank[1:] > self.rank[:-1]).all())
            sound &= self.row[0] == 0 and self.row[-1] < self.length
            sound &= bool((self.row[1:] > self.row[:-1]).all())
        if sound:
            keys = np.empty(2 * chunks, [("rank", "i8"), ("start", "i8")])
            keys["rank"][0::2], keys["rank"][1::2] = self.first_rank, self.last_rank
            keys["start"][0::2], keys["start"][1::2] = self.first_start, self.last_start
            falls = keys["start"][1:] < keys["start"][:-1]
            sound = not (falls & (keys["rank"][1:] == keys["rank"][:-1])).any()
        if not sound:
            raise ValueError("the parts of its index contradict each other")

    @property
    def chunks(self) -> int:
        """Number of chunks."""
        return len(self.first_start)

    @cached_property
    def first_rank(self) -> np.ndarray:
        """Rank of the first event of each chunk. Shape (chunks,)."""
        return self.rank_of_row(np.arange(self.chunks) * self.rows)

    @cached_property
    def last_rank(self) -> np.ndarray:
        """Rank of the last event of each chunk. Shape (chunks,)."""
        return self.rank_of_row(np.minimum((np.arange(self.chunks) + 1) * self.rows, self.length) - 1)

    def order_key(self, chunk: int) -> tuple[int, int]:
        """Return rank and start (ns) of the first event of a chunk."""
        return int(self.first_rank[chunk]), int(self.first_start[chunk])

    def rank_of_row(self, row: np.ndarray) -> np.ndarray:
        """Return the ranks of the events in some rows."""
        return self.rank[np.searchsorted(self.row, row, "right") - 1]

    def chunks_with(self, ranks: Ranges | None, times_ns: Ranges | None) -> np.ndarray:
        """Select the chunks to read for calls of some ranks that start in some ranges of time.

        `ranks`: first and last rank of each range; None: all ranks.
        `times_ns`: first and last start of each range, ns; None: all times.
        """
        n = self.chunks
        if n == 0:
            return np.zeros(0, bool)
        # A chunk is skipped if no wanted row can lie between the end of the chunk before it and the beginning
        # of the chunk after it.
        before_rank, before = np.full(n, _LIMITS.min), np.full(n, _LIMITS.min)
        after_rank, after = np.full(n, _LIMITS.max), np.full(n, _LIMITS.max)
        before_rank[1:], before[1:] = self.last_rank[:-1], self.last_start[:-1]
        after_rank[:-1], after[:-1] = self.first_rank[1:], self.first_start[1:]
        one = before_rank == after_rank
        wanted = np.zeros(n, bool)
        for low, high in [(0, int(_LIMITS.max) - 1)] if ranks is None else ranks:
            low, high = min(low, int(_LIMITS.max) - 1), min(high, int(_LIMITS.max) - 1)
            mine = (before_rank >= low) & (before_rank <= high)
            mine_after = (after_rank >= low) & (after_rank <= high)
            least = np.maximum(before_rank, low - 1) + 1
            wanted |= least <= np.minimum(after_rank - 1, high)  # whole ranks lie between
            for first, last in [(int(_LIMITS.min), int(_LIMITS.max))] if times_ns is None else times_ns:
                since, until = before <= last, after >= first
                wanted |= mine & since & (~one | until)
                wanted |= mine_after & until & (~one | since)
        return wanted

    def spans_of(self, chunks: np.ndarray) -> list[tuple[int, int]]:
        """Return the rows of some chunks: first row and end of each sequence of successive chunks."""
        begins = np.flatnonzero(np.diff(chunks, prepend=-2) != 1)
        first, last = chunks[begins], chunks[np.append(begins[1:], len(chunks))[: len(begins)] - 1]
        ends = np.minimum((last + 1) * self.rows, self.length)
        return list(zip((first * self.rows).tolist(), ends.tolist(), strict=True))

    def check(self, chunks: np.ndarray, columns: Mapping[str, np.ndarray]) -> None:
        """Check that the rows of several chunks, which lie one after the other, agree with the index."""
        told = (columns.get("rank"), columns.get("start"), columns.get("duration"), chunks, self.rows)
        if not _compiled.are_chunks_sorted(*told, *self._numbers):
            raise ValueError("its events are not sorted as its index says")

    @cached_property
    def _numbers(self) -> tuple[np.ndarray, ...]:
        columns = (self.row, self.rank, self.first_start, self.last_start, self.max_end)
        return tuple([np.ascontiguousarray(column, np.int64) for column in columns])


class IndexBuilder:
    """Builder of the index of sorted events."""

    columns = ("rank", "start", "duration", "call", "file", "requested")
    """Columns that describe a chunk."""

    def __init__(self, rows: int) -> None:
        self._rows = rows
        self._length = 0
        self._last_rank = -1
        self._ranks: list[np.ndarray] = []
        self._starts: list[tuple[int, int]] = []
        self._described: list[tuple[int, ...]] = []
        self._spans: list[tuple[int, ...]] = []

    def add(self, columns: Mapping[str, np.ndarray]) -> None:
        """Add the next chunk, which has `columns`; only the last chunk may be shorter."""
        rank, start = columns["rank"], columns["start"]
        last = int(rank[-1])
        if last != self._last_rank or int(rank[0]) != last:
            first = np.append(0, np.flatnonzero(rank[1:] != rank[:-1]) + 1)
            if int(rank[0]) == self._last_rank:
                first = first[1:]
            self._ranks.append(np.stack([rank[first].astype(np.int64), first + self._length]))
        self._starts.append((int(start[0]), int(start[-1])))
        described = _compiled.describe_rows(*(columns[name] for name in self.columns[1:]))
        self._described.append(described)
        self._spans.append(_spans_of(columns, described[0]))
        self._last_rank = last
        self._length += len(rank)

    def index(self) -> TraceIndex:
        """Return the index of all chunks."""
        rank, row = np.concatenate([np.empty((2, 0), np.int64), *self._ranks], axis=1)
        first, last = np.array(self._starts, np.int64).reshape(-1, 2).T
        ends = np.array([told[0] for told in self._described], np.int64)
        return TraceIndex(self._length, self._rows, rank, row, first, last, ends)

    def contents(self) -> ChunkContents:
        """Return what all chunks hold."""
        spans = np.array(self._spans, np.int64).reshape(-1, 4).T.copy()
        sets = np.array([told[1:] for told in self._described], np.uint64).reshape(-1, 4).T.copy()
        return ChunkContents(self._rows, spans, *sets)


def _spans_of(columns: Mapping[str, np.ndarray], last_end: int) -> tuple[int, int, int, int]:
    """Return the earliest start and the latest end of the first rank of a chunk, and those of its others."""
    rank, start, duration = columns["rank"], columns["start"], columns["duration"]
    if rank[0] == rank[-1]:
        return int(start[0]), last_end, *_NO_SPAN
    own = int(np.searchsorted(rank, rank[0], "right"))
    end = int((start[:own] + duration[:own]).max())
    others_end = int((start[own:] + duration[own:]).max())
    return int(start[0]), end, int(start[own:].min()), others_end


KEY = "2 ensembles.readers.tracefile.index"
"""Key of the kept result (`ensembles.passes.kept.seal`), with the version of its meaning."""


class ChunkContents:
    """What each chunk holds.

    `spans_ns`: earliest start and latest end of the calls of the first rank in a chunk, and of those of its
    other ranks, ns; the end is before the start if there are none. A chunk that begins with the end of a rank
    and ends with the beginning of the next one has no calls between these. Default: there are no chunks.
    """

    results = ("rows", "spans_ns", "calls", "files", "least_bytes", "most_bytes", "places")

    def __init__(
        self,
        rows: int = 0,
        spans_ns: np.ndarray | None = None,
        calls: np.ndarray | None = None,
        files: np.ndarray | None = None,
        least_bytes: np.ndarray | None = None,
        most_bytes: np.ndarray | None = None,
        places: dict[str, np.ndarray] | None = None,
    ) -> None:
        self.rows = rows
        self.spans_ns = np.empty((4, 0), np.int64) if spans_ns is None else spans_ns
        none = np.empty(0, np.uint64)
        self.calls = none if calls is None else calls
        self.files = none if files is None else files
        self.least_bytes = none if least_bytes is None else least_bytes
        self.most_bytes = none if most_bytes is None else most_bytes
        self.places = {} if places is None else places

    def fit(self, rows: int, chunks: int) -> bool:
        """Whether these are the contents of so many chunks of so many rows."""
        columns = (self.calls, self.files, self.least_bytes, self.most_bytes)
        return (
            self.rows == rows
            and self.spans_ns.shape == (4, chunks)
            and all(len(column) == chunks for column in columns)
            and all(places.shape == (2, chunks) for places in self.places.values())
        )

    def matching(self, wanted: Contents) -> np.ndarray:
        """Select the chunks that may hold wanted events."""
        found = np.ones(len(self.calls), bool)
        for held, bits in ((self.calls, wanted.calls), (self.files, wanted.files)):
            if bits is not None:
                found &= (held & np.uint64(bits)) != 0
        if wanted.sizes is not None:
            some = np.zeros(len(found), bool)
            for low, high in wanted.sizes:
                some |= (self.least_bytes <= _size(high)) & (self.most_bytes >= _size(low))
            found &= some
        if wanted.under_way_ns is not None:
            (start, end, other_start, other_end), (after, before) = self.spans_ns, wanted.under_way_ns
            found &= ((end > after) & (start < before)) | ((other_end > after) & (other_start < before))
        if wanted.least_ns is not None:
            # A call takes no longer than from the earliest start to the latest end of its ranks in the chunk.
            start, end, other_start, other_end = self.spans_ns
            found &= (end - start >= wanted.least_ns) | (
                (other_start <= other_end)
                & (other_end - np.minimum(other_start, other_end) >= wanted.least_ns)
            )
        return found


def _size(size_bytes: int) -> np.uint64:
    return np.uint64(min(size_bytes, 2**64 - 1))

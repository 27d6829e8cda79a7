"""The index of a ``trace.h5``: where ranks and times lie among its events, which are sorted by both.

An index may be damaged or forged, so what it says is checked by the rows that are read. It chooses chunks in
such a way that these are enough: of each run of chunks that are passed over, the rows before and after it are
read, and as rows are sorted, nothing that is wanted can lie between them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

try:
    from ensembles.readers.common import _sorted
except ImportError:
    _sorted = None  # type: ignore[assignment]

Ranges = Sequence[tuple[int, int]]

_MOST_ROWS = 1 << 24
_LIMITS = np.iinfo(np.int64)


@dataclass(frozen=True)
class TraceIndex:
    """Where ranks and times lie among sorted events.

    Attributes
    ----------
    length : int
        Number of events.
    rows : int
        Events of a chunk; the last one may have fewer.
    rank, row : ndarray of int64, shape (ranks,)
        Ranks with events, ascending, and the first row of each.
    first_start, last_start, max_end : ndarray of int64, shape (chunks,)
        Start of the first and of the last event of each chunk, and the last end of all in it, ns.

    Raises
    ------
    ValueError
        Its parts contradict each other.
    """

    length: int
    rows: int
    rank: np.ndarray
    row: np.ndarray
    first_start: np.ndarray
    last_start: np.ndarray
    max_end: np.ndarray

    def __post_init__(self) -> None:
        chunks = -(-self.length // self.rows) if 0 < self.rows <= _MOST_ROWS else -1
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
        """Rank of the first event of each chunk."""
        return self.rank_of_row(np.arange(self.chunks) * self.rows)

    @cached_property
    def last_rank(self) -> np.ndarray:
        """Rank of the last event of each chunk."""
        return self.rank_of_row(np.minimum((np.arange(self.chunks) + 1) * self.rows, self.length) - 1)

    def order_key(self, chunk: int) -> tuple[int, int]:
        """Rank and start of the first event of a chunk."""
        return int(self.first_rank[chunk]), int(self.first_start[chunk])

    def rank_of_row(self, row: np.ndarray) -> np.ndarray:
        """Ranks of the events in these rows."""
        return self.rank[np.searchsorted(self.row, row, "right") - 1]

    def chunks_with(self, ranks: Ranges | None, times_ns: Ranges | None) -> np.ndarray:
        """Which chunks are to be read for calls of these ranks that start in these times: bool, shape
        (chunks,). Ranges include both ends; None: all. Chunks whose rows prove that the others hold none
        are among them."""
        n = self.chunks
        if n == 0:
            return np.zeros(0, bool)
        # A chunk is passed over if nothing that is wanted lies from the end of the one before it to the
        # beginning of the one after it.
        before_rank, before = np.full(n, _LIMITS.min), np.full(n, _LIMITS.min)
        after_rank, after = np.full(n, _LIMITS.max), np.full(n, _LIMITS.max)
        before_rank[1:], before[1:] = self.last_rank[:-1], self.last_start[:-1]
        after_rank[:-1], after[:-1] = self.first_rank[1:], self.first_start[1:]
        one = before_rank == after_rank
        wanted = np.zeros(n, bool)
        for low, high in ranks or [(0, int(_LIMITS.max) - 1)]:
            low, high = min(low, int(_LIMITS.max) - 1), min(high, int(_LIMITS.max) - 1)
            mine = (before_rank >= low) & (before_rank <= high)
            mine_after = (after_rank >= low) & (after_rank <= high)
            least = np.maximum(before_rank, low - 1) + 1
            wanted |= least <= np.minimum(after_rank - 1, high)  # whole ranks lie between
            for first, last in times_ns or [(int(_LIMITS.min), int(_LIMITS.max))]:
                since, until = before <= last, after >= first
                wanted |= mine & since & (~one | until)
                wanted |= mine_after & until & (~one | since)
        return wanted

    def runs_of_ranks(self, wanted: np.ndarray, most_chunks: int) -> Iterator[tuple[int, int, bool]]:
        """Rows from and to of successive chunks, at most so many at a time; and whether the next rows go on
        with the one after them."""
        numbers = np.flatnonzero(wanted)
        for run in np.split(numbers, np.flatnonzero(np.diff(numbers) > 1) + 1):
            for place in range(0, len(run), most_chunks):
                low, high = int(run[place]), int(run[min(place + most_chunks, len(run)) - 1]) + 1
                end = min(high * self.rows, self.length)
                yield low * self.rows, end, place + most_chunks < len(run)

    def check(self, chunk: int, columns: Mapping[str, np.ndarray]) -> None:
        """See that the rows of a chunk are sorted, and are where the index says: of the columns ``rank``,
        ``start`` and ``duration`` those that are there.

        Raises
        ------
        ValueError
            They are not.
        """
        low, length = chunk * self.rows, min(self.rows, self.length - chunk * self.rows)
        rank, start = columns.get("rank"), columns.get("start")
        first, last = np.searchsorted(self.row, [low, low + length - 1], "right") - 1
        begins = np.maximum(self.row[first : last + 1] - low, 0)
        sound = start is None or (start[0] == self.first_start[chunk] and start[-1] == self.last_start[chunk])
        told = (rank, start, columns.get("duration"), begins, self.rank[first : last + 1])
        sound = sound and is_sorted(*told, int(self.max_end[chunk]))
        if not sound:
            raise ValueError("its events are not sorted as its index says")


def is_sorted(
    rank: np.ndarray | None,
    start: np.ndarray | None,
    duration: np.ndarray | None,
    begins: np.ndarray,
    ranks: np.ndarray,
    max_end: int,
) -> bool:
    """Whether rows are sorted as an index says, as far as columns are given.

    Parameters
    ----------
    rank, start, duration : ndarray, shape (n,), or None
    begins, ranks : ndarray of int64, shape (groups,)
        The first row of each rank, from 0 on, and the rank.
    max_end : int
        The largest sum of a start and a duration.
    """
    if _sorted is None:
        return numpy_is_sorted(rank, start, duration, begins, ranks, max_end)
    return _sorted.is_sorted(rank, start, duration, begins, ranks, max_end)


def numpy_is_sorted(
    rank: np.ndarray | None,
    start: np.ndarray | None,
    duration: np.ndarray | None,
    begins: np.ndarray,
    ranks: np.ndarray,
    max_end: int,
) -> bool:
    """`is_sorted` without compiled code."""
    if rank is not None:
        steps = np.flatnonzero(rank[1:] != rank[:-1]) + 1
        if not np.array_equal(steps, begins[1:]) or not np.array_equal(rank[begins].astype(np.int64), ranks):
            return False
        if start is not None:
            falls = np.flatnonzero(start[1:] < start[:-1]) + 1
            if (rank[falls] == rank[falls - 1]).any():
                return False
    return start is None or duration is None or int((start + duration).max()) == max_end


class IndexBuilder:
    """Makes the index of sorted events that come in chunks of `rows`."""

    def __init__(self, rows: int) -> None:
        self._rows = rows
        self._length = 0
        self._last_rank = -1
        self._ranks: list[np.ndarray] = []
        self._chunks: list[tuple[int, int, int]] = []

    def add(self, columns: Mapping[str, np.ndarray]) -> None:
        """Add the next chunk; only the last one may be shorter."""
        rank, start = columns["rank"], columns["start"]
        first = np.append(0, np.flatnonzero(rank[1:] != rank[:-1]) + 1)
        if int(rank[0]) == self._last_rank:
            first = first[1:]
        self._ranks.append(np.stack([rank[first].astype(np.int64), first + self._length]))
        end = int((start + columns["duration"]).max())
        self._chunks.append((int(start[0]), int(start[-1]), end))
        self._last_rank = int(rank[-1])
        self._length += len(rank)

    def index(self) -> TraceIndex:
        """The index of all."""
        rank, row = np.concatenate(self._ranks or [np.empty((2, 0), np.int64)], axis=1)
        times = np.array(self._chunks, np.int64).reshape(-1, 3).T
        return TraceIndex(self._length, self._rows, rank, row, *times)

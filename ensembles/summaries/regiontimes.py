"""Region times: occurrences, duration and I/O time of each phase and region."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from ensembles.model.distinct import distinct_rows
from ensembles.model.events import Events, is_io_of_calls
from ensembles.model.regions import KINDS, RegionTable, Spans
from ensembles.passes.summary import Summary


@dataclass(slots=True)
class RegionTotals:
    """Sums over all occurrences of one phase or region."""

    kind: str  # One of `ensembles.model.regions.KINDS`
    name: str  # Its name
    # count, tasks, not_ended: Number of occurrences, of tasks that have any, and of occurrences whose end was
    # not recorded
    count: int
    tasks: int
    not_ended: int
    time_ns: int  # Sum of the durations of all occurrences
    # Time of the outermost calls that started in it, in any thread of its task, without calls that wait for
    # other tasks. None: not every call is an event.
    io_time_ns: int | None = 0

    def add_io(self, time_ns: int) -> None:
        """Add the time of further calls."""
        self.io_time_ns = (self.io_time_ns or 0) + time_ns


class RegionTimes(Summary):
    """A mergeable summary: totals of phases and regions, by first start."""

    of_all_calls = True
    columns = ("rank", "call", "depth", "start", "duration")
    results = ("totals",)
    result_types = (RegionTotals,)

    def __init__(self, table: RegionTable) -> None:
        key = table.name.astype(np.int64) * len(KINDS) + table.kind
        order = np.argsort(key, kind="stable")
        found, first = np.unique(key[order], return_index=True)
        earliest = np.minimum.reduceat(table.start[order], first) if len(found) else first
        place = np.empty(len(found), np.int64)
        place[np.argsort(earliest, kind="stable")] = np.arange(len(found))
        number = place[np.searchsorted(found, key)]
        self.totals = _totals(table, key, number, len(found))
        self._calls_of = CallsOfSpans(number, table)

    def add(self, chunk: Events) -> None:
        """Add calls to the phases and regions in which they started."""
        if not self.totals or not len(chunk):
            return
        is_io = is_io_of_calls(chunk.calls)[chunk.call]
        calls = chunk[is_io & (chunk.depth == 0)]
        times_ns = self._calls_of.sums(calls.rank, calls.start, calls.duration)
        for number in np.flatnonzero(times_ns).tolist():
            self.totals[number].add_io(int(times_ns[number]))

    def merge(self, other: RegionTimes) -> None:
        """Add the totals of other calls, of the same table."""
        for mine, theirs in zip(self.totals, other.totals, strict=True):
            mine.add_io(theirs.io_time_ns or 0)

    def without_events(self) -> RegionTimes:
        """Return the phases and regions, whose times in I/O are unknown."""
        self.totals = [replace(each, io_time_ns=None) for each in self.totals]
        return self


def _totals(table: RegionTable, key: np.ndarray, number: np.ndarray, length: int) -> list[RegionTotals]:
    """Compute the totals that follow from the table alone, by number."""
    count = np.bincount(number, minlength=length)
    ended = np.bincount(number[table.ended != 0], minlength=length)
    time_ns = np.zeros(length, np.int64)
    np.add.at(time_ns, number, table.duration)
    tasks = np.bincount(distinct_rows(number, table.rank)[0][0], minlength=length)
    key_of = np.zeros(length, np.int64)
    key_of[number] = key
    return [
        RegionTotals(KINDS[key % len(KINDS)], table.names[key // len(KINDS)], n, of_tasks, n - whole, time)
        for key, n, whole, of_tasks, time in zip(
            *(column.tolist() for column in (key_of, count, ended, tasks, time_ns)), strict=True
        )
    ]


class CallsOfSpans:
    """Sums over the calls that start in numbered spans of time.

    Overlapping spans of the same number and rank are joined. The cost grows with the number of spans and
    calls, and not with the number of different numbers.
    """

    def __init__(self, number: np.ndarray, table: RegionTable) -> None:
        self._length = int(number.max()) + 1 if len(number) else 0
        ranks, rank = np.unique(table.rank, return_inverse=True)
        group = number * max(len(ranks), 1) + rank
        group, start, end = Spans(group, table.start, table.start + table.duration).joined()
        order = np.lexsort((start, group % max(len(ranks), 1)))
        self._ranks = ranks
        self._number, self._start, self._end = (group // max(len(ranks), 1))[order], start[order], end[order]
        self._first = np.searchsorted((group % max(len(ranks), 1))[order], np.arange(len(ranks) + 1))
        self._reach = self._end.copy()
        """Latest end of the spans of a rank up to each one."""
        for low, high in pairwise(self._first.tolist()):
            np.maximum.accumulate(self._end[low:high], out=self._reach[low:high])

    def sums(self, rank: np.ndarray, start: np.ndarray, amount: np.ndarray) -> np.ndarray:
        """Sum the amounts of the calls that start in the spans of each number."""
        sums = np.zeros(self._length, np.int64)
        order = np.lexsort((start, rank))
        rank, start = rank[order], start[order]
        before = np.concatenate([[0], np.cumsum(amount[order], dtype=np.int64)])
        edges = np.flatnonzero(np.diff(rank.astype(np.int64))) + 1
        for low, high in pairwise([0, *edges.tolist(), len(rank)]):
            at = int(np.searchsorted(self._ranks, rank[low])) if high > low else len(self._ranks)
            if at == len(self._ranks) or self._ranks[at] != rank[low]:
                continue
            begin, end = int(self._first[at]), int(self._first[at + 1])
            mine = start[low:high]
            end = begin + int(np.searchsorted(self._start[begin:end], mine[-1], side="right"))
            begin += int(np.searchsorted(self._reach[begin:end], mine[0], side="right"))
            from_, to = (low + np.searchsorted(mine, edge[begin:end]) for edge in (self._start, self._end))
            np.add.at(sums, self._number[begin:end], before[to] - before[from_])
        return sums

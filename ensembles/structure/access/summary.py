"""A mergeable summary of how tasks go through their files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from ensembles.model.events import OPS, Call, Events, of_calls
from ensembles.model.levels import MOST_KINDS
from ensembles.model.units import HALF_INT64
from ensembles.passes.start_order import order_by_start
from ensembles.passes.summary import BY_RANK, Summary
from ensembles.structure.access.loops import READ, SEEK, SYNC, WRITE, numbered
from ensembles.structure.access.streams import ORDERS, follow, join_ranges
from ensembles.structure.access.task_loops import Shape, find_task_loops
from ensembles.structure.access.uses import LoopUse
from ensembles.summaries.keyed_sums import KeyedSums

MOST_RANGES = 1 << 18
"""Byte ranges that are held at the same time; of more, those of the files with most are dropped."""


@dataclass
class TaskPattern:
    """The tasks that make the same main loops."""

    ranks: list[int]
    uses: list[LoopUse]  # One for each main loop
    # smaller_loops, smaller_bytes: Most other loops of a task that move bytes, and what these move in all
    # tasks
    smaller_loops: int = 0
    smaller_bytes: int = 0


class AccessSummary(Summary):
    """A mergeable summary: loops of calls by task, and the order and extent of transfers by file.

    It has a row for each file, task and operation.

    `other_tasks`: tasks whose loops are beyond `MOST_KINDS`.
    `table`: by ``file``, ``rank`` and ``op``: ``n``, ``bytes`` (moved), ``distinct`` (bytes of the union of
    the ranges of the task), ``mixed`` (calls of a stream that several steps of a loop make, each in another
    order), a column of each of `ORDERS`, ``low``, ``high``, and ``align``: the largest power of two that
    divides all offsets.
    `unknown`: file and operation of which the union over tasks is not known: it has too many ranges.
    `views`: files with a view of MPI-IO, or with collective calls, whose transfers may have holes in the
    file.
    """

    columns = ("rank", "thread", "start", "call", "depth", "carried", "file", "offset", "requested", "moved")
    requires = BY_RANK

    def __init__(self, nested: bool = False) -> None:
        self._nested = nested
        self.patterns: dict[Shape, TaskPattern] = {}
        self.other_tasks = 0
        values = ("n", "bytes", "distinct", "mixed", *ORDERS)
        self.table = KeyedSums(("file", "rank", "op"), values, ("low", "align"), ("high",))
        self.unknown: set[tuple[int, int]] = set()
        self.views: set[int] = set()
        self._ranges = [np.empty((3, 0), np.int64)]
        self._joined = 0

    def add(self, chunk: Events) -> None:
        """Add all calls of some tasks."""
        views = _may_leave_holes(chunk.calls)[chunk.call]
        self.views |= set(np.unique(chunk.file[views]).tolist())
        wanted = np.isin(chunk.op, (READ, WRITE, SEEK, SYNC)) & (chunk.file > 0)
        chunk = chunk[wanted & (chunk.outermost | self._nested)]
        if not len(chunk):
            return
        order = order_by_start(chunk)
        events = chunk if order is None else chunk[order]
        names = ("rank", "thread", "file", "op", "offset", "wanted", "moved")
        rows = {name: getattr(events, name).astype(np.int64) for name in names}
        rows["requested"] = np.minimum(events.requested, np.uint64(HALF_INT64)).astype(np.int64)
        rows["order"], rows["delta"] = _order(rows)
        rows["mixed"] = np.zeros(len(events), np.int64)
        cuts = np.flatnonzero(np.diff(rows["rank"])) + 1
        for low, high in pairwise([0, *cuts.tolist(), len(events)]):
            in_mixed_order = self._add_task({name: column[low:high] for name, column in rows.items()})
            rows["mixed"][low + in_mixed_order] = 1
        self._add_streams(rows)

    def merge(self, other: AccessSummary) -> None:
        """Add the patterns of other tasks."""
        for shape, found in other.patterns.items():
            self._add_pattern(shape, found)
        self.other_tasks += other.other_tasks
        self.table.merge(other.table)
        self.unknown |= other.unknown
        self.views |= other.views
        self._ranges += other._ranges
        self._join()

    def union_bytes(self) -> dict[tuple[int, int], int]:
        """Return the bytes of the union of the ranges of all tasks, by file and operation."""
        self._join()
        (ranges,) = self._ranges
        keys, first = np.unique(ranges[0], return_index=True)
        sums = np.add.reduceat(ranges[2] - ranges[1], first).tolist() if len(keys) else []
        pairs = [(key // len(OPS), key % len(OPS)) for key in keys.tolist()]
        return {pair: total for pair, total in zip(pairs, sums, strict=True) if pair not in self.unknown}

    def _add_streams(self, rows: dict[str, np.ndarray]) -> None:
        data = np.flatnonzero(rows["order"] >= 0)
        if not len(data):
            return
        mine = {name: column[data] for name, column in rows.items()}
        stream, begins = numbered([mine[name] for name in ("rank", "file", "op")])
        rank, file, op = (mine[name][begins] for name in ("rank", "file", "op"))
        moved = np.maximum(mine["moved"], 0)
        placed = (mine["offset"] >= 0) & (moved > 0)
        low, high = mine["offset"][placed], (mine["offset"] + moved)[placed]
        own, begin, end = join_ranges(stream[placed], low, high)
        distinct = np.bincount(own, end - begin, len(rank)).astype(np.int64)
        self._ranges.append(np.stack([file[own] * len(OPS) + op[own], begin, end]))
        self._join_if_many()
        offset = mine["offset"]
        values = {name: (mine["order"] == number).astype(np.int64) for number, name in enumerate(ORDERS)}
        align = np.where(offset > 0, offset & -offset, HALF_INT64)
        extent = {"low": np.where(placed, offset, HALF_INT64), "high": np.where(placed, offset + moved, -1)}
        own_distinct = np.zeros(len(data), np.int64)
        own_distinct[begins] = distinct
        self.table.add(
            {name: mine[name] for name in ("file", "rank", "op")}
            | {"n": np.ones(len(data), np.int64), "bytes": moved, "distinct": own_distinct, "align": align}
            | {"mixed": mine["mixed"]}
            | values
            | extent
        )

    def _add_task(self, rows: dict[str, np.ndarray]) -> np.ndarray:
        """Add the loops of a task; return its rows that are in mixed order."""
        found = find_task_loops(rows)
        small = found.smaller_bytes
        task = TaskPattern([int(rows["rank"][0])], found.uses, len(small), sum(small))
        self._add_pattern(found.shape, task)
        return found.in_mixed_order

    def _add_pattern(self, shape: Shape, found: TaskPattern) -> None:
        mine = self.patterns.get(shape)
        if mine is not None:
            mine.ranks += found.ranks
            mine.smaller_loops = max(mine.smaller_loops, found.smaller_loops)
            mine.smaller_bytes += found.smaller_bytes
            for use, other in zip(mine.uses, found.uses, strict=True):
                use.add(other)
        elif len(self.patterns) < MOST_KINDS:
            self.patterns[shape] = found
        else:
            self.other_tasks += len(found.ranks)

    def _join_if_many(self) -> None:
        if sum(part.shape[1] for part in self._ranges) > 2 * self._joined + 4096:
            self._join()

    def _join(self) -> None:
        ranges = np.concatenate(self._ranges, axis=1)
        ranges = np.stack(join_ranges(*ranges))
        while ranges.shape[1] > MOST_RANGES:
            keys, counts = np.unique(ranges[0], return_counts=True)
            worst = int(keys[np.argmax(counts)])
            self.unknown.add((worst // len(OPS), worst % len(OPS)))
            ranges = ranges[:, ranges[0] != worst]
        self._ranges, self._joined = [ranges], ranges.shape[1]


def _order(rows: dict[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Return the order and step of each call as `follow` has them, -1 and 0 for calls that move nothing."""
    data = np.flatnonzero((rows["op"] == READ) | (rows["op"] == WRITE))
    order, delta = np.full(len(rows["op"]), -1), np.zeros(len(rows["op"]), np.int64)
    stream, _ = numbered([rows[name][data] for name in ("rank", "file", "op")])
    order[data], delta[data] = follow(stream, rows["offset"][data], np.maximum(rows["moved"][data], 0))
    return order, delta


@of_calls
def _may_leave_holes(calls: Sequence[Call]) -> np.ndarray:
    """Whether the bytes of a call, or of those after it, need not follow each other in the file."""
    collective = ("_all", "_all_begin")
    names = [call.name if call.layer == "mpiio" else "" for call in calls]
    return np.array([name == "MPI_File_set_view" or name.endswith(collective) for name in names])

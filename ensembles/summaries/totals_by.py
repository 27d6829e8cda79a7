"""Totals of each file or of each rank, by function."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from ensembles.model.events import OPS, Call, Events, op_of_calls
from ensembles.passes.summary import Summary
from ensembles.summaries.active_time import unions_ns
from ensembles.summaries.calltable import SUM_COLUMNS
from ensembles.summaries.held_calls import HeldCalls
from ensembles.summaries.keyed_sums import KeyedSums, sum_by_keys, with_known_calls
from ensembles.summaries.nesting import Nesting
from ensembles.summaries.runtotals import DIRECTIONS, shared_directions

_SUMS = ("count", "errors", "bytes", "exclusive_ns")
_LEAST, _MOST = ("start_ns",), ("longest_ns", "end_ns")


@dataclass(frozen=True, slots=True)
class KeyTotals:
    """Totals of the calls of one file or rank."""

    key: int  # Number of the file, or the rank
    tasks: int  # Number of ranks that made the calls
    ops: dict[str, int]  # Number of calls by operation
    errors: int  # Number of failed calls
    bytes: dict[str, int]  # Bytes by direction; those of inner calls count once
    # io_ns, wait_ns: Exclusive time in I/O, and in calls that wait for other tasks
    io_ns: int
    wait_ns: int
    longest_ns: int  # Longest I/O call
    # start_ns, end_ns: First entry into a call and last return from one
    start_ns: int
    end_ns: int
    # By direction: time in which at least one call moved bytes. None: there were too many calls
    # (`ensembles.summaries.active_time.MOST_EXACT`).
    active_ns: dict[str, int] | None = field(default=None)


class TotalsBy(Summary):
    """A mergeable summary: one row for each file or rank and function.

    All chunks of a thread must be added to the same summary, in their order (`ensembles.summaries.nesting`).
    """

    of_all_calls = True
    columns = (*SUM_COLUMNS, "rank", "thread", "file")
    results = ("_calls", "_table", "_tasks", "_moves")
    meaning = 1
    result_types = (KeyedSums,)

    def __init__(self, key: Literal["file", "rank"]) -> None:
        self._key = key
        self._calls: tuple[Call, ...] = ()
        self._table = KeyedSums(("key", "call"), _SUMS, _LEAST, _MOST)
        self._tasks = np.zeros(0, np.int64)
        self._last_rank = np.zeros(0, np.int64)
        self._nesting = Nesting()
        self._moves = HeldCalls("group", "start", "end")

    def add(self, chunk: Events) -> None:
        """Add events, those of a thread in order of completion."""
        if not len(chunk):
            return
        key = np.ascontiguousarray(chunk.file if self._key == "file" else chunk.rank)
        inner_ns = self._nesting.inner_ns(chunk)
        rows = sum_by_keys(
            {"key": key, "call": chunk.call},
            {
                "errors": chunk.moved < 0,
                "bytes": np.where(shared_directions(chunk) >= 0, chunk.moved, 0),
                "exclusive_ns": chunk.duration if inner_ns is None else chunk.duration - inner_ns,
            },
            {"start_ns": chunk.start},
            {"longest_ns": chunk.duration, "end_ns": chunk.end},
        )
        self._add_rows(chunk.calls, rows | {"count": rows["n"]})
        self._count_tasks(key, chunk.rank)
        self._hold_spans(key, chunk)

    def _add_rows(self, calls: Sequence[Call], rows: dict[str, np.ndarray]) -> None:
        self._calls, rows = with_known_calls(self._calls, calls, rows)
        self._table.add_summed(rows)

    def _count_tasks(self, key: np.ndarray, rank: np.ndarray) -> None:
        """Count the ranks of each file; ranks come one after the other, from chunk to chunk."""
        if self._key == "rank":
            return
        pairs = sum_by_keys({"key": key, "rank": rank})
        key, rank = pairs["key"], pairs["rank"]
        self._make_room(int(key.max()) + 1)
        np.add.at(self._tasks, key, rank != self._last_rank[key])
        np.maximum.at(self._last_rank, key, rank)

    def _make_room(self, keys: int) -> None:
        more = max(keys - len(self._tasks), 0)
        if more:
            self._tasks = np.append(self._tasks, np.zeros(more, np.int64))
            self._last_rank = np.append(self._last_rank, np.full(more, -1))

    def _hold_spans(self, key: np.ndarray, chunk: Events) -> None:
        """Keep the times of calls that moved bytes, unless there are too many."""
        direction = shared_directions(chunk)
        moves = np.flatnonzero(direction >= 0)
        group = len(DIRECTIONS) * key[moves].astype(np.int64) + direction[moves]
        self._moves.add(group, chunk.start[moves], chunk.end[moves])

    def merge(self, other: TotalsBy) -> None:
        """Add a summary of higher ranks of the same run."""
        self._add_rows(other._calls, other._table.columns())
        self._make_room(len(other._tasks))
        self._tasks[: len(other._tasks)] += other._tasks
        last_rank = self._last_rank[: len(other._last_rank)]
        np.maximum(last_rank, other._last_rank, out=last_rank)
        self._moves.merge(other._moves)
        self._nesting.merge(other._nesting)

    def condense(self) -> None:
        """Join the rows, and replace the times of calls by one span for each key that is as long."""
        self._table.condense()
        active = self._active_ns()
        if active:
            rows = [
                (len(DIRECTIONS) * key + DIRECTIONS.index(op), 0, length)
                for (key, op), length in active.items()
            ]
            self._moves.hold_instead(np.array(rows, np.int64).T)

    def totals(self) -> list[KeyTotals]:
        """Compute the totals of each file or rank that occurred, by number."""
        rows = self._table.columns()
        if not len(rows["key"]):
            return []
        active = self._active_ns()
        op = op_of_calls(self._calls)[rows["call"]]
        io = np.array([not call.waits_for_tasks for call in self._calls], bool)[rows["call"]]
        first = np.flatnonzero(np.append(True, np.diff(rows["key"]) != 0))

        def of_op(name: str, column: str) -> np.ndarray:
            return np.add.reduceat(np.where(op == OPS.index(name), rows[column], 0), first)

        count_of_op = {name: of_op(name, "count") for name in OPS}
        bytes_of_op = {name: of_op(name, "bytes") for name in DIRECTIONS}
        columns = [
            np.add.reduceat(rows["errors"], first),
            np.add.reduceat(np.where(io, rows["exclusive_ns"], 0), first),
            np.add.reduceat(np.where(io, 0, rows["exclusive_ns"]), first),
            np.maximum.reduceat(np.where(io, rows["longest_ns"], 0), first),
            np.minimum.reduceat(rows["start_ns"], first),
            np.maximum.reduceat(rows["end_ns"], first),
        ]
        found = []
        for place, key in enumerate(rows["key"][first].tolist()):
            errors, io_ns, wait_ns, longest_ns, start_ns, end_ns = (int(each[place]) for each in columns)
            found.append(
                KeyTotals(
                    key,
                    1 if self._key == "rank" else int(self._tasks[key]),
                    {name: int(n[place]) for name, n in count_of_op.items() if n[place]},
                    errors,
                    {name: int(n[place]) for name, n in bytes_of_op.items()},
                    io_ns,
                    wait_ns,
                    longest_ns,
                    start_ns,
                    end_ns,
                    None if active is None else {name: active.get((key, name), 0) for name in DIRECTIONS},
                )
            )
        return found

    def _active_ns(self) -> dict[tuple[int, str], int] | None:
        """Compute the time in which bytes moved, by key and direction."""
        if not self._moves.is_complete:
            return None
        if not self._moves.count:
            return {}
        groups, active_ns = unions_ns(*self._moves.rows())
        return {
            (group // len(DIRECTIONS), DIRECTIONS[group % len(DIRECTIONS)]): length
            for group, length in zip(groups.tolist(), active_ns.tolist(), strict=True)
        }

"""Rank table: sums over the calls of each rank by function."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from ensembles.model.events import Call, Events, is_io_of_calls
from ensembles.passes.spec import PassRun
from ensembles.passes.summary import Summary
from ensembles.summaries.calltable import SUM_COLUMNS, compute_call_sums
from ensembles.summaries.keyed_sums import KeyedSums, sum_by_keys, with_known_calls
from ensembles.summaries.nesting import Nesting

SUMS = ("count", "errors", "moved", "time_ns", "inner_ns")
COLUMNS = ("rank", "call", *SUMS, "max_ns")

_FEW_RANKS = 16
"""Ranks in a chunk whose calls are added one after the other, without sorting."""


def _column(name: str) -> Any:
    """Make the property of a column."""

    def read(table: RankTable) -> np.ndarray:
        return table.to_arrays()[name]

    def write(table: RankTable, values: np.ndarray) -> None:
        table._table.put(table.to_arrays() | {name: values})

    return property(read, write)


class RankTable(Summary):
    """A mergeable summary: one row for each rank and function that it called.

    `calls`: functions that the column ``call`` indexes.
    `rank`, `call`, shape (rows,): rank and function. Rows are sorted by them.
    `count`, `errors`, shape (rows,): number of calls, and of failed calls.
    `moved`, shape (rows,): bytes moved.
    `time_ns`, `inner_ns`, shape (rows,): sum of durations, and the part of it in recorded inner calls.
    `max_ns`, shape (rows,): longest duration.
    """

    of_all_calls = True
    columns = (*SUM_COLUMNS, "rank", "thread")
    results = ("calls", "rank", "call", "count", "errors", "moved", "time_ns", "inner_ns", "max_ns")

    def __init__(self, calls: Sequence[Call] = ()) -> None:
        self.calls = tuple(calls)
        self._table = KeyedSums(("rank", "call"), SUMS, most=("max_ns",))
        self._nesting = Nesting()

    rank, call = _column("rank"), _column("call")
    count, errors, moved = _column("count"), _column("errors"), _column("moved")
    time_ns, inner_ns, max_ns = _column("time_ns"), _column("inner_ns"), _column("max_ns")

    def __len__(self) -> int:
        return len(self.rank)

    def add(self, chunk: Events) -> None:
        """Add events of one run, those of a thread in the order of completion."""
        if not len(chunk):
            return
        inner_ns = self._nesting.inner_ns(chunk)
        edges = np.append(np.flatnonzero(chunk.rank[1:] != chunk.rank[:-1]) + 1, len(chunk))
        if inner_ns is None and len(edges) <= _FEW_RANKS:
            for low, high in pairwise([0, *edges.tolist()]):
                self._add_of_rank(chunk if len(edges) == 1 else chunk.part(low, high))
            return
        rows = sum_by_keys(
            {"rank": chunk.rank, "call": chunk.call},
            {
                "errors": chunk.moved < 0,
                "moved": np.maximum(chunk.moved, 0),
                "time_ns": chunk.duration,
                "inner_ns": np.zeros(len(chunk), np.int64) if inner_ns is None else inner_ns,
            },
            most={"max_ns": chunk.duration},
        )
        self.add_rows(chunk.calls, rows | {"count": rows["n"]})

    def _add_of_rank(self, chunk: Events) -> None:
        """Add events of one rank without inner calls, by their sums over all calls of a function."""
        sums = compute_call_sums(chunk)
        number = sums.present
        rows: dict[str, np.ndarray] = {
            "rank": np.full(len(number), chunk.rank[0]),
            "call": number,
            "count": sums.count[number],
            "errors": sums.errors[number],
            "moved": sums.moved[number],
            "time_ns": sums.time_ns[number],
            "inner_ns": np.zeros(len(number), np.int64),
            "max_ns": sums.longest_ns[number],
        }
        self.add_rows(chunk.calls, rows)

    def merge(self, other: RankTable) -> None:
        """Add another table; calls are distinguished by name and layer."""
        if len(other):
            self.add_rows(other.calls, other.to_arrays())

    def add_rows(self, calls: Sequence[Call], rows: dict[str, np.ndarray]) -> None:
        """Add rows, which are kept as they are; several of them may have the same rank and function."""
        self.calls, rows = with_known_calls(self.calls, calls, rows)
        self._table.add_summed(rows)

    def condense(self) -> None:
        """Join the rows of each rank and function."""
        self._table.condense()

    def to_arrays(self) -> dict[str, np.ndarray]:
        """Return the columns by name."""
        return self._table.columns()

    def io_time_ns(self, tasks: int) -> np.ndarray:
        """Sum the exclusive time of each rank in I/O calls, not in waiting for tasks, over its threads."""
        return self._sums(tasks, self.time_ns - self.inner_ns, is_io_of_calls(self.calls)[self.call])

    def moving_ns(self, tasks: int, chosen: np.ndarray) -> np.ndarray:
        """Sum the time of each rank in functions that move bytes in one direction, over all its threads.

        It is exclusive time; that of copies (``sendfile``) counts in each direction.
        """
        contain = np.array([call.layer != "posix" for call in self.calls], np.bool_)[self.call]
        return self._sums(tasks, self.time_ns - self.inner_ns * contain, chosen)

    def _sums(self, tasks: int, values: np.ndarray, chosen: np.ndarray) -> np.ndarray:
        sums = np.zeros(tasks, np.int64)
        np.add.at(sums, self.rank[chosen], values[chosen])
        return sums


def empty_ranks(run: PassRun) -> RankTable:
    """Make the empty sums by rank of a run."""
    return RankTable(run.calls)

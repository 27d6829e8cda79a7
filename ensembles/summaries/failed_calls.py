"""Failed calls by function, errno and file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ensembles.model.events import Call, Events
from ensembles.passes.summary import ANY_ORDER, Summary
from ensembles.summaries.keyed_sums import WAITING_ROWS

_ROWS = ("call", "error", "file", "count", "low_rank", "high_rank", "first_ns", "last_ns", "inside")
_JOINS = (np.add, np.minimum, np.maximum, np.minimum, np.maximum, np.add)
"""How two rows of the same function, errno and file become one, for the columns after these."""


class FailedKind(NamedTuple):
    """Failed calls of a function with the same errno."""

    call: Call
    error: int  # The errno; 0: the trace does not have it
    calls: int  # Number of calls
    files: int  # Number of files
    # file, file_count: Number of the file with most of these calls, and how many it has; 0: calls of no file
    file: int
    file_count: int
    last_file: int  # Number of the file of the last of these calls
    # low_rank, high_rank: Lowest and highest rank that made some
    low_rank: int
    high_rank: int
    # first_ns, last_ns: Start of the first and of the last, since the origin of the run
    first_ns: int
    last_ns: int
    inside: int  # How many of them were made inside another I/O call, which may have failed with them


class FailedCalls(Summary):
    """A mergeable summary: failed calls by function, errno and file.

    It grows with the number of files on which calls fail, and not with the number of calls.
    """

    of_all_calls = True
    columns = ("rank", "call", "depth", "file", "moved", "error", "start")
    requires = ANY_ORDER
    meaning = 1
    results = ("_calls", "_rows")

    def __init__(self) -> None:
        self._calls: tuple[Call, ...] = ()
        self._rows = np.empty((len(_ROWS), 0), np.int64)
        self._waiting: list[np.ndarray] = []
        self._rows_waiting = 0

    @property
    def count(self) -> int:
        """Number of failed calls."""
        return int(self._join()[3].sum())

    def add(self, chunk: Events) -> None:
        """Add events."""
        failed = np.flatnonzero(chunk.moved < 0)
        if not len(failed):
            return
        rank, start = chunk.rank[failed], chunk.start[failed]
        columns = (chunk.call[failed], chunk.error[failed], chunk.file[failed])
        one = np.ones(len(failed), np.int64)
        rows = [
            column.astype(np.int64)
            for column in (*columns, one, rank, rank, start, start, chunk.depth[failed] > 0)
        ]
        self._add(chunk.calls, np.stack(rows))

    def merge(self, other: FailedCalls) -> None:
        """Add a summary of other calls of the same run."""
        self._add(other._calls, other._join())

    def _add(self, calls: Sequence[Call], rows: np.ndarray) -> None:
        if tuple(calls) != self._calls:
            numbers = {call: number for number, call in enumerate(self._calls)}
            own = np.array([numbers.setdefault(call, len(numbers)) for call in calls], np.int64)
            self._calls = tuple(numbers)
            rows = rows.copy()
            rows[0] = own[rows[0]] if rows.shape[1] else rows[0]
        self._waiting.append(_joined(rows))
        self._rows_waiting += self._waiting[-1].shape[1]
        # Rows are joined when as many wait as are there, so that a row is moved a few times in all.
        if self._rows_waiting > max(self._rows.shape[1], WAITING_ROWS):
            self._join()

    def _join(self) -> np.ndarray:
        if self._waiting:
            self._rows = _joined(np.concatenate([self._rows, *self._waiting], axis=1))
            self._waiting, self._rows_waiting = [], 0
        return self._rows

    def condense(self) -> None:
        """Join the rows."""
        self._join()

    def to_arrays(self) -> dict[str, np.ndarray]:
        """Return a row for each function (``layer:name``), errno and number of a file."""
        names = np.array([f"{call.layer}:{call.name}" for call in self._calls], dtype=np.str_)
        rows = self._join()
        arrays = dict(zip(_ROWS, rows, strict=True))
        return arrays | {"call": names[rows[0]] if len(names) else np.empty(0, np.str_)}

    def kinds(self) -> list[FailedKind]:
        """Return functions and their errors, those with most calls first."""
        rows = self._join()
        if not rows.shape[1]:
            return []
        starts = np.flatnonzero(np.append(True, (np.diff(rows[:2], axis=1) != 0).any(axis=0)))
        found = []
        for mine in np.split(rows, starts[1:], axis=1):
            count, first_ns, last_ns = mine[3], mine[6], mine[7]
            most = int(np.lexsort((first_ns, -count))[0])
            found.append(
                FailedKind(
                    self._calls[int(mine[0, 0])],
                    int(mine[1, 0]),
                    int(count.sum()),
                    int(np.count_nonzero(mine[2])),
                    int(mine[2, most]),
                    int(count[most]),
                    int(mine[2, int(np.argmax(last_ns))]),
                    int(mine[4].min()),
                    int(mine[5].max()),
                    int(first_ns.min()),
                    int(last_ns.max()),
                    int(mine[8].sum()),
                )
            )
        return sorted(found, key=lambda kind: (-kind.calls, kind.call, kind.error))


def _joined(rows: np.ndarray) -> np.ndarray:
    """Join rows of the same function, errno and file; the result is in the order of these."""
    if rows.shape[1] < 2:
        return rows
    rows = rows[:, np.lexsort((rows[2], rows[1], rows[0]))]
    starts = np.flatnonzero(np.append(True, (np.diff(rows[:3], axis=1) != 0).any(axis=0)))
    if len(starts) == rows.shape[1]:
        return rows
    sums = [join.reduceat(row, starts) for join, row in zip(_JOINS, rows[3:], strict=True)]
    return np.concatenate([rows[:3, starts], sums])

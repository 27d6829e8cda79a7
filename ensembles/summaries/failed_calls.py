"""Failed calls by function, errno and file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ensembles.model.events import Call, Events
from ensembles.passes.summary import ANY_ORDER, Summary
from ensembles.summaries.keyed_sums import KeyedSums, with_known_calls

_ROWS = ("call", "error", "file", "count", "low_rank", "high_rank", "first_ns", "last_ns", "inside")


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
        self._table = KeyedSums(
            _ROWS[:3], ("count", "inside"), ("low_rank", "first_ns"), ("high_rank", "last_ns")
        )

    @property
    def _rows(self) -> np.ndarray:
        columns = self._table.columns()
        return np.stack([columns[name] for name in _ROWS])

    @_rows.setter
    def _rows(self, rows: np.ndarray) -> None:
        self._table.put(dict(zip(_ROWS, rows, strict=True)))

    @property
    def count(self) -> int:
        """Number of failed calls."""
        return int(self._table.columns()["count"].sum())

    def add(self, chunk: Events) -> None:
        """Add events."""
        failed = np.flatnonzero(chunk.moved < 0)
        if not len(failed):
            return
        rank, start = chunk.rank[failed], chunk.start[failed]
        one = np.ones(len(failed), np.int64)
        columns = (chunk.call[failed], chunk.error[failed], chunk.file[failed], one, rank, rank, start, start)
        self._add(chunk.calls, dict(zip(_ROWS, (*columns, chunk.depth[failed] > 0), strict=True)))

    def merge(self, other: FailedCalls) -> None:
        """Add a summary of other calls of the same run."""
        self._add(other._calls, other._table.columns())

    def _add(self, calls: Sequence[Call], rows: dict[str, np.ndarray]) -> None:
        self._calls, rows = with_known_calls(self._calls, calls, rows)
        self._table.add(rows)

    def condense(self) -> None:
        """Join the rows."""
        self._table.condense()

    def to_arrays(self) -> dict[str, np.ndarray]:
        """Return a row for each function (``layer:name``), errno and number of a file."""
        names = np.array([f"{call.layer}:{call.name}" for call in self._calls], dtype=np.str_)
        rows = self._rows
        arrays = dict(zip(_ROWS, rows, strict=True))
        return arrays | {"call": names[rows[0]] if len(names) else np.empty(0, np.str_)}

    def kinds(self) -> list[FailedKind]:
        """Return functions and their errors, those with most calls first."""
        rows = self._rows
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

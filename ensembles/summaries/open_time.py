"""Open time: the time in which files that bytes were read from, or written to, were open."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ensembles import _compiled
from ensembles.model.events import OPS, Call, Events, of_calls, op_of_calls
from ensembles.model.levels import RARE
from ensembles.model.units import ROWS_AT_ONCE
from ensembles.passes.summary import Summary
from ensembles.summaries.active_time import MOST_EXACT, union_ns
from ensembles.summaries.calltable import carried_bits, compute_call_sums
from ensembles.summaries.runtotals import DIRECTIONS, direction_of_calls

LEFT_OUT = RARE
"""Share of the bytes that the smallest sessions, which are left out, move together at most."""

_COLUMNS = ("rank", "thread", "file", "start", "end", "read", "write", "closed", "opened")
_OPEN, _CLOSE, _SYNC = 1, 2, 3
"""Marks of functions, as in `_uses.c`."""


_OBJECTS = ("H5A", "H5D", "H5G", "H5O")
"""First letters of functions that open objects in an HDF5 file which is open already."""


@dataclass(frozen=True)
class OpenToClose:
    """Bytes of a direction, and the time in which their files were open."""

    bytes: int  # Bytes moved in the sessions that count
    sessions: int  # Number of these sessions
    time_s: float  # Time in which at least one of them lasted, in s


class OpenTime(Summary):
    """A mergeable summary: when the files of reads and writes were open.

    A *session* is the time from the open of a file by a thread to its close. Of a file that is never closed,
    it lasts to the last transfer or sync of the thread. IOR
    divides the bytes of a phase by the time from the first open to the last close of all tasks; so does this
    summary, for any number of phases, with the union of the times of the sessions. Small files that are open
    for long, such as a log, would dominate it: the smallest sessions, which together moved at most `LEFT_OUT`
    of the bytes, are left out, bytes and time.
    """

    of_all_calls = True
    columns = ("rank", "thread", "call", "carried", "depth", "file", "moved", "start", "duration")
    results = ("_done", "_held", "_bytes")

    def __init__(self) -> None:
        # Rows of `_COLUMNS`: the last session of each thread and file, which later calls may continue.
        self._pending = np.empty((len(_COLUMNS), 0), np.int64)
        # Rows of `_COLUMNS`: uses that came after these sessions.
        self._uses: list[np.ndarray] = []
        self._waiting = 0
        # By direction: rows start, end, bytes of the sessions that begin with an open.
        self._done = [np.empty((3, 0), np.int64) for _ in DIRECTIONS]
        self._parts: list[list[np.ndarray]] = [[] for _ in DIRECTIONS]
        self._held = [0] * len(DIRECTIONS)
        self._bytes = [0] * len(DIRECTIONS)

    def add(self, chunk: Events) -> None:
        """Add events, those of a thread in the order of completion."""
        if not len(chunk):
            return
        uses = _uses(chunk)
        if uses.shape[1]:
            self._uses.append(uses)
            self._waiting += uses.shape[1]
            if self._waiting > ROWS_AT_ONCE:
                self._join()

    def _join(self) -> None:
        """Continue the sessions with the uses that have come since."""
        if self._uses:
            rows = np.concatenate([self._pending, *self._uses], axis=1)
            self._uses, self._waiting = [], 0
            self._pending = self._without_finished(_sessions(rows))

    def _without_finished(self, sessions: np.ndarray) -> np.ndarray:
        """Keep the sessions that have ended; return the others."""
        key, closed = sessions[:3], sessions[7] > 0
        last = np.append((key[:, 1:] != key[:, :-1]).any(axis=0), True)
        # Ranks come one after the other.
        waiting = last & ~closed & (key[0] == key[0].max(initial=0))
        self._keep(sessions[:, ~waiting])
        return sessions[:, waiting]

    def _keep(self, sessions: np.ndarray) -> None:
        for number in range(len(DIRECTIONS)):
            moved = sessions[[3, 4, 5 + number]]
            self._bytes[number] += int(moved[2].sum())
            self._hold(number, moved[:, (moved[2] > 0) & (sessions[8] > 0)])

    def _hold(self, number: int, rows: np.ndarray) -> None:
        if not rows.shape[1]:
            return
        self._parts[number].append(rows)
        self._held[number] += rows.shape[1]
        if self._held[number] > 2 * MOST_EXACT:
            self._compact(number)

    def _compact(self, number: int) -> np.ndarray:
        rows = np.concatenate([self._done[number], *self._parts[number]], axis=1)
        if rows.shape[1] > MOST_EXACT:
            rows = rows[:, np.lexsort((rows[1], rows[0], -rows[2]))[:MOST_EXACT]]
        self._done[number], self._parts[number], self._held[number] = rows, [], rows.shape[1]
        return rows

    def finalize(self) -> None:
        """End the sessions of the last rank."""
        self._join()
        self._keep(self._pending)
        self._pending = self._pending[:, :0]

    def merge(self, other: OpenTime) -> None:
        """Add a summary of other ranks."""
        other._join()
        self._join()
        for number in range(len(DIRECTIONS)):
            self._bytes[number] += other._bytes[number]
            for rows in (other._done[number], *other._parts[number]):
                self._hold(number, rows)
        self._keep(self._pending)
        self._pending = other._pending.copy()

    def open_to_close(self, direction: str) -> OpenToClose | None:
        """Compute in how much time files were open that bytes were moved to or from.

        None: no bytes moved; or the sessions that are known moved too few of them. The others begin without
        an open of the same thread, or there were more than `MOST_EXACT`.
        """
        self.finalize()
        number = DIRECTIONS.index(direction)
        start, end, moved = self._compact(number)
        kept, total = int(moved.sum()), self._bytes[number]
        if not total or total - kept > LEFT_OUT * total:
            return None
        ascending = np.sort(moved)
        # The sessions of equal size are left out together, or none of them.
        small = np.searchsorted(np.cumsum(ascending), LEFT_OUT * total - (total - kept), side="right")
        counted = moved >= ascending[min(int(small), len(ascending) - 1)]
        return OpenToClose(
            int(moved[counted].sum()),
            int(np.count_nonzero(counted)),
            1e-9 * union_ns([np.stack([start[counted], end[counted]])]),
        )

    def condense(self) -> None:
        """Complete the last sessions, and drop those that do not count."""
        self.finalize()
        for number in range(len(DIRECTIONS)):
            self._compact(number)


@of_calls
def _marks(calls: Sequence[Call]) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return what each function does, and behind them the marks of a close.

    Edges are int8: `_OPEN`, `_CLOSE`, `_SYNC` or 0. The second array marks functions such as ``H5Idec_ref``,
    which close a file or only an object in it. Directions and bits of ``carried`` follow.
    """
    edge_of_op = np.zeros(len(OPS), np.int8)
    for number, op in ((_OPEN, "open"), (_CLOSE, "close"), (_SYNC, "sync")):
        edge_of_op[OPS.index(op)] = number
    edges = edge_of_op[op_of_calls(calls)]
    edges[[call.name.startswith(_OBJECTS) for call in calls]] = 0
    releases = np.array([call.name.startswith("H5I") for call in calls], bool)
    edges[releases] = 0
    return (
        np.append(edges, np.int8(_CLOSE)),
        releases,
        np.append(direction_of_calls(calls), -1).astype(np.int8),
        np.append(carried_bits(calls), np.uint8(0)),
    )


def _closing_releases(chunk: Events, edge: np.ndarray, releases: np.ndarray) -> np.ndarray:
    """Return the positions of releases inside of which the file itself was closed."""
    inner = (edge == _CLOSE) & (chunk.depth > 0)
    rows = np.flatnonzero(releases | inner)
    thread = chunk.rank[rows].astype(np.int64) << 16 | chunk.thread[rows]
    # What begins next in the thread, on the same file, is inside the call if it ends before.
    order = rows[np.lexsort((chunk.depth[rows], chunk.start[rows], chunk.file[rows], thread))]
    here, following = order[:-1], order[1:]
    same = (chunk.rank[here] == chunk.rank[following]) & (chunk.thread[here] == chunk.thread[following])
    same &= (chunk.file[here] == chunk.file[following]) & inner[following]
    closes: np.ndarray = here[releases[here] & same & (chunk.end[following] <= chunk.end[here])]
    return closes


def _uses(chunk: Events) -> np.ndarray:
    """Join successive transfers of a thread on a file: rows of `_COLUMNS`."""
    edge_of, releases, direction_of, bits = _marks(chunk.calls)
    call = chunk.call
    if releases[compute_call_sums(chunk).present].any():
        call = call.copy()
        call[_closing_releases(chunk, edge_of[call], releases[call])] = len(chunk.calls)  # marked as a close
    who, what = (chunk.rank, chunk.thread, chunk.file, call), (chunk.carried, chunk.depth, chunk.moved)
    columns = map(np.ascontiguousarray, (*who, *what, chunk.start, chunk.duration))
    joined = _compiled.join_uses(*columns, bits, direction_of, edge_of)
    return np.frombuffer(joined, np.int64).reshape(len(_COLUMNS), -1)


def _sessions(rows: np.ndarray) -> np.ndarray:
    """Join the uses of a file by a thread from one close to the next: rows of `_COLUMNS`."""
    rank, thread, file, start, end = rows[:5]
    # By completion: what an open or a close does inside, such as flushing, belongs to its session.
    rows = rows[:, np.lexsort((start, end, file, thread, rank))]
    key, closed = rows[:3], rows[7] > 0
    first = np.flatnonzero(np.concatenate([[True], (key[:, 1:] != key[:, :-1]).any(axis=0) | closed[:-1]]))
    last = np.append(first[1:], rows.shape[1]) - 1
    joined = rows[:, first]
    joined[3] = np.minimum.reduceat(rows[3], first)
    for row in (4, 8):
        joined[row] = np.maximum.reduceat(rows[row], first)
    for column in (5, 6):
        joined[column] = np.add.reduceat(rows[column], first)
    joined[7] = rows[7, last]
    return joined

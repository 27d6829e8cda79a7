"""Counts, bytes, times and errors of each call, and the slowest call of all."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ensembles.events import OPS, Call, Events

_TRANSFERS = (OPS.index("read"), OPS.index("write"))
_WAIT = OPS.index("wait")


@dataclass(slots=True)
class CallTotals:
    """What the calls of one function add up to.

    Attributes
    ----------
    count, errors : int
        Calls, and those of them that failed.
    bytes : int
        Moved, also inside other recorded calls; 0 for functions that neither read nor write.
    time_ns : int
        Sum of durations.
    max_ns : int
        Longest duration; −1: not known.
    """

    count: int = 0
    errors: int = 0
    bytes: int = 0
    time_ns: int = 0
    max_ns: int = 0

    def add(self, other: CallTotals) -> None:
        """Add the totals of other calls."""
        self.count += other.count
        self.errors += other.errors
        self.bytes += other.bytes
        self.time_ns += other.time_ns
        self.max_ns = max(self.max_ns, other.max_ns)


@dataclass(frozen=True, slots=True)
class SlowestCall:
    """One call: the longest of all; of equals the one with the least rank, then the earliest."""

    call: Call
    rank: int
    start_ns: int
    duration_ns: int
    bytes: int
    file: str


class CallTable:
    """Totals of each call.

    Attributes
    ----------
    totals : dict of Call to CallTotals
        Calls that occurred, in order of first occurrence.
    slowest : SlowestCall or None
        Of the calls that are I/O: waiting for other tasks is not.
    start_ns, end_ns : int or None
        First entry into a call and last return from one, since the origin of the run.
    files : set of str
        Paths that calls were about.
    """

    def __init__(self) -> None:
        self.totals: dict[Call, CallTotals] = {}
        self.slowest: SlowestCall | None = None
        self.start_ns: int | None = None
        self.end_ns: int | None = None
        self.files: set[str] = set()

    @property
    def events(self) -> int:
        """Number of calls."""
        return sum(totals.count for totals in self.totals.values())

    @property
    def span_ns(self) -> int:
        """From the first entry into a call to the last return from one; 0 without calls."""
        if self.start_ns is None or self.end_ns is None:
            return 0
        return self.end_ns - self.start_ns

    def add(self, chunk: Events) -> None:
        """Add events."""
        if not len(chunk):
            return
        order = np.argsort(chunk.call, kind="stable")
        first = np.concatenate([[0], np.flatnonzero(np.diff(chunk.call[order])) + 1])
        numbers = chunk.call[order[first]]
        counts = np.diff(np.append(first, len(chunk)))
        durations = chunk.duration[order]
        time_ns, max_ns = np.add.reduceat(durations, first), np.maximum.reduceat(durations, first)
        moved = np.add.reduceat(np.maximum(chunk.moved, 0)[order], first)
        errors = np.bincount(chunk.call[chunk.moved < 0], minlength=len(chunk.calls))
        for i, number in enumerate(numbers):
            call = chunk.calls[number]
            moves = OPS.index(call.op) in _TRANSFERS
            totals = CallTotals(
                count=int(counts[i]),
                errors=int(errors[number]),
                bytes=int(moved[i]) if moves else 0,
                time_ns=int(time_ns[i]),
                max_ns=int(max_ns[i]),
            )
            self.totals.setdefault(call, CallTotals()).add(totals)
        if self.slowest is None or max_ns.max() >= self.slowest.duration_ns:
            slowest = slowest_of(chunk)
            if slowest is not None:
                self._add_slowest(slowest)
        self._add_span(int(chunk.start.min()), int(chunk.end.max()))
        used = np.flatnonzero(np.bincount(chunk.file))
        self.files.update(chunk.files[number] for number in used if number)

    def merge(self, other: CallTable) -> None:
        """Add what another table holds; calls are told apart by name and layer, files by path."""
        for call, totals in other.totals.items():
            self.totals.setdefault(call, CallTotals()).add(totals)
        if other.slowest is not None:
            self._add_slowest(other.slowest)
        if other.start_ns is not None and other.end_ns is not None:
            self._add_span(other.start_ns, other.end_ns)
        self.files |= other.files

    def _add_slowest(self, candidate: SlowestCall) -> None:
        def order(slowest: SlowestCall) -> tuple[int, int, int]:
            return slowest.duration_ns, -slowest.rank, -slowest.start_ns

        if self.slowest is None or order(candidate) > order(self.slowest):
            self.slowest = candidate

    def _add_span(self, start_ns: int, end_ns: int) -> None:
        self.start_ns = start_ns if self.start_ns is None else min(self.start_ns, start_ns)
        self.end_ns = end_ns if self.end_ns is None else max(self.end_ns, end_ns)

    def to_arrays(self) -> dict[str, np.ndarray]:
        """The names of the calls (``layer:name``), and an array for each member of `CallTotals`."""
        arrays = {"call": np.array([f"{call.layer}:{call.name}" for call in self.totals], dtype=str)}
        for name in ("count", "errors", "bytes", "time_ns", "max_ns"):
            values = [getattr(totals, name) for totals in self.totals.values()]
            arrays[name] = np.array(values, dtype=np.int64)
        return arrays


def slowest_of(chunk: Events) -> SlowestCall | None:
    """The slowest call that is I/O; of equals that of the least rank, and of those the earliest."""
    duration = np.where(chunk.op == _WAIT, -1, chunk.duration)
    if not len(chunk) or duration.max() < 0:
        return None
    longest = np.flatnonzero(duration == duration.max())
    i = longest[np.lexsort((chunk.start[longest], chunk.rank[longest]))[0]]
    return SlowestCall(
        call=chunk.calls[chunk.call[i]],
        rank=int(chunk.rank[i]),
        start_ns=int(chunk.start[i]),
        duration_ns=int(chunk.duration[i]),
        bytes=max(int(chunk.moved[i]), 0),
        file=chunk.files[chunk.file[i]],
    )

"""Call table: totals of each function, and the slowest call of all.

Sums over the events of a chunk by function, and counts of request sizes.

Several summaries of a pass use the same sums, which a chunk therefore caches.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ensembles import _compiled
from ensembles.model.events import OPS, Call, Events, is_io_of_calls, of_calls, op_of_calls
from ensembles.passes.summary import Summary
from ensembles.summaries.keyed_sums import sum_by_keys

_NO_LAYER = 255
_LIMITS = np.iinfo(np.int64)
_CARRIED = {"read": 1, "write": 2}
"""The bit of ``carried`` that is set if a call around a call of this operation counts its bytes."""


@dataclass(frozen=True, slots=True)
class CallSums:
    """Sums over the events of a chunk, by function."""

    present: np.ndarray  # Indices of the functions that occur, rising; shape (k,)
    # count, errors: Number of events, and of failed events; shape (calls,)
    count: np.ndarray
    errors: np.ndarray
    # moved, counted: Bytes moved; the same without bytes that a call around counts
    # (`ensembles.summaries.runtotals.direction_of_events`); shape (calls,)
    moved: np.ndarray
    counted: np.ndarray
    time_ns: np.ndarray  # Sum of durations; shape (calls,)
    # shortest_ns, longest_ns: Least and largest duration, of functions that occur; shape (calls,)
    shortest_ns: np.ndarray
    longest_ns: np.ndarray
    # start_ns, end_ns: First entry into a call and last return from one, since the origin of the run
    start_ns: int
    end_ns: int
    deepest: int  # Largest nesting depth


SUM_COLUMNS = ("call", "depth", "carried", "moved", "start", "duration")
"""Columns of events that `compute_call_sums` reads."""


def compute_call_sums(chunk: Events) -> CallSums:
    """Compute the sums of a chunk, or return those that were computed before."""
    return chunk.remembered(compute_call_sums, _made)


@of_calls
def carried_bits(calls: Sequence[Call]) -> np.ndarray:
    """Return the bit of ``carried`` that applies to each function: uint8, shape (len(calls),)."""
    bit_of_op = np.array([_CARRIED.get(op, 0) for op in OPS], np.uint8)
    return bit_of_op[op_of_calls(calls)]


def _made(chunk: Events) -> CallSums:
    sums = np.zeros((len(chunk.calls), 7), np.int64)
    sums[:, 5], sums[:, 6] = _LIMITS.max, _LIMITS.min
    ends = np.array([_LIMITS.max, _LIMITS.min, 0], np.int64)
    columns = (chunk.call, chunk.start, chunk.duration, chunk.moved, chunk.depth, chunk.carried)
    bits = carried_bits(chunk.calls)
    _compiled.sum_calls(*map(np.ascontiguousarray, columns), bits, sums, ends)
    return CallSums(np.flatnonzero(sums[:, 0]), *sums.T, *ends.tolist())


def central_sums(call: np.ndarray, duration_ns: np.ndarray, mean_ns: np.ndarray) -> np.ndarray:
    """Sum powers (2 to 4) of the deviations from the mean of each function."""
    call, duration_ns = np.ascontiguousarray(call), np.ascontiguousarray(duration_ns)
    sums = np.zeros((len(mean_ns), 3))
    _compiled.sum_powers(call, duration_ns, mean_ns, sums)
    return sums


def count_sizes(
    call: np.ndarray, requested: np.ndarray, layer_of: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Count the request sizes of each layer."""
    layer = layer_of[call]
    found = sum_by_keys({"layer": layer, "size": requested.view(np.int64)}, taken=layer != _NO_LAYER)
    return found["layer"].astype(np.uint8), found["size"].view(np.uint64), found["n"]


@of_calls
def layers_of_transfers(calls: Sequence[Call]) -> tuple[list[str], np.ndarray]:
    """List the layers with reads or writes, and the layer of each function."""
    return _numbered([call.layer if call.op in _CARRIED else None for call in calls])


@of_calls
def operations_of_transfers(calls: Sequence[Call]) -> tuple[list[str], np.ndarray]:
    """List the layers and operations of reads and writes, and the one of each function."""
    return _numbered([f"{call.layer} {call.op}" if call.op in _CARRIED else None for call in calls])


def _numbered(keys: Sequence[str | None]) -> tuple[list[str], np.ndarray]:
    names = list(dict.fromkeys(key for key in keys if key is not None))
    if len(names) > _NO_LAYER:
        raise ValueError(f"there are {len(names)} layers, and no more than {_NO_LAYER} can be counted")
    number = {name: place for place, name in enumerate(names)}
    return names, np.array([_NO_LAYER if key is None else number[key] for key in keys], np.uint8)


_TRANSFERS = ("read", "write")


@dataclass(slots=True)
class CallTotals:
    """Sums over the calls of one function."""

    # count, errors: Number of calls, and of failed calls
    count: int = 0
    errors: int = 0
    # Bytes moved, including calls inside other recorded calls; 0 for functions that neither read nor write
    bytes: int = 0
    time_ns: int = 0  # Sum of durations
    max_ns: int = 0  # Longest duration; −1: not known

    def add(self, other: CallTotals) -> None:
        """Add the totals of other calls."""
        self.count += other.count
        self.errors += other.errors
        self.bytes += other.bytes
        self.time_ns += other.time_ns
        self.max_ns = max(self.max_ns, other.max_ns)


@dataclass(frozen=True, slots=True)
class SlowestCall:
    """The longest call; of equals that of the lowest rank, then the earliest."""

    call: Call
    rank: int
    start_ns: int
    duration_ns: int
    bytes: int
    file: str


class CallTable(Summary):
    """A mergeable summary: the totals of each function.

    `totals`: functions that occurred, in the order of first occurrence.
    `slowest`: the slowest call of those that do not wait for other tasks (operation ``wait``).
    `start_ns`, `end_ns`: first entry into a call and last return from one, since the origin of the run.
    `durations_known`: false if only the sums of the durations are known.
    """

    of_all_calls = True
    columns = (*SUM_COLUMNS, "rank", "file")
    results = ("totals", "slowest", "start_ns", "end_ns", "files")
    result_types = (CallTotals, SlowestCall)

    durations_known = True

    def __init__(self) -> None:
        self.totals: dict[Call, CallTotals] = {}
        self.slowest: SlowestCall | None = None
        self.start_ns: int | None = None
        self.end_ns: int | None = None
        self._files: set[str] = set()
        self._paths: Sequence[str] = ("",)
        self._seen = np.zeros(1, np.uint8)

    @property
    def files(self) -> set[str]:
        """Paths of the files that calls used."""
        if self._seen.any():
            self._files |= {self._paths[number] for number in np.flatnonzero(self._seen).tolist() if number}
            self._seen[:] = 0
        return self._files

    @files.setter
    def files(self, paths: set[str]) -> None:
        self._files = paths

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
        sums, longest_ns = compute_call_sums(chunk), -1
        for number in sums.present.tolist():
            call = chunk.calls[number]
            totals = CallTotals(
                count=int(sums.count[number]),
                errors=int(sums.errors[number]),
                bytes=int(sums.moved[number]) if call.op in _TRANSFERS else 0,
                time_ns=int(sums.time_ns[number]),
                max_ns=int(sums.longest_ns[number]),
            )
            self.totals.setdefault(call, CallTotals()).add(totals)
            if not call.waits_for_tasks:
                longest_ns = max(longest_ns, totals.max_ns)
        if longest_ns >= (0 if self.slowest is None else self.slowest.duration_ns):
            slowest = find_slowest_calls(chunk)
            if slowest is not None:
                self._add_slowest(slowest)
        self._add_span(sums.start_ns, sums.end_ns)
        self._add_files(chunk)

    def _add_files(self, chunk: Events) -> None:
        if chunk.files is not self._paths or len(self._seen) != len(chunk.files):
            self._files = self.files
            self._paths, self._seen = chunk.files, np.zeros(len(chunk.files), np.uint8)
        self._seen[chunk.file] = 1

    def __getstate__(self) -> dict[str, Any]:
        """Pickle only the paths that calls used, as tables are sent between workers."""
        return self.__dict__ | {"_files": self.files, "_paths": ("",), "_seen": np.zeros(1, np.uint8)}

    def merge(self, other: CallTable) -> None:
        """Add another table; calls are distinguished by name and layer, files by path."""
        for call, totals in other.totals.items():
            self.totals.setdefault(call, CallTotals()).add(totals)
        if other.slowest is not None:
            self._add_slowest(other.slowest)
        if other.start_ns is not None and other.end_ns is not None:
            self._add_span(other.start_ns, other.end_ns)
        self._files = self.files | other.files

    def _add_slowest(self, candidate: SlowestCall) -> None:
        def order(slowest: SlowestCall) -> tuple[int, int, int]:
            return slowest.duration_ns, -slowest.rank, -slowest.start_ns

        if self.slowest is None or order(candidate) > order(self.slowest):
            self.slowest = candidate

    def _add_span(self, start_ns: int, end_ns: int) -> None:
        self.start_ns = start_ns if self.start_ns is None else min(self.start_ns, start_ns)
        self.end_ns = end_ns if self.end_ns is None else max(self.end_ns, end_ns)


def find_slowest_calls(chunk: Events) -> SlowestCall | None:
    """Find the slowest call that does not wait for other tasks, if there is one."""
    duration = np.where(is_io_of_calls(chunk.calls)[chunk.call], chunk.duration, -1)
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

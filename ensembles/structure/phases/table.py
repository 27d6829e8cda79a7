"""Phase table: totals, slowest task and imbalance of each phase."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ensembles.model.events import Events, is_io_of_calls
from ensembles.model.fields import Fields
from ensembles.model.units import NS_PER_S
from ensembles.passes.summary import Summary
from ensembles.structure.phases.barriers import has_message_layer, is_message_of_calls
from ensembles.structure.phases.detect import Phases
from ensembles.summaries.keyed_sums import sum_by_keys
from ensembles.summaries.runtotals import DIRECTIONS, shared_directions

if TYPE_CHECKING:
    from ensembles.structure.phases.late_calls import LateCalls, LateInPhase


@dataclass(frozen=True)
class CriticalCall(Fields):
    """The last call of the slowest task of a phase."""

    # call, layer, file: Function, layer and path
    call: str
    layer: str
    file: str
    # start_s, duration_s: Start since the origin of the run, and duration
    start_s: float
    duration_s: float


@dataclass(frozen=True)
class PhaseTotals(Fields):
    """The totals of one phase."""

    phase: int  # Number of the phase, from 1
    name: str | None  # Name that the program gave
    # tasks, calls: Number of tasks with I/O calls in the phase, and of these calls; waiting in MPI does not
    # count. In a phase without I/O, `calls` is 0, and what follows is about its messages.
    tasks: int
    calls: int
    # bytes_read, bytes_written: Bytes moved; those of inner calls count once
    bytes_read: int
    bytes_written: int
    # start_s, end_s, time_s: Start of the first call and return of the last since the origin of the run, and
    # their difference
    start_s: float
    end_s: float
    time_s: float
    slowest_task: int  # The task whose last call returned last
    last_call: CriticalCall  # That call
    # Idle time: from the return of a task's last call to the last return of all, summed over the tasks of the
    # phase. Whatever made calls longer counts; tasks without a call in the phase do not. NaN: the run does
    # not show that tasks wait for each other (`ensembles.structure.phases.inner_waits`).
    lost_s: float
    lost_share: float  # `lost_s` as a share of the time of all tasks, ``time_s * tasks``
    # messages, message_bytes: Number of calls that exchange data with other tasks, and bytes that they send
    # or have room for, as far as they are events
    messages: int = 0
    message_bytes: int = 0
    # Of the other tasks, the one in the middle by the return of its last call; None: there is one task
    middle_task: int | None = None
    later_s: float = 0.0  # Time from that return to the last return of all
    # The calls of the slowest task that made it late: those of the function with the largest difference from
    # the task in the middle, if this or that of all functions is at least half of `later_s`. None: it is not,
    # or they were not looked for (`ensembles.structure.phases.late_calls`).
    late_calls: LateCalls | None = None
    # If not its calls, what made the slowest task late: time before its first call of the phase, or between
    # its calls. None: less than half of `later_s`, or not looked for.
    late_outside: LateInPhase | None = None

    @property
    def reason(self) -> str:
        """What made the slowest task late: a function, or time outside of calls; else its last call."""
        if self.late_calls is None and self.late_outside is not None:
            return self.late_outside.cell
        return (self.late_calls or self.last_call).call


class PhaseTable(Summary):
    """A mergeable summary: the totals of each phase.

    It holds a few numbers for each task and phase, whatever the number of calls. Of a phase in which tasks
    only exchange messages, these are its calls, if the layer mpimsg was recorded.

    `outside`: number of I/O calls in no phase.
    """

    columns = ("rank", "call", "carried", "file", "requested", "moved", "start", "duration")
    results = ("_calls", "_messages", "_has_layer", "_bytes", "_start", "_ends", "_last", "outside")
    result_types = (CriticalCall,)

    def __init__(self, phases: Phases) -> None:
        self._phases = phases
        # Numbers of phases, and behind them the same for the messages of phases that may have no I/O.
        self._size = size = phases.count + 1
        self._has_message_steps = phases.named is not None or bool(phases.message_steps)
        self._has_layer = False
        self._calls = np.zeros(size, np.int64)
        self._messages = np.zeros((2, size), np.int64)  # calls and bytes
        self._bytes = np.zeros((len(DIRECTIONS), size), np.int64)
        self._start = np.full(2 * size, np.iinfo(np.int64).max)
        # Of each phase and rank: (phase, rank, end of the last call).
        self._ends: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
        self._last: dict[int, tuple[int, int, CriticalCall]] = {}
        self.outside = 0

    def add(self, chunk: Events) -> None:
        """Add events.

        I/O calls in no phase are counted in `outside`. Calls that exchange messages count apart, and other
        waiting in MPI is left out.
        """
        phase = self._phases.phase_index(chunk)
        io = is_io_of_calls(chunk.calls)[chunk.call]
        self.outside += int(np.count_nonzero(io & (phase < 0)))
        spans = sum_spans(np.where(io, phase, 0), chunk, with_bytes=True)
        np.add.at(self._calls, spans.phase, spans.calls)
        for row, moved in zip(self._bytes, (spans.bytes_read, spans.bytes_written), strict=True):
            np.add.at(row, spans.phase, moved)
        self._add_times(chunk, spans)
        messages = np.flatnonzero(is_message_of_calls(chunk.calls)[chunk.call] & (phase > 0))
        if len(messages):
            of_messages = phase[messages]
            self._messages[0] += np.bincount(of_messages, minlength=self._size)
            np.add.at(self._messages[1], of_messages, chunk.requested[messages].astype(np.int64))
            if self._has_message_steps:
                self._has_layer = self._has_layer or has_message_layer(chunk)
                behind = np.zeros(len(chunk), np.int64)
                behind[messages] = self._size + of_messages
                self._add_times(chunk, sum_spans(behind, chunk))

    def _add_times(self, events: Events, spans: Spans) -> None:
        """Add starts and ends of calls; of each phase, keep the call that ended last."""
        if len(spans.phase):
            np.minimum.at(self._start, spans.phase, spans.start_ns)
            self._ends.append((spans.phase, events.rank[spans.last], spans.end_ns))
            self._keep_last(events[spans.last], spans.phase, spans.end_ns)

    def _keep_last(self, events: Events, phase: np.ndarray, end: np.ndarray) -> None:
        # Of calls that end together, the outermost and longest counts, then that of the lowest rank.
        order = np.lexsort((-events.rank.astype(np.int64), events.duration, end, phase))
        for at in order[np.flatnonzero(np.append(np.diff(phase[order]) != 0, True))].tolist():
            number, key = int(phase[at]), (int(end[at]), -int(events.rank[at]))
            if number in self._last and self._last[number][:2] >= key:
                continue
            call = events.calls[events.call[at]]
            file, start_s = events.files[events.file[at]], int(events.start[at]) / NS_PER_S
            duration_s = int(events.duration[at]) / NS_PER_S
            self._last[number] = (*key, CriticalCall(call.name, call.layer, file, start_s, duration_s))

    def merge(self, other: PhaseTable) -> None:
        """Add another table of the same phases."""
        self._calls += other._calls
        self._messages += other._messages
        self._has_layer = self._has_layer or other._has_layer
        self._bytes += other._bytes
        np.minimum(self._start, other._start, out=self._start)
        self._ends += other._ends
        self.outside += other.outside
        for number, last in other._last.items():
            if number not in self._last or self._last[number][:2] < last[:2]:
                self._last[number] = last

    def totals(self) -> list[PhaseTotals]:
        """Compute the totals of the phases with calls among those added, by number."""
        if not self._ends:
            return []
        phase, rank, end = (np.concatenate(column) for column in zip(*self._ends, strict=True))
        order = np.lexsort((end, rank, phase))
        phase, rank, end = phase[order], rank[order].astype(np.int64), end[order]
        last = np.append((phase[1:] != phase[:-1]) | (rank[1:] != rank[:-1]), True)
        phase, rank, end = phase[last], rank[last], end[last]
        size = len(self._start)
        tasks = np.bincount(phase, minlength=size)
        latest = np.full(size, np.iinfo(np.int64).min)
        np.maximum.at(latest, phase, end)
        by_end = np.lexsort((end, phase))
        before = np.cumsum(tasks) - tasks
        lost_ns = np.bincount(phase, (latest[phase] - end).astype(np.float64), minlength=size)
        names = self._phases.names
        found = []
        with_messages = self._messages[0] > 0 if self._has_layer else np.zeros(self._size, bool)
        for number in np.flatnonzero((self._calls > 0) | with_messages).tolist():
            at = number if self._calls[number] else self._size + number
            start_s, end_s = int(self._start[at]) / NS_PER_S, int(latest[at]) / NS_PER_S
            time_s, lost_s = (
                (int(latest[at]) - int(self._start[at])) / NS_PER_S,
                lost_ns[at] / NS_PER_S,
            )
            whole_s = time_s * int(tasks[at])
            middle = by_end[before[at] + (int(tasks[at]) - 2) // 2] if tasks[at] > 1 else None
            found.append(
                PhaseTotals(
                    phase=number,
                    name=None if names is None else names[number - 1],
                    tasks=int(tasks[at]),
                    calls=int(self._calls[number]),
                    messages=int(self._messages[0, number]),
                    message_bytes=int(self._messages[1, number]),
                    bytes_read=int(self._bytes[DIRECTIONS.index("read"), number]),
                    bytes_written=int(self._bytes[DIRECTIONS.index("write"), number]),
                    start_s=start_s,
                    end_s=end_s,
                    time_s=time_s,
                    slowest_task=-self._last[at][1],
                    last_call=self._last[at][2],
                    lost_s=float(lost_s),
                    lost_share=float(lost_s / whole_s) if whole_s else 0.0,
                    middle_task=None if middle is None else int(rank[middle]),
                    later_s=0.0 if middle is None else int(latest[at] - end[middle]) / NS_PER_S,
                )
            )
        return found


class Spans(NamedTuple):
    """A row for each phase and task that occurs: arrays of int64, shape (n,)."""

    phase: np.ndarray
    rank: np.ndarray
    calls: np.ndarray  # Number of calls
    # start_ns, end_ns, time_ns: ndarray: Start of the first call, end of the last, and the sum of their
    # durations
    start_ns: np.ndarray
    end_ns: np.ndarray
    time_ns: np.ndarray
    # The event that ends last; of those that end together the longest, and of these the last one
    last: np.ndarray
    # bytes_read, bytes_written: ndarray: Bytes moved; those of inner calls count once. 0 if they were not
    # asked for.
    bytes_read: np.ndarray
    bytes_written: np.ndarray


def sum_spans(phase: np.ndarray, chunk: Events, with_bytes: bool = False) -> Spans:
    """Sum the calls of a chunk by phase and task."""
    row_of, end_ns = np.empty(len(chunk), np.int32), chunk.end
    found = sum_by_keys(
        {"phase": phase, "rank": chunk.rank},
        {"time_ns": chunk.duration} | (_counted_bytes(chunk) if with_bytes else {}),
        {"start_ns": chunk.start},
        {"end_ns": end_ns},
        phase > 0,
        row_of,
    )
    none = np.zeros(len(found["n"]), np.int64)
    may_be_last = np.flatnonzero(row_of >= 0)
    may_be_last = may_be_last[end_ns[may_be_last] == found["end_ns"][row_of[may_be_last]]]
    may_be_last = may_be_last[np.argsort(chunk.duration[may_be_last], kind="stable")]
    last = none.copy()
    last[row_of[may_be_last]] = may_be_last  # of several, the last one stays
    found |= {"calls": found["n"], "last": last}
    return Spans(*(found.get(name, none) for name in Spans._fields))


def _counted_bytes(chunk: Events) -> dict[str, np.ndarray]:
    direction = shared_directions(chunk)
    names = ("bytes_read", "bytes_written")
    return {
        name: np.where(direction == DIRECTIONS.index(way), chunk.moved, 0)
        for name, way in zip(names, ("read", "write"), strict=True)
    }

"""Run totals: bytes read, bytes written and time in I/O, none counted twice.

Time of each layer: in its calls, and exclusive of recorded calls inside these.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ensembles.model.distinct import distinct
from ensembles.model.events import OPS, Call, Events, op_of_calls
from ensembles.passes.summary import ANY_ORDER, Summary
from ensembles.summaries.calltable import SUM_COLUMNS, carried_bits, compute_call_sums
from ensembles.summaries.nesting import Nesting


@dataclass(slots=True)
class LayerTime:
    """Time of the calls of one layer, summed over all threads."""

    calls: int = 0  # Number of calls
    time_ns: int = 0  # Sum of durations
    exclusive_ns: int = 0  # Exclusive time: the same without recorded calls inside these calls


class LayerTimes(Summary):
    """A mergeable summary: inclusive and exclusive time of functions and layers.

    All chunks of a thread must be added to the same summary, in their order (`ensembles.summaries.nesting`).

    `calls`, `time_ns`, `inner_ns`: by function: number of calls, sum of durations, and the part of it in
    recorded inner calls.
    """

    columns = (*SUM_COLUMNS, "rank", "thread")
    results = ("calls", "time_ns", "inner_ns")
    added_up = ("calls", "time_ns", "inner_ns", "_nesting")

    def __init__(self) -> None:
        self.calls: dict[Call, int] = {}
        self.time_ns: dict[Call, int] = {}
        self.inner_ns: dict[Call, int] = {}
        self._nesting = Nesting()

    def add(self, chunk: Events) -> None:
        """Add events, those of a thread in order of completion."""
        if not len(chunk):
            return
        sums = compute_call_sums(chunk)
        for number in sums.present.tolist():
            call = chunk.calls[number]
            self.calls[call] = self.calls.get(call, 0) + int(sums.count[number])
            self.time_ns[call] = self.time_ns.get(call, 0) + int(sums.time_ns[number])
        inner_ns = self._nesting.inner_ns(chunk)
        if inner_ns is not None:
            for number in distinct(chunk.call[inner_ns > 0]):
                self._add_inner(chunk.calls[number], int(inner_ns[chunk.call == number].sum()))

    def _add_inner(self, call: Call, time_ns: int) -> None:
        self.inner_ns[call] = self.inner_ns.get(call, 0) + time_ns

    def exclusive_ns(self, call: Call) -> int:
        """Return the exclusive time of a function in ns."""
        return self.time_ns[call] - self.inner_ns.get(call, 0)

    @property
    def layers(self) -> dict[str, LayerTime]:
        """Time of each layer that occurred."""
        layers: dict[str, LayerTime] = {}
        for call, count in self.calls.items():
            layer = layers.setdefault(call.layer, LayerTime())
            layer.calls += count
            layer.exclusive_ns += self.exclusive_ns(call)
            # What is inside a call of posix is the other half of a copy.
            layer.time_ns += self.exclusive_ns(call) if call.layer == "posix" else self.time_ns[call]
        return layers


DIRECTIONS = ("read", "write")


def direction_of_events(events: Events) -> np.ndarray:
    """Compute the direction in which the bytes of each event count.

    Bytes count in the outermost call that moves bytes in their direction. A write of the system inside a
    write of a library is part of it; one inside a library's close is not. The recorder knows which calls
    count the bytes of inner calls (reads and writes of streams, MPI-IO and HDF5), and records it in the
    column ``carried``. This includes calls that overlap in time, such as a non-blocking write and the MPI
    call that completes it. In the totals of single functions both are counted.

    A call that a signal handler makes while its thread is in such a call looks like an inner call, so that
    its bytes do not count.

    Index into `DIRECTIONS`; -1 for events that moved no bytes, or whose bytes do not count.
    """
    direction = direction_of_calls(events.calls)[events.call]
    direction[(events.moved <= 0) | counted_elsewhere(events)] = -1
    return direction


def shared_directions(events: Events) -> np.ndarray:
    """Return `direction_of_events`, computed once for all summaries of a chunk; it must stay unchanged."""
    return events.remembered(shared_directions, direction_of_events)


def direction_of_calls(calls: Sequence[Call]) -> np.ndarray:
    """Return the direction of each function: int32, an index into `DIRECTIONS`, or -1."""
    direction_of_op = np.full(len(OPS), -1, dtype=np.int32)
    for number, op in enumerate(DIRECTIONS):
        direction_of_op[OPS.index(op)] = number
    return direction_of_op[op_of_calls(calls)]


def direction_in_layer(events: Events, layer: str) -> np.ndarray:
    """Return the direction of each event of a layer: int32, an index into `DIRECTIONS`, or -1."""
    is_of_layer = np.array([call.layer == layer for call in events.calls], bool)
    return np.where(is_of_layer, direction_of_calls(events.calls), np.int32(-1))[events.call]


def counted_elsewhere(events: Events) -> np.ndarray:
    """Compute whether a call around each event counts its bytes: bool, shape (n,)."""
    if not events.remembered(_has_carried_bytes, _has_carried_bytes):
        return np.zeros(len(events), dtype=bool)
    elsewhere: np.ndarray = (events.carried & carried_bits(events.calls)[events.call]) != 0
    return elsewhere


def _has_carried_bytes(events: Events) -> bool:
    return bool(events.carried.any())


class RunTotals(Summary):
    """A mergeable summary: bytes and time of all calls.

    `bytes_read`, `bytes_written`: bytes of the calls that count (`direction_of_events`).
    `layers`: time by function and layer, from which `io_time_ns` is computed.
    """

    of_all_calls = True
    columns = LayerTimes.columns
    results = ("bytes_read", "bytes_written", "layers")
    added_up = ("layers", "bytes_read", "bytes_written")

    def __init__(self) -> None:
        self.bytes_read = 0
        self.bytes_written = 0
        self.layers = LayerTimes()

    def add(self, chunk: Events) -> None:
        """Add events: all of a thread, in the order of completion."""
        if not len(chunk):
            return
        self.layers.add(chunk)
        sums = compute_call_sums(chunk)
        for number in sums.present.tolist():
            if chunk.calls[number].op == "read":
                self.bytes_read += int(sums.counted[number])
            elif chunk.calls[number].op == "write":
                self.bytes_written += int(sums.counted[number])

    @property
    def io_time_ns(self) -> int:
        """Exclusive time in I/O calls in ns, summed over all threads; waiting for other tasks is none."""
        return sum(self.layers.exclusive_ns(call) for call in self.layers.calls if not call.waits_for_tasks)


class EventCount(Summary):
    """A mergeable summary: the number of events."""

    columns = ("duration",)
    requires = ANY_ORDER
    results = ("events",)
    added_up = ("events",)

    def __init__(self) -> None:
        self.events = 0

    def add(self, chunk: Events) -> None:
        """Add events."""
        self.events += len(chunk)

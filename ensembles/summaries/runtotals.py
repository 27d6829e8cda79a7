"""What all calls of a run add up to, nothing counted twice: bytes read, bytes written, time in I/O."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ensembles.model.events import OPS, Call, Events, op_of_calls
from ensembles.passes.summary import Summary
from ensembles.summaries.callsums import carried_bits, compute_call_sums
from ensembles.summaries.layers import LayerTimes

DIRECTIONS = ("read", "write")


def direction_of_events(events: Events) -> np.ndarray:
    """Which events' bytes count in totals and rates.

    Bytes count in the outermost call that moves bytes in their direction: a system's write inside a library's
    write is part of it, and one inside a library's close is not. The recorder knows which calls count the
    bytes of those inside (reads and writes of streams, of MPI-IO, of HDF5), also where they overlap in time,
    as a non-blocking write and the MPI call that drives it on, and says so in the column ``carried``. In the
    totals of single functions both are counted.

    Nothing tells a call inside such a call from one that a signal handler makes while its thread waits in
    it, so bytes that handlers move in there are left out.

    Returns
    -------
    ndarray of int32, shape (n,)
        Index into `DIRECTIONS`; -1 for events that moved no bytes, or whose bytes do not count.
    """
    direction = direction_of_calls(events.calls)[events.call]
    direction[(events.moved <= 0) | counted_elsewhere(events)] = -1
    return direction


def direction_of_calls(calls: Sequence[Call]) -> np.ndarray:
    """Whether functions read or write: index into `DIRECTIONS`, -1: neither; int32, shape (len(calls),)."""
    direction_of_op = np.full(len(OPS), -1, dtype=np.int32)
    for number, op in enumerate(DIRECTIONS):
        direction_of_op[OPS.index(op)] = number
    return direction_of_op[op_of_calls(calls)]


def counted_elsewhere(events: Events) -> np.ndarray:
    """Whether a call around counts the bytes of an event, bool, shape (n,)."""
    if not events.carried.any():
        return np.zeros(len(events), dtype=bool)
    return (events.carried & carried_bits(events.calls)[events.call]) != 0


class RunTotals(Summary):
    """Bytes and time of all calls together.

    Attributes
    ----------
    bytes_read, bytes_written : int
        See `direction_of_events` for what counts.
    layers : LayerTimes
        Time by function and layer, from which the time in I/O comes.
    """

    columns = LayerTimes.columns

    def __init__(self) -> None:
        self.bytes_read = 0
        self.bytes_written = 0
        self.layers = LayerTimes()

    def add(self, chunk: Events) -> None:
        """Add events, those of a thread in order of completion and all to the same summary."""
        if not len(chunk):
            return
        self.layers.add(chunk)
        sums = compute_call_sums(chunk)
        for number in sums.present.tolist():
            if chunk.calls[number].op == "read":
                self.bytes_read += int(sums.counted[number])
            elif chunk.calls[number].op == "write":
                self.bytes_written += int(sums.counted[number])

    def merge(self, other: RunTotals) -> None:
        """Add what a summary of other threads holds."""
        self.layers.merge(other.layers)
        self.bytes_read += other.bytes_read
        self.bytes_written += other.bytes_written

    @property
    def io_time_ns(self) -> int:
        """Time in I/O calls of all threads, nested ones not counted twice. Waiting for other tasks is no
        I/O."""
        return sum(self.layers.exclusive_ns(call) for call in self.layers.calls if call.op != "wait")

    def to_arrays(self) -> dict[str, np.ndarray]:
        """``bytes_read``, ``bytes_written`` and ``io_time_ns``, each of shape (1,)."""
        names = ("bytes_read", "bytes_written", "io_time_ns")
        return {name: np.array([getattr(self, name)], dtype=np.int64) for name in names}

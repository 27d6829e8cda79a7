"""Steps in which tasks exchange messages and make no I/O: phases of runs that recorded the layer mpimsg."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ensembles.model.events import Call, Events, of_calls
from ensembles.passes.summary import ANY_ORDER, Summary

MESSAGE_LAYER = "mpimsg"

_NO_MESSAGES = {
    "MPI_Barrier",
    "MPI_Ibarrier",
    "MPI_Init",
    "MPI_Init_thread",
    "MPI_Finalize",
    "MPI_Comm_split",
}
"""Calls in which tasks meet, and exchange no data of the program."""


@of_calls
def is_message_of_calls(calls: Sequence[Call]) -> np.ndarray:
    """Return which traced functions exchange data with other tasks: bool, shape (len(calls),)."""
    return np.array([call.waits_for_tasks and call.name not in _NO_MESSAGES for call in calls], bool)


@of_calls
def _is_of_layer(calls: Sequence[Call]) -> np.ndarray:
    return np.array([call.layer == MESSAGE_LAYER for call in calls], bool)


def has_message_layer(chunk: Events) -> bool:
    """Check whether any of these events are of the layer mpimsg, which is recorded on request only."""
    return bool(_is_of_layer(chunk.calls)[chunk.call].any())


class MessageStarts(Summary):
    """A mergeable summary: when calls began that exchange data with other tasks, 8 bytes each.

    Attributes
    ----------
    has_layer : bool
        Whether there are calls of the layer mpimsg, which is recorded on request only.
    """

    columns = ("call", "start")
    requires = ANY_ORDER
    results = ("has_layer", "_parts")

    def __init__(self) -> None:
        self.has_layer = False
        self._parts: list[np.ndarray] = []

    def add(self, chunk: Events) -> None:
        """Add events."""
        self.has_layer = self.has_layer or has_message_layer(chunk)
        mine = is_message_of_calls(chunk.calls)[chunk.call]
        if mine.any():
            self._parts.append(chunk.start[mine])

    def merge(self, other: MessageStarts) -> None:
        """Add the calls of another part of the run."""
        self.has_layer = self.has_layer or other.has_layer
        self._parts += other._parts

    def to_arrays(self) -> dict[str, np.ndarray]:
        """Return ``start`` of each call in ns."""
        return {"start": self.start}

    @property
    def start(self) -> np.ndarray:
        """Start of each call in ns since the origin of the run; none if the layer was not recorded."""
        if not self.has_layer or not self._parts:
            return np.empty(0, np.int64)
        return np.concatenate(self._parts)


def steps_of_messages(
    cuts_ns: np.ndarray, is_barrier: np.ndarray, io_ns: np.ndarray, messages_ns: np.ndarray
) -> np.ndarray:
    """Choose the moments that divide a run into steps of I/O and of messages.

    A collective call that exchanges data is a moment at which all tasks meet, and often one of several in a
    step. So it divides I/O, but no step without I/O: only barriers do.

    Parameters
    ----------
    cuts_ns : ndarray of int64, shape (m,)
        Moments at which all tasks met, rising.
    is_barrier : ndarray of bool, shape (m,)
        Which of them exchanged no data.
    io_ns, messages_ns : ndarray of int64
        Starts of I/O calls, and of calls that exchange data.

    Examples
    --------
    >>> from ensembles.structure.phases.messages import steps_of_messages
    >>> cuts, is_barrier = np.array([10, 20, 30, 40]), np.array([True, False, True, False])
    >>> steps_of_messages(cuts, is_barrier, np.array([35]), np.array([11, 21]))
    array([10, 30, 40])
    """
    if not len(messages_ns):
        return cuts_ns
    has_io = np.bincount(np.searchsorted(cuts_ns, io_ns, side="right"), minlength=len(cuts_ns) + 1) > 0
    chosen: np.ndarray = cuts_ns[is_barrier | has_io[:-1] | has_io[1:]]
    return chosen

"""In which parts of a run calls begin, before the moments that divide it are known."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ensembles import _compiled
from ensembles.model.events import Call, Events, is_io_of_calls, of_calls
from ensembles.passes.summary import ANY_ORDER, Summary
from ensembles.structure.phases.messages import has_message_layer, is_message_of_calls

_IO, _MESSAGES = range(2)
_NEVER = np.iinfo(np.int64).max


@of_calls
def _kinds_of_calls(calls: Sequence[Call]) -> np.ndarray:
    kinds = is_io_of_calls(calls).astype(np.uint8) << _IO
    kinds |= is_message_of_calls(calls).astype(np.uint8) << _MESSAGES
    return kinds


class CallStarts(Summary):
    """A mergeable summary: the first and the last start of I/O calls, and of messages, between edges.

    Calls that wait for other tasks are not I/O.

    Parameters
    ----------
    edges_ns : ndarray of int64, shape (m,)
        Moments in ns, rising, near those that will divide the run: with these at hand, the parts with calls
        follow from the first and the last starts.
    """

    columns = ("call", "start")
    requires = ANY_ORDER
    results = ("has_layer", "_least", "_most")

    def __init__(self, edges_ns: np.ndarray) -> None:
        self._edges_ns = np.ascontiguousarray(edges_ns, np.int64)
        self.has_layer = False
        shape = (2, len(edges_ns) + 1)
        self._least, self._most = np.full(shape, _NEVER), np.full(shape, -_NEVER)

    def add(self, chunk: Events) -> None:
        """Add events."""
        self.has_layer = self.has_layer or has_message_layer(chunk)
        events = np.ascontiguousarray(chunk.start, np.int64), np.ascontiguousarray(chunk.call, np.uint16)
        kinds = _kinds_of_calls(chunk.calls)
        _compiled.mark_starts(*events, kinds, self._edges_ns, self._least, self._most)

    def merge(self, other: CallStarts) -> None:
        """Add the calls of another part of the run."""
        if not np.array_equal(self._edges_ns, other._edges_ns):
            raise ValueError("starts can be merged only if they are between the same edges")
        self.has_layer = self.has_layer or other.has_layer
        np.minimum(self._least, other._least, out=self._least)
        np.maximum(self._most, other._most, out=self._most)

    def to_arrays(self) -> dict[str, np.ndarray]:
        """Return ``edges_ns``, and ``least_ns`` and ``most_ns`` by kind and place between the edges."""
        return {"edges_ns": self._edges_ns, "least_ns": self._least, "most_ns": self._most}

    def begun(self, cuts_ns: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
        """Tell in which parts of the run calls begin.

        Parameters
        ----------
        cuts_ns : ndarray of int64, shape (m,)
            Moments between the parts, rising.

        Returns
        -------
        with_io, with_messages : ndarray of bool, shape (m + 1,)
            Before, between and after the cuts. There are no messages if their layer was not recorded. None:
            of some part it is unclear.
        """
        with_io = self._begun(_IO, cuts_ns)
        with_messages = (
            self._begun(_MESSAGES, cuts_ns) if self.has_layer else np.zeros(len(cuts_ns) + 1, bool)
        )
        return None if with_io is None or with_messages is None else (with_io, with_messages)

    def _begun(self, kind: int, cuts_ns: np.ndarray) -> np.ndarray | None:
        used = self._least[kind] <= self._most[kind]
        low = np.searchsorted(cuts_ns, self._least[kind][used], side="right")
        high = np.searchsorted(cuts_ns, self._most[kind][used], side="right")
        with_calls = np.zeros(len(cuts_ns) + 1, bool)
        with_calls[low] = with_calls[high] = True
        # Calls between the first and the last start of two edges may be in any part between theirs.
        change = np.bincount(low + 1, minlength=len(cuts_ns) + 3) - np.bincount(
            np.maximum(high, low + 1), minlength=len(cuts_ns) + 3
        )
        is_between = np.cumsum(change)[: len(cuts_ns) + 1] > 0
        return None if (is_between & ~with_calls).any() else with_calls

"""Nesting: the part of a call's duration that lies in recorded calls inside it."""

from __future__ import annotations

import numpy as np

from ensembles.model.events import Events


class Nesting:
    """A finder of calls inside calls, over the chunks of a run.

    The calls of a thread come in the order of completion, with their depth. A call is inside the next call of
    less depth, unless that began later (then the call around it was not recorded). Calls whose encloser is
    still to come are carried over to the next chunk. All chunks of a thread must therefore come to the same
    object, in their order.

    Examples
    --------
    An outer call of 10 ns with an inner one of 4 ns, which completes first:

    >>> from ensembles.model.events import Call, Events
    >>> from ensembles.summaries.nesting import Nesting
    >>> columns = {"rank": [0, 0], "thread": [0, 0], "depth": [1, 0], "start": [3, 0], "duration": [4, 10]}
    >>> Nesting().inner_ns(Events.partly(columns, (Call("write", "posix", "write"),), ("",)))
    array([0, 4])
    """

    def __init__(self) -> None:
        self._open: dict[tuple[int, int], tuple[int, int]] = {}
        """By thread key and depth: time of calls whose encloser has not come yet; their last start. In ns."""

    def inner_ns(self, chunk: Events) -> np.ndarray | None:
        """Compute the time of each call in recorded calls inside it.

        Parameters
        ----------
        chunk : Events
            The next events of the run.

        Returns
        -------
        ndarray of int64, shape (n,), or None
            Time in ns. None: no call is nested.
        """
        if not len(chunk) or not (self._open or chunk.depth.any()):
            return None
        key = (chunk.rank.astype(np.int64) << 16) | chunk.thread
        order = np.argsort(key, kind="stable")
        key = key[order]
        depth, start, duration = chunk.depth[order], chunk.start[order], chunk.duration[order]
        inner_ns = np.zeros(len(chunk), np.int64)
        self._close_carried(key, depth, start, inner_ns)
        for level in range(1, int(depth.max()) + 1):
            inner = np.flatnonzero(depth == level)
            outer = np.flatnonzero(depth < level)
            place = np.searchsorted(outer, inner)
            follows = place < len(outer)
            follows[follows] = key[outer[place[follows]]] == key[inner[follows]]
            self._carry(key, start, duration, inner[~follows], level)
            inner, encloser = inner[follows], outer[place[follows]]
            inside = start[inner] >= start[encloser]
            np.add.at(inner_ns, encloser[inside], duration[inner[inside]])
        ordered, inner_ns = inner_ns, np.empty_like(inner_ns)
        inner_ns[order] = ordered
        return inner_ns

    def _carry(
        self, key: np.ndarray, start: np.ndarray, duration: np.ndarray, waiting: np.ndarray, level: int
    ) -> None:
        """Keep the times of the calls at these positions, whose encloser has not come yet."""
        if not len(waiting):
            return
        keys, first = np.unique(key[waiting], return_index=True)
        time_ns = np.add.reduceat(duration[waiting], first)
        last_start = np.maximum.reduceat(start[waiting], first)
        for thread, more_ns, last in zip(keys.tolist(), time_ns.tolist(), last_start.tolist(), strict=True):
            carried_ns, _ = self._open.get((thread, level), (0, 0))
            self._open[thread, level] = (carried_ns + more_ns, last)

    def _close_carried(
        self, key: np.ndarray, depth: np.ndarray, start: np.ndarray, inner_ns: np.ndarray
    ) -> None:
        """Add times that were carried over to the first call that encloses them."""
        for thread, level in list(self._open):
            low, high = np.searchsorted(key, [thread, thread + 1])
            outer = low + np.flatnonzero(depth[low:high] < level)
            if len(outer):
                time_ns, last_start = self._open.pop((thread, level))
                if last_start >= start[outer[0]]:
                    inner_ns[outer[0]] += time_ns

    def merge(self, other: Nesting) -> None:
        """Add the calls that another object carries over, of other threads."""
        self._open.update(other._open)

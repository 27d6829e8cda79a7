"""The gaps of all ranks within those of some: where a phase of a large run begins, of which only some ranks
were looked at."""

from __future__ import annotations

import numpy as np

from ensembles.events import OPS, Events
from ensembles.structure.steps import cuts_in

_LEFT_OUT = [OPS.index(name) for name in ("seek", "meta", "wait")]


class GapsOfAll:
    """Collects the calls of all ranks that reach into the gaps of some, chunk by chunk; there are few of
    these.

    Parameters
    ----------
    gap_from, gap_to : ndarray of int64, shape (m,)
        Rising, ns.
    """

    def __init__(self, gap_from: np.ndarray, gap_to: np.ndarray) -> None:
        self._from, self._to = gap_from, gap_to
        self._parts: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []

    def add(self, chunk: Events) -> None:
        """Add calls; those in others, and those that move, open, close and flush nothing are left out."""
        if not len(self._to):
            return
        gap = np.searchsorted(self._to, chunk.start, side="right")
        inside = (gap < len(self._to)) & (chunk.depth == 0)
        inside &= chunk.end > self._from[np.minimum(gap, len(self._to) - 1)]
        mine = np.flatnonzero(inside & ~np.isin(chunk.op, _LEFT_OUT))
        self._parts.append((gap[mine], chunk.start[mine], chunk.end[mine]))

    def merge(self, other: GapsOfAll) -> None:
        """Add those of other ranks, in the same gaps."""
        self._parts += other._parts

    @property
    def cuts_ns(self) -> np.ndarray:
        """Where phases begin: in the widest part of each gap in which no rank does I/O, int64, shape (m,);
        where there is none, as the gap of some ranks says."""
        low, high = self._from.copy(), self._to.copy()
        if not self._parts:
            return cuts_in(low, high)
        gap, start, end = (np.concatenate(column) for column in zip(*self._parts, strict=True))
        order = np.lexsort((start, gap))
        gap, start, end = gap[order], start[order], end[order]
        places, first = np.unique(gap, return_index=True)
        for place, begin, behind in zip(places.tolist(), first, np.append(first, len(gap))[1:], strict=True):
            reach = np.maximum.accumulate(np.append(self._from[place], end[begin:behind]))
            begins = np.append(start[begin:behind], self._to[place])
            widest = int(np.argmax(begins - reach))
            if begins[widest] > reach[widest]:
                low[place], high[place] = reach[widest], begins[widest]
        return cuts_in(low, high)

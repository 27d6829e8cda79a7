"""Nesting: the part of a call's duration that lies in recorded calls inside it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ensembles.model.events import Events


class Nesting:
    """A finder of calls inside calls, over the chunks of a run.

    The calls of a thread come in the order of completion, with their depth. A call is inside the next call of
    less depth, unless that began later (then the call around it was not recorded). Calls inside may overlap:
    requests of non-blocking I/O in recordings that give them the time until completion. The union of their
    times counts, as far as it lies in the call around them.

    Calls whose encloser is still to come are carried over to the next chunk. All chunks of a thread must
    therefore come to the same object, in their order.
    """

    def __init__(self) -> None:
        self._open: dict[tuple[int, int], _Waiting] = {}

    def inner_ns(self, chunk: Events) -> np.ndarray | None:
        """Compute the time of each call, ns, in recorded calls inside it; None: no call is nested."""
        if not len(chunk):
            return None
        is_nested = chunk.remembered(_has_inner_calls, _has_inner_calls)
        if not (self._open or is_nested):
            return None
        key, order = in_threads(chunk)
        depth, start, duration = chunk.depth[order], chunk.start[order], chunk.duration[order]
        inner_ns = np.zeros(len(chunk), np.int64)
        self._close_carried(key, depth, start, duration, inner_ns)
        pairs: list[tuple[np.ndarray, np.ndarray]] = []
        for level in range(1, int(depth.max()) + 1):
            inner = np.flatnonzero(depth == level)
            outer = np.flatnonzero(depth < level)
            *pair, waiting = calls_around(key, inner, outer)
            self._carry(key, start, duration, waiting, level)
            pairs.append((pair[0], pair[1]))
        if pairs:
            inner, encloser = (np.concatenate(parts) for parts in zip(*pairs, strict=True))
            _add_covered(start, duration, inner, encloser, inner_ns)
        np.minimum(inner_ns, duration, out=inner_ns)
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
        columns = zip(
            keys.tolist(),
            np.add.reduceat(duration[waiting], first).tolist(),
            np.minimum.reduceat(start[waiting], first).tolist(),
            np.maximum.reduceat(start[waiting], first).tolist(),
            np.maximum.reduceat(start[waiting] + duration[waiting], first).tolist(),
            strict=True,
        )
        for thread, *more in columns:
            before = self._open.get((thread, level))
            self._open[thread, level] = _Waiting(*more) if before is None else before.joined(_Waiting(*more))

    def _close_carried(
        self,
        key: np.ndarray,
        depth: np.ndarray,
        start: np.ndarray,
        duration: np.ndarray,
        inner_ns: np.ndarray,
    ) -> None:
        """Add times that were carried over to the first call that encloses them."""
        for thread, level in list(self._open):
            low, high = np.searchsorted(key, [thread, thread + 1])
            outer = low + np.flatnonzero(depth[low:high] < level)
            if len(outer):
                waiting = self._open.pop((thread, level))
                first = outer[0]
                if waiting.last_start >= start[first]:
                    inner_ns[first] += waiting.within(int(start[first]), int(start[first] + duration[first]))

    def merge(self, other: Nesting) -> None:
        """Add the calls that another object carries over, of other threads."""
        self._open.update(other._open)


def in_threads(chunk: Events) -> tuple[np.ndarray, np.ndarray]:
    """Return the thread of each call as one number, sorted, and the order that sorts calls by it."""
    key = (chunk.rank.astype(np.int64) << 16) | chunk.thread
    order = np.argsort(key, kind="stable")
    return key[order], order


def calls_around(
    key: np.ndarray, inner: np.ndarray, outer: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Find the next outer call of the thread of each inner one: both places; and those with none so far."""
    place = np.searchsorted(outer, inner)
    follows = place < len(outer)
    follows[follows] = key[outer[place[follows]]] == key[inner[follows]]
    return inner[follows], outer[place[follows]], inner[~follows]


def _has_inner_calls(chunk: Events) -> bool:
    return bool(chunk.depth.any())


class _Waiting(NamedTuple):
    """Calls of one thread and depth whose encloser has not come yet, in ns."""

    time: int
    first_start: int
    last_start: int
    last_end: int

    def joined(self, later: _Waiting) -> _Waiting:
        return _Waiting(
            self.time + later.time,
            min(self.first_start, later.first_start),
            max(self.last_start, later.last_start),
            max(self.last_end, later.last_end),
        )

    def within(self, low: int, high: int) -> int:
        """Their time, at most the part of `low` to `high` from the first to the last of them."""
        return min(self.time, max(min(self.last_end, high) - max(self.first_start, low), 0))


def _add_covered(
    start: np.ndarray, duration: np.ndarray, inner: np.ndarray, encloser: np.ndarray, inner_ns: np.ndarray
) -> None:
    """Add to each encloser the union of the times of its inner calls that began in it."""
    inside = start[inner] >= start[encloser]
    inner, encloser = inner[inside], encloser[inside]
    low = start[inner] - start[encloser]
    high = np.minimum(low + duration[inner], duration[encloser])
    low = np.minimum(low, high)
    if _overlap(low, encloser, high):
        order = np.lexsort((low, encloser))
        low, high, encloser = low[order], high[order], encloser[order]
        # Enclosers laid end to end, so that one running maximum serves all of them.
        offset = np.cumsum(duration)[encloser] - duration[encloser]
        reached = np.maximum.accumulate(high + offset) - offset
        before = np.concatenate([[0], reached[:-1] + offset[:-1] - offset[1:]])
        low = np.minimum(np.maximum(low, before), high)
    np.add.at(inner_ns, encloser, high - low)


def _overlap(low: np.ndarray, encloser: np.ndarray, high: np.ndarray) -> bool:
    """Test whether calls inside the same call may overlap. Calls in the order of completion do not."""
    same = encloser[1:] == encloser[:-1]
    return bool(np.any(same & (low[1:] < high[:-1])))

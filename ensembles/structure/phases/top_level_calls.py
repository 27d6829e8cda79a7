"""Top-level calls: outermost I/O calls, in which phases are detected."""

from __future__ import annotations

import numpy as np

from ensembles.model.events import OPS, Events
from ensembles.passes.summary import Summary

_NO_TRANSFER = ("seek", "meta", "wait")


class TopLevelCalls(Summary):
    """A mergeable summary: the outermost I/O calls of a run, 21 bytes each.

    Attributes
    ----------
    of_rank : ndarray of int64
        Number of calls of each rank.
    """

    def __init__(self) -> None:
        self.of_rank = np.zeros(0, np.int64)
        self._parts: list[tuple[np.ndarray, ...]] = []

    @property
    def total(self) -> int:
        """Number of calls."""
        return int(self.of_rank.sum())

    @property
    def ranks(self) -> int:
        """Number of ranks with calls."""
        return int(np.count_nonzero(self.of_rank))

    def add(self, chunk: Events) -> None:
        """Add events; only outermost ones without waiting are kept."""
        mine = np.flatnonzero((chunk.op != OPS.index("wait")) & (chunk.depth == 0))
        more = np.bincount(chunk.rank[mine], minlength=len(self.of_rank))
        more[: len(self.of_rank)] += self.of_rank
        self.of_rank = more
        if len(mine):
            part = (chunk.rank, chunk.start, chunk.end, chunk.op)
            self._parts.append(tuple(column[mine] for column in part))

    def merge(self, other: TopLevelCalls) -> None:
        """Add calls of higher ranks."""
        longer, shorter = sorted((self.of_rank, other.of_rank), key=len, reverse=True)
        self.of_rank = longer.copy()
        self.of_rank[: len(shorter)] += shorter
        self._parts += other._parts

    def to_arrays(self) -> dict[str, np.ndarray]:
        """Return ``rank``, ``start``, ``end`` and ``op`` of each call."""
        names = ("rank", "start", "end", "op")
        if not self._parts:
            return {name: np.empty(0, np.int64) for name in names}
        columns = zip(*self._parts, strict=True)
        return {name: np.concatenate(parts) for name, parts in zip(names, columns, strict=True)}

    @property
    def transfers(self) -> tuple[np.ndarray, ...]:
        """Rank, start, end and operation of calls that move bytes, open, close or flush.

        If there are no such calls, those of all calls.
        """
        rank, start, end, op = self.to_arrays().values()
        mine = ~np.isin(op, [OPS.index(name) for name in _NO_TRANSFER])
        return (rank[mine], start[mine], end[mine], op[mine]) if mine.any() else (rank, start, end, op)

    @property
    def start(self) -> np.ndarray:
        """Start of each call in ns since the origin of the run."""
        return np.concatenate([part[1] for part in self._parts])

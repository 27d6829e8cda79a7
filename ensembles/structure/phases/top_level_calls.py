"""Calls that are in no other, and in which no rank waits: in these, steps of all ranks are looked for."""

from __future__ import annotations

import numpy as np

from ensembles.model.events import OPS, Events
from ensembles.passes.summary import Summary

_NO_TRANSFER = ("seek", "meta", "wait")


class TopLevelCalls(Summary):
    """They are kept chunk by chunk: 21 bytes a call."""

    def __init__(self) -> None:
        self.of_rank = np.zeros(0, np.int64)
        self._parts: list[tuple[np.ndarray, ...]] = []

    @property
    def total(self) -> int:
        """How many there are."""
        return int(self.of_rank.sum())

    @property
    def ranks(self) -> int:
        """How many ranks made some."""
        return int(np.count_nonzero(self.of_rank))

    def add(self, chunk: Events) -> None:
        """Keep those of these events."""
        mine = np.flatnonzero((chunk.op != OPS.index("wait")) & (chunk.depth == 0))
        more = np.bincount(chunk.rank[mine], minlength=len(self.of_rank))
        more[: len(self.of_rank)] += self.of_rank
        self.of_rank = more
        if len(mine):
            part = (chunk.rank, chunk.start, chunk.end, chunk.op)
            self._parts.append(tuple(column[mine] for column in part))

    def merge(self, other: TopLevelCalls) -> None:
        """Add those of higher ranks."""
        longer, shorter = sorted((self.of_rank, other.of_rank), key=len, reverse=True)
        self.of_rank = longer.copy()
        self.of_rank[: len(shorter)] += shorter
        self._parts += other._parts

    def to_arrays(self) -> dict[str, np.ndarray]:
        """``rank``, ``start``, ``end`` and ``op`` of each."""
        names = ("rank", "start", "end", "op")
        if not self._parts:
            return {name: np.empty(0, np.int64) for name in names}
        columns = zip(*self._parts, strict=True)
        return {name: np.concatenate(parts) for name, parts in zip(names, columns, strict=True)}

    @property
    def transfers(self) -> tuple[np.ndarray, ...]:
        """Rank, start, end and operation of those that move bytes, open, close or flush; of all if there are
        none of these."""
        rank, start, end, op = self.to_arrays().values()
        mine = ~np.isin(op, [OPS.index(name) for name in _NO_TRANSFER])
        return (rank[mine], start[mine], end[mine], op[mine]) if mine.any() else (rank, start, end, op)

    @property
    def start(self) -> np.ndarray:
        """When each begins, of all."""
        return np.concatenate([part[1] for part in self._parts])

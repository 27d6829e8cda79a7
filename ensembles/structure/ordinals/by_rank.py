"""The typical durations of each rank by class of ordinals, in memory of nine bytes a rank and class."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

_COLUMNS = 64
"""Classes of which the durations of all ranks are looked at together."""


class RankLevels:
    """Number of calls and sum of the logarithms of their durations, by rank and class; mergeable.

    Examples
    --------
    Rank 3 makes a call of class 0 and two of class 1:

    >>> from ensembles.structure.ordinals.by_rank import RankLevels
    >>> table = RankLevels()
    >>> row, calls, levels = table.rows_for(np.array([3, 3, 3]), classes=2)
    >>> calls[0], levels[0] = [1, 2], [0.5, 3.0]
    >>> table.close()
    >>> table.columns(np.array([0, 1]))
    array([[0.5, 1.5]])
    """

    results = ("_blocks",)

    def __init__(self) -> None:
        # Ranks, numbers of calls and sums of logarithms. The number of classes differs between blocks.
        self._blocks: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []

    def __len__(self) -> int:
        return len(self._blocks)

    def rows_for(self, rank: np.ndarray, classes: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Make room for calls; `close` ends it.

        Parameters
        ----------
        rank : ndarray of integers, shape (n,)
            Rank of each call.

        Returns
        -------
        row : ndarray of int32, shape (n,)
            Row of each call in the others.
        calls : ndarray of uint32, shape (r, classes)
        levels : ndarray of float64, shape (r, classes)
            To be filled.
        """
        row: np.ndarray
        change = np.flatnonzero(rank[1:] != rank[:-1]) + 1
        first = np.concatenate([[0], change])
        if np.all(rank[change] > rank[change - 1]):
            ranks = rank[first]
            row = np.repeat(np.arange(len(ranks), dtype=np.int32), np.diff(np.append(first, len(rank))))
        else:
            ranks, row = np.unique(rank, return_inverse=True)
            row = row.reshape(-1).astype(np.int32)
        calls = np.zeros((len(ranks), classes), np.uint32)
        levels = np.zeros((len(ranks), classes), np.float64)
        self._blocks.append((ranks.astype(np.int64), calls, levels))
        return row, calls, levels

    def close(self) -> None:
        """Store the last block in the least memory, and join it with the one before if they share a rank."""
        ranks, calls, levels = self._blocks.pop()
        if self._blocks and len(self._blocks[-1][0]) and self._blocks[-1][0][-1] == ranks[0]:
            _add_row(self._blocks, calls[0], levels[0])
            ranks, calls, levels = ranks[1:], calls[1:], levels[1:]
        if len(ranks):
            self._blocks.append((ranks, _narrow(calls), levels))

    def merge(self, other: RankLevels) -> None:
        """Add the calls of another table."""
        self._blocks += other._blocks

    def tasks(self, classes: int) -> np.ndarray:
        """Return the number of ranks with calls of each class."""
        found = np.zeros(classes, np.int64)
        for _, calls, _ in self._distinct():
            found[: calls.shape[1]] += np.count_nonzero(calls, axis=0)
        return found

    def medians(self, classes: np.ndarray) -> np.ndarray:
        """Return the median over ranks of their mean logarithm, for each of some classes with calls."""
        parts = [
            np.nanmedian(self.columns(classes[low : low + _COLUMNS]), axis=0)
            for low in range(0, len(classes), _COLUMNS)
        ]
        return np.concatenate([np.empty(0), *parts])

    def columns(self, classes: np.ndarray) -> np.ndarray:
        """Return the mean logarithms of the ranks, NaN without calls: float64, shape (ranks, classes)."""
        parts = [np.empty((0, len(classes)))]
        for _, calls, levels in self._distinct():
            part = np.full((len(calls), len(classes)), np.nan)
            known = np.flatnonzero(classes < calls.shape[1])
            count = calls[:, classes[known]]
            np.divide(
                levels[:, classes[known]], count, out=(mean := np.full(count.shape, np.nan)), where=count > 0
            )
            part[:, known] = mean
            parts.append(part)
        return np.concatenate(parts)

    def _distinct(self) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """Yield the blocks, each rank in one of them, ascending."""
        ranks = np.concatenate([np.empty(0, np.int64), *(block[0] for block in self._blocks)])
        if np.all(ranks[1:] > ranks[:-1]):
            yield from self._blocks
            return
        known, row = np.unique(ranks, return_inverse=True)
        classes = max(block[1].shape[1] for block in self._blocks)
        calls, levels = np.zeros((len(known), classes), np.int64), np.zeros((len(known), classes))
        done = 0
        for mine, of_calls, of_levels in self._blocks:
            rows = row.reshape(-1)[done : done + len(mine)]
            done += len(mine)
            np.add.at(calls[:, : of_calls.shape[1]], rows, of_calls)
            np.add.at(levels[:, : of_levels.shape[1]], rows, of_levels)
        self._blocks = [(known, _narrow(calls), levels)]
        yield from self._blocks


def _add_row(
    blocks: list[tuple[np.ndarray, np.ndarray, np.ndarray]], calls: np.ndarray, levels: np.ndarray
) -> None:
    """Add to the last row of the last block, which gets more classes if need be.

    The block is replaced, as another table may have it too.
    """
    ranks, before, sums = blocks.pop()
    if len(ranks) > 1:
        blocks.append((ranks[:-1], before[:-1], sums[:-1]))
    wide = max(before.shape[1], len(calls))
    count, level = np.zeros((1, wide), np.int64), np.zeros((1, wide))
    count[0, : before.shape[1]] += before[-1]
    level[0, : before.shape[1]] += sums[-1]
    count[0, : len(calls)] += calls
    level[0, : len(calls)] += levels
    blocks.append((ranks[-1:], _narrow(count), level))


def _narrow(calls: np.ndarray) -> np.ndarray:
    """Return numbers of calls in the least bytes."""
    return calls.astype(np.min_scalar_type(int(calls.max(initial=0))))

"""Significant antimodes of a density, which separate one mode from the next.

Blocks of cells, of all lengths and at all positions, are compared in pairs. That the density is higher in one
block than in another is a statement about two counts and two known widths. An antimode is a block that is
lower than one on its left and one on its right.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

DEPTH_RATIO = 1.08
"""Least ratio of the density of a mode to that of an adjacent antimode; smaller differences are irrelevant.
"""
LEAST_SHARE = 0.005
"""Least share of the calls that a mode has in excess of the density of the adjacent antimode."""
LEAST_CALLS = 6
"""Least number of these calls."""


@dataclass(frozen=True, eq=False)
class CellBlocks:
    """Contiguous blocks of cells.

    Attributes
    ----------
    start, end : ndarray of int64, shape (m,)
        First cell, and the cell after the last; sorted by `start`.
    calls, width : ndarray of float64, shape (m,)
        Number of calls, and width in log time.
    """

    start: np.ndarray
    end: np.ndarray
    calls: np.ndarray
    width: np.ndarray

    @classmethod
    def from_counts(cls, counts: np.ndarray, edges: np.ndarray) -> CellBlocks:
        """Make blocks of 1, 2, 3, 4, 6, 8, ... cells at distances of half their length.

        Parameters
        ----------
        counts : ndarray, shape (cells,)
        edges : ndarray of float64, shape (cells + 1,)
            In log time.

        Returns
        -------
        CellBlocks
        """
        cells, length, starts, ends = len(counts), 1, [], []
        while length <= cells:
            first = np.unique(
                np.append(np.arange(0, cells - length + 1, max(1, length // 2)), cells - length)
            )
            starts.append(first)
            ends.append(first + length)
            length = (
                length + 1
                if length < 4
                else length * 3 // 2
                if length & (length - 1) == 0
                else length * 4 // 3
            )
        start, end = np.concatenate(starts), np.concatenate(ends)
        order = np.lexsort((end, start))
        start, end = start[order], end[order]
        before = np.concatenate([[0], np.cumsum(counts)]).astype(np.float64)
        return cls(start, end, before[end] - before[start], edges[end] - edges[start])


@dataclass(frozen=True, eq=False)
class Evidence:
    """Evidence that blocks are denser than others.

    Attributes
    ----------
    high, low : ndarray of int64, shape (h,) and (v,)
        Blocks that may be modes, and blocks that may be antimodes.
    before, after : ndarray of float32, shape (h, v)
        Evidence that the high block is denser, where it lies before (after) the low block; −inf: it does not.
    """

    high: np.ndarray
    low: np.ndarray
    before: np.ndarray
    after: np.ndarray

    def deepest(self) -> float:
        """Return the evidence of the most significant antimode; −inf: none.

        The evidence of an antimode is the lesser of those against its left and its right side.
        """
        if not self.before.size:
            return -np.inf
        return float(np.minimum(self.before.max(axis=0), self.after.max(axis=0)).max())


def evidence(blocks: CellBlocks, total: float) -> Evidence:
    """Compare blocks in pairs.

    Parameters
    ----------
    blocks : CellBlocks
    total : float
        Number of all calls.

    Returns
    -------
    Evidence

    Notes
    -----
    Given the sum of two counts, the first is binomial. Z is the signed root of the log-likelihood ratio
    against "at most `DEPTH_RATIO` times as dense". The evidence is ``Z - sqrt(2 log(e total / (calls of
    both)))``: small pairs are many, so that they need a larger Z (multiscale penalty).

    References
    ----------
    L. Dümbgen and V. G. Spokoiny, "Multiscale testing of qualitative hypotheses", Annals of Statistics 29,
    2001. L. Dümbgen and G. Walther, "Multiscale inference about a density", Annals of Statistics 36, 2008.
    """
    density = blocks.calls / blocks.width
    least = max(LEAST_CALLS, LEAST_SHARE * total)
    high = np.flatnonzero(blocks.calls >= least)
    # The densest block that ends before a place, and that begins behind one.
    cells = int(blocks.end.max())
    until, since = np.zeros(cells + 1), np.zeros(cells + 1)
    np.maximum.at(until, blocks.end[high], density[high])
    np.maximum.at(since, blocks.start[high], density[high])
    until, since = np.maximum.accumulate(until), np.maximum.accumulate(since[::-1])[::-1]
    beside = np.minimum(until[blocks.start], since[blocks.end])
    low = np.flatnonzero(DEPTH_RATIO * density < beside)
    before = blocks.end[high][:, None] <= blocks.start[low][None, :]
    after = blocks.start[high][:, None] >= blocks.end[low][None, :]
    found = []
    for apart in (before, after):
        score = np.full(apart.shape, -np.inf, np.float32)
        pairs = np.flatnonzero(apart & (density[high][:, None] > DEPTH_RATIO * density[low][None, :]))
        i, j = np.divmod(pairs, max(len(low), 1))
        keep = blocks.calls[high[i]] - DEPTH_RATIO * blocks.width[high[i]] * density[low[j]] >= least
        i, j = i[keep], j[keep]
        score[i, j] = _scores(blocks, high[i], low[j], total)
        found.append(score)
    return Evidence(high, low, *found)


def _scores(blocks: CellBlocks, high: np.ndarray, low: np.ndarray, total: float) -> np.ndarray:
    a, b = blocks.calls[high], blocks.calls[low]
    both = a + b
    chance = DEPTH_RATIO * blocks.width[high] / (DEPTH_RATIO * blocks.width[high] + blocks.width[low])
    ratio = a * np.log(a / (both * chance)) + b * np.log(np.maximum(b, 1e-300) / (both * (1 - chance)))
    return np.sqrt(2 * np.maximum(ratio, 0)) - np.sqrt(2 * np.log(np.e * total / both))


def chain(found: Evidence, threshold: float) -> list[int]:
    """Find the longest chain of alternately high and low blocks.

    Successive blocks differ significantly. Of chains of equal length, the one with the most evidence is
    taken.

    Parameters
    ----------
    found : Evidence
    threshold : float
        Evidence from which on a difference is significant.

    Returns
    -------
    list of int
        Blocks: high, low, high, ..., high. The high ones belong to different modes. Empty: no antimode is
        significant.
    """
    before = np.where(found.before >= threshold, found.before, -np.inf)
    after = np.where(found.after >= threshold, found.after, -np.inf)
    if not before.size:
        return []
    sum_of_high = np.zeros(len(found.high))
    steps = []
    while True:
        down = sum_of_high[:, None] + before
        sum_of_low = down.max(axis=0)
        up = sum_of_low[None, :] + after
        next_sum = up.max(axis=1)
        if not np.isfinite(next_sum).any():
            break
        steps.append((down.argmax(axis=0), up.argmax(axis=1)))
        sum_of_high = next_sum
    if not steps:
        return []
    high = int(sum_of_high.argmax())
    row = [int(found.high[high])]
    for from_high, from_low in reversed(steps):
        low = int(from_low[high])
        high = int(from_high[low])
        row[:0] = [int(found.high[high]), int(found.low[low])]
    return row

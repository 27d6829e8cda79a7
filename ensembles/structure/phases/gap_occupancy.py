"""Gap occupancy: which parts of the gaps of some ranks are gaps of all ranks.

It refines the phases of a long run that were detected in some ranks.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from ensembles import _compiled
from ensembles.model.events import Call, Events
from ensembles.passes.summary import ANY_ORDER, Summary
from ensembles.summaries.bins import BIN_COUNT, bin_index, bin_low_ns

EVEN_CELLS = 4096
"""Number of equal cells of a gap, if there are few gaps. The last of them are divided into finer cells, as
I/O begins soon after a moment at which all ranks wait for each other. A time without I/O of any rank is
found, exactly, if it is longer than two cells."""

FINE = 64
"""Width of all finer cells together, in equal cells. They are bins of the time left until the gap ends."""

ALL_CELLS = 1 << 21
"""Largest number of cells of all gaps, 44 bytes each."""

_LEFT_OUT = ("seek", "meta", "wait")
_NEVER = np.iinfo(np.int64).max


class GapOccupancy(Summary):
    """A mergeable summary: the I/O of all ranks inside the gaps of some.

    Inner calls, and calls that do not move, open, close or flush anything, are left out.

    Parameters
    ----------
    gap_from, gap_to : ndarray of int64, shape (m,)
        Beginnings and ends of the gaps in ns, both rising. Gaps do not overlap.

    Attributes
    ----------
    arrays : dict of str to ndarray
        For the c cells of each of the m gaps with a width:

        * ``whole``, int32, shape (m, c + 1): number of calls that cover the whole cell, as the difference
          from the cell before
        * ``part``, int64, shape (m, c): time in ns of calls that begin or end in the cell
        * ``first``, ``last``, int64, shape (m, c): earliest beginning and latest end of these calls
        * ``begun``, int32, shape (m, c): number of calls that begin in the cell
        * ``before``, int64, shape (m + 1,): number of calls that begin after the gap before and before this
          gap
    """

    columns = ("call", "depth", "start", "duration")
    requires = ANY_ORDER
    results = ("arrays",)

    def __init__(self, gap_from: np.ndarray, gap_to: np.ndarray) -> None:
        self.gap_from = np.ascontiguousarray(gap_from, np.int64)
        self.gap_to = np.ascontiguousarray(gap_to, np.int64)
        self._wide = self.gap_to > self.gap_from
        self._from, self._to = self.gap_from[self._wide], self.gap_to[self._wide]
        gaps = len(self._from)
        self._width, self._even, self._edge = _cells(self._from, self._to)
        cells = self._edge.shape[1] - 1
        shape = (gaps, cells)
        self.arrays = {
            "whole": np.zeros((gaps, cells + 1), np.int32),
            "part": np.zeros(shape, np.int64),
            "first": np.full(shape, _NEVER),
            "last": np.full(shape, -_NEVER),
            "begun": np.zeros(shape, np.int32),
            "before": np.zeros(gaps + 1, np.int64),
        }

    def add(self, chunk: Events) -> None:
        """Add events."""
        if not len(self._to):
            return
        events = (chunk.start, chunk.duration, chunk.call, chunk.depth, _transfers(chunk.calls))
        grid = (self._from, self._to, self._width, self._even, self._edge)
        _compiled.mark_gaps(*map(np.ascontiguousarray, events), *grid, *self.arrays.values())

    def merge(self, other: GapOccupancy) -> None:
        """Add the occupancy of the same gaps by other calls."""
        same = np.array_equal(self.gap_from, other.gap_from) and np.array_equal(self.gap_to, other.gap_to)
        if not same:
            raise ValueError("occupancies can be merged only if they are of the same gaps")
        mine, theirs = self.arrays, other.arrays
        for name in ("whole", "part", "begun", "before"):
            mine[name] += theirs[name]
        np.minimum(mine["first"], theirs["first"], out=mine["first"])
        np.maximum(mine["last"], theirs["last"], out=mine["last"])

    def to_arrays(self) -> dict[str, np.ndarray]:
        """Return ``gap_from``, ``gap_to``, and `arrays`."""
        return {"gap_from": self.gap_from, "gap_to": self.gap_to, **self.arrays}

    def found(self, few: int, expected: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Find the part of each gap in which no rank is in I/O.

        Of several such parts, it is the one before which the expected number of calls has begun, else the
        widest. If there is no such part, it is the cell with the fewest ranks in I/O, if these are no more
        than `few`; otherwise the gap is dropped.

        Parameters
        ----------
        expected : ndarray of float64, shape (m,), optional
            Number of calls of all ranks that begin between the gap before and each gap, if ranks are in
            lockstep.

        Returns
        -------
        begin, end : ndarray of int64, shape (k,)
            Beginnings and ends of the parts in ns, rising.
        """
        low, high, kept = self.gap_from.copy(), self.gap_to.copy(), np.ones(len(self.gap_to), bool)
        whole = np.cumsum(self.arrays["whole"][:, :-1], axis=1)
        free = (whole == 0) & (self.arrays["first"] == _NEVER) & (self.arrays["last"] == -_NEVER)
        behind = 0
        for gap, place in enumerate(np.flatnonzero(self._wide).tolist()):
            edge = self._edge[gap]
            cells = int(np.searchsorted(edge, self._to[gap]))
            begun = np.concatenate([[0], np.cumsum(self.arrays["begun"][gap, :cells])])
            before, behind = behind + int(self.arrays["before"][gap]), 0
            if free[gap, :cells].all():
                continue
            if free[gap, :cells].any():
                wanted = None if expected is None else expected[place] - before
                low[place], high[place], cell = self._idle(gap, free[gap, :cells], begun, wanted)
                behind = int(begun[-1] - begun[cell])
                continue
            busy = whole[gap, :cells] + self.arrays["part"][gap, :cells] / np.diff(edge[: cells + 1])
            cell = cells - 1 - int(np.argmin(busy[::-1]))
            low[place], high[place] = edge[cell], edge[cell + 1]
            behind = int(begun[-1] - begun[cell])
            kept[place] = busy[cell] <= few
        return low[kept], high[kept]

    def _idle(
        self, gap: int, free: np.ndarray, begun: np.ndarray, wanted: float | None
    ) -> tuple[int, int, int]:
        """Choose the idle part of a gap: its beginning, its end and its first cell."""
        change = np.diff(free.astype(np.int8), prepend=0, append=0)
        begin, behind = np.flatnonzero(change == 1), np.flatnonzero(change == -1)
        # A call that touches the cell before a free one ends in it; one that touches the next begins there.
        low = np.where(begin == 0, self._from[gap], self.arrays["last"][gap, begin - 1])
        after = self.arrays["first"][gap, np.minimum(behind, len(free) - 1)]
        high = np.where(behind == len(free), self._to[gap], after)
        width = high - low
        if wanted is not None and (meant := np.abs(begun[begin] - wanted) < 0.5).any():
            width = np.where(meant, width, 0)
        best = int(np.argmax(width))
        return int(low[best]), int(high[best]), int(begin[best])


def _cells(gap_from: np.ndarray, gap_to: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Compute width and number of the equal cells of each gap, and all edges.

    Edges have the shape (m, c + 1). Those behind the end of a gap lie at its end.
    """
    gaps = max(len(gap_from), 1)
    equal = min(EVEN_CELLS, ALL_CELLS // (2 * gaps))
    width = -((gap_from - gap_to) // equal)
    # Wide enough for the finer cells, within the limit of ALL_CELLS.
    lows = np.minimum(bin_low_ns(), 1 << 62).astype(np.int64)
    most = max(int(lows[min(ALL_CELLS // (2 * gaps), BIN_COUNT - 1)]) - 1, 1)
    fine = np.minimum(np.minimum(FINE * width, gap_to - gap_from), most)
    even = -((gap_from - gap_to + fine) // width)
    bins = bin_index(fine - 1)
    cells = int((even + bins).max(initial=0)) + 1
    number = np.arange(cells + 1)
    equal_edge = np.minimum(gap_from[:, None] + number * width[:, None], (gap_to - fine)[:, None])
    left = lows[np.clip((even + bins + 1)[:, None] - number, 0, BIN_COUNT - 1)]
    fine_edge = np.maximum(gap_to[:, None] - left, (gap_to - fine)[:, None])
    return width, even, np.ascontiguousarray(np.where(number <= even[:, None], equal_edge, fine_edge))


@lru_cache(maxsize=8)
def _transfers(calls: tuple[Call, ...]) -> np.ndarray:
    """Compute which functions move, open, close or flush something: uint8, cached."""
    return np.array([call.op not in _LEFT_OUT for call in calls], np.uint8)

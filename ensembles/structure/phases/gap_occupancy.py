"""Gap occupancy: which parts of the gaps of some ranks are gaps of all ranks.

It refines the phases of a long run that were detected in some ranks.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from ensembles import _compiled
from ensembles.model.events import Call, Events
from ensembles.model.levels import FEWEST_ALONE, MOST, MOST_PIECES, SURE
from ensembles.passes.summary import ANY_ORDER, Summary
from ensembles.summaries.bins import BIN_COUNT, bin_index, bin_low_ns

FINE = 64
"""Width of all finer cells together, in equal cells. They are bins of the time left until the gap ends."""

ALL_CELLS = 1 << 21
"""Largest number of cells of all gaps, 44 bytes each."""

_LEFT_OUT = ("seek", "meta", "wait")
_NEVER = np.iinfo(np.int64).max


class GapOccupancy(Summary):
    """A mergeable summary: the I/O of all ranks inside the gaps of some.

    Inner calls, and calls that do not move, open, close or flush anything, are left out.

    `arrays`: for the c cells of each of the m gaps with a width: * ``whole``, int32, shape (m, c + 1): number
    of calls that cover the whole cell, as the difference from the cell before * ``part``, int64, shape (m,
    c): time in ns of calls that begin or end in the cell * ``first``, ``last``, int64, shape (m, c): earliest
    beginning and latest end of these calls * ``begun``, int32, shape (m, c): number of calls that begin in
    the cell * ``before``, int64, shape (m + 1,): number of calls that begin after the gap before and before
    this gap
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

    def found(self, few: int, expected: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Find the part of each gap in which no rank is in I/O.

        Of several such parts, it is the one before which the expected number of calls has begun, else the
        widest. If there is no such part, it is the cell with the fewest ranks in I/O, if these are no more
        than `few`; otherwise the gap is dropped.
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
    """Compute width and number of the equal cells of each gap, and all edges, (m, c + 1), within it."""
    gaps = max(len(gap_from), 1)
    equal = min(MOST_PIECES, ALL_CELLS // (2 * gaps))
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


GAP_RATIO = 4.0
"""Least ratio of the shortest gap between phases to the longest pause within phases."""

LEVEL = SURE
"""Probability that gaps without phases are divided, at most."""

IDLE_SHARE = MOST
"""Least share of the time without I/O in the gaps between phases."""

TIME_SLICE_NS = 10_000_000
"""Longest time slice of usual kernels, ns. Pauses up to it count as equal: they depend on what else runs."""

CALLS_PER_PHASE = FEWEST_ALONE
"""Least number of calls per phase on average; half of the phases have at least half as many."""

_LEAST_PAUSES = 20
_TAIL_SHARES = (0.01, 0.03, 0.1)


def outstanding_gaps(
    place: np.ndarray, start: np.ndarray, end: np.ndarray, gap_from: np.ndarray, gap_to: np.ndarray
) -> np.ndarray:
    """Find the gaps that stand out of the pauses of the ranks.

    Examples
    --------
    Five bursts of 40 calls; pauses of 1 to 4 µs within, and of 1 s between bursts:

    >>> import numpy as np
    >>> from ensembles.structure.phases.gap_occupancy import outstanding_gaps
    >>> pause = 1000 * (1 + np.arange(200) % 4)
    >>> pause[39::40] = 1_000_000_000
    >>> end = np.cumsum(pause + 500) - pause
    >>> start = end - 500
    >>> outstanding_gaps(np.zeros(200, int), start, end, end[:-1], start[1:])
    array([ 39,  79, 119, 159])
    """
    width = gap_to - gap_from
    order = np.argsort(-width, kind="stable")
    sorted_width = width[order].astype(np.float64)
    most = min(len(width), len(start) // CALLS_PER_PHASE - 1)
    following = np.append(sorted_width[1:], 0)
    # The ratio leaves at most some twenty candidates between 1 ns and a day.
    possible = (sorted_width > TIME_SLICE_NS) & (sorted_width >= GAP_RATIO * following)
    possible &= np.cumsum(sorted_width) >= IDLE_SHARE * sorted_width.sum()
    candidates = np.flatnonzero(possible[:most])
    best, best_evidence = np.empty(0, np.int64), 0.0
    if not len(candidates):
        return best
    pause, widest_inside = _pauses(place, start, end, gap_to, width)
    for k in (candidates + 1).tolist():
        shortest = sorted_width[k - 1]
        within = pause[widest_inside < shortest]
        if sorted_width[0] * float(within.max(initial=TIME_SLICE_NS)) > shortest**2:
            continue
        evidence = _evidence(shortest, k, within)
        chosen = np.sort(order[:k])
        if evidence > best_evidence and _holds_calls(start, gap_to[chosen]):
            best, best_evidence = chosen, evidence
    return best


def _evidence(shortest: float, k: int, within: np.ndarray) -> float:
    """Return minus the logarithm of the corrected probability of the spacing; positive: it is significant."""
    if len(within) < _LEAST_PAUSES:
        return -np.inf
    within = np.maximum(within.astype(np.float64), TIME_SLICE_NS)
    spacing = np.log(shortest) - np.log(within.max())
    if spacing < np.log(GAP_RATIO):
        return -np.inf
    tail = np.log(-np.sort(np.partition(-within, most := _tail_sizes(len(within))[-1])[: most + 1]))
    # Where the tail bends, the heaviest part of it counts.
    excess = [float((tail[:size] - tail[size]).mean()) for size in _tail_sizes(len(within))]
    mean_excess = max(*excess, MOST)
    # The level is divided among all k by 1 / (k (k + 1)), whose sum is 1.
    return float(k * spacing / mean_excess + np.log(LEVEL / (k * (k + 1))))


def _tail_sizes(n: int) -> tuple[int, ...]:
    """Return the numbers of largest pauses from which the tail is estimated, rising."""
    return tuple(
        sorted({_LEAST_PAUSES // 2, *(max(int(share * n), _LEAST_PAUSES // 2) for share in _TAIL_SHARES)})
    )


def _holds_calls(start: np.ndarray, gap_to: np.ndarray) -> bool:
    """Check that half of the phases have enough calls."""
    calls = np.diff(np.searchsorted(start, gap_to, side="left"), prepend=0, append=len(start))
    return bool(np.median(calls) >= CALLS_PER_PHASE / 2)


def _pauses(
    place: np.ndarray, start: np.ndarray, end: np.ndarray, gap_to: np.ndarray, width: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the pauses of each rank between its calls, ns, and the widest gap that ends inside each."""
    order = np.lexsort((start, place))
    place, start, end = place[order], start[order], end[order]
    # Ends of overlapping calls of several threads: the latest so far, separately for each rank.
    reach = end.copy()
    bounds = np.flatnonzero(np.diff(place, prepend=place[0] - 1))
    for low, high in zip(bounds.tolist(), np.append(bounds[1:], len(place)).tolist(), strict=True):
        np.maximum.accumulate(end[low:high], out=reach[low:high])
    same = place[1:] == place[:-1]
    begin, stop = reach[:-1][same], start[1:][same]
    idle = np.maximum(stop - begin, 0)
    low = np.searchsorted(gap_to, begin, side="right")
    high = np.searchsorted(gap_to, stop, side="right")
    inside = np.zeros(len(idle), np.int64)
    with_gap = np.flatnonzero(high > low)
    if len(with_gap):
        pairs = np.stack([low[with_gap], high[with_gap]], axis=1).reshape(-1)
        inside[with_gap] = np.maximum.reduceat(np.append(width, 0), pairs)[::2]
    return idle, inside

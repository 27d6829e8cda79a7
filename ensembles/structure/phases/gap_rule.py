"""Phases inferred from the I/O alone: from ranks in lockstep, or from wide gaps.

When the ranks of a program wait for each other, no call lies across that moment: there is a *gap* in the I/O
of all. Not every gap is such a moment. Two rules choose gaps:

*Lockstep* (``steps``): a phase ends at a gap by which (nearly) all ranks have made equally many calls since
the phase before ended. It goes on while ranks with fewer calls are at work. A stretch of I/O between two gaps
in which all ranks make equally many calls is a phase too, so that one irregular phase does not hide the next.

*Gaps* (``gaps``): otherwise the widest gaps, if they are clearly wider than the others, and if at least half
of the ranks are at work between them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ensembles.structure.phases.barriers import NEARLY_ALL
from ensembles.structure.phases.lockstep import lockstep_cuts

MOST_GAPS = 8192
"""Largest number of gaps that are examined: the widest."""

GAP_RATIO = 4.0
"""Rule of gaps: least ratio of the narrowest gap between phases to the widest gap within."""

IDLE_SHARE = 0.9
"""Rule of gaps: least share of the time without I/O in the gaps between phases."""

BACK_TO_BACK = 4.0
"""Rule of lockstep: least ratio of the idle time of ranks across a gap to that between calls of a phase."""


@dataclass(frozen=True)
class InferredPhases:
    """Moments that divide the I/O of a run into phases.

    Attributes
    ----------
    cuts_ns : ndarray of int64, shape (m,)
        Beginnings of phases in ns, rising.
    gap_from, gap_to : ndarray of int64, shape (m,)
        Beginning and end in ns of the gap of each.
    rule : str
        ``"steps"``, ``"gaps"`` or ``"none"``.
    share : float
        Share of the calls in phases in which the ranks were in lockstep.
    gaps_left_out : int
        Number of gaps that were too narrow to be examined.
    """

    cuts_ns: np.ndarray
    gap_from: np.ndarray
    gap_to: np.ndarray
    rule: str
    share: float
    gaps_left_out: int

    @property
    def left_out(self) -> str:
        """A clause about the gaps left out, begun by a semicolon, or ``""``."""
        return f"; only the {MOST_GAPS:,} widest gaps were examined" if self.gaps_left_out else ""


def infer_phases(rank: np.ndarray, start: np.ndarray, end: np.ndarray, group: np.ndarray) -> InferredPhases:
    """Infer phases from I/O calls.

    Parameters
    ----------
    rank, start, end : ndarray of integers, shape (n,)
        Rank, start and end in ns of outermost calls.
    group : ndarray of integers, shape (n,)
        Kind of each call, such as its operation.

    Returns
    -------
    InferredPhases

    Examples
    --------
    Two ranks that make a call of 8 ns each, pause, and make another one:

    >>> from ensembles.structure.phases.gap_rule import infer_phases
    >>> rank, start = np.array([0, 0, 1, 1]), np.array([0, 100, 1, 101])
    >>> found = infer_phases(rank, start, start + 8, np.zeros(4, int))
    >>> found.rule, found.cuts_ns
    ('steps', array([10]))
    """
    nothing = np.empty(0, np.int64)
    if not len(rank):
        return InferredPhases(nothing, nothing, nothing, "none", 0.0, 0)
    order = np.argsort(start, kind="stable")
    rank, start, end, group = rank[order], start[order], end[order], group[order]
    used = np.bincount(rank) > 0
    ranks, place = int(np.count_nonzero(used)), (np.cumsum(used) - 1)[rank]
    gap_from, gap_to, left_out = _gaps(start, end, int((1 - NEARLY_ALL) * ranks + 1e-9))
    if not len(gap_from):
        return InferredPhases(nothing, nothing, nothing, "none", 0.0, left_out)

    def steps(chosen: np.ndarray, rule: str, share: float) -> InferredPhases:
        low, high = gap_from[chosen], gap_to[chosen]
        return InferredPhases(cuts_in(low, high), low, high, rule, share, left_out)

    if ranks > 1:
        chosen, share = lockstep_cuts(place, start, group, gap_from, gap_to)
        chosen = chosen[_waited(place, start, end, gap_to, chosen)]
        if share >= 0.5 and len(chosen):
            return steps(chosen, "steps", share)
    wide = _widest(gap_to - gap_from)
    if ranks > 1 and not _shared(place, start, gap_to[wide], ranks):
        wide = wide[:0]
    return steps(wide, "gaps" if len(wide) else "none", 0.0)


def cuts_in(gap_from: np.ndarray, gap_to: np.ndarray) -> np.ndarray:
    """Compute where in each gap the next phase begins: at once.

    A call inside the gap that is not a transfer (a seek) prepares the transfers that follow.
    """
    return np.minimum(gap_from + 1, gap_to)


def _gaps(start: np.ndarray, end: np.ndarray, few: int) -> tuple[np.ndarray, np.ndarray, int]:
    """Find the times in which no rank is in I/O.

    If a time with at most `few` ranks in I/O holds no such moment, its part with the fewest ranks counts.

    Returns
    -------
    gap_from, gap_to : ndarray of int64, shape (g,)
        End of the I/O before each gap, and beginning of the I/O after it.
    left_out : int
        Number of gaps that are left out.
    """
    reach = np.maximum.accumulate(end)
    at = np.flatnonzero(start[1:] >= reach[:-1])
    gap_from, gap_to = reach[at], start[at + 1]
    if few:
        low_from, low_to = _lulls(start, end, few)
        inside = np.searchsorted(gap_to, low_from, side="left") < np.searchsorted(
            gap_to, low_to, side="right"
        )
        gap_from = np.concatenate([gap_from, low_from[~inside]])
        gap_to = np.concatenate([gap_to, low_to[~inside]])
    left_out = max(0, len(gap_to) - MOST_GAPS)
    if left_out:
        widest = np.argpartition(gap_from - gap_to, MOST_GAPS)[:MOST_GAPS]
        gap_from, gap_to = gap_from[widest], gap_to[widest]
    order = np.argsort(gap_to, kind="stable")
    return gap_from[order], gap_to[order], left_out


def _lulls(start: np.ndarray, end: np.ndarray, few: int) -> tuple[np.ndarray, np.ndarray]:
    """Find the quietest part of each time between I/O of more than `few` calls."""
    # Sorted stably, ends go before the starts of the same time.
    time = np.concatenate([end, start])
    change = np.repeat([-1, 1], len(start))
    order = np.argsort(time, kind="stable")
    time, busy = time[order], np.cumsum(change[order])
    quiet = np.flatnonzero(busy[:-1] <= few)
    if not len(quiet):
        return np.empty(0, np.int64), np.empty(0, np.int64)
    stretch = np.cumsum(np.diff(quiet, prepend=quiet[0]) > 1)
    inner = (stretch > 0) if quiet[0] == 0 else np.ones(len(quiet), bool)
    inner &= (stretch < stretch[-1]) | (quiet[-1] < len(busy) - 2)
    quiet, stretch = quiet[inner], stretch[inner]
    best = np.lexsort((time[quiet] - time[quiet + 1], busy[quiet], stretch))
    best = quiet[best[np.unique(stretch[best], return_index=True)[1]]]
    return time[best], time[best + 1]


def _waited(
    place: np.ndarray, start: np.ndarray, end: np.ndarray, gap_to: np.ndarray, chosen: np.ndarray
) -> np.ndarray:
    """Compute across which of the chosen gaps the ranks waited: bool.

    Ranks that make calls back to back may happen to be between two calls at the same time.
    """
    keep = np.ones(len(chosen), bool)
    # Calls come in the order of start. Numbers of 16 bits are sorted by radix.
    order = np.argsort(place.astype(np.uint16) if place.max() < 1 << 16 else place, kind="stable")
    place, start, end = place[order], start[order], end[order]
    same = place[1:] == place[:-1]
    idle, before, after = (start[1:] - end[:-1])[same], start[:-1][same], start[1:][same]
    low = np.searchsorted(gap_to[chosen], before, side="right")
    high = np.searchsorted(gap_to[chosen], after, side="right")
    within = low == high
    if not len(chosen) or np.count_nonzero(within) < 5:
        return keep
    usual = max(float(np.median(idle[within])), 0.0)
    across = np.flatnonzero(high == low + 1)
    across = across[np.lexsort((idle[across], low[across]))]
    gap, first, counts = np.unique(low[across], return_index=True, return_counts=True)
    typical = idle[across][first + counts // 2]
    keep[gap] = typical > BACK_TO_BACK * usual
    return keep


def _shared(place: np.ndarray, start: np.ndarray, gap_to: np.ndarray, ranks: int) -> bool:
    """Check that most calls are in stretches with I/O of at least half of the ranks.

    Ranks that work at different times make gaps too.
    """
    stretch = np.searchsorted(gap_to, start, side="right")
    members = np.bincount(np.unique(stretch * np.int64(ranks) + place) // ranks, minlength=len(gap_to) + 1)
    return bool(np.mean(2 * members[stretch] >= ranks) > 0.5)


def _widest(width: np.ndarray) -> np.ndarray:
    """Find the gaps that are clearly wider than the others: positions, rising.

    There are none if the sorted widths have no clear step.
    """
    order = np.argsort(-width, kind="stable")
    sorted_width = width[order].astype(np.float64)
    enough = np.cumsum(sorted_width) >= IDLE_SHARE * sorted_width.sum()
    ratio = sorted_width / np.maximum(np.append(sorted_width[1:], 0), 1)
    # The width of a single gap has nothing to compare with.
    ratio[-1] = 0
    ratio[~enough | (sorted_width <= 0)] = 0
    best = int(np.argmax(ratio))
    return np.sort(order[: best + 1]) if ratio[best] >= GAP_RATIO else np.empty(0, np.int64)

"""Phases that nobody recorded, from the I/O alone: ranks in step, or wide gaps.

Where the ranks of a program wait for each other, no call of theirs lies across that moment: there is a *gap*
in the I/O of all. Not every gap is such a moment. Two rules choose:

*In step*: a phase ends at a gap by which (nearly) all ranks have made equally many calls since the last one
ended, and goes on as long as ranks that made fewer are at work. A stretch of I/O between two gaps in which by
itself all ranks make equally many calls is a phase too, so that one irregular phase does not hide the next.

*Gaps*: else the widest gaps, where there is a clear step in width between them and the others, and at
least half of the ranks are at work between them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ensembles.structure.phases.barriers import NEARLY_ALL
from ensembles.structure.phases.lockstep import lockstep_cuts

MOST_GAPS = 8192
"""Gaps that are looked at: the widest."""

GAP_RATIO = 4.0
"""How many times wider the narrowest gap between phases is than the widest within, by the rule of gaps."""

IDLE_SHARE = 0.9
"""Share of the time without I/O that lies in the gaps between phases, by the rule of gaps."""

BACK_TO_BACK = 4.0
"""A gap across which ranks are idle no longer than this many times what they are between calls of a phase is
none."""


@dataclass(frozen=True)
class InferredPhases:
    """Moments that part the I/O of a run.

    Attributes
    ----------
    cuts_ns : ndarray of int64, shape (m,)
        Rising.
    gap_from, gap_to : ndarray of int64, shape (m,)
        Where the gap is of which each is the beginning, ns.
    rule : str
        ``"steps"``, ``"gaps"`` or ``"none"``.
    share : float
        Share of the calls that are in phases in which the ranks were in step.
    gaps_left_out : int
        Gaps that were too narrow to be among those looked at.
    """

    cuts_ns: np.ndarray
    gap_from: np.ndarray
    gap_to: np.ndarray
    rule: str
    share: float
    gaps_left_out: int

    @property
    def left_out(self) -> str:
        """The same in words, begun by a semicolon, or ``""``."""
        return f"; gaps narrower than the {MOST_GAPS:,} widest were left out" if self.gaps_left_out else ""


def infer_phases(rank: np.ndarray, start: np.ndarray, end: np.ndarray, group: np.ndarray) -> InferredPhases:
    """Find phases in I/O.

    Parameters
    ----------
    rank, start, end : ndarray, shape (n,)
        Of calls that are in no other; ns.
    group : ndarray of integers, shape (n,)
        What kind of call each is.
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
    """Where in gaps a phase begins: at once. What lies in them and is no transfer (a seek) prepares those
    that follow."""
    return np.minimum(gap_from + 1, gap_to)


def _gaps(start: np.ndarray, end: np.ndarray, few: int) -> tuple[np.ndarray, np.ndarray, int]:
    """When no rank is in I/O; or where a time in which `few` are holds no such moment, when the fewest are.

    Returns
    -------
    ndarray of int64, shape (g,), ndarray of int64, shape (g,), int
        Ends and beginnings of I/O on both sides, and how many gaps are left out.
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
    """The quietest part of each time between I/O of more than `few` calls at once: its ends, int64."""
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
    """Which of the chosen gaps the ranks did not just pass on their way from a call to the next: bool.

    Ranks that make calls one right after the other may happen to be between two calls at the same time.
    """
    keep = np.ones(len(chosen), bool)
    # They come in the order of start. Numbers of 16 bits are sorted in one go.
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
    """Whether most calls are in stretches with I/O of at least half of the ranks: that ranks are at work at
    different times makes gaps too."""
    stretch = np.searchsorted(gap_to, start, side="right")
    members = np.bincount(np.unique(stretch * np.int64(ranks) + place) // ranks, minlength=len(gap_to) + 1)
    return bool(np.mean(2 * members[stretch] >= ranks) > 0.5)


def _widest(width: np.ndarray) -> np.ndarray:
    """Positions of the gaps that stand out by their width, rising; none where the widths have no clear
    step."""
    order = np.argsort(-width, kind="stable")
    sorted_width = width[order].astype(np.float64)
    enough = np.cumsum(sorted_width) >= IDLE_SHARE * sorted_width.sum()
    ratio = sorted_width / np.maximum(np.append(sorted_width[1:], 0), 1)
    # With one gap alone there is nothing to compare its width with.
    ratio[-1] = 0
    ratio[~enough | (sorted_width <= 0)] = 0
    best = int(np.argmax(ratio))
    return np.sort(order[: best + 1]) if ratio[best] >= GAP_RATIO else np.empty(0, np.int64)

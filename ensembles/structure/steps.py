"""Phases that nobody recorded, from the I/O alone: ranks in step, or wide gaps.

Where the ranks of a program wait for each other, no call of theirs lies across that moment: there is a *gap*
in the I/O of all. Not every gap is such a moment. Two rules choose:

*In step*: a phase ends at a gap by which (nearly) all ranks have made equally many calls since the last one
ended, and goes on as long as ranks that made fewer are at work. A stretch of I/O between two gaps in which by
itself all ranks make equally many calls is a phase too, so that one irregular phase does not hide the next.

*Gaps*: else the widest gaps, where there is a clear step in width between them and the others.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ensembles.structure.barriers import NEARLY_ALL

MOST_GAPS = 8192
"""Gaps that are looked at: the widest."""

GAP_RATIO = 4.0
"""How many times wider the narrowest gap between phases is than the widest within, by the rule of gaps."""

IDLE_SHARE = 0.9
"""Share of the time without I/O that lies in the gaps between phases, by the rule of gaps."""

_MOST_STEPS = 10 * MOST_GAPS
_MOST_RESTARTS = 16

BACK_TO_BACK = 4.0
"""A gap across which ranks are idle no longer than this many times what they are between calls of a phase is
none."""


@dataclass(frozen=True)
class Steps:
    """Moments that part the I/O of a run.

    Attributes
    ----------
    cuts_ns : ndarray of int64, shape (m,)
        Rising.
    rule : str
        ``"steps"``, ``"gaps"`` or ``"none"``.
    share : float
        Share of the calls that are in phases in which the ranks were in step.
    gaps_left_out : int
        Gaps that were too narrow to be among those looked at.
    """

    cuts_ns: np.ndarray
    rule: str
    share: float
    gaps_left_out: int


def steps_of(rank: np.ndarray, start: np.ndarray, end: np.ndarray, group: np.ndarray) -> Steps:
    """Find phases in I/O.

    Parameters
    ----------
    rank, start, end : ndarray, shape (n,)
        Of calls that are in no other; ns.
    group : ndarray of integers, shape (n,)
        What kind of call each is.
    """
    if not len(rank):
        return Steps(np.empty(0, np.int64), "none", 0.0, 0)
    order = np.argsort(start, kind="stable")
    rank, start, end, group = rank[order], start[order], end[order], group[order]
    ranks, place = np.unique(rank, return_inverse=True)
    gap_from, gap_to, left_out = _gaps(start, end, int((1 - NEARLY_ALL) * len(ranks) + 1e-9))
    if not len(gap_from):
        return Steps(np.empty(0, np.int64), "none", 0.0, left_out)
    # What is no transfer (a seek) but lies in a gap, prepares those that follow.
    cuts_ns = np.minimum(gap_from + 1, gap_to)
    if len(ranks) > 1:
        chosen, share = _in_step(place, start, group, gap_from, gap_to)
        chosen = chosen[_waited(place, start, end, gap_to, chosen)]
        if share >= 0.5 and len(chosen):
            return Steps(cuts_ns[chosen], "steps", share, left_out)
    wide = _widest(gap_to - gap_from)
    return Steps(cuts_ns[wide], "gaps" if len(wide) else "none", 0.0, left_out)


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
    time = np.concatenate([start, end])
    change = np.repeat([1, -1], len(start))
    order = np.lexsort((change, time))
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


@dataclass(frozen=True)
class _Stretches:
    """The I/O between gaps.

    Attributes
    ----------
    ranks : int
    begin : ndarray, shape (s + 1,)
        Where each stretch begins among the entries that follow.
    member : ndarray, shape (k,)
        A rank with calls in a stretch.
    amount : ndarray of float64, shape (k,)
        What of its calls is compared.
    calls : ndarray, shape (s,)
        All calls of each stretch.
    gap_ns : ndarray, shape (s - 1,)
        Width of the gap behind each.
    """

    ranks: int
    begin: np.ndarray
    member: np.ndarray
    amount: np.ndarray
    calls: np.ndarray
    gap_ns: np.ndarray


def _in_step(
    place: np.ndarray, start: np.ndarray, group: np.ndarray, gap_from: np.ndarray, gap_to: np.ndarray
) -> tuple[np.ndarray, float]:
    """Which gaps end phases by the rule of steps, and the share of the calls that are in step.

    The calls are read in several ways, and the reading by which most are in step counts: all calls; those of
    one operation alone (others may depend on the data, as the reads of data sieving do); and each as a share
    of what its rank makes in all, for a rank that by its nature makes more calls than others is in step all
    the same.
    """
    ranks = int(place.max()) + 1
    stretch = np.searchsorted(gap_to, start, side="right")
    calls = np.bincount(stretch, minlength=len(gap_to) + 1)
    best, best_share = np.empty(0, np.int64), -1.0
    groups = np.unique(group)
    for wanted in [None, *groups.tolist()] if len(groups) > 1 else [None]:
        mine = slice(None) if wanted is None else group == wanted
        key, made = np.unique(stretch[mine] * np.int64(ranks) + place[mine], return_counts=True)
        begin = np.searchsorted(key // ranks, np.arange(len(calls) + 1))
        of_rank = np.bincount(key % ranks, made, minlength=ranks)
        for amount in (made.astype(np.float64), made / of_rank[key % ranks]):
            stretches = _Stretches(ranks, begin, key % ranks, amount, calls, gap_to - gap_from)
            chosen, share = _Walk(stretches).phases()
            if share > best_share + 0.01:
                best, best_share = chosen, share
            if best_share >= NEARLY_ALL:
                return best, best_share
    return best, best_share


class _Walk:
    """Goes through stretches, and ends phases where the ranks are in step.

    Where an irregular phase is followed by none in step, it starts again behind wide gaps.
    """

    def __init__(self, stretches: _Stretches) -> None:
        self._stretches = stretches
        self._need = max(2, int(np.ceil(NEARLY_ALL * stretches.ranks)))
        self._calls = np.concatenate([[0], np.cumsum(stretches.calls)])
        self._steps_left = _MOST_STEPS

    def phases(self) -> tuple[np.ndarray, float]:
        """Positions of the gaps that end phases, and the share of the calls that are in phases in step."""
        cuts, in_step = self._part(0, len(self._stretches.calls))
        return np.array(cuts, np.int64), in_step / int(self._calls[-1]) if cuts else 0.0

    def _part(self, low: int, high: int) -> tuple[list[int], int]:
        """The same of the stretches from `low` to `high`; calls in step."""
        cuts, in_step, irregular = self._through(low, high)
        for first, behind in irregular:
            further, more = self._split(first, behind)
            cuts += further
            in_step += more
        return sorted(cuts), in_step

    def _split(self, low: int, high: int) -> tuple[list[int], int]:
        """The same of stretches that together are not in step: behind one of the widest gaps there may be
        some that are."""
        gaps = low + np.argsort(-self._stretches.gap_ns[low : high - 1], kind="stable")[:_MOST_RESTARTS]
        for gap in gaps.tolist():
            if self._steps_left <= 0:
                break
            behind, in_step = self._part(gap + 1, high)
            if in_step:
                before, more = self._part(low, gap + 1)
                return [*before, gap, *behind], in_step + more
        return [], 0

    def _through(self, low: int, high: int) -> tuple[list[int], int, list[tuple[int, int]]]:
        """Once from `low` to `high`: gaps, calls in step, and the phases that were not in step, from their
        first stretch to the one behind."""
        stretches = self._stretches
        begin = stretches.begin
        done = np.zeros(stretches.ranks)
        cuts: list[int] = []
        irregular: list[tuple[int, int]] = []
        first, in_step = low, 0
        usual, complete, last = 0.0, False, -1

        def end(behind: int) -> int:
            if not complete:
                irregular.append((first, behind))
                return 0
            return int(self._calls[behind] - self._calls[first])

        numbers = low + np.flatnonzero(begin[low + 1 : high + 1] > begin[low:high])
        self._steps_left -= len(numbers)
        for number in numbers.tolist():
            who = stretches.member[begin[number] : begin[number + 1]]
            more = stretches.amount[begin[number] : begin[number + 1]]
            owing = np.count_nonzero(done[who] < usual * (1 - 1e-9))
            if last >= 0 and (2 * owing <= len(who) if complete else self._alike(more)[0]):
                # What is not compared may lie between: then the widest of the gaps.
                gap = last + int(np.argmax(stretches.gap_ns[last:number]))
                cuts.append(gap)
                in_step += end(gap + 1)
                first = gap + 1
                done[:] = 0
            done[who] += more
            last = number
            complete, usual = self._alike(done[done > 0])
        return cuts, in_step + end(high), irregular

    def _alike(self, amounts: np.ndarray) -> tuple[bool, float]:
        """Whether (nearly) all ranks have the same amount, and which."""
        if len(amounts) < self._need:
            return False, 0.0
        usual = float(np.partition(amounts, len(amounts) // 2)[len(amounts) // 2])
        alike = np.count_nonzero(np.abs(amounts - usual) <= 1e-9 * usual)
        return alike >= max(self._need, NEARLY_ALL * len(amounts)), usual


def _waited(
    place: np.ndarray, start: np.ndarray, end: np.ndarray, gap_to: np.ndarray, chosen: np.ndarray
) -> np.ndarray:
    """Which of the chosen gaps the ranks did not just pass on their way from a call to the next: bool.

    Ranks that make calls one right after the other may happen to be between two calls at the same time.
    """
    keep = np.ones(len(chosen), bool)
    order = np.lexsort((start, place))
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

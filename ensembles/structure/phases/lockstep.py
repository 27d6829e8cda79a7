"""Rule of lockstep: a phase ends when all ranks have made equally many calls."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ensembles.structure.phases.barriers import NEARLY_ALL

_MOST_STEPS = 1 << 14
"""Largest number of stretches that are examined again, behind gaps, in each reading."""

_MOST_RESTARTS = 16


@dataclass(frozen=True)
class _Stretches:
    """The stretches of I/O between gaps.

    Attributes
    ----------
    ranks : int
        Number of ranks.
    begin : ndarray of int, shape (s + 1,)
        Index of the first entry of each stretch in `member` and `amount`.
    member : ndarray of int, shape (k,)
        Ranks with calls in a stretch.
    amount : ndarray of float64, shape (k,)
        Number of their calls, or its share of all calls of the rank.
    calls : ndarray of int, shape (s,)
        Number of calls of each stretch.
    gap_ns : ndarray of int, shape (s - 1,)
        Width of the gap after each stretch.
    """

    ranks: int
    begin: np.ndarray
    member: np.ndarray
    amount: np.ndarray
    calls: np.ndarray
    gap_ns: np.ndarray


def lockstep_cuts(
    place: np.ndarray, start: np.ndarray, group: np.ndarray, gap_from: np.ndarray, gap_to: np.ndarray
) -> tuple[np.ndarray, float]:
    """Find the gaps that end phases by the rule of lockstep.

    The calls are counted in several ways, and the one that puts most calls in lockstep is used: all calls;
    the calls of one operation (others may depend on the data, such as the reads of data sieving); and calls
    as a share of all calls of their rank, as a rank may always make more calls than others.

    Parameters
    ----------
    place : ndarray of int, shape (n,)
        Rank of each call, numbered from 0 without holes.
    start : ndarray of int64, shape (n,)
        Start in ns, rising.
    group : ndarray of int, shape (n,)
        Operation.
    gap_from, gap_to : ndarray of int64, shape (g,)
        Gaps in ns, rising.

    Returns
    -------
    chosen : ndarray of int64, shape (m,)
        Positions of the gaps that end phases.
    share : float
        Share of the calls in phases in lockstep.
    """
    ranks = int(place.max()) + 1
    stretch = np.searchsorted(gap_to, start, side="right")
    calls = np.bincount(stretch, minlength=len(gap_to) + 1)
    best, best_share = np.empty(0, np.int64), -1.0
    groups = np.unique(group)
    for wanted in [None, *groups.tolist()] if len(groups) > 1 else [None]:
        mine = slice(None) if wanted is None else group == wanted
        key, made = _counted(stretch[mine] * np.int64(ranks) + place[mine])
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


def _counted(key: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Count the keys: unique keys, rising, and counts."""
    if key.max() > 4 * len(key):
        return np.unique(key, return_counts=True)
    counts = np.bincount(key)
    used = np.flatnonzero(counts)
    return used, counts[used]


class _Walk:
    """A walk through stretches that ends phases where the ranks are in lockstep.

    If no phase in lockstep follows an irregular one, the walk starts again behind wide gaps.
    """

    def __init__(self, stretches: _Stretches) -> None:
        self._stretches = stretches
        self._need = max(2, int(np.ceil(NEARLY_ALL * stretches.ranks)))
        self._calls = np.concatenate([[0], np.cumsum(stretches.calls)])
        self._steps_left = _MOST_STEPS + len(stretches.calls)

    def phases(self) -> tuple[np.ndarray, float]:
        """Find the gaps that end phases, and the share of the calls in phases in lockstep."""
        cuts, calls_in_step = self._part(0, len(self._stretches.calls))
        return np.array(cuts, np.int64), calls_in_step / int(self._calls[-1]) if cuts else 0.0

    def _part(self, low: int, high: int) -> tuple[list[int], int]:
        """Find the gaps between `low` and `high`, and the number of calls in lockstep."""
        cuts, calls_in_step, irregular = self._through(low, high)
        for first, behind in irregular:
            further, more = self._split(first, behind)
            cuts += further
            calls_in_step += more
        return sorted(cuts), calls_in_step

    def _split(self, low: int, high: int) -> tuple[list[int], int]:
        """Find gaps in an irregular phase.

        Behind one of its widest gaps, the ranks may be in lockstep.
        """
        begin = self._stretches.begin
        if self._steps_left <= 0 or begin[high] - begin[low] < self._need:
            return [], 0
        gaps = low + np.argsort(-self._stretches.gap_ns[low : high - 1], kind="stable")[:_MOST_RESTARTS]
        for gap in gaps.tolist():
            if self._steps_left <= 0:
                break
            behind, calls_in_step = self._part(gap + 1, high)
            if calls_in_step:
                before, more = self._part(low, gap + 1)
                return [*before, gap, *behind], calls_in_step + more
        return [], 0

    def _through(self, low: int, high: int) -> tuple[list[int], int, list[tuple[int, int]]]:
        """Walk once from `low` to `high`.

        Returns the gaps, the calls in lockstep, and the irregular phases (first stretch, stretch after last).
        """
        stretches = self._stretches
        begin = stretches.begin
        done = np.zeros(stretches.ranks)
        cuts: list[int] = []
        irregular: list[tuple[int, int]] = []
        first, calls_in_step = low, 0
        usual, complete, last = 0.0, False, -1

        def end(behind: int) -> int:
            if not complete:
                irregular.append((first, behind))
                return 0
            return int(self._calls[behind] - self._calls[first])

        numbers = low + np.flatnonzero(begin[low + 1 : high + 1] > begin[low:high])
        self._steps_left -= len(numbers) + 4
        for number in numbers.tolist():
            who = stretches.member[begin[number] : begin[number + 1]]
            more = stretches.amount[begin[number] : begin[number + 1]]
            owing = np.count_nonzero(done[who] < usual * (1 - 1e-9))
            if last >= 0 and (2 * owing <= len(who) if complete else self._alike(more)[0]):
                # Calls of other operations may lie between: then the widest of the gaps.
                gap = last + int(np.argmax(stretches.gap_ns[last:number]))
                cuts.append(gap)
                calls_in_step += end(gap + 1)
                first = gap + 1
                done[:] = 0
            done[who] += more
            last = number
            complete, usual = self._alike(done[done > 0])
        return cuts, calls_in_step + end(high), irregular

    def _alike(self, amounts: np.ndarray) -> tuple[bool, float]:
        """Check whether (nearly) all ranks have the same amount, and return it."""
        if len(amounts) < self._need:
            return False, 0.0
        usual = float(np.partition(amounts, len(amounts) // 2)[len(amounts) // 2])
        alike = np.count_nonzero(np.abs(amounts - usual) <= 1e-9 * usual)
        return bool(alike >= max(self._need, NEARLY_ALL * len(amounts))), usual

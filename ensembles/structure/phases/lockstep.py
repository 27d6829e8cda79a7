"""The rule of steps: a phase ends at a gap by which (nearly) all ranks have made equally many calls."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ensembles.structure.phases.barriers import NEARLY_ALL

_MOST_STEPS = 1 << 14
"""Stretches that are gone through again, behind gaps, in each reading."""

_MOST_RESTARTS = 16


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


def lockstep_cuts(
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
    """The different keys, rising, and how often each occurs."""
    if key.max() > 4 * len(key):
        return np.unique(key, return_counts=True)
    counts = np.bincount(key)
    used = np.flatnonzero(counts)
    return used, counts[used]


class _Walk:
    """Goes through stretches, and ends phases where the ranks are in step.

    Where an irregular phase is followed by none in step, it starts again behind wide gaps.
    """

    def __init__(self, stretches: _Stretches) -> None:
        self._stretches = stretches
        self._need = max(2, int(np.ceil(NEARLY_ALL * stretches.ranks)))
        self._calls = np.concatenate([[0], np.cumsum(stretches.calls)])
        self._steps_left = _MOST_STEPS + len(stretches.calls)

    def phases(self) -> tuple[np.ndarray, float]:
        """Positions of the gaps that end phases, and the share of the calls that are in phases in step."""
        cuts, calls_in_step = self._part(0, len(self._stretches.calls))
        return np.array(cuts, np.int64), calls_in_step / int(self._calls[-1]) if cuts else 0.0

    def _part(self, low: int, high: int) -> tuple[list[int], int]:
        """The same of the stretches from `low` to `high`; calls in step."""
        cuts, calls_in_step, irregular = self._through(low, high)
        for first, behind in irregular:
            further, more = self._split(first, behind)
            cuts += further
            calls_in_step += more
        return sorted(cuts), calls_in_step

    def _split(self, low: int, high: int) -> tuple[list[int], int]:
        """The same of stretches that together are not in step: behind one of the widest gaps there may be
        some that are."""
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
        """Once from `low` to `high`: gaps, calls in step, and the phases that were not in step, from their
        first stretch to the one behind."""
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
                # What is not compared may lie between: then the widest of the gaps.
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
        """Whether (nearly) all ranks have the same amount, and which."""
        if len(amounts) < self._need:
            return False, 0.0
        usual = float(np.partition(amounts, len(amounts) // 2)[len(amounts) // 2])
        alike = np.count_nonzero(np.abs(amounts - usual) <= 1e-9 * usual)
        return bool(alike >= max(self._need, NEARLY_ALL * len(amounts))), usual

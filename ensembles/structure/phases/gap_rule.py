"""Phases inferred from the I/O alone: from ranks in lockstep, or from wide gaps.

When the ranks of a program wait for each other, no call lies across that moment: there is a *gap* in the I/O
of all. Not every gap is such a moment. Two rules choose gaps:

*Lockstep* (``steps``): a phase ends at a gap by which (nearly) all ranks have made equally many calls since
the phase before ended. It goes on while ranks with fewer calls are at work. A stretch of I/O between two gaps
in which all ranks make equally many calls is a phase too, so that one irregular phase does not hide the next.

*Gaps* (``gaps``): otherwise gaps that stand out of the pauses of the ranks (`outstanding_gaps`), if at least
half of the ranks are at work between them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ensembles.model.distinct import distinct
from ensembles.model.events import OPS, Events, is_io_of_calls
from ensembles.model.levels import FEW, NEARLY_ALL
from ensembles.passes.summary import Summary
from ensembles.structure.phases.gap_occupancy import outstanding_gaps

_NO_TRANSFER = ("seek", "meta", "wait")

MOST_GAPS = 8192
"""Largest number of gaps that are examined: the widest."""

BACK_TO_BACK = 4.0
"""Rule of lockstep: least ratio of the idle time of ranks across a gap to that between calls of a phase."""

_MOST_STEPS = 1 << 14
"""Largest number of stretches that are examined again, behind gaps, in each reading."""

_MOST_RESTARTS = 16


class TopLevelCalls(Summary):
    """A mergeable summary: the outermost I/O calls of a run, 21 bytes each.

    `of_rank`: number of calls of each rank.
    """

    results = ("of_rank", "_parts")

    def __init__(self) -> None:
        self.of_rank = np.zeros(0, np.int64)
        self._parts: list[tuple[np.ndarray, ...]] = []

    @property
    def total(self) -> int:
        """Number of calls."""
        return int(self.of_rank.sum())

    @property
    def ranks(self) -> int:
        """Number of ranks with calls."""
        return int(np.count_nonzero(self.of_rank))

    def add(self, chunk: Events) -> None:
        """Add events; only outermost ones without waiting are kept."""
        mine = np.flatnonzero(is_io_of_calls(chunk.calls)[chunk.call] & (chunk.depth == 0))
        more = np.bincount(chunk.rank[mine], minlength=len(self.of_rank))
        more[: len(self.of_rank)] += self.of_rank
        self.of_rank = more
        if len(mine):
            part = (chunk.rank, chunk.start, chunk.end, chunk.op)
            self._parts.append(tuple(column[mine] for column in part))

    def merge(self, other: TopLevelCalls) -> None:
        """Add calls of higher ranks."""
        longer, shorter = sorted((self.of_rank, other.of_rank), key=len, reverse=True)
        self.of_rank = longer.copy()
        self.of_rank[: len(shorter)] += shorter
        self._parts += other._parts

    def to_arrays(self) -> dict[str, np.ndarray]:
        """Return ``rank``, ``start``, ``end`` and ``op`` of each call."""
        names = ("rank", "start", "end", "op")
        if not self._parts:
            return {name: np.empty(0, np.int64) for name in names}
        columns = zip(*self._parts, strict=True)
        return {name: np.concatenate(parts) for name, parts in zip(names, columns, strict=True)}

    @property
    def transfers(self) -> tuple[np.ndarray, ...]:
        """Rank, start, end and operation of calls that move bytes, open, close or flush, else of all."""
        rank, start, end, op = self.to_arrays().values()
        mine = ~np.isin(op, [OPS.index(name) for name in _NO_TRANSFER])
        return (rank[mine], start[mine], end[mine], op[mine]) if mine.any() else (rank, start, end, op)

    @property
    def start(self) -> np.ndarray:
        """Start of each call in ns since the origin of the run."""
        return np.concatenate([part[1] for part in self._parts])


@dataclass(frozen=True)
class InferredPhases:
    """Moments that divide the I/O of a run into phases."""

    cuts_ns: np.ndarray  # Beginnings of phases in ns, rising; shape (m,)
    # gap_from, gap_to: Beginning and end in ns of the gap of each; shape (m,)
    gap_from: np.ndarray
    gap_to: np.ndarray
    rule: str  # ``"steps"``, ``"gaps"`` or ``"none"``
    share: float  # Share of the calls in phases in which the ranks were in lockstep


def infer_phases(rank: np.ndarray, start: np.ndarray, end: np.ndarray, group: np.ndarray) -> InferredPhases:
    """Infer phases from I/O calls."""
    nothing = np.empty(0, np.int64)
    if not len(rank):
        return InferredPhases(nothing, nothing, nothing, "none", 0.0)
    order = np.argsort(start, kind="stable")
    rank, start, end, group = rank[order], start[order], end[order], group[order]
    used = np.bincount(rank) > 0
    ranks, place = int(np.count_nonzero(used)), (np.cumsum(used) - 1)[rank]
    gap_from, gap_to = _gaps(start, end, int((1 - NEARLY_ALL) * ranks + 1e-9))
    if not len(gap_from):
        return InferredPhases(nothing, nothing, nothing, "none", 0.0)

    def steps(chosen: np.ndarray, rule: str, share: float) -> InferredPhases:
        low, high = gap_from[chosen], gap_to[chosen]
        return InferredPhases(cuts_in(low, high), low, high, rule, share)

    if ranks > 1:
        chosen, share = lockstep_cuts(place, start, group, gap_from, gap_to)
        chosen = chosen[_waited(place, start, end, gap_to, chosen)]
        is_chance = ranks <= FEW and _are_narrow(gap_to - gap_from, chosen)
        if share >= 0.5 and len(chosen) and not is_chance:
            return steps(chosen, "steps", share)
    wide = outstanding_gaps(place, start, end, gap_from, gap_to)
    if ranks > 1 and not _shared(place, start, gap_to[wide], ranks):
        wide = wide[:0]
    return steps(wide, "gaps" if len(wide) else "none", 0.0)


def cuts_in(gap_from: np.ndarray, gap_to: np.ndarray) -> np.ndarray:
    """Compute where in each gap the next phase begins: at once.

    A call inside the gap that is not a transfer (a seek) prepares the transfers that follow.
    """
    cuts_ns: np.ndarray = np.minimum(gap_from + 1, gap_to)
    return cuts_ns


def _gaps(start: np.ndarray, end: np.ndarray, few: int) -> tuple[np.ndarray, np.ndarray]:
    """Find the times in which no rank is in I/O."""
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
    if len(gap_to) > MOST_GAPS:
        widest = np.argpartition(gap_from - gap_to, MOST_GAPS)[:MOST_GAPS]
        gap_from, gap_to = gap_from[widest], gap_to[widest]
    order = np.argsort(gap_to, kind="stable")
    return gap_from[order], gap_to[order]


def _lulls(start: np.ndarray, end: np.ndarray, few: int) -> tuple[np.ndarray, np.ndarray]:
    """Find the quietest part of each time between I/O of more than `few` calls, which come by start."""
    # Both are merged; ends go before the starts of the same time.
    ends = np.sort(end)
    is_start = np.ones(2 * len(start), bool)
    is_start[np.searchsorted(start, ends) + np.arange(len(ends))] = False
    time = np.empty(2 * len(start), np.int64)
    time[is_start], time[~is_start] = start, ends
    busy = np.cumsum(np.where(is_start, np.int8(1), np.int8(-1)), dtype=np.int32)
    del ends, is_start
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
    """Compute across which gaps ranks waited: some may just be between two calls at the same time."""
    keep = np.ones(len(chosen), bool)
    # Calls come in the order of start. Numbers of 16 bits are sorted by radix.
    order = np.argsort(place.astype(np.uint16) if place.max() < 1 << 16 else place, kind="stable")
    stretch = _stretch_of(start, gap_to[chosen])[order]
    place, start, end = place[order], start[order], end[order]
    same = place[1:] == place[:-1]
    idle, low, high = (start[1:] - end[:-1])[same], stretch[:-1][same], stretch[1:][same]
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


def _stretch_of(start: np.ndarray, gap_to: np.ndarray) -> np.ndarray:
    """Count the gaps before each call; both rise, and gaps are few."""
    first = np.searchsorted(start, gap_to, side="left")
    counted: np.ndarray = np.cumsum(np.bincount(first, minlength=len(start) + 1)[:-1])
    return counted


def _are_narrow(width: np.ndarray, chosen: np.ndarray) -> bool:
    """Check whether more gaps inside of the phases than between them are wider than a typical chosen one."""
    if not len(chosen):
        return False
    wider = width > np.median(width[chosen])
    return bool(np.count_nonzero(wider) - np.count_nonzero(wider[chosen]) > len(chosen))


def _shared(place: np.ndarray, start: np.ndarray, gap_to: np.ndarray, ranks: int) -> bool:
    """Check that most calls are in stretches of at least half of the ranks; others make gaps too."""
    stretch = _stretch_of(start, gap_to)
    members = np.bincount(distinct(stretch * np.int64(ranks) + place) // ranks, minlength=len(gap_to) + 1)
    return bool(np.mean(2 * members[stretch] >= ranks) > 0.5)


@dataclass(frozen=True)
class _Stretches:
    """The stretches of I/O between gaps."""

    ranks: int  # Number of ranks
    begin: np.ndarray  # Index of the first entry of each stretch in `member` and `amount`; shape (s + 1,)
    member: np.ndarray  # Ranks with calls in a stretch; shape (k,)
    amount: np.ndarray  # Number of their calls, or its share of all calls of the rank; shape (k,)
    calls: np.ndarray  # Number of calls of each stretch; shape (s,)
    gap_ns: np.ndarray  # Width of the gap after each stretch; shape (s - 1,)


def lockstep_cuts(
    place: np.ndarray, start: np.ndarray, group: np.ndarray, gap_from: np.ndarray, gap_to: np.ndarray
) -> tuple[np.ndarray, float]:
    """Find the gaps that end phases by the rule of lockstep.

    The calls are counted in several ways, and the one that puts most calls in lockstep is used. It counts all
    calls, or the calls of one operation, as others may depend on the data (the reads of data sieving). Each
    time it compares numbers, and then shares of the calls of a rank, as a rank may always make more calls
    than others.
    """
    ranks = int(place.max()) + 1
    stretch = _stretch_of(start, gap_to)
    calls = np.bincount(stretch, minlength=len(gap_to) + 1)
    best, best_share = np.empty(0, np.int64), -1.0
    groups = distinct(group)
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
    """A walk through stretches that ends phases where the ranks are in lockstep."""

    def __init__(self, stretches: _Stretches) -> None:
        self._stretches = stretches
        self._need = max(2, int(np.ceil(NEARLY_ALL * stretches.ranks)))
        self._calls = np.concatenate([[0], np.cumsum(stretches.calls)])
        self._begin = stretches.begin.tolist()
        self._used = np.concatenate([[0], np.cumsum(np.diff(stretches.begin) > 0)]).tolist()
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
        """Find gaps in an irregular phase: behind one of its widest, the ranks may be in lockstep."""
        if self._steps_left <= 0 or self._begin[high] - self._begin[low] < self._need:
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
        """Walk once; return gaps, calls in lockstep, and irregular phases (first stretch, and end)."""
        self._steps_left -= self._used[high] - self._used[low] + 4
        stretches, begin = self._stretches, self._begin
        if begin[high] - begin[low] < self._need:  # too few ranks to be in lockstep
            return [], 0, [(low, high)]
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

        numbers = low + np.flatnonzero(stretches.begin[low + 1 : high + 1] > stretches.begin[low:high])
        for number in numbers.tolist():
            who = stretches.member[begin[number] : begin[number + 1]]
            more = stretches.amount[begin[number] : begin[number + 1]]
            if last >= 0 and (
                2 * np.count_nonzero(done[who] < usual * (1 - 1e-9)) <= len(who)
                if complete
                else self._alike(more)[0]
            ):
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

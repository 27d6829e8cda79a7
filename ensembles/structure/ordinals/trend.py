"""Whether calls get slower and slower from ordinal to ordinal, and between which."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import Any

import numpy as np

LEAST_RISE = 1.1
"""A worsening by less than this factor is none."""

LEVEL = 0.05
"""Of the test."""

MOST_POINTS = 64
"""Ordinals that are looked at one by one; of more, neighbours are taken together."""

_PERMUTATIONS = 1999
_MORE_PERMUTATIONS = 9999
_SHORT = 24
"""Of so few points the statistic has few values, and which of them the level allows must be known well."""
_LONG = 12
_JUMP = 1.5


@dataclass(frozen=True)
class Trend:
    """Whether the calls of successive ordinals get slower.

    Attributes
    ----------
    worsening : bool
    from_, to : int or None
        Ordinals between which they do; None where they do not. In JSON ``from`` and ``to``.
    rise : float or None
        How many times longer a typical call of the last is than one before the worsening.
    p : float or None
        How often an order of the ordinals by chance would rise as much anywhere (permutation test).
    p_by_rank : float or None
        The same if the ranks were independent of each other (Page's test, ranks as blocks); None: less than
        two ranks made all of these calls.
    ranks_rising : float or None
        Share of these ranks in which it rises.
    sentence : str
        In plain words.
    """

    worsening: bool
    from_: int | None
    to: int | None
    rise: float | None
    p: float | None
    p_by_rank: float | None
    ranks_rising: float | None
    sentence: str

    def to_json(self) -> dict[str, Any]:
        """A dict with the names of the attributes."""
        return {name.rstrip("_"): value for name, value in asdict(self).items()}

    def __str__(self) -> str:
        return self.sentence


def fit_trend(
    low: np.ndarray, high: np.ndarray, level: np.ndarray, by_rank: np.ndarray | None = None, seed: int = 0
) -> Trend:
    """Look for a stretch of ordinals along which calls get slower.

    Ranks that make their k-th calls at the same time share what befalls them, so that thousands of ranks are
    not thousands of witnesses: the test takes the ordinals as its only sample. Under the hypothesis of no
    trend every order of their typical durations is as likely as any other. The statistic is the largest, over
    all stretches of three or more successive ordinals, of Kendall's score S (pairs that rise less pairs that
    fall) in units of its standard deviation; its distribution is that over random orders.

    Parameters
    ----------
    low, high : ndarray of integers, shape (p,)
        Ordinals of each class, rising: mostly one each.
    level : ndarray of float, shape (p,)
        Logarithm of the typical duration.
    by_rank : ndarray of float, shape (r, p), optional
        The same of each rank; NaN where it made no such call.
    seed : int
        Of the random orders.

    References
    ----------
    H. B. Mann, "Nonparametric tests against trend", 1945; M. G. Kendall, "Rank Correlation Methods", 1948 (S
    and its variance); E. B. Page, "Ordered hypotheses for multiple treatments", 1963.
    """
    n = len(level)
    if n < 4:
        few = f"there are {n} ordinals" if n != 1 else "there is one ordinal"
        return Trend(False, None, None, None, None, None, None, f"{few}: too few to tell a trend from chance")
    groups = np.minimum(np.arange(n) * MOST_POINTS // max(n, MOST_POINTS), MOST_POINTS - 1)
    begin = np.flatnonzero(np.diff(groups, prepend=-1)) if n > MOST_POINTS else np.arange(n)
    points = level if n <= MOST_POINTS else np.add.reduceat(level, begin) / np.diff(np.append(begin, n))
    scores, first, last = _best_rise(points[None])
    rank = np.unique(points, return_inverse=True)[1].reshape(-1)
    chance = _by_chance(tuple(sorted(rank.tolist())), seed)
    p = float((1 + np.count_nonzero(chance >= scores[0] - 1e-9)) / (1 + len(chance)))
    a, b, base = _ends(points, int(first[0]), int(last[0]))
    rise = float(np.exp(points[b] - base))
    if p > LEVEL or rise < LEAST_RISE:
        return Trend(False, None, None, None, p, None, None, _no_trend(p, rise))
    before, behind = int(begin[a]), int(np.append(begin, n)[b + 1]) - 1
    from_, to = int(low[before]), int(high[behind])
    p_by_rank, rising = _by_rank(by_rank, before, behind)
    share = "" if rising is None else f", in {rising:.0%} of the tasks"
    how_much = f"{rise:.3g} times as long in the end{share}"
    sentence = f"gets slower from ordinal {from_:,} to {to:,}: {how_much} (p = {p:.2g} if by chance)"
    return Trend(True, from_, to, rise, p, p_by_rank, rising, sentence)


@lru_cache(maxsize=64)
def _by_chance(ranks: tuple[int, ...], seed: int) -> np.ndarray:
    """The statistic over random orders of points with these ranks, equal ones being ties: the same for all
    series of one length without ties, whatever their values."""
    count = _MORE_PERMUTATIONS if len(ranks) <= _SHORT else _PERMUTATIONS
    orders = np.random.default_rng(seed).permuted(np.broadcast_to(ranks, (count, len(ranks))), axis=1)
    return np.concatenate([_best_rise(part)[0] for part in np.array_split(orders, count // 100)])


def _no_trend(p: float, rise: float) -> str:
    if p > LEVEL:
        return f"no worsening that could not be chance (p = {p:.2g})"
    return f"no worsening by {LEAST_RISE - 1:.0%} or more (it rises by {rise - 1:.1%})"


def _best_rise(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Of each row the largest standardised S of a stretch, its first and its last position."""
    count, n = rows.shape
    score = np.zeros((count, n, n))
    sign = np.zeros((count, n, n))
    for step in range(1, n):
        at = np.arange(n - step)
        sign[:, at, at + step] = np.sign(rows[:, step:] - rows[:, :-step])
        # S of a to b: that of a to b - 1 and of a + 1 to b, less what both hold, and the pair (a, b).
        before, behind = score[:, at, at + step - 1], score[:, at + 1, at + step]
        score[:, at, at + step] = before + behind + sign[:, at, at + step]
        if step > 1:
            score[:, at, at + step] -= score[:, at + 1, at + step - 1]
    size = np.arange(n)[None, :] - np.arange(n)[:, None] + 1.0
    spread = np.sqrt(np.maximum(size * (size - 1) * (2 * size + 5) / 18, 1e-9))
    score = np.where(size >= 3, score / spread, -np.inf)
    best = score.reshape(count, -1).argmax(axis=1)
    return score.reshape(count, -1)[np.arange(count), best], best // n, best % n


def _ends(points: np.ndarray, first: int, last: int) -> tuple[int, int, float]:
    """Where the worsening of a stretch begins and ends, and the level before it.

    It ends where the highest level is reached. It begins behind two or more ordinals that are alike, if there
    are such and all that follow are slower: at a step that is larger than those behind it, else behind the
    bend of a flat and then straight line, else at a fair step; or with the first of the stretch. Ordinals
    are alike if they differ by less than half the step to those that follow.
    """
    tolerance = np.log(LEAST_RISE) / 2
    end = first + int(np.argmax(points[first : last + 1] >= points[first : last + 1].max() - tolerance))
    usual = float(points[end] - points[first]) / max(end - first, 1)
    while first and abs(points[first - 1] - points[first]) <= max(tolerance, 0.5 * usual):
        first -= 1
    begin, is_jump = _step(points, first, end, tolerance)
    bend = 0 if is_jump else _bend(points[first : end + 1])
    begin = first + bend if bend else begin
    return begin, end, float(np.median(points[first:begin]) if begin > first else points[first])


def _step(points: np.ndarray, first: int, end: int, tolerance: float) -> tuple[int, bool]:
    """The first point behind a fair step that follows two or more points that are alike, and whether it is
    a jump, larger than the steps that follow; `first` where there is none."""
    for begin in range(first + 2, end + 1):
        before = points[first:begin]
        step = float(points[begin : end + 1].min() - before.max())
        usual = float(points[end] - before.max()) / (end - begin + 1)
        if step > max(tolerance / 2, 0.35 * usual) and np.ptp(before) <= max(tolerance, 0.7 * step):
            return begin, begin == end or step >= _JUMP * usual
    return first, False


def _bend(points: np.ndarray) -> int:
    """Where a smooth rise begins: behind the bend of the flat and then straight line that fits best; 0: at
    once, or a straight line fits as well (F test with 4 as limit, which is some 5 %)."""
    n = len(points)
    if n < 5:
        return 0
    errors = []
    for bend in range(n - 2):
        line = np.maximum(np.arange(n) - bend, 0)
        slope, flat = np.polyfit(line, points, 1)
        errors.append(float(np.sum((points - flat - slope * line) ** 2)))
    bend = int(np.argmin(errors))
    is_better = (errors[0] - errors[bend]) * (n - 2) > 4 * errors[bend]
    return bend + 1 if is_better and bend >= (1 if n < _LONG else 2) else 0


def _by_rank(by_rank: np.ndarray | None, first: int, last: int) -> tuple[float | None, float | None]:
    """Page's test with ranks as blocks, and the share of the ranks that rise."""
    if by_rank is None or last - first < 2:
        return None, None
    part = by_rank[:, first : last + 1]
    part = part[~np.isnan(part).any(axis=1)]
    if len(part) < 2:
        return None, None
    from scipy.stats import page_trend_test

    middle = np.arange(part.shape[1]) - (part.shape[1] - 1) / 2
    rising = float(np.mean(part @ middle > 0))
    return float(page_trend_test(part, method="asymptotic").pvalue), rising

"""Trend test: whether calls become slower from ordinal to ordinal."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from ensembles.model.fields import Fields
from ensembles.model.levels import A_TENTH, DRAWS, LONGER, MORE_DRAWS, MOST_KINDS, SIGNIFICANT
from ensembles.model.notebook_html import Printed
from ensembles.model.units import number_text, share_text

LEAST_RISE = 1 + A_TENTH
"""Least ratio of durations that counts as a worsening."""

_SHORT = 24
"""Up to so many points, more permutations are drawn, and a ramp may begin and end at each."""
_LONG = 12


@dataclass(frozen=True)
class Trend(Printed, Fields):
    """Result of the test whether calls become slower with their ordinal.

    `worsening`: significant, by `LEAST_RISE` or more. `from_`, `to`: its first and last ordinal; in JSON
    ``from`` and ``to``. `rise`: ratio of the typical duration of the last ordinal to that before. `p`: the
    larger p-value of two tests: probability of such a rise if the order of ordinals were random, and if the
    load wandered (`wander_p`); None: too few ordinals. `ranks_rising`: share of the ranks with all of these
    calls in which durations rise; None: fewer than two such ranks.
    """

    worsening: bool
    from_: int | None
    to: int | None
    rise: float | None
    p: float | None
    ranks_rising: float | None
    sentence: str

    def to_json(self) -> dict[str, Any]:
        """Return the fields, without the underscore of ``from_``."""
        return {name.rstrip("_"): value for name, value in super().to_json().items()}

    def __str__(self) -> str:
        return self.sentence


def fit_trend(
    low: np.ndarray,
    high: np.ndarray,
    level: np.ndarray,
    by_rank: np.ndarray | Callable[[int, int], np.ndarray] | None = None,
) -> Trend:
    """Test for a stretch of ordinals along which calls become slower.

    Ranks that make their k-th calls at the same time share disturbances: the ordinals are the only sample,
    and two tests must agree. In the first every order of the typical durations is equally likely. Its
    statistic is Kendall's score S (rising minus falling pairs) in units of its standard deviation, maximised
    over all stretches of three or more ordinals: a few slow ordinals do not make a trend. In the second
    (`wander_p`) neighbours may resemble each other: a load that wanders does not make a trend.

    `by_rank`: the same of each rank; NaN: the rank made no such call. A function of the first and last column
    gives these columns, which are needed only if there is a trend.

    References
    ----------
    H. B. Mann, "Nonparametric tests against trend", 1945; M. G. Kendall, "Rank Correlation Methods", 1948 (S
    and its variance).
    """
    n = len(level)
    if n < 4:
        few = f"there are {n} ordinals" if n != 1 else "there is one ordinal"
        return Trend(False, None, None, None, None, None, f"{few}: too few for a trend test")
    groups = np.minimum(np.arange(n) * MOST_KINDS // max(n, MOST_KINDS), MOST_KINDS - 1)
    begin = np.flatnonzero(np.diff(groups, prepend=-1)) if n > MOST_KINDS else np.arange(n)
    points = level if n <= MOST_KINDS else np.add.reduceat(level, begin) / np.diff(np.append(begin, n))
    scores, first, last = _best_rise(points[None])
    rank = np.unique(points, return_inverse=True)[1].reshape(-1)
    chance = _by_chance(tuple(sorted(rank.tolist())))
    p = float((1 + np.count_nonzero(chance >= scores[0] - 1e-9)) / (1 + len(chance)))
    rises = p <= SIGNIFICANT
    if rises:
        p = max(p, wander_p(points))
    a, b, base = _ends(points, int(first[0]), int(last[0]))
    rise = float(np.exp(np.median(points[b : int(last[0]) + 1]) - base))
    if p > SIGNIFICANT or rise < LEAST_RISE:
        return Trend(False, None, None, None, p, None, _no_trend(p, rise, rises))
    before, behind = int(begin[a]), int(np.append(begin, n)[b + 1]) - 1
    from_, to = int(low[before]), int(high[behind])
    rising = _share_rising(by_rank, before, behind)
    share = "" if rising is None else f", in {share_text(rising)} of the tasks"
    how_much = f"{number_text(rise)} times as long at the end{share}"
    where = f"from ordinal {from_:,} to {to:,}" if to > from_ else f"at ordinal {to:,}"
    sentence = f"gets slower {where}: {how_much} (p = {p:.2g})"
    return Trend(True, from_, to, rise, p, rising, sentence)


@lru_cache(maxsize=64)
def _by_chance(ranks: tuple[int, ...]) -> np.ndarray:
    """Compute the statistic for random orders of these ranks; equal ones are ties."""
    count = MORE_DRAWS if len(ranks) <= _SHORT else DRAWS
    orders = np.random.default_rng(0).permuted(np.broadcast_to(ranks, (count, len(ranks))), axis=1)
    return np.concatenate([_best_rise(part)[0] for part in np.array_split(orders, count // 100)])


def _no_trend(p: float, rise: float, rises: bool = False) -> str:
    if p > SIGNIFICANT and rises:
        return f"durations rise, but a load that wanders does as much (p = {p:.2g}): record another run"
    if p > SIGNIFICANT:
        return f"no significant worsening (p = {p:.2g})"
    by = share_text(abs(rise - 1), 1)
    seen = f"the rise is {by}" if rise >= 1 else f"the end is {by} faster"
    return f"no worsening by {share_text(LEAST_RISE - 1)} or more ({seen})"


def _best_rise(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Find the largest standardised S of a stretch in each row, and its ends."""
    count, n = rows.shape
    score = np.zeros((count, n, n))
    sign = np.zeros((count, n, n))
    for step in range(1, n):
        at = np.arange(n - step)
        sign[:, at, at + step] = np.sign(rows[:, step:] - rows[:, :-step])
        # S(a, b) = S(a, b - 1) + S(a + 1, b) - S(a + 1, b - 1) + sign of the pair (a, b).
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
    """Find where the worsening of a stretch begins and ends, and the level before it.

    It ends where the highest level is reached. If the stretch starts with two or more equal ordinals, and
    all that follow are slower, the worsening begins after them. It begins at a step that is larger than the
    steps that follow, else after the bend of a flat and then straight line, else at a clear step. Otherwise
    it begins with the stretch. Ordinals are equal here if they differ by less than half the next step.
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
    """Find the first point after a clear step that follows two or more equal points."""
    for begin in range(first + 2, end + 1):
        before = points[first:begin]
        step = float(points[begin : end + 1].min() - before.max())
        usual = float(points[end] - before.max()) / (end - begin + 1)
        if step > max(tolerance / 2, 0.35 * usual) and np.ptp(before) <= max(tolerance, 0.7 * step):
            return begin, begin == end or step >= LONGER * usual
    return first, False


def _bend(points: np.ndarray) -> int:
    """Find where a smooth rise begins: after the bend of the best fitting line.

    The line is flat and then straight. 0: the rise begins at once, or a straight line fits as well (F test
    with the limit 4, a level of about 5 %).
    """
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


def _share_rising(
    by_rank: np.ndarray | Callable[[int, int], np.ndarray] | None, first: int, last: int
) -> float | None:
    if by_rank is None or last - first < 2:
        return None
    part = by_rank(first, last) if callable(by_rank) else by_rank[:, first : last + 1]
    part = part[~np.isnan(part).any(axis=1)]
    middle = np.arange(last - first + 1) - (last - first) / 2
    return float(np.mean(part @ middle > 0)) if len(part) > 1 else None


LOADS = ((0.0, 0.0), (0.4, 0.0), (0.8, 0.0), (0.95, 0.0), (0.95, 0.2), (1.0, 0.0))
"""Loads without a trend: correlation of neighbours (1: a random walk), and the deviation of what ordinals do
not share, over that of the load (of a walk: of its steps)."""

_DRAWS = 600
"""Simulated series of each load, and steps in which the weights of loads are found."""


def wander_p(points: np.ndarray) -> float:
    """Compute the p-value of the best ramp in a series, against loads that wander.

    A ramp is flat up to a point, rises in a straight line or as a root over four or more points, and may go
    on at any other level. The statistic is the ratio of the mean likelihood of ramps, with the height and the
    levels that fit best, to a weighted mean likelihood of `LOADS`. Location and scale do not count. The
    weights are such that at most 5 % of the simulated series of each load pass this test and that of a random
    order. Such a test has nearly the most power.

    References
    ----------
    G. Elliott, U. K. Müller and M. W. Watson, "Nearly optimal tests when a nuisance parameter is present
    under the null hypothesis", Econometrica 83, 2015.
    """
    log_weight, drawn = _without_trend(len(points))
    found = _of_ramps(points[None]) - np.logaddexp.reduce(_of_loads(points[None]) + log_weight, axis=-1)
    return float((1 + np.count_nonzero(drawn >= found, axis=1).max()) / (1 + _DRAWS))


@lru_cache(maxsize=16)
def _without_trend(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return log weights of the loads, and the statistic of series of each; −inf: their order is usual."""
    random = np.random.default_rng([0, n])
    rows = np.concatenate([random.standard_normal((_DRAWS, n)) @ _whitened(n, load)[0].T for load in LOADS])
    usual = np.quantile(_by_chance(tuple(range(n))), 1 - SIGNIFICANT)
    scores = np.concatenate([_best_rise(part)[0] for part in np.array_split(rows, len(rows) // 100)])
    ramps = np.where(scores < usual, -np.inf, _of_ramps(rows)).reshape(len(LOADS), _DRAWS)
    loads = _of_loads(rows).reshape(len(LOADS), _DRAWS, -1)
    log_weight = np.zeros(len(LOADS))
    for step in range(_DRAWS):
        passing = (ramps > np.logaddexp.reduce(loads + log_weight, axis=-1)).mean(axis=1)
        log_weight += 20 / (1 + step / 20) * (passing - SIGNIFICANT)
    return log_weight, ramps - np.logaddexp.reduce(loads + log_weight, axis=-1)


@lru_cache(maxsize=64)
def _whitened(n: int, load: tuple[float, float]) -> tuple[np.ndarray, np.ndarray, float]:
    """Return the root of the covariance of a load, what undoes it and centres, and the log of a constant."""
    (correlation, noise), at = load, np.arange(n)
    walks = correlation == 1
    shared = np.minimum.outer(at, at) + 1.0 if walks else correlation ** np.abs(np.subtract.outer(at, at))
    root = np.linalg.cholesky(shared + noise**2 * np.eye(n))
    undo = np.linalg.inv(root)
    level = undo.sum(axis=1)
    length = float(np.linalg.norm(level))
    constant = -float(np.log(np.diag(root)).sum() + np.log(length))
    return root, undo - np.outer(level, level @ undo) / length**2, constant


def _of_loads(rows: np.ndarray) -> np.ndarray:
    """Return the log likelihood of the shape of each row under each load: shape (rows, loads)."""
    n, found = rows.shape[1], []
    for load in LOADS:
        _, undo, constant = _whitened(n, load)
        found.append(constant - (n - 1) / 2 * np.log(((rows @ undo.T) ** 2).sum(axis=1) + 1e-300))
    return np.stack(found, axis=1)


@lru_cache(maxsize=16)
def _ramps(n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return the log weights of the ramps, whether they end early, and directions of later level and rise.

    A quarter of the weight is that of ramps that begin at once, half that of ramps up to the last point.
    """
    at = np.arange(n)
    ends = np.unique(np.linspace(0, n - 1, min(n, _SHORT)).round().astype(np.int64))
    a, b = (ends[index] for index in np.nonzero(np.subtract.outer(ends, ends).T >= 3))
    others = len(ends) - 1
    weight = np.where(a == 0, 1 / 4, 3 / 4 / others) * np.where(b == n - 1, 1 / 2, 1 / 2 / others)
    later = _centred(1.0 * (at[:, None] > b))
    later /= np.maximum(np.linalg.norm(later, axis=0), 1e-9)
    straight = np.clip((at[:, None] - a) / (b - a), 0, 1) * (at[:, None] <= b)
    rise = _centred(np.concatenate([straight, np.sqrt(straight)], axis=1))
    weight, is_early, later = np.tile(weight, 2), np.tile(b < n - 1, 2), np.tile(later, 2)
    rise -= later * (later * rise).sum(axis=0)
    return np.log(weight / weight.sum()), is_early, later, rise / np.linalg.norm(rise, axis=0)


def _centred(columns: np.ndarray) -> np.ndarray:
    centred: np.ndarray = columns - columns.mean(axis=0)
    return centred


def _of_ramps(rows: np.ndarray) -> np.ndarray:
    """Return the log of the mean likelihood of ramps of each row; early ends pay for their later level."""
    half = (rows.shape[1] - 1) / 2
    log_weight, is_early, later, rise = _ramps(rows.shape[1])
    made = _centred(rows.T).T
    total = (made**2).sum(axis=1, keepdims=True) + 1e-300
    explained = ((made @ later) ** 2 + np.maximum(made @ rise, 0) ** 2) / total
    fits = log_weight - (half - 1.5 * is_early) * np.log(np.maximum(1 - explained, 1e-12))
    found: np.ndarray = np.logaddexp.reduce(fits, axis=-1) - half * np.log(total[:, 0])
    return found

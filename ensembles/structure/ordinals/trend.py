"""Trend test: whether calls become slower from ordinal to ordinal."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from ensembles.model.fields import Fields
from ensembles.model.notebook_html import Printed
from ensembles.model.units import number_text, share_text

LEAST_RISE = 1.1
"""Least ratio of durations that counts as a worsening."""

LEVEL = 0.05
"""Significance level of the test."""

MOST_POINTS = 64
"""Largest number of points of the test; of more ordinals, neighbours are averaged."""

_PERMUTATIONS = 1999
_MORE_PERMUTATIONS = 9999
_SHORT = 24
"""Up to this number of points, more permutations are drawn: the statistic has few values, and the critical
one must be known well."""
_LONG = 12
_JUMP = 1.5


@dataclass(frozen=True)
class Trend(Printed, Fields):
    """Result of the test whether calls become slower with their ordinal.

    `worsening`: significant, by `LEAST_RISE` or more. `from_`, `to`: its first and last ordinal; in JSON
    ``from`` and ``to``. `rise`: ratio of the typical duration of the last ordinal to that before. `p`: the
    larger p-value of two tests: probability of such a rise if the order of ordinals were random, and if
    neighbouring ordinals were correlated by up to 0.8; None: too few ordinals. `ranks_rising`: share of the
    ranks with all of these calls in which durations rise; None: fewer than two such ranks.
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
    seed: int = 0,
) -> Trend:
    """Test for a stretch of ordinals along which calls become slower.

    Ranks that make their k-th calls at the same time share disturbances, so that ranks are not independent
    observations. The tests therefore take the ordinals as their only sample, and two must agree. In the first
    every order of the typical durations is equally likely. Its statistic is Kendall's score S (rising minus
    falling pairs) in units of its standard deviation, maximised over all stretches of three or more
    successive ordinals. Its null distribution is that over random orders, so that a few slow ordinals do not
    make a trend. In the second (`ramp_p`) neighbouring ordinals may resemble each other, so that a load that
    varies slowly does not make a trend.

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
    groups = np.minimum(np.arange(n) * MOST_POINTS // max(n, MOST_POINTS), MOST_POINTS - 1)
    begin = np.flatnonzero(np.diff(groups, prepend=-1)) if n > MOST_POINTS else np.arange(n)
    points = level if n <= MOST_POINTS else np.add.reduceat(level, begin) / np.diff(np.append(begin, n))
    scores, first, last = _best_rise(points[None])
    rank = np.unique(points, return_inverse=True)[1].reshape(-1)
    chance = _by_chance(tuple(sorted(rank.tolist())), seed)
    p = float((1 + np.count_nonzero(chance >= scores[0] - 1e-9)) / (1 + len(chance)))
    if p <= LEVEL:
        p = max(p, ramp_p(points, seed))
    a, b, base = _ends(points, int(first[0]), int(last[0]))
    rise = float(np.exp(points[b] - base))
    if p > LEVEL or rise < LEAST_RISE:
        return Trend(False, None, None, None, p, None, _no_trend(p, rise))
    before, behind = int(begin[a]), int(np.append(begin, n)[b + 1]) - 1
    from_, to = int(low[before]), int(high[behind])
    rising = _share_rising(by_rank, before, behind)
    share = "" if rising is None else f", in {share_text(rising)} of the tasks"
    how_much = f"{number_text(rise)} times as long at the end{share}"
    where = f"from ordinal {from_:,} to {to:,}" if to > from_ else f"at ordinal {to:,}"
    sentence = f"gets slower {where}: {how_much} (p = {p:.2g})"
    return Trend(True, from_, to, rise, p, rising, sentence)


@lru_cache(maxsize=64)
def _by_chance(ranks: tuple[int, ...], seed: int) -> np.ndarray:
    """Compute the statistic for random orders of these ranks; equal ones are ties."""
    count = _MORE_PERMUTATIONS if len(ranks) <= _SHORT else _PERMUTATIONS
    orders = np.random.default_rng(seed).permuted(np.broadcast_to(ranks, (count, len(ranks))), axis=1)
    return np.concatenate([_best_rise(part)[0] for part in np.array_split(orders, count // 100)])


def _no_trend(p: float, rise: float) -> str:
    if p > LEVEL:
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
            return begin, begin == end or step >= _JUMP * usual
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


CORRELATIONS = (0.0, 0.4, 0.8, 0.95, 1.0)
"""Correlations of neighbours for which the error rate holds; 1: a random walk. Up to `_SHORT`
ordinals, the first three.
"""

_RULED_OUT = 0.03
"""Share of series of a correlation whose residuals are as little correlated as those seen, below which this
correlation is ruled out.
"""

_DRAWS = 999
"""Largest number of points at which a ramp may begin or end."""


def ramp_p(points: np.ndarray, seed: int = 0) -> float:
    """Compute the p-value of the best ramp in a series, allowing for autocorrelation.

    A ramp is flat up to a point, rises in a straight line over three or more points, and may go on at any
    other level. The statistic is the F ratio of the rise to the residuals of the ramp that fits best,
    divided by the factor (1 + r) / (1 − r) by which residuals with the correlation r of neighbours raise the
    variance of a mean. Its distribution without a trend is that of simulated autoregressions of first order,
    up to a random walk. The correlation of a short series is hardly known, and therefore the p-value is the
    largest over all correlations that the residuals do not rule out.

    References
    ----------
    M. S. Bartlett, "Some aspects of the time-correlation problem in regard to tests of significance",
    Journal of the Royal Statistical Society 98, 1935. R. L. Berger and D. D. Boos, "P values maximized over a
    confidence set for the nuisance parameter", Journal of the American Statistical Association 89, 1994.

    Examples
    --------
    Eight ordinals, of which the last five become slower:

    >>> from ensembles.structure.ordinals.trend import ramp_p
    >>> ramp_p(np.log([1, 1.01, 1, 1.5, 2, 3, 4, 6])) < 0.05
    True
    """
    (found,), (kept,) = _statistic(points[None])
    return max(
        float((1 + np.count_nonzero(drawn >= found)) / (1 + len(drawn)))
        for place, (drawn, of_drawn) in enumerate(_without_trend(len(points), seed))
        if place == 0 or np.mean(of_drawn <= kept) >= _RULED_OUT
    )


@lru_cache(maxsize=16)
def _without_trend(n: int, seed: int) -> tuple[tuple[np.ndarray, np.ndarray], ...]:
    """Compute `_statistic` of simulated series without a trend, for each correlation."""
    random = np.random.default_rng([seed, n])
    tried = CORRELATIONS if n > _SHORT else CORRELATIONS[:3]
    return tuple(_statistic(_autoregressions(random, n, correlation)) for correlation in tried)


def _autoregressions(random: np.random.Generator, n: int, correlation: float) -> np.ndarray:
    series = random.standard_normal((_DRAWS, n))
    for place in range(1, n):
        series[:, place] *= np.sqrt(1 - correlation**2) if correlation < 1 else 1.0
        series[:, place] += correlation * series[:, place - 1]
    return series


@lru_cache(maxsize=16)
def _ramps(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the ends of the ramps, shape (k,), and each ramp up to its end, centred: shape (n, k)."""
    ends = np.unique(np.linspace(0, n - 1, min(n, _SHORT)).round().astype(np.int64))
    pairs = [(a, b) for b in ends.tolist() for a in ends.tolist() if b - a >= 2]
    rise = np.zeros((n, len(pairs)))
    for number, (a, b) in enumerate(pairs):
        ramp = np.clip((np.arange(b + 1) - a) / (b - a), 0, 1)
        ramp -= ramp.mean()
        rise[: b + 1, number] = ramp / np.sqrt(ramp @ ramp)
    return np.array([b for _, b in pairs]), rise


def _statistic(series: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Compute the log of the corrected F ratio of the best ramp of each row, and what residuals keep."""
    count, n = series.shape
    last, rise = _ramps(n)
    series = series - series.mean(axis=1, keepdims=True)
    along = np.maximum(series @ rise, 0.0)
    index, row = np.arange(n), np.arange(count)
    total, squares = np.cumsum(series, axis=1), np.cumsum(series**2, axis=1)
    size = np.arange(1, n + 1)
    before = squares - total**2 / size
    after = squares[:, -1:] - squares - (total[:, -1:] - total) ** 2 / np.maximum(n - size, 1)
    tiny = 1e-12 * squares[:, -1:] + 1e-300
    ratio = along**2 / np.maximum((before + after)[:, last] - along**2, tiny)
    best = ratio.argmax(axis=1)
    end = last[best][:, None]
    inside = index <= end
    level = np.where(
        inside,
        total[row, end[:, 0]][:, None] / (end + 1),
        (total[:, -1] - total[row, end[:, 0]])[:, None] / np.maximum(n - 1 - end, 1),
    )
    rest = series - level - along[row, best][:, None] * rise[:, best].T
    kept = (rest[:, 1:] * rest[:, :-1]).sum(axis=1) / np.maximum((rest**2).sum(axis=1), tiny[:, 0])
    likely = np.clip(kept, 0.0, CORRELATIONS[-2])
    return np.log(np.maximum(ratio[row, best], 1e-300)) + np.log((1 - likely) / (1 + likely)), kept

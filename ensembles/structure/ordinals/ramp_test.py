"""Test a series for a ramp, against noise whose neighbours may resemble each other.

States of a file system last, so that ordinals close in time resemble each other without any trend. A
permutation of ordinals takes such a series for a trend.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

CORRELATIONS = (0.0, 0.4, 0.8)
"""Correlations of neighbours for which the error rate holds."""

_DRAWS = 999
_MOST_ENDS = 24
"""Largest number of points at which a ramp may begin or end."""
_LARGEST = 0.95


def ramp_p(points: np.ndarray, seed: int = 0) -> float:
    """Compute the p-value of the best ramp in a series, allowing for autocorrelation.

    Parameters
    ----------
    points : ndarray of float, shape (n,)
        The series; at least four points.

    Notes
    -----
    A ramp is flat up to a point, rises in a straight line over three or more points, and may go on at any
    other level. The statistic is the F ratio of the rise to the residuals of the ramp that fits best,
    divided by the factor (1 + r) / (1 − r) by which residuals with the correlation r of neighbours raise the
    variance of a mean. Its distribution without a trend is that of simulated autoregressions of first order.
    The correlation of a short series cannot be estimated, and therefore the p-value is the largest over the
    correlations that are allowed.

    References
    ----------
    M. S. Bartlett, "Some aspects of the time-correlation problem in regard to tests of significance",
    Journal of the Royal Statistical Society 98, 1935; K. H. Hamed and A. R. Rao, "A modified Mann-Kendall
    trend test for autocorrelated data", Journal of Hydrology 204, 1998 (the same correction of another test).

    Examples
    --------
    Eight ordinals, of which the last five become slower:

    >>> from ensembles.structure.ordinals.ramp_test import ramp_p
    >>> ramp_p(np.log([1, 1.01, 1, 1.5, 2, 3, 4, 6])) < 0.05
    True
    """
    found = _statistic(points[None])[0]
    return max(
        float((1 + np.count_nonzero(drawn >= found)) / (1 + len(drawn)))
        for drawn in _without_trend(len(points), seed)
    )


@lru_cache(maxsize=16)
def _without_trend(n: int, seed: int) -> tuple[np.ndarray, ...]:
    """Compute the statistic of simulated series without a trend, for each correlation."""
    random = np.random.default_rng([seed, n])
    return tuple(_statistic(_autoregressions(random, n, correlation)) for correlation in CORRELATIONS)


def _autoregressions(random: np.random.Generator, n: int, correlation: float) -> np.ndarray:
    series = random.standard_normal((_DRAWS, n))
    for place in range(1, n):
        series[:, place] *= np.sqrt(1 - correlation**2)
        series[:, place] += correlation * series[:, place - 1]
    return series


@lru_cache(maxsize=16)
def _ramps(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the ends of the ramps, shape (k,), and each ramp up to its end, centred: shape (n, k)."""
    ends = np.unique(np.linspace(0, n - 1, min(n, _MOST_ENDS)).round().astype(np.int64))
    pairs = [(a, b) for b in ends.tolist() for a in ends.tolist() if b - a >= 2]
    rise = np.zeros((n, len(pairs)))
    for number, (a, b) in enumerate(pairs):
        ramp = np.clip((np.arange(b + 1) - a) / (b - a), 0, 1)
        ramp -= ramp.mean()
        rise[: b + 1, number] = ramp / np.sqrt(ramp @ ramp)
    return np.array([b for _, b in pairs]), rise


def _statistic(series: np.ndarray) -> np.ndarray:
    """Compute the logarithm of the corrected F ratio of the best ramp of each row."""
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
    kept = np.clip(kept, 0.0, _LARGEST)
    found: np.ndarray = np.log(np.maximum(ratio[row, best], 1e-300)) + np.log((1 - kept) / (1 + kept))
    return found

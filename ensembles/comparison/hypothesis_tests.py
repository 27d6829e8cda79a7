"""Rank tests of a comparison, and distances between distributions."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from math import comb, factorial, prod
from typing import Any

import numpy as np

from ensembles.comparison.mode_partition import bin_octaves
from ensembles.comparison.model import holm

LEVEL = 0.05

MOST_EXACT = 50
"""Groups of fewer values without ties have an exact Wilcoxon-Mann-Whitney test, as in R's wilcox.test."""


_MOST_DIVISIONS = 20_000
"""Divisions of the values into two groups: 8 and 8 have 12,870."""

_SAME = 1e-9


def rank_statistic(values: Sequence[np.ndarray]) -> tuple[str, float, float]:
    """Compute a rank test of groups that have values.

    Examples
    --------
    >>> rank_statistic([np.array([1.0, 2.0, 3.0]), np.array([4.0, 5.0, 6.0])])
    ('Wilcoxon-Mann-Whitney', 0.0, 0.1)
    """
    from ensembles.statistics.special import chdtrc, ndtr

    method = "Wilcoxon-Mann-Whitney" if len(values) == 2 else "Kruskal-Wallis"
    together = np.concatenate(values)
    if np.ptp(together) == 0:
        return method, len(values[0]) * len(values[1]) / 2 if len(values) == 2 else 0.0, 1.0
    ranks = mean_ranks(together)
    sizes = [len(group) for group in values]
    sums = [float(part.sum()) for part in np.split(ranks, np.cumsum(sizes)[:-1])]
    n, ties = len(ranks), np.unique(ranks, return_counts=True)[1].astype(np.float64)
    tied = float((ties**3 - ties).sum())
    if len(values) > 2:
        squares = sum(each**2 / size for each, size in zip(sums, sizes, strict=True))
        h = (12 / (n * (n + 1)) * squares - 3 * (n + 1)) / (1 - tied / (n**3 - n))
        return method, h, float(chdtrc(len(values) - 1, h))
    first = sums[0] - sizes[0] * (sizes[0] + 1) / 2
    larger = max(first, sizes[0] * sizes[1] - first)
    if not tied and max(sizes) < MOST_EXACT:
        p = 2 * _share_from(round(larger), *sizes)
    elif tied and comb(n, sizes[0]) <= _MOST_DIVISIONS:
        p = _exact_p_with_ties(*values)
    else:
        spread = np.sqrt(sizes[0] * sizes[1] / 12 * ((n + 1) - tied / (n * (n - 1))))
        p = 2 * float(ndtr(-(larger - sizes[0] * sizes[1] / 2 - 0.5) / spread))
    return method, first, min(p, 1.0)


def mean_ranks(values: np.ndarray) -> np.ndarray:
    """Compute ranks from 1 on; equal values have the mean of their ranks.

    Notes
    -----
    Ranks and tests are written out here: the import of `scipy.stats` takes longer than most comparisons.

    Examples
    --------
    >>> mean_ranks(np.array([3.0, 1.0, 3.0])).tolist()
    [2.5, 1.0, 2.5]
    """
    _, which, count = np.unique(values, return_inverse=True, return_counts=True)
    return (np.cumsum(count) - (count - 1) / 2)[which]


def _share_from(least: int, m: int, n: int) -> float:
    """Return the share of all arrangements of m and n different values of which U is `least` or more."""
    if least <= 0:
        return 1.0
    # The coefficients of Gauss' binomial count arrangements by U, which is symmetric: U <= m n - least.
    counts = [1] + [0] * (m * n - least)
    for i in range(1, m + 1):
        for u in range(len(counts) - 1, n + i - 1, -1):
            counts[u] -= counts[u - n - i]
        for u in range(i, len(counts)):
            counts[u] += counts[u - i]
    return sum(counts) / comb(m + n, m)


def _exact_p_with_ties(one: np.ndarray, other: np.ndarray) -> float:
    """Compute the p-value of two groups from all divisions of their values: ties have their mean rank."""
    ranks = mean_ranks(np.concatenate([one, other]))
    sums = ranks[np.array(list(combinations(range(len(ranks)), len(one))))].sum(axis=1)
    seen = ranks[: len(one)].sum()
    tail = min(np.count_nonzero(sums <= seen + _SAME), np.count_nonzero(sums >= seen - _SAME))
    return min(2 * tail / len(sums), 1.0)


def rank_test(values: Sequence[np.ndarray]) -> float:
    """Compute the two-sided p-value of a rank test.

    Examples
    --------
    >>> rank_test([np.array([1.0, 2.0, 3.0]), np.array([4.0, 5.0, 6.0])])
    0.1
    """
    values = [group[np.isfinite(group)] for group in values]
    if min(len(group) for group in values) == 0:
        return float("nan")
    return rank_statistic(values)[2]


def dunn_test(values: Sequence[np.ndarray]) -> dict[tuple[int, int], float]:
    """Compute the p-value of each pair of groups, with Holm's correction."""
    return {pair: holm_p for pair, (_, _, holm_p) in dunn_pairs(values).items()}


def dunn_pairs(values: Sequence[np.ndarray]) -> dict[tuple[int, int], tuple[float, float, float]]:
    """Compute Dunn's test of each pair of groups.

    References
    ----------
    O. J. Dunn, "Multiple comparisons using rank sums", Technometrics 6, 1964. The variance is corrected for
    ties.
    """
    from ensembles.statistics.special import ndtr

    values = [group[np.isfinite(group)] for group in values]
    ranks = mean_ranks(np.concatenate(values))
    parts = np.split(ranks, np.cumsum([len(group) for group in values])[:-1])
    n = len(ranks)
    _, ties = np.unique(ranks, return_counts=True)
    spread = n * (n + 1) / 12 - (ties**3 - ties).sum() / (12 * (n - 1)) if n > 1 else 0.0
    pairs = list(combinations(range(len(values)), 2))
    z = []
    for i, j in pairs:
        if not (len(parts[i]) and len(parts[j])):
            z.append(np.nan)
        elif spread <= 0:
            z.append(0.0)
        else:
            error = np.sqrt(spread * (1 / len(parts[i]) + 1 / len(parts[j])))
            z.append(float((parts[i].mean() - parts[j].mean()) / error))
    p = 2 * ndtr(-np.abs(z))
    columns = zip(pairs, z, p.tolist(), holm(p).tolist(), strict=True)
    return {pair: (statistic, raw, adjusted) for pair, statistic, raw, adjusted in columns}


def smallest_rank_p(sizes: Sequence[int]) -> float:
    """Return the smallest p-value that a rank test of two groups can give.

    Examples
    --------
    >>> smallest_rank_p([3, 3]), smallest_rank_p([4, 1])
    (0.1, 0.4)
    """
    arrangements = prod(comb(sum(sizes[: i + 1]), size) for i, size in enumerate(sizes))
    return min(factorial(len(sizes)) / arrangements, 1.0)


def rank_tests(by_unit: np.ndarray, group: np.ndarray, names: Sequence[str]) -> list[dict[str, Any]]:
    """Compute rank tests of each part, with Holm's correction for their number."""
    by_group = [[column[group == g] for g in range(len(names))] for column in by_unit.T]
    rank_p = [rank_test(groups) for groups in by_group]
    found: list[dict[str, Any]] = []
    for p, adjusted, groups in zip(rank_p, holm(rank_p), by_group, strict=True):
        found.append({"rank_p": p, "rank_holm_p": float(adjusted)})
        if len(names) > 2:
            found[-1]["dunn_holm_p"] = [
                {"groups": [names[i], names[j]], "p": pair_p} for (i, j), pair_p in dunn_test(groups).items()
            ]
    return found


def kolmogorov_smirnov(first: np.ndarray, second: np.ndarray) -> float:
    """Compute the largest difference of two distribution functions, 0 to 1."""
    return float(np.abs(_distribution(first) - _distribution(second)).max())


def wasserstein_octaves(first: np.ndarray, second: np.ndarray) -> float:
    """Compute the area between two distribution functions of log2 duration.

    It is the mean distance, in octaves, by which calls of one have to be moved to equal the other; 1 octave
    is a factor of two.
    """
    gap = np.abs(_distribution(first) - _distribution(second))
    return float(gap[:-1] @ np.diff(bin_octaves()))


def _distribution(counts: np.ndarray) -> np.ndarray:
    below: np.ndarray = np.cumsum(counts, dtype=np.float64) / counts.sum()
    return below

"""Rank tests of a comparison, and distances between distributions."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from math import comb, factorial, prod
from typing import Any

import numpy as np

from ensembles.comparison.mode_partition import bin_octaves
from ensembles.comparison.model import holm


def rank_test(values: Sequence[np.ndarray]) -> float:
    """Compute the two-sided p-value of a rank test.

    Parameters
    ----------
    values : sequence of ndarray
        One for each group.

    Returns
    -------
    float
        Of Wilcoxon, Mann and Whitney for two groups (exact without ties), of Kruskal and Wallis for more; nan
        if a group is empty, 1 if all values are equal, or two groups have one each.

    Examples
    --------
    >>> rank_test([np.array([1.0, 2.0, 3.0]), np.array([4.0, 5.0, 6.0])])
    0.1
    """
    values = [group[np.isfinite(group)] for group in values]
    if min(len(group) for group in values) == 0:
        return float("nan")
    if np.ptp(np.concatenate(values)) == 0 or list(map(len, values)) == [1, 1]:
        return 1.0
    from scipy.stats import kruskal, mannwhitneyu  # a third of a second

    if len(values) == 2:
        return float(mannwhitneyu(*values, alternative="two-sided", method="auto").pvalue)
    return float(kruskal(*values).pvalue)


def dunn_test(values: Sequence[np.ndarray]) -> dict[tuple[int, int], float]:
    """Compute the p-value of each pair of groups, with Holm's correction.

    Parameters
    ----------
    values : sequence of ndarray
        One for each group.

    Returns
    -------
    dict of (int, int) to float
        By the positions of the groups, the lower one first; nan if a group is empty.

    References
    ----------
    O. J. Dunn, "Multiple comparisons using rank sums", Technometrics 6, 1964. The variance is corrected for
    ties.
    """
    from scipy.special import ndtr
    from scipy.stats import rankdata

    values = [group[np.isfinite(group)] for group in values]
    ranks = rankdata(np.concatenate(values))
    parts = np.split(ranks, np.cumsum([len(group) for group in values])[:-1])
    n = len(ranks)
    _, ties = np.unique(ranks, return_counts=True)
    spread = n * (n + 1) / 12 - (ties**3 - ties).sum() / (12 * (n - 1)) if n > 1 else 0.0
    pairs = list(combinations(range(len(values)), 2))
    p = []
    for i, j in pairs:
        if not (len(parts[i]) and len(parts[j])):
            p.append(np.nan)
        elif spread <= 0:
            p.append(1.0)
        else:
            z = (parts[i].mean() - parts[j].mean()) / np.sqrt(
                spread * (1 / len(parts[i]) + 1 / len(parts[j]))
            )
            p.append(2 * ndtr(-abs(z)))
    return {pair: float(value) for pair, value in zip(pairs, holm(p), strict=True)}


def smallest_rank_p(sizes: Sequence[int]) -> float:
    """Return the smallest p-value that a rank test of two groups can give.

    Parameters
    ----------
    sizes : sequence of int
        Number of units of each group.

    Returns
    -------
    float
        For more than two groups, the share of arrangements that look alike.

    Examples
    --------
    >>> smallest_rank_p([3, 3]), smallest_rank_p([4, 1])
    (0.1, 0.4)
    """
    arrangements = prod(comb(sum(sizes[: i + 1]), size) for i, size in enumerate(sizes))
    return min(factorial(len(sizes)) / arrangements, 1.0)


def rank_tests(by_unit: np.ndarray, group: np.ndarray, names: Sequence[str]) -> list[dict[str, Any]]:
    """Compute rank tests of each part, with Holm's correction for their number.

    Parameters
    ----------
    by_unit : ndarray of float64, shape (u, m)
        Values of the units; nan: the unit has no such calls.
    group : ndarray of int64, shape (u,)
        Group of each unit.
    names : sequence of str
        Names of the groups.

    Returns
    -------
    list of dict
        For each part ``rank_p`` and ``rank_holm_p`` (None: unknown) and, of more than two groups,
        ``dunn_holm_p``.
    """
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
    """Compute the largest difference of two distribution functions, 0 to 1.

    Parameters
    ----------
    first, second : ndarray, shape (BIN_COUNT,)
        Number of calls in each bin; at least one call.

    Returns
    -------
    float
    """
    return float(np.abs(_distribution(first) - _distribution(second)).max())


def wasserstein_octaves(first: np.ndarray, second: np.ndarray) -> float:
    """Compute the area between two distribution functions of log2 duration.

    It is the mean distance, in octaves, by which calls of one have to be moved to equal the other; 1 octave
    is a factor of two.

    Parameters
    ----------
    first, second : ndarray, shape (BIN_COUNT,)
        Number of calls in each bin; at least one call.

    Returns
    -------
    float
    """
    gap = np.abs(_distribution(first) - _distribution(second))
    return float(gap[:-1] @ np.diff(bin_octaves()))


def _distribution(counts: np.ndarray) -> np.ndarray:
    below: np.ndarray = np.cumsum(counts, dtype=np.float64) / counts.sum()
    return below

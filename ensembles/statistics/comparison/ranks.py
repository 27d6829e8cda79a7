"""Rank tests on one value a run: Wilcoxon-Mann-Whitney, Kruskal-Wallis and Dunn, with Holm's correction.

They are told beside the permutation tests, for readers who know them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np


def holm(p: Sequence[float] | np.ndarray) -> np.ndarray:
    """p-values in view of each other (Holm, A simple sequentially rejective multiple test procedure, 1979):
    float64, shape (m,). What is nan stays so, and does not count."""
    p = np.asarray(p, dtype=np.float64)
    adjusted = np.full_like(p, np.nan)
    order = np.argsort(p)[: int(np.isfinite(p).sum())]
    factor = len(order) - np.arange(len(order))
    adjusted[order] = np.minimum(np.maximum.accumulate(p[order] * factor), 1)
    return adjusted


def rank_test(values: Sequence[np.ndarray]) -> float:
    """Two-sided p of Wilcoxon-Mann-Whitney for two groups, of Kruskal-Wallis for more.

    Exact for two groups without ties; nan where a group is empty, 1 where all values are equal.

    Parameters
    ----------
    values : sequence of ndarray, one a group
    """
    from scipy.stats import kruskal, mannwhitneyu

    values = [group[np.isfinite(group)] for group in values]
    if min(len(group) for group in values) == 0:
        return float("nan")
    if np.ptp(np.concatenate(values)) == 0:
        return 1.0
    if len(values) == 2:
        return float(mannwhitneyu(*values, alternative="two-sided", method="auto").pvalue)
    return float(kruskal(*values).pvalue)


def dunn_test(values: Sequence[np.ndarray]) -> dict[tuple[int, int], float]:
    """Which groups differ: p of each pair, with Holm's correction (Dunn, Multiple comparisons using rank
    sums, 1964): differences of mean ranks, whose variance is corrected for ties.

    Returns
    -------
    dict of (int, int) to float
        By positions of the groups, the lesser one first; nan where a group is empty.
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

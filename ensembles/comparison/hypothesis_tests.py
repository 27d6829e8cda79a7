"""Hypothesis tests of a comparison, and distances between distributions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np

from ensembles.comparison.components import Scores
from ensembles.comparison.exchangeable_units import RUNS, ExchangeableUnits
from ensembles.comparison.mode_partition import bin_octaves
from ensembles.comparison.permutation import PermutationTest, permutation_test


def holm(p: Sequence[float] | np.ndarray) -> np.ndarray:
    """Adjust p-values for their number.

    Parameters
    ----------
    p : array_like of float, shape (m,)
        nan stays nan, and does not count.

    Returns
    -------
    ndarray of float64, shape (m,)

    References
    ----------
    S. Holm, "A simple sequentially rejective multiple test procedure", Scandinavian Journal of Statistics 6,
    1979.

    Examples
    --------
    >>> holm([0.01, 0.04, 0.03]).tolist()
    [0.03, 0.06, 0.06]
    """
    p = np.asarray(p, dtype=np.float64)
    adjusted = np.full_like(p, np.nan)
    order = np.argsort(p)[: int(np.isfinite(p).sum())]
    factor = len(order) - np.arange(len(order))
    adjusted[order] = np.minimum(np.maximum.accumulate(p[order] * factor), 1)
    return adjusted


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
        if a group is empty, 1 if all values are equal.

    Examples
    --------
    >>> rank_test([np.array([1.0, 2.0, 3.0]), np.array([4.0, 5.0, 6.0])])
    0.1
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


def run_tests(
    units: Sequence[ExchangeableUnits], scores: Sequence[Scores], rng: np.random.Generator
) -> list[PermutationTest]:
    """Test several kinds of calls, with p-values adjusted for all kinds.

    Kinds with the same runs as units are permuted together, and the step-down maximum covers the parts of all
    of them. Kinds that are tested separately (by blocks, or because some runs lack them) are adjusted by
    Holm's method.

    Parameters
    ----------
    units : sequence of ExchangeableUnits
        One for each kind.
    scores : sequence of Scores
        One for each kind.
    rng : numpy.random.Generator

    Returns
    -------
    list of PermutationTest
    """
    families: dict[Any, list[int]] = {}
    for number, one in enumerate(units):
        key = one.group.tobytes() if one.what == RUNS else number
        families.setdefault(key, []).append(number)
    tests: dict[int, PermutationTest] = {}
    for members in families.values():
        together = permutation_test(
            np.hstack([scores[i].total for i in members]),
            np.hstack([scores[i].size for i in members]),
            units[members[0]].group,
            rng,
            units[members[0]].spread,
        )
        ends = np.cumsum([len(scores[i].parts) for i in members])[:-1]
        apart = zip(members, np.split(together.p, ends), np.split(together.adjusted_p, ends), strict=True)
        for i, p, adjusted in apart:
            tests[i] = replace(together, p=p, adjusted_p=adjusted)
    least = [min(tests[i].adjusted_p.min() for i in members) for members in families.values()]
    raised = holm(least)
    for members, p, in_view in zip(families.values(), least, raised, strict=True):
        for i in members:
            # The smallest p-value of a family becomes that of Holm, and the others are scaled with it.
            adjusted = np.minimum(np.maximum(tests[i].adjusted_p * in_view / p, in_view), 1.0)
            tests[i] = replace(tests[i], adjusted_p=adjusted)
    return [tests[i] for i in range(len(units))]


def told_tests(
    test: PermutationTest,
    by_welch: np.ndarray,
    units: ExchangeableUnits,
    scores: Scores,
    names: Sequence[str],
) -> dict[str, Any]:
    """Return the tests of one kind of calls as numbers and texts, for `Comparison.tests`."""
    found: dict[str, Any] = {
        "units": units.what,
        "sizes": units.sizes,
        "memory": units.memory,
        "method": "permutation of units, studentised, step-down maximum; and Welch's t test",
        "arrangements": test.arrangements,
        "exact": test.exact,
        "smallest_p": test.smallest_p,
        "p": float(np.maximum(test.adjusted_p, by_welch).min()),
        "parts": {
            part.name: {
                "p": float(test.p[i]),
                "permutation_p": float(test.adjusted_p[i]),
                "welch_holm_p": float(by_welch[i]),
            }
            for i, part in enumerate(scores.parts)
        },
    }
    if units.what == RUNS:
        _add_rank_tests(found, units, scores, names)
    return found


def _add_rank_tests(
    found: dict[str, Any], units: ExchangeableUnits, scores: Scores, names: Sequence[str]
) -> None:
    """Add rank tests of one value per run."""
    with np.errstate(invalid="ignore", divide="ignore"):
        values = scores.total / scores.size
    by_group = [[column[units.group == g] for g in range(len(names))] for column in values.T]
    rank_p = [rank_test(groups) for groups in by_group]
    found["rank_test"] = "Wilcoxon-Mann-Whitney" if len(names) == 2 else "Kruskal-Wallis"
    for part, p, adjusted, groups in zip(scores.parts, rank_p, holm(rank_p), by_group, strict=True):
        told = found["parts"][part.name]
        told |= {"rank_p": p, "rank_holm_p": float(adjusted)}
        if len(names) > 2:
            told["dunn_holm_p"] = [
                {"groups": [names[i], names[j]], "p": pair_p} for (i, j), pair_p in dunn_test(groups).items()
            ]


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

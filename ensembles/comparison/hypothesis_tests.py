"""Hypothesis tests of a comparison: permutation and rank tests, and distances between distributions."""

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


def run_tests(
    units: Sequence[ExchangeableUnits], scores: Sequence[Scores], rng: np.random.Generator
) -> list[PermutationTest]:
    """The tests of several kinds of calls, their p-values in view of all kinds.

    Kinds of which the same runs are the units are permuted together, so that the step-down maximum goes
    over the parts of all of them. Kinds that are tested apart (by blocks, or because some runs lack them)
    have their p-values raised as Holm does.

    Parameters
    ----------
    units : sequence of Units
    scores : sequence of Scores
        Of each kind.
    rng : numpy Generator
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
            # The least of a family becomes what Holm makes of it, the others follow.
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
    """The tests of one kind of calls as plain numbers and texts."""
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
    """Those of one value a run."""
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
    """Largest difference of the distribution functions, 0 to 1.

    Parameters
    ----------
    first, second : ndarray, shape (BIN_COUNT,)
        Calls in each bin, at least one.
    """
    return float(np.abs(_distribution(first) - _distribution(second)).max())


def wasserstein_octaves(first: np.ndarray, second: np.ndarray) -> float:
    """Area between the distribution functions over log2 of time: how far calls would have to be moved on
    the average to make the two equal, in octaves (1: a factor of two).

    Parameters
    ----------
    first, second : ndarray, shape (BIN_COUNT,)
        Calls in each bin, at least one.
    """
    gap = np.abs(_distribution(first) - _distribution(second))
    return float(gap[:-1] @ np.diff(bin_octaves()))


def _distribution(counts: np.ndarray) -> np.ndarray:
    return np.cumsum(counts, dtype=np.float64) / counts.sum()

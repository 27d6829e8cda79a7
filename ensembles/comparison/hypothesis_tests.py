"""Rank tests of a comparison, also on times of whole runs, and distances between distributions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from math import comb, factorial, prod
from typing import Any

import numpy as np

from ensembles.comparison.components import bin_octaves
from ensembles.comparison.model import holm
from ensembles.model.levels import FEW, SIGNIFICANT

LEVEL = SIGNIFICANT

MOST_EXACT = 50
"""Groups of fewer values have an exact Wilcoxon-Mann-Whitney test, as in R's wilcox.test, with ties too."""


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
    if max(sizes) < MOST_EXACT:
        return method, first, _exact_p(ranks, sizes[0])
    away = abs(first - sizes[0] * sizes[1] / 2)
    spread = np.sqrt(sizes[0] * sizes[1] / 12 * ((n + 1) - tied / (n * (n - 1))))
    p = 2 * float(ndtr(-(away - 0.5) / spread))
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


def _exact_p(ranks: np.ndarray, size: int) -> float:
    """Compute the p-value of the first ranks among all choices of as many: ties have their mean rank."""
    steps = np.rint(2 * ranks).astype(np.int64)  # whole numbers
    ways = np.zeros((size + 1, int(steps.sum()) + 1))  # of so many ranks with this sum
    ways[0, 0] = 1
    for step in steps.tolist():
        ways[1:, step:] += ways[:-1, :-step].copy()
    seen, every = int(steps[:size].sum()), ways[size].sum()
    return min(2 * float(min(ways[size, : seen + 1].sum(), ways[size, seen:].sum()) / every), 1.0)


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


RUN_TIMES = ("io_time_s", "critical_path_s", "slowest_task_s", "wait_time_s", "span_s")
"""Times of whole runs that are tested."""

FIRST_TESTED = ("critical_path_s", "slowest_task_s")
"""Times of whole runs that are tested first, else the first of `RUN_TIMES`; counters have the second."""

FEWEST_FOR_NORMALITY = 3
"""Values that the test of Shapiro and Wilk needs."""


@dataclass(frozen=True)
class RunGroup:
    """A time of the runs of one group."""

    name: str  # Name of the group
    runs: int  # Number of runs
    # median_s, low_s, high_s: Median, least and greatest value
    median_s: float
    low_s: float
    high_s: float
    # shapiro_w, shapiro_p: Statistic and p-value of the test of Shapiro and Wilk; a small p excludes a normal
    # distribution. None: there are fewer than three runs, or all have the same value.
    shapiro_w: float | None
    shapiro_p: float | None


@dataclass(frozen=True)
class RunPair:
    """Two groups of a test on runs."""

    groups: list[str]  # Names of the two groups
    # z, p, holm_p: Statistic of Dunn's test, its two-sided p-value, and the p-value with Holm's correction
    # for all pairs. None: there are only two groups.
    z: float | None
    p: float | None
    holm_p: float | None
    # Hodges-Lehmann estimate of the shift: median of the differences, second group less first
    difference_s: float
    # Probability that a run of the second group takes longer than one of the first, less the probability that
    # it takes less time: −1 to 1
    cliffs_delta: float


@dataclass(frozen=True)
class RunTest:
    """A rank test on one time of the runs of each group. The run is the unit.

    Attributes
    ----------
    scope : str
        ``run``, ``calls`` (of one layer and operation) or ``step`` (a phase).
    what : str
        As in `ensembles.comparison.times.TimeChange`; ``phase 3``. Of a
        phase it is the time in its outermost I/O calls, summed over tasks, and not its wall time as in
        ``ensio phases``.
    method : str
        ``Wilcoxon-Mann-Whitney`` or, of three or more groups, ``Kruskal-Wallis``.
    statistic : float
        U of the first group, or H.
    p : float
        Two-sided p-value.
    holm_p : float
        The same, with Holm's correction for all tests of this scope. Of whole runs, I/O of the critical path
        (else time in I/O) is tested first and has its p; the others are corrected for their number and count
        only as far as the first does, so that 4 + 4 runs can be significant.
    epsilon_squared : float or None
        H / (n − 1) of Kruskal-Wallis: share of the variance of the ranks between groups, 0 to 1. None: there
        are two groups, whose effect is Cliff's delta.
    groups : list of RunGroup
    pairs : list of RunPair
    """

    scope: str
    what: str
    method: str
    statistic: float
    p: float
    holm_p: float
    epsilon_squared: float | None
    groups: list[RunGroup]
    pairs: list[RunPair] = field(default_factory=list)


def has_repetitions(sizes: Sequence[int]) -> bool:
    """Test whether each of two or more groups has enough runs for a test."""
    return len(sizes) > 1 and min(sizes) >= FEW


def make_run_test(
    scope: str, what: str, values_s: Sequence[Sequence[float]], names: Sequence[str]
) -> RunTest:
    """Test whether a time of runs is the same in all groups.

    References
    ----------
    N. Cliff, "Dominance statistics: ordinal analyses to answer ordinal questions", Psychological Bulletin
    114, 1993. J. L. Hodges and E. L. Lehmann, "Estimates of location based on rank tests", Annals of
    Mathematical Statistics 34, 1963. M. Tomczak and E. Tomczak, "The need to report effect size estimates
    revisited", Trends in Sport Sciences 21, 2014 (epsilon squared).

    Examples
    --------
    >>> from ensembles.comparison.hypothesis_tests import make_run_test
    >>> times_s = [[1.0, 1.1, 1.2, 1.3, 1.4], [2.0, 2.1, 2.2, 2.3, 2.4], [1.05, 1.15, 1.25, 1.35, 1.45]]
    >>> test = make_run_test("run", "io_time_s", times_s, ["a", "b", "c"])
    >>> test.method, round(test.p, 4), [round(pair.holm_p, 4) for pair in test.pairs]
    ('Kruskal-Wallis', 0.0087, [0.014, 0.7237, 0.0267])
    """
    values = [np.asarray(group, np.float64) for group in values_s]
    method, statistic, p = rank_statistic(values)
    dunn = dunn_pairs(values) if len(values) > 2 else None
    pairs = []
    for i in range(len(values)):
        for j in range(i + 1, len(values)):
            difference = values[j][:, None] - values[i][None, :]
            z, pair_p, holm_p = (None, None, None) if dunn is None else dunn[i, j]
            delta = float(np.sign(difference).mean())
            between = [names[i], names[j]]
            pairs.append(RunPair(between, z, pair_p, holm_p, float(np.median(difference)), delta))
    n = sum(map(len, values))
    epsilon = statistic / (n - 1) if len(values) > 2 else None
    groups = [_group(name, group) for name, group in zip(names, values, strict=True)]
    return RunTest(scope, what, method, statistic, p, p, epsilon, groups, pairs)


def compute_run_tests(
    names: Sequence[str],
    sums: Sequence[Sequence[Mapping[str, float]]],
    times_s: Sequence[Sequence[Mapping[tuple[str, str], float]]],
    steps_s: Sequence[Sequence[Sequence[float]]],
) -> list[RunTest]:
    """Test the times of runs: of the whole run, of each kind of calls, and of each step."""
    if not has_repetitions([len(group) for group in sums]):
        return []
    tests: list[RunTest] = []
    whole: dict[str, list[list[float]]] = {
        name: [[run[name] for run in group] for group in sums]
        for name in RUN_TIMES
        if all(name in run for group in sums for run in group)
    }
    kinds = {
        f"{layer} {op}": [[run.get((layer, op), 0.0) for run in group] for group in times_s]
        for layer, op in dict.fromkeys(key for group in times_s for run in group for key in run)
    }
    counts = {len(run) for group in steps_s for run in group}
    steps = {
        f"phase {number + 1}": [[run[number] for run in group] for group in steps_s]
        for number in range(counts.pop() if len(counts) == 1 else 0)
    }
    for scope, found in (("run", whole), ("calls", kinds), ("step", steps)):
        of_scope = [
            make_run_test(scope, what, values, names)
            for what, values in found.items()
            if any(value > 0 for group in values for value in group)
        ]
        adjusted = _in_order(of_scope) if scope == "run" else holm([test.p for test in of_scope]).tolist()
        tests += [replace(test, holm_p=float(p)) for test, p in zip(of_scope, adjusted, strict=True)]
    return tests


def _in_order(tests: Sequence[RunTest]) -> list[float]:
    """Adjust p-values of times of whole runs: the first decides whether the others are tested.

    References
    ----------
    W. Maurer, L. A. Hothorn and W. Lehmacher, "Multiple comparisons in drug clinical trials and preclinical
    assays: a-priori ordered hypotheses", Biometrie in der chemisch-pharmazeutischen Industrie 6, 1995.
    """
    names = [test.what for test in tests]
    first = next((names.index(what) for what in FIRST_TESTED if what in names), 0)
    others = iter(holm([test.p for at, test in enumerate(tests) if at != first]).tolist())
    least = tests[first].p if tests else 1.0
    return [test.p if at == first else max(least, next(others)) for at, test in enumerate(tests)]


def _group(name: str, values_s: np.ndarray) -> RunGroup:
    from scipy.stats import shapiro

    w = p = None
    if len(values_s) >= FEWEST_FOR_NORMALITY and np.ptp(values_s) > 0:
        w, p = map(float, shapiro(values_s))
    ends = float(np.median(values_s)), float(values_s.min()), float(values_s.max())
    return RunGroup(name, len(values_s), *ends, w, p)

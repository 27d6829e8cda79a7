"""The model of a comparison: effects of groups of runs, from one value of each part and run.

The run is the sampling unit. A part is anything that a run has one value of: the location of a mode, a
weight, a time. The model takes arrays and does not depend on events, so that runs of which only summaries are
left are judged by the same rule.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

ASSUMED_SPREAD = 0.1
"""Standard deviation of log duration from run to run that is assumed where it is unknown, because there is
one run per group: moves that it would explain are not called different."""
POWER = 0.8
"""Probability with which the number of runs that is reported as enough finds a move."""
MOST_SHRUNK = 10.0
"""Largest number of degrees of freedom with which the pooled variance counts in the variance of a part."""

LEAST_ERROR = 1e-6
"""Values closer than this are equal: octaves, or a share of the calls."""
_MOST_RUNS = 1000


@dataclass(frozen=True)
class RunValues:
    """The values of the parts in all runs."""

    # float64, shape (r, m): Value of each run and part: logarithms (base 2) of times and counts, shares of
    # calls; nan: the run has no such calls
    value: np.ndarray
    group: np.ndarray  # int64, shape (r,): Group of each run, from 0; the others are compared with group 0
    # int64, shape (m,): Parts with the same number are of one kind, so that their variances are pooled
    family: np.ndarray
    # float64, shape (m,): Largest error of a difference that the rounding of bins and clocks causes
    grain: np.ndarray
    # error, freedom: float64, shape (r, m), optional: Standard error of each value within its run, and its
    # degrees of freedom. If a group has a second run, runs vary by the error at least.
    error: np.ndarray | None = None
    freedom: np.ndarray | None = None


@dataclass(frozen=True)
class Effects:
    """How far each part moved in each group relative to the first group."""

    mean: np.ndarray  # float64, shape (groups, m): Mean of the runs of each group; nan: no run has a value
    # value, error, freedom: float64, shape (groups − 1, m): Estimate, its standard error and degrees of
    # freedom; nan: unknown. If no group has several runs, the error allows for `ASSUMED_SPREAD` between runs.
    value: np.ndarray
    error: np.ndarray
    freedom: np.ndarray
    spread: np.ndarray  # float64, shape (groups − 1, m): Standard deviation from run to run; nan: unknown
    grain: np.ndarray  # float64, shape (m,): As in `RunValues`
    # float64, shape (groups − 1, m): p-value of the t test that nothing moved; 1 if the error is unknown
    p: np.ndarray
    has_repetitions: bool  # Whether a group has several runs
    # float64, shape (groups − 1, m): Standard error that counts for `is_within`: of single runs, the one
    # within these runs
    error_within: np.ndarray

    def of_parts(self, parts: slice) -> Effects:
        """Return the effects of some of the parts."""
        columns = {
            name: getattr(self, name)[..., parts]
            for name in ("mean", "value", "error", "freedom", "spread", "grain", "p", "error_within")
        }
        return replace(self, **columns)

    def half_width(self, level: float) -> np.ndarray:
        """Return half the width of the intervals with the confidence level 1 − `level`; nan: unknown.

        An interval excludes that nothing moved if, and only if, `p` is below the level.
        """
        return self._half_width(self.error, level)

    def _half_width(self, error: np.ndarray, level: float) -> np.ndarray:
        from ensembles.statistics.special import stdtrit

        with np.errstate(invalid="ignore"):
            half = stdtrit(np.maximum(self.freedom, 1e-3), 1 - level / 2) * error
        found: np.ndarray = np.maximum(half, LEAST_ERROR) + self.grain
        return found

    def is_within(self, margin: np.ndarray, level: float) -> np.ndarray:
        """Return where a move beyond a margin is excluded.

        Two one-sided t tests: the probability of a wrong "within" is at most `level`.

        References
        ----------
        D. J. Schuirmann, "A comparison of the two one-sided tests procedure and the power approach for
        assessing the equivalence of average bioavailability", Journal of Pharmacokinetics and
        Biopharmaceutics 15, 1987.
        """
        with np.errstate(invalid="ignore"):
            half = self._half_width(self.error_within, 2 * level)
            inside: np.ndarray = np.abs(self.value) + half <= margin
        return inside


def fit_effects(runs: RunValues) -> Effects:
    """Estimate how far each part moved in each group relative to the first group.

    Notes
    -----
    The value of a group is the mean of its runs. The variance of a part between runs is shrunk towards that
    of all parts of the family: (d v + d₀ v₀) / (d + d₀), where v₀ is the pooled variance and d₀ follows from
    how much the variances differ beyond chance (at most `MOST_SHRUNK`). The variance in a group is shrunk
    towards that of the part alike. A group of one run has d = 0 and the variance of the part, which gives the
    prediction interval of one new run. The degrees of freedom are Satterthwaite's for this sum of variances.
    They count parts that move together from run to run, as under a factor common to all modes, as one. Two
    runs with equal numbers of calls do not show that these never vary: the variance is at least that within
    runs, where it is known.

    References
    ----------
    G. K. Smyth, "Linear models and empirical Bayes methods for assessing differential expression in
    microarray experiments", Statistical Applications in Genetics and Molecular Biology 3, 2004 (limma); F. E.
    Satterthwaite, "An approximate distribution of estimates of variance components", Biometrics Bulletin 2,
    1946.

    Examples
    --------
    Four baselines, and one new run that takes five times as long:

    >>> from ensembles.comparison.model import RunValues, fit_effects
    >>> time_s = np.array([[10.0], [10.4], [9.7], [10.1], [50.5]])
    >>> group, one = np.array([0, 0, 0, 0, 1]), np.zeros(1)
    >>> effects = fit_effects(RunValues(np.log2(time_s), group, one.astype(int), one))
    >>> round(float(2 ** effects.value[0, 0]), 2), round(float(effects.freedom[0, 0]), 2)
    (5.03, 3.0)
    >>> bool(effects.p[0, 0] < 1e-4)
    True
    """
    groups = int(runs.group.max()) + 1
    known = np.isfinite(runs.value)
    member = (runs.group == np.arange(groups)[:, None]).astype(np.float64)
    n = member @ known
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = member @ np.where(known, runs.value, 0.0) / n
    value = mean[1:] - mean[0]
    if (np.bincount(runs.group) > 1).any():
        variance, freedom, spread = _between_runs(runs, mean, n)
        if runs.error is not None:
            with np.errstate(invalid="ignore", divide="ignore"):
                least = member @ runs.error**2 / n**2
            variance = np.maximum(variance, least[1:] + least[0])
        error = np.sqrt(variance)
        p = _t_test(value, error, freedom, runs.grain)
        return Effects(mean, value, error, freedom, spread, runs.grain, p, True, error)
    variance, freedom = _within_runs(runs, value.shape)
    error = np.sqrt(variance + _assumed_error() ** 2)
    p = _t_test(value, error, freedom, runs.grain)
    unknown = np.full_like(value, np.nan)
    return Effects(mean, value, error, freedom, unknown, runs.grain, p, False, np.sqrt(variance))


def is_alike(ratio: float, margin: float) -> bool:
    """Whether a ratio is within a margin that counts as no change, to either side."""
    return 1 - margin <= ratio <= 1 / (1 - margin)


def separation_p(gap: float) -> float:
    """Return the p-value of two single runs whose durations do not overlap."""
    from ensembles.statistics.special import ndtr

    return float(2 * ndtr(-max(gap, 0.0) / _assumed_error()))


def _assumed_error() -> float:
    return float(np.log2(1 + ASSUMED_SPREAD) * np.sqrt(2))


def _within_runs(runs: RunValues, shape: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Return variance and degrees of freedom of differences, from the errors within runs."""
    if runs.error is None or runs.freedom is None:
        return np.full(shape, np.nan), np.full(shape, np.nan)
    order = np.argsort(runs.group)
    mine, own = runs.error[order] ** 2, runs.freedom[order]
    with np.errstate(invalid="ignore", divide="ignore"):
        variance = mine[1:] + mine[0]
        shares = mine[1:] ** 2 / own[1:] + mine[0] ** 2 / own[0]
        freedom = np.where(shares > 0, variance**2 / shares, np.minimum(own[1:], own[0]))
    enough = np.minimum(own[1:], own[0]) >= 1
    return np.where(enough, variance, np.nan), np.where(enough, freedom, np.nan)


def _between_runs(
    runs: RunValues, mean: np.ndarray, n: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return variance and degrees of freedom of differences, and the spread of runs."""
    groups, m = n.shape
    variance, freedom, spread = (np.full((groups - 1, m), np.nan) for _ in range(3))
    rest = np.where(np.isfinite(runs.value), runs.value - mean[runs.group], 0.0)
    for family in np.unique(runs.family):
        parts = np.flatnonzero(runs.family == family)
        own = np.maximum(n[:, parts] - 1, 0.0)
        products = np.zeros((groups, len(parts), len(parts)))
        for g in range(groups):
            here = rest[runs.group == g][:, parts]
            shared = np.sqrt(np.outer(own[g], own[g]))
            products[g] = here.T @ here / np.maximum(shared, 1.0) * (shared > 0)
        of_part = np.diagonal(products, axis1=1, axis2=2)
        total = own.sum()
        if not total:
            continue
        in_part = own.sum(axis=0)
        of_groups = own / np.maximum(in_part, 1.0)
        part_variance = (of_groups * of_part).sum(axis=0)
        known, number = own > 0, np.broadcast_to(np.arange(len(parts)), own.shape)
        among_groups = _prior_freedom(of_part[known], own[known], number[known])
        varying = in_part > 0
        among_parts = _prior_freedom(part_variance[varying], in_part[varying], np.zeros(varying.sum(), int))
        kept = _kept(own, among_groups)
        kept_part = _kept(in_part, among_parts)
        pooled_variance = (own * of_part).sum() / total
        shrunk_part = kept_part * part_variance + (1 - kept_part) * pooled_variance
        shrunk = kept * of_part + (1 - kept) * shrunk_part
        for g in range(1, groups):
            for at, part in enumerate(parts):
                if not (n[0, part] and n[g, part]):
                    continue
                pair = [0, g]
                lent = (1 - kept[pair, at]) / n[pair, part]
                # Coefficient of each variance in that of the difference, which is linear in them.
                factor = lent.sum() * (1 - kept_part[at]) * own / total
                factor[:, at] += lent.sum() * kept_part[at] * of_groups[:, at]
                factor[pair, at] += kept[pair, at] / n[pair, part]
                doubt = (lent**2).sum() * shrunk_part[at] ** 2 / among_groups
                doubt += (lent.sum() * (1 - kept_part[at]) * pooled_variance) ** 2 / among_parts
                for here in range(groups):
                    weighted = np.outer(factor[here], factor[here]) * products[here] ** 2
                    shared = np.sqrt(np.outer(own[here], own[here]))
                    doubt += float((weighted[shared > 0] / shared[shared > 0]).sum())
                both = float((shrunk[pair, at] / n[pair, part]).sum())
                variance[g - 1, part] = both
                freedom[g - 1, part] = both**2 / doubt if doubt > 0 else max(in_part[at], 1.0)
                spread[g - 1, part] = np.sqrt(shrunk[pair, at].mean())
    return variance, freedom, spread


def _kept(freedom: np.ndarray, prior: float) -> np.ndarray:
    """Return the share of the estimate in each group that shrinking keeps."""
    if prior <= 2:
        return np.where(freedom > 0, 1.0, 0.0)
    found: np.ndarray = freedom / (freedom + min(prior, MOST_SHRUNK))
    return found


def _prior_freedom(variance: np.ndarray, freedom: np.ndarray, block: np.ndarray) -> float:
    """Estimate how alike the true variances of a block are: degrees of freedom of their distribution.

    Infinite if the variances differ no more than chance lets them, or if every block has one.

    References
    ----------
    Smyth 2004, section 6.2.
    """
    from scipy.special import digamma, polygamma

    size = np.bincount(block)[block]
    variance, freedom, block = variance[size > 1], freedom[size > 1], block[size > 1]
    if not variance.any():
        return np.inf
    least = 1e-5 * np.median(variance[variance > 0])
    logs = np.log(np.maximum(variance, least)) - digamma(freedom / 2) + np.log(freedom / 2)
    rest = logs - (np.bincount(block, logs) / np.maximum(np.bincount(block), 1))[block]
    beyond = float(rest @ rest) / (len(rest) - len(np.unique(block))) - float(
        polygamma(1, freedom / 2).mean()
    )
    if beyond <= 0:
        return np.inf
    half = 0.5 + 1 / beyond  # the inverse of trigamma, by Newton's method
    for _ in range(50):
        step = polygamma(1, half) * (1 - polygamma(1, half) / beyond) / polygamma(2, half)
        half += step
        if -step / half < 1e-8:
            break
    return float(2 * half)


def _t_test(value: np.ndarray, error: np.ndarray, freedom: np.ndarray, grain: np.ndarray) -> np.ndarray:
    from ensembles.statistics.special import stdtr

    apart = np.abs(value) - grain
    with np.errstate(invalid="ignore", divide="ignore"):
        statistic = np.where(apart < LEAST_ERROR, 0.0, apart / np.hypot(error, LEAST_ERROR))
        p = 2 * stdtr(np.maximum(freedom, 1e-3), -statistic)
    found: np.ndarray = np.where(np.isfinite(p), p, 1.0)
    return found


def runs_needed(spread: float, margin: float, level: float, same_level: float) -> int | None:
    """Return how many runs per group find or exclude a move by the margin.

    Examples
    --------
    >>> from ensembles.comparison.model import runs_needed
    >>> runs_needed(0.05, 0.1, 0.05, 0.1), runs_needed(0.05, 0.7, 0.05, 0.1)
    (5, 2)
    """
    from ensembles.statistics.special import ndtri, stdtrit

    for first, last in ((2, 32), (33, _MOST_RUNS)):  # few are often enough
        n = np.arange(first, last + 1)
        error, freedom = spread * np.sqrt(2 / n), 2.0 * (n - 1)
        find = (stdtrit(freedom, 1 - level / 2) + ndtri(POWER)) * error
        exclude = (stdtrit(freedom, 1 - same_level) + ndtri((1 + POWER) / 2)) * error
        enough = np.flatnonzero(np.maximum(find, exclude) <= margin)
        if len(enough):
            return int(n[enough[0]])
    return None


def holm(p: Sequence[float] | np.ndarray) -> np.ndarray:
    """Adjust p-values for their number.

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

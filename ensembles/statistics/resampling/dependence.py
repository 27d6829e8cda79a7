"""Correlation between calls of a phase, and between consecutive calls of a task.

Correlations are those of normal scores: each duration is replaced by the standard normal quantile of its rank
among all, so that a heavy tail does not dominate. The results are parameters of a Gaussian copula (R. B.
Nelsen, An Introduction to Copulas, 2006).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

LEAST_PAIRS = 50
"""With fewer pairs of calls, correlations are unknown."""

LAGS = 64
"""Largest distance of consecutive calls whose correlation is estimated; beyond, it is that of this distance.
"""


@dataclass(frozen=True, eq=False)
class Dependence:
    """Correlations between normal scores of durations.

    Attributes
    ----------
    phase : float or None
        Between calls of different tasks in the same phase; None: too few phases.
    phase_error : float or None
        Its standard error over phases.
    lags : ndarray of float64, shape (l,)
        Between calls of one task at the distances 1, 2, ..., without the correlation by phase; empty:
        unknown.
    lags_error : float or None
        Standard error of the first of them.
    within_phases : bool
        Whether `lags` is from calls of one phase (else from calls of successive phases).
    phases : int
        Number of phases of the estimate.
    """

    phase: float | None
    phase_error: float | None
    lags: np.ndarray
    lags_error: float | None
    within_phases: bool
    phases: int = 1

    @property
    def of_phase(self) -> float:
        """Correlation by phase; 0 if it is unknown or negative."""
        return float(np.clip(self.phase or 0.0, 0, 0.98))

    def of_task(self, k: int) -> float:
        """Return the mean correlation between two of k consecutive calls of a task.

        The correlation by phase is excluded. The variance of their sum is 1 + (k - 1) times this, relative to
        that of independent calls.

        Parameters
        ----------
        k : int
            Number of calls.

        Returns
        -------
        float
            Between -1/(k-1) and 0.98.
        """
        if k < 2 or not len(self.lags):
            return 0.0
        distance = np.arange(1, k)
        lag = self.lags[np.minimum(distance, len(self.lags)) - 1]
        mean = float(2 * np.sum((k - distance) * lag) / (k * (k - 1)))
        return float(np.clip(mean, -1 / (k - 1), 0.98))


INDEPENDENT = Dependence(0.0, None, np.zeros(0), None, False)
"""Independent calls."""


def estimate_dependence(
    durations_s: np.ndarray, rank: np.ndarray, phase: np.ndarray | None = None
) -> Dependence:
    """Estimate correlations between calls.

    Parameters
    ----------
    durations_s : ndarray of float, shape (n,)
        Seconds, in the order of start within each task.
    rank : ndarray of integers, shape (n,)
        Task of each call.
    phase : ndarray of integers, shape (n,), optional
        None: unknown.

    Examples
    --------
    Each task has a rate that does not change:

    >>> random = np.random.default_rng(1)
    >>> rate, noise = random.normal(size=(400, 1)), random.normal(size=(400, 20))
    >>> found = estimate_dependence(np.exp(rate + noise).ravel(), np.repeat(np.arange(400), 20))
    >>> round(float(found.lags[0]), 1)
    0.5
    """
    order = np.argsort(rank, kind="stable")
    rank = np.asarray(rank)[order]
    scores = _normal_scores(np.asarray(durations_s, dtype=np.float64)[order])
    group = np.zeros(len(scores), np.int64) if phase is None else np.asarray(phase)[order]
    ids, group = np.unique(group, return_inverse=True)
    of_phase, error = (None, None) if len(ids) < 3 else _phase_correlation(scores, rank, group, len(ids))
    rest = scores
    if len(ids) > 1:
        mean = np.bincount(group, scores) / np.bincount(group)
        rest = scores - mean[group]
    lags, lag_error, within = _lags(rest, rank, group)
    return Dependence(of_phase, error, lags, lag_error, within, max(len(ids), 1))


def _normal_scores(values: np.ndarray) -> np.ndarray:
    """Return scores of variance 1; all zero if all values are equal."""
    from ensembles.statistics.special import ndtri

    _, place, count = np.unique(values, return_inverse=True, return_counts=True)
    middle = np.cumsum(count) - count / 2  # calls below, and half of those that are equal
    scores = ndtri(middle / max(len(values), 1))[place.reshape(-1)]
    spread = scores.std() if len(scores) else 0.0
    return (scores - scores.mean()) / spread if spread > 0 else np.zeros(len(scores))


def _phase_correlation(
    scores: np.ndarray, rank: np.ndarray, group: np.ndarray, groups: int
) -> tuple[float | None, float | None]:
    """Return the mean product of scores of two tasks in a phase, and its error.

    All phases have equal weights.
    """
    _, pair = np.unique(rank * np.int64(groups) + group, return_inverse=True)
    pair = pair.reshape(-1)
    sums, calls = np.bincount(pair, scores), np.bincount(pair)
    of_pair = np.zeros(len(calls), np.int64)
    of_pair[pair] = group
    total, n = np.bincount(of_pair, sums, groups), np.bincount(of_pair, calls, groups)
    products = total**2 - np.bincount(of_pair, sums**2, groups)
    pairs = n.astype(np.float64) ** 2 - np.bincount(of_pair, calls.astype(np.float64) ** 2, groups)
    usable = pairs > 0
    if usable.sum() < 3 or pairs.sum() < LEAST_PAIRS:
        return None, None
    each = products[usable] / pairs[usable]
    return float(each.mean()), float(each.std(ddof=1) / np.sqrt(len(each)))


def _lags(rest: np.ndarray, rank: np.ndarray, group: np.ndarray) -> tuple[np.ndarray, float | None, bool]:
    """Return correlations of consecutive calls of a task, within phases if there are enough pairs."""
    variance = float(np.mean(rest**2)) if len(rest) else 0.0
    if variance <= 0:
        return np.zeros(0), None, False
    within = _pairs(rest, rank, group, 1, True)
    inside = len(within) >= LEAST_PAIRS
    found, error = [], None
    for lag in range(1, min(LAGS, len(rest) - 1) + 1):
        products = _pairs(rest, rank, group, lag, inside) / variance
        if len(products) < LEAST_PAIRS:
            break
        if lag == 1:
            error = float(products.std(ddof=1) / np.sqrt(len(products)))
        found.append(float(products.mean()))
    return np.array(found), error, inside


def _pairs(rest: np.ndarray, rank: np.ndarray, group: np.ndarray, lag: int, inside: bool) -> np.ndarray:
    """Return products of scores of one task that are `lag` calls apart."""
    chosen = rank[lag:] == rank[:-lag]
    if inside:
        chosen &= group[lag:] == group[:-lag]
    products: np.ndarray = (rest[lag:] * rest[:-lag])[chosen]
    return products

"""How far two distributions are apart, for display: a distance is no test."""

from __future__ import annotations

import numpy as np

from ensembles.statistics.comparison.partition import bin_octaves


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

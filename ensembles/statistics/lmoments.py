"""L-moments: location, scale and shape from sums of order statistics, which few slow calls do not govern.

J. R. M. Hosking, "L-moments: analysis and estimation of distributions using linear combinations of order
statistics", Journal of the Royal Statistical Society B 52, 1990."""

from __future__ import annotations

import numpy as np

NAMES = ("l_location_s", "l_scale_s", "l_cv", "l_skewness", "l_kurtosis")


def l_moments(value: np.ndarray, count: np.ndarray) -> np.ndarray:
    """Sample L-moments and their ratios.

    Parameters
    ----------
    value : ndarray of float64, shape (m,)
        Rising.
    count : ndarray of float64, shape (..., m)
        How often each value occurs, in one ensemble or in several.

    Returns
    -------
    ndarray of float64, shape (..., 5)
        First and second L-moment, their ratio (L-CV), L-skewness and L-kurtosis; NaN where there are too few
        values, or all are equal.

    Notes
    -----
    With the unbiased probability-weighted moments ``b_r = mean of x_(j) (j-1)...(j-r) / ((n-1)...(n-r))``
    (Hosking 1990, section 3), in which the terms of equal values are added up in closed form: the sum of
    ``(j-1)...(j-r)`` from j = 1 to k is ``k (k-1) ... (k-r) / (r+1)``.
    """
    after = np.cumsum(count, axis=-1)
    n = after[..., -1:]
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.ones_like(after)
        b = []
        for order in range(4):
            share = share * (after - order) / (n - order)
            weight = np.diff(share, axis=-1, prepend=0.0) / (order + 1)
            b.append(weight @ value)
        first, second = b[0], 2 * b[1] - b[0]
        third = 6 * b[2] - 6 * b[1] + b[0]
        fourth = 20 * b[3] - 30 * b[2] + 12 * b[1] - b[0]
        n = n[..., 0]
        second = np.where(n >= 2, second, np.nan)
        flat = second <= 1e-14 * np.abs(first)
        return np.stack(
            [
                first,
                np.where(flat, np.where(n >= 2, 0.0, np.nan), second),
                np.where(flat, np.where(n >= 2, 0.0, np.nan), second / first),
                np.where(flat | (n < 3), np.nan, third / second),
                np.where(flat | (n < 4), np.nan, fourth / second),
            ],
            axis=-1,
        )

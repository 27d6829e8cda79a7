"""The test of Shapiro and Wilk, without the import of `scipy.stats`, which takes longer than most reports."""

from __future__ import annotations

import numpy as np

LEAST = 12
"""Least number of values: for fewer another approximation holds, which is left to SciPy."""

# Polynomials in 1 / sqrt(n), from the constant term on, for the two largest weights; in log n for the place
# and the logarithm of the scale of log(1 - W) (Royston 1995, tables 1 and 2).
_LARGEST = (0.0, 0.221157, -0.147981, -2.07119, 4.434685, -2.706056)
_SECOND = (0.0, 0.042981, -0.293762, -1.752461, 5.682633, -3.582633)
_LOCATION = (-1.5861, -0.31082, -0.083751, 0.0038915)
_LOG_SCALE = (-0.4803, -0.082676, 0.0030302)


def shapiro_wilk_p(values: np.ndarray) -> float:
    """Compute the p-value of the test that values are from a normal distribution."""
    from ensembles.statistics.special import ndtr, ndtri

    n = len(values)
    if n < LEAST:
        from scipy.stats import shapiro

        return float(shapiro(values).pvalue)
    expected = ndtri((np.arange(1, n // 2 + 1) - 0.375) / (n + 0.25))  # of the lower half
    squares = 2 * float((expected**2).sum())
    ends = -expected[:2] / np.sqrt(squares)
    ends += [float(np.polynomial.Polynomial(poly)(n**-0.5)) for poly in (_LARGEST, _SECOND)]
    rest = (squares - 2 * float((expected[:2] ** 2).sum())) / (1 - 2 * float((ends**2).sum()))
    weights = np.concatenate([ends, -expected[2:] / np.sqrt(rest)])
    ordered = np.sort(np.asarray(values, np.float64))
    ordered -= ordered[n // 2]
    found = float(weights @ (ordered[::-1][: n // 2] - ordered[: n // 2])) ** 2
    statistic = found / float(((ordered - ordered.mean()) ** 2).sum())
    far = np.log(max(1 - statistic, 1e-300))
    location, log_scale = (
        float(np.polynomial.Polynomial(poly)(np.log(n))) for poly in (_LOCATION, _LOG_SCALE)
    )
    return float(ndtr((location - far) / np.exp(log_scale)))

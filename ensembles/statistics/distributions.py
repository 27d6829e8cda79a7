"""Distribution functions that need no import of SciPy, which takes longer than a small run.

What is needed rarely, or has no short closed form, comes from `scipy.special` where it is used.
"""

from __future__ import annotations

import math

_MOST_TERMS = 1024
"""Larger degrees of freedom are left to SciPy."""

_MOST_VALUE = 1400.0
"""Beyond it the terms are below the smallest double."""


def chi_square_exceeds(value: float, freedom: float) -> float:
    """Compute the probability that a chi-square variable exceeds a value.

    For few whole degrees of freedom it is a finite sum of positive terms (Abramowitz and Stegun 1964, 26.4.4
    and 26.4.5), else `scipy.special.chdtrc`.
    """
    if freedom != int(freedom) or not 1 <= freedom <= _MOST_TERMS or not 0 <= value < _MOST_VALUE:
        from ensembles.statistics.special import chdtrc

        return float(chdtrc(freedom, value))
    half = value / 2
    # Terms are exp(-value / 2) (value / 2)**k / Gamma(k + 1), with k = 0, 1, ... or 1/2, 3/2, ...
    power = 0.0 if freedom % 2 == 0 else 0.5
    total = 0.0 if power == 0 else math.erfc(math.sqrt(half))
    term = math.exp(-half) * (half**power / math.gamma(power + 1))
    while power < freedom / 2:
        total += term
        power += 1
        term *= half / power
    return total

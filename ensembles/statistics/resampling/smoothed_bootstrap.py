"""The smoothed bootstrap: what is resampled is not the few units that were seen, but units that might have
been.

Few phases never show how slow the slowest phases are, so that an interval made of them alone is too short on
that side. Here each unit stands for some that are alike and somewhat faster or slower (B. W. Silverman and
G. A. Young, "The bootstrap: to smooth or not to smooth?", Biometrika 74, 1987)."""

from __future__ import annotations

import numpy as np

MOST_SMOOTHED = 4096
"""More units than these fill their distribution without smoothing."""

_MANY = 512
_OF_NORMAL = 1.349
"""Distance of the quartiles of a normal distribution, in standard deviations."""


def bandwidth(place: np.ndarray, often: np.ndarray) -> float:
    """How far units are moved: a normal kernel by the rule of thumb, 1.06 n^(-1/5) times the smaller of
    standard deviation and quartile distance over 1.349 (B. W. Silverman, *Density Estimation*, 1986,
    section 3.4).

    Parameters
    ----------
    place : ndarray of float64, shape (k,)
        Places of units, mostly the logarithm of their mean.
    often : ndarray of float64, shape (k,)
        How many units lie there.

    Returns
    -------
    float
        0 where there are more units than `MOST_SMOOTHED`, or most are alike.
    """
    units = often.sum()
    if units > MOST_SMOOTHED:
        return 0.0
    order = np.argsort(place, kind="stable")
    after = np.cumsum(often[order])
    lower, upper = place[order][np.searchsorted(after, [0.25 * units, 0.75 * units])]
    middle = often @ place / units
    deviation = np.sqrt(often @ (place - middle) ** 2 / units)
    return float(1.06 * min(deviation, (upper - lower) / _OF_NORMAL) * units**-0.2)


def nodes(units: float) -> tuple[np.ndarray, np.ndarray]:
    """Steps of a standard normal kernel and their weights, by Gauss's quadrature: moments up to the ninth are
    those of the kernel, of many units up to the fifth.

    Returns
    -------
    steps, weights : ndarray of float64, shape (5,) or (3,)
    """
    steps, weights = np.polynomial.hermite_e.hermegauss(5 if units <= _MANY else 3)
    return steps, weights / weights.sum()

"""The smoothed bootstrap: draw also units that are similar to those that occurred.

Few phases do not show how slow the slowest phases are, so that an interval from them alone is too short on
that side. Here each unit represents several units that are slightly faster or slower (B. W. Silverman and G.
A. Young, "The bootstrap: To smooth or not to smooth?", Biometrika 74, 1987).
"""

from __future__ import annotations

import numpy as np

MOST_SMOOTHED = 4096
"""More units than these represent their distribution without smoothing."""

_MANY = 512
_OF_NORMAL = 1.349
"""Interquartile range of a normal distribution in standard deviations."""


def bandwidth(place: np.ndarray, often: np.ndarray) -> float:
    """Choose the bandwidth of a normal kernel by the rule of thumb.

    It is 1.06 n^(-1/5) times the smaller of the standard deviation and the interquartile range over 1.349.
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
    """Return nodes and weights of a standard normal kernel, by Gauss quadrature.

    Moments are exact up to the ninth, for many units up to the fifth.
    """
    steps, weights = np.polynomial.hermite_e.hermegauss(5 if units <= _MANY else 3)
    return steps, weights / weights.sum()

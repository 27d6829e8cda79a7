"""Predict the slowest call of the next phase from the phases before it, whatever the process.

Phases drift, resemble their neighbours, and change at once. No interval that is fixed in advance has its
coverage then. Here each phase is predicted from those before it; the level is moved by whether the
predictions held (adaptive conformal inference). The share of phases that lay within their intervals is the
prequential coverage (A. P. Dawid, "Statistical theory: the prequential approach", Journal of the Royal
Statistical Society A 147, 1984).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ensembles.model.fields import Fields
from ensembles.model.levels import ENOUGH, FEWEST_ALONE, FEWEST_IN_TIME
from ensembles.statistics import special
from ensembles.statistics.samples.estimate import MOST_WIDTH

STEP = 0.01
"""Step gamma by which a miss moves the level on its side."""

WINDOW = round(1 / STEP)
"""Number of past errors from which an interval is made: as many as the level remembers."""

_SMOOTHING = (0.0, 1.0, 0.1, 0.3, 0.7)
"""Shares of the latest value: 0 is the mean of all values, 1 the last one."""
_LEAST_LEVEL, _MOST_LEVEL = 0.002, 0.45


@dataclass(frozen=True, eq=False)
class NextPhase(Fields):
    """The slowest call of the next phase, and how predictions of the past phases fared.

    Attributes
    ----------
    low_s, median_s, high_s : float or None
        Prediction interval and its centre, in seconds; None: refused.
    level : float
        Level of the intervals.
    coverage : float
        Prequential coverage: share of past phases within their intervals.
    below, above : float
        Shares of past phases below and above their intervals.
    width : float
        Median of high / low of the past intervals.
    trials : int
        Number of past phases that were predicted.
    pit : ndarray of float64, shape (trials,)
        Probability integral transform: place of each past phase in its predicted distribution, 0 to 1. If
        predictions are right, it is uniform.
    refused : str or None
        Reason of a refusal: the interval is wider than a factor of 30.
    """

    low_s: float | None
    median_s: float | None
    high_s: float | None
    level: float
    coverage: float
    below: float
    above: float
    width: float
    trials: int
    pit: np.ndarray
    refused: str | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the fields, with the transforms counted in tenths."""
        return super().to_json() | {"pit": np.histogram(self.pit, 10, (0.0, 1.0))[0].tolist()}


def predict_next(log_s: np.ndarray, level: float = 0.9) -> NextPhase | None:
    """Predict the next value of a series in the order of time, and each past one from those before it.

    Five forecasts of the centre compete, and the errors of the best are its interval, at levels that misses
    move (Gibbs and Candès 2021; docs/reference/methods/tail.md, The next phase).

    Examples
    --------
    A series with a trend is followed:

    >>> noise = np.random.default_rng(1).normal(0.0, 0.1, 200)
    >>> found = predict_next(noise + np.linspace(0.0, 2.0, 200))
    >>> 0.85 < found.coverage < 0.95, bool(found.low_s < np.exp(2.0) < found.high_s)
    (True, True)
    """
    values = np.asarray(log_s, dtype=np.float64)
    p = len(values)
    if p < FEWEST_IN_TIME:
        return None
    centres = _centres(values)
    errors = values - centres[:, :p]
    side = (1.0 - level) / 2.0
    sides = np.array([side, side])
    ends = np.empty((p + 1, 2))
    places = np.empty(p)
    for t in range(FEWEST_ALONE, p + 1):
        past = errors[:, max(1, t - WINDOW) : t]
        widths = np.ptp(np.quantile(past, [side, 1.0 - side], axis=1), axis=0)
        best = int(np.argmin(np.round(widths, 9)))  # of equal ones the first, whatever the last digits are
        low, high = np.clip(sides, _LEAST_LEVEL, _MOST_LEVEL)
        ends[t] = centres[best, t] + _quantiles(past[best], np.array([low, 1.0 - high]))
        if t < p:
            places[t] = (np.sum(past[best] < errors[best, t]) + 0.5) / (past.shape[1] + 1)
            missed = np.array([values[t] < ends[t, 0], values[t] > ends[t, 1]])
            sides += STEP * (side - missed)
    median_s = float(np.exp(centres[best, p] + np.median(past[best])))
    low_s, high_s = (float(end) for end in np.exp(np.clip(ends[p], -60.0, 60.0)))
    too_wide = high_s > MOST_WIDTH * low_s
    seen, told = values[FEWEST_ALONE:], ends[FEWEST_ALONE:p]
    below, above = float(np.mean(seen < told[:, 0])), float(np.mean(seen > told[:, 1]))
    return NextPhase(
        low_s=None if too_wide else min(low_s, median_s),
        median_s=None if too_wide else median_s,
        high_s=None if too_wide else max(high_s, median_s),
        level=level,
        coverage=1.0 - below - above,
        below=below,
        above=above,
        width=float(np.exp(np.median(told[:, 1] - told[:, 0]))),
        trials=len(seen),
        pit=places[FEWEST_ALONE:],
        refused=(
            f"the next phase is known within a factor of {high_s / low_s:,.0f} only: choose one kind of calls"
            if too_wide
            else None
        ),
    )


def _quantiles(errors: np.ndarray, levels: np.ndarray) -> np.ndarray:
    """Return quantiles of one more error: order statistics, and Student's t beyond them."""
    n = len(errors)
    ordered = np.sort(errors)
    found = np.interp(levels * (n + 1) - 1, np.arange(n), ordered)
    student = errors.mean() + errors.std(ddof=1) * np.sqrt(1 + 1 / n) * special.stdtrit(n - 1, levels)
    outside = np.minimum(levels, 1 - levels) * (n + 1) < 1
    wider = np.where(levels < 0.5, np.minimum(student, ordered[0]), np.maximum(student, ordered[-1]))
    # Of few errors the extreme ones are not quantiles: Student's t alone, as for phases.
    ends: np.ndarray = np.where(outside, wider if n >= ENOUGH else student, found)
    return ends


def _centres(values: np.ndarray) -> np.ndarray:
    """Return forecasts of each value from those before it, and of the next: shape (5, p + 1)."""
    centres = np.empty((len(_SMOOTHING), len(values) + 1))
    centres[:, 0] = values[0]
    for row, share in zip(centres, _SMOOTHING, strict=True):
        for t, value in enumerate(values):
            latest = max(share, 1.0 / (t + 1))
            row[t + 1] = (1.0 - latest) * row[t] + latest * value
    return centres

"""Predictions for several N that never fall as N grows, and what lies between them."""

from __future__ import annotations

import numpy as np


def knots(tasks: int, anchor: int) -> list[int]:
    """Return the numbers of calls to predict for: halves or doublings of `anchor` as far as `tasks`."""
    knots = [anchor]
    while knots[-1] < tasks:
        knots.append(2 * knots[-1])
    while knots[-1] > tasks:
        if len(knots) > 1 and knots[-1] > anchor:
            break
        knots.append(knots[-1] // 2)
    return knots


def bounded(mean_s: float | None, bound: float | None, upward: bool) -> float | None:
    """Return a mean that is not below that of fewer calls, or not above that of more."""
    if upward:
        return None if mean_s is None or bound is None else max(mean_s, bound)
    return mean_s if mean_s is None or bound is None else min(mean_s, bound)


def between(
    rows: dict[int, np.ndarray], below: int, above: int, tasks: int, levels: np.ndarray
) -> np.ndarray:
    """Interpolate between the predictions for two numbers of calls.

    Where they are more than a factor of two apart there may be no call between them: then the lower half of
    the distribution is that of fewer calls, and the upper half that of more.
    """
    low_s, high_s = rows[below], rows[above]
    if below == above:
        return low_s
    share = np.log(tasks / below) / np.log(above / below)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = high_s / low_s
        near = low_s * ratio**share
    apart = np.where(levels > 0.5, high_s, low_s)
    return np.where(ratio <= 2.0, near, apart)


def mean_between(
    mean_s: float | None, farther_s: float | None, below: int, above: int, tasks: int
) -> float | None:
    if mean_s is None or farther_s is None or below == above:
        return farther_s if below == above else None
    return float(mean_s * (farther_s / mean_s) ** (np.log(tasks / below) / np.log(above / below)))

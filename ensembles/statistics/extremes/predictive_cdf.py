"""Distribution function of the slowest of N calls, from prediction intervals of several levels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ensembles.statistics.extremes.exchangeability import check_exchangeability
from ensembles.statistics.extremes.maximum import Tail, answer, in_phases, predict_maximum

if TYPE_CHECKING:
    from ensembles.ensemble.ensemble import Ensemble

LEVELS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.95, 0.98)
"""Levels of the intervals whose ends form the curve, in addition to the requested level."""


@dataclass(frozen=True, eq=False)
class PredictiveCdf:
    """Probability that the slowest of N calls is faster than a duration.

    Attributes
    ----------
    answer : Tail
        Prediction at the requested level.
    duration_s, chance : ndarray of float64, shape (k,)
        Durations in seconds and probabilities, both increasing; empty if the prediction is refused.
    """

    answer: Tail
    duration_s: np.ndarray
    chance: np.ndarray

    @classmethod
    def from_ensemble(
        cls, ensemble: Ensemble, tasks: int, level: float = 0.9, seed: int = 0
    ) -> PredictiveCdf:
        """Compute the curve of an ensemble, with one method for all points.

        Parameters
        ----------
        ensemble : Ensemble
        tasks : int
            Number N of calls.
        level : float
            Level of `answer`.
        seed : int
            As for `predict_maximum`.

        Returns
        -------
        PredictiveCdf

        Raises
        ------
        EnsioError
            ``tasks`` or ``level`` is out of range.
        """
        found = predict_maximum(ensemble.sample, tasks, level, calls=ensemble.calls, seed=seed)
        if found.refused or found.median_s is None:
            return cls(found, np.empty(0), np.empty(0))
        sample, calls = in_phases(ensemble.sample), ensemble.calls
        if calls is not None and len(calls.durations_s) > sample.total and calls.phase is not None:
            calls = calls.chosen(calls.phase >= 0)
        tested = check_exchangeability(sample, calls, seed)
        points = {0.5: found.median_s}
        for each in sorted({*LEVELS, level}):
            more = found if each == level else answer(sample, int(tasks), each, tested, calls)
            if more.method == found.method and more.low_s is not None and more.high_s is not None:
                points[(1 - each) / 2], points[(1 + each) / 2] = more.low_s, more.high_s
        chance = np.array(sorted(points))
        # Quantiles of several levels are computed separately, and may decrease by rounding.
        return cls(found, np.maximum.accumulate([points[each] for each in chance.tolist()]), chance)

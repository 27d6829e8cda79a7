"""The distribution of the slowest of N calls as a curve: the ends of intervals of several levels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ensembles.statistics.extremes.exchangeability import check_exchangeability
from ensembles.statistics.extremes.maximum import Tail, answer, in_phases, predict_maximum

if TYPE_CHECKING:
    from ensembles.ensemble.ensemble import Ensemble

LEVELS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.95, 0.98)
"""Levels of the intervals whose ends make the curve, beside that of the answer."""


@dataclass(frozen=True, eq=False)
class PredictiveCdf:
    """How likely the slowest of N calls is faster than a duration.

    Attributes
    ----------
    answer : Tail
        What is said about it at the level that was asked for.
    duration_s, chance : ndarray of float64, shape (k,)
        Both rising; empty where the answer is refused.
    """

    answer: Tail
    duration_s: np.ndarray
    chance: np.ndarray

    @classmethod
    def from_ensemble(
        cls, ensemble: Ensemble, tasks: int, level: float = 0.9, seed: int = 0
    ) -> PredictiveCdf:
        """The curve of an ensemble, on which all points stand on what the answer stands on.

        Parameters
        ----------
        ensemble : Ensemble
        tasks : int
            Calls of which the slowest is asked for.
        level : float
            That of the answer.
        seed : int
            As for `predict_maximum`.

        Raises
        ------
        EnsioError
            ``tasks`` or ``level`` makes no sense.
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
        # Quantiles of several levels are reckoned apart, and may differ by their rounding.
        return cls(found, np.maximum.accumulate([points[each] for each in chance.tolist()]), chance)

"""Distribution function of the slowest of N calls."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ensembles.statistics.extremes.slowest_of_n import SlowestOfN, check_tasks
from ensembles.statistics.extremes.tail import Tail
from ensembles.statistics.samples.level import check_level

if TYPE_CHECKING:
    from ensembles.statistics.extremes.exchangeability import CallAttributes
    from ensembles.statistics.samples.counted_durations import CountedDurations

CHANCES = (0.01, 0.025, *(step / 20 for step in range(1, 20)), 0.975, 0.99)
"""Probabilities of the curve, in addition to the ends of the requested interval."""


@dataclass(frozen=True, eq=False)
class PredictiveCdf:
    """Probability that the slowest of N calls is faster than a duration."""

    answer: Tail  # Prediction at the requested level
    # duration_s, chance: Durations in seconds and probabilities, both increasing; empty if the
    # prediction is refused
    duration_s: np.ndarray
    chance: np.ndarray  # shape (k,)

    @classmethod
    def from_sample(
        cls,
        sample: CountedDurations,
        calls: CallAttributes | None,
        tasks: int,
        level: float = 0.9,
        seed: int = 0,
    ) -> PredictiveCdf:
        """Compute the curve of the calls of an ensemble."""
        tasks, level = check_tasks(tasks), check_level(level)
        model = SlowestOfN.fit(sample, calls=calls, seed=seed)
        found = model.tail(tasks, level)
        if found.refused:
            return cls(found, np.empty(0), np.empty(0))
        side = (1 - level) / 2
        chance = np.unique(np.concatenate([CHANCES, [side, 0.5, 1 - side]]))
        return cls(found, np.asarray(model.at(tasks, chance, level).quantiles_s), chance)

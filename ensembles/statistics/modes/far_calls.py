"""Calls far beyond the modes: too few to be a mode, and yet much of the time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ensembles.model.fields import Fields
from ensembles.model.levels import A_TENTH
from ensembles.model.units import count_text, seconds_text, share_text
from ensembles.statistics.samples.counted_durations import CountedDurations
from ensembles.summaries.bins import bin_edges_s

BEYOND = 10.0
"""Calls that last longer than the slowest mode by this factor are far beyond it."""

LEAST_TIME = A_TENTH
"""Share of the time of all calls from which on they are reported."""


@dataclass(frozen=True)
class FarCalls(Fields):
    """The calls that last more than `BEYOND` times as long as the slowest mode."""

    from_s: float  # `BEYOND` times the slowest mode or the end of a cluster that is not a mode, in seconds
    calls: int  # Number of these calls
    # share, time_share: Their shares of the calls, and of the time of all calls
    share: float
    time_share: float

    def __str__(self) -> str:
        return (
            f"beyond the modes: {count_text(self.calls, 'call')} of more than {seconds_text(self.from_s)} "
            f"({share_text(self.share, None)} of the calls) took {share_text(self.time_share)} of the time, "
            "which no mode counts"
        )


def find_far_calls(
    sample: CountedDurations, places_s: Sequence[float], told_to_s: float = 0.0
) -> FarCalls | None:
    """Find calls far beyond the modes."""
    if not places_s:
        return None
    edges_s = bin_edges_s()
    from_s = max(BEYOND * max(places_s), told_to_s)
    time_s = sample.counts * 0.5 * (edges_s[:-1] + np.minimum(edges_s[1:], sample.max_s.max()))
    far = edges_s[:-1] >= from_s
    calls, time_share = int(sample.counts[far].sum()), float(time_s[far].sum() / max(time_s.sum(), 1e-300))
    if not calls or time_share < LEAST_TIME:
        return None
    return FarCalls(float(from_s), calls, calls / sample.total, time_share)

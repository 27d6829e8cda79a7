"""Modes at whole multiples of a time slice: of calls that waited for a processor, or for a tick."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ensembles.model.fields import Fields
from ensembles.model.levels import CERTAIN
from ensembles.model.units import seconds_text, share_text
from ensembles.statistics.modes.harmonics import LARGEST_CHANCE, TOLERANCE

TICKS_S = (0.001, 0.004, 0.010)
"""Ticks of Linux: 1 / CONFIG_HZ for 1,000, 250 and 100 Hz. Time slices are whole numbers of them."""

MOST_MULTIPLES = 8
"""Multiples that are searched for: those of later modes are closer than the modes are wide."""


@dataclass(frozen=True)
class TimeSlices(Fields):
    """Modes at whole multiples of a time slice."""

    slice_s: float  # Time slice in seconds, one of `TICKS_S`
    multiples: tuple[int, ...]  # Multiples that were found, rising
    modes: tuple[int, ...]  # Index of the mode at each of them, from 0, the shortest
    deviation: float  # Largest distance of a mode from its multiple, as a part of the slice
    chance: float  # p-value: probability that as many modes at random positions are as close to multiples
    crowded: str = ""  # Which tasks share processors; ``""``: none, or not known

    def __str__(self) -> str:
        of = ", ".join(f"{count}" for count in self.multiples[:-1])
        why = (
            f"a time slice: {self.crowded}, and calls wait for a processor"
            if self.crowded
            else "a tick of the kernel: such calls wait for a timer or a processor, not for the file system"
        )
        return (
            f"modes at multiples of {slice_text(self.slice_s)} ({of} and {self.multiples[-1]} times, within "
            f"{share_text(self.deviation, 1)} of it, p-value {self.chance:.2g}), as of {why}"
        )


def slice_text(slice_s: float) -> str:
    """Return a time slice as text: a whole number of milliseconds."""
    whole = 1e3 * slice_s
    return f"{whole:.0f} ms" if math.isclose(whole, round(whole)) else seconds_text(slice_s)


def find_time_slices(
    low_s: Sequence[float], t_s: Sequence[float], high_s: Sequence[float], crowded: str = ""
) -> TimeSlices | None:
    """Find modes at equal distances that are a tick of the scheduler.

    docs/reference/methods/modes.md, Harmonics and fair share, has the p-value.
    """
    t, error = np.asarray(t_s, np.float64), (np.asarray(high_s) - np.asarray(low_s)) / 2
    found: list[TimeSlices] = []
    for slice_s in TICKS_S:
        count = np.rint(t / slice_s)
        within = np.flatnonzero((count >= 1) & (count <= MOST_MULTIPLES))
        off = np.abs(t / slice_s - count)[within]
        seen = np.minimum(np.maximum(off, error[within] / slice_s), 0.5)
        near = off <= TOLERANCE
        multiples = count[within][near].astype(int).tolist()
        if len(set(multiples)) < 2:
            continue
        chance = min(len(TICKS_S) * _upper_gamma(len(within), float(-np.log(2 * seen).sum())), 1.0)
        if chance <= (LARGEST_CHANCE if crowded else CERTAIN):
            modes = tuple(within[near].tolist())
            found.append(
                TimeSlices(slice_s, tuple(multiples), modes, float(off[near].max()), chance, crowded)
            )
    return min(found, key=lambda one: one.chance, default=None)


def _upper_gamma(shape: int, value: float) -> float:
    """Compute the probability that the sum of exponential variables exceeds a value."""
    terms = [value**k / math.factorial(k) for k in range(shape)]
    return math.exp(-value) * math.fsum(terms)

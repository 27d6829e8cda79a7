"""Units that begin together and end one after the other, evenly spaced: they are served in turns."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from ensembles.model.levels import A_TENTH, FEWEST_ALONE, MORE_DRAWS, MOST, MOST_KINDS, SURE
from ensembles.structure.late_entry import binomial_tail

LEAST_UNITS = FEWEST_ALONE
"""Of fewer nodes or tasks, independent ends are even too often."""

MOST_START_SHARE = A_TENTH
"""Units begin together if their first starts differ by this part of the time that is looked at."""

MOST_OF_TURN = 0.25
"""The first turn ends within this part: else each call is long by itself, and only their ends are spread.
Tasks of a unit end together if their ends differ by this part of the step, in the median unit."""

MOST_BYTES_RATIO = 1 + A_TENTH
"""Units that move more bytes than others by this factor may end later for this."""

LEVEL = SURE
"""Significance level at which phases show turns."""


class Turns(NamedTuple):
    """How the units of a phase end."""

    units: int
    # start_ns, step_ns, length_ns: Between the first and the last start, from one end to the next, from the
    # first start to the last end
    start_ns: float
    step_ns: float
    length_ns: float
    inside_ns: float  # Between the first and the last end in the median unit
    variation: float  # Coefficient of variation of the gaps between the ends

    @property
    def are_even(self) -> bool:
        """Whether the ends are evenly spaced."""
        return self.variation <= MOST


def variation_of_gaps(ends: np.ndarray) -> float:
    """Coefficient of variation of gaps between ends (its square: Greenwood, J. R. Stat. Soc. 109, 85)."""
    gaps = np.diff(np.sort(ends))
    mean = float(gaps.mean())
    return float(gaps.std()) / mean if mean > 0 else float("inf")


def turns_of(unit: np.ndarray, start_ns: np.ndarray, end_ns: np.ndarray, size: np.ndarray) -> Turns | None:
    """Look at the ends of units that each make the same calls in a phase, if they can show turns.

    None: the units are few, do not begin together, or move unequal bytes; or the first one ends late, as
    where all calls are long and only leave one after the other.
    """
    if len(unit) < LEAST_UNITS:
        return None
    begin = int(start_ns.min())
    length, spread = int(end_ns.max()) - begin, int(np.ptp(start_ns))
    if spread > MOST_START_SHARE * length:
        return None
    _, number = np.unique(unit, return_inverse=True)
    count = int(number.max()) + 1
    moved = np.bincount(number, size)
    if count < LEAST_UNITS or moved.max() > MOST_BYTES_RATIO * moved.min():
        return None
    first, last = np.full(count, np.iinfo(np.int64).max), np.zeros(count, np.int64)
    np.minimum.at(first, number, end_ns)
    np.maximum.at(last, number, end_ns)
    if int(last.min()) - begin > MOST_OF_TURN * length:
        return None
    step, inside = float(np.ptp(last)) / (count - 1), float(np.median(last - first))
    if inside > MOST_OF_TURN * step:
        return None
    return Turns(count, float(spread), step, float(length), inside, variation_of_gaps(last))


@lru_cache(maxsize=MOST_KINDS)
def _chance_of(gaps: int) -> float:
    drawn = np.random.default_rng(gaps).standard_exponential((MORE_DRAWS, gaps))
    even = drawn.std(axis=1) <= MOST * drawn.mean(axis=1)
    return float(1 + even.sum()) / (1 + MORE_DRAWS)


def chance_of_even(units: int) -> float:
    """Compute how often ends of independent units are even.

    Gaps between independent ends in an interval are, relative to their sum, those of exponential numbers. Of
    more than 65 units, it is the chance of 65, which is larger.
    """
    return _chance_of(min(units - 1, MOST_KINDS))


def largest_chance(phases: list[Turns]) -> float:
    """Return the chance of even ends in the phase with the fewest units."""
    return max(chance_of_even(each.units) for each in phases)


def p_of_turns(phases: list[Turns]) -> float:
    """Compute the p-value of so many phases with even ends, if the ends were independent."""
    even = sum(each.are_even for each in phases)
    if not even:
        return 1.0
    return binomial_tail(even, len(phases), largest_chance(phases))

"""The verdict of a comparison (same, different or inconclusive) and its reason."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ensembles.comparison.components import PLACE, TAIL, WEIGHT, Component
from ensembles.comparison.dependent_blocks import FEWEST_BLOCKS
from ensembles.comparison.exchangeable_units import RUNS, ExchangeableUnits
from ensembles.comparison.permutation import PermutationTest, smallest_p
from ensembles.comparison.report import DIFFERENT, INCONCLUSIVE, SAME, Effect, PartResult, Shift

MARGIN = 0.1
LEVEL = 0.05


def compute_margins(parts: Sequence[Component], shares: np.ndarray, margin: float) -> list[float]:
    """Return the largest change of each part that counts as no change.

    A weight may change so far that the mean of all calls moves by less than the margin: of a mode that is a
    hundred times slower, a hundredth of its share counts.

    Parameters
    ----------
    parts : sequence of Component
    shares : ndarray of float64, shape (u, modes)
        Share of each unit's calls in each mode.
    margin : float
        As for `ensembles.compare`.

    Returns
    -------
    list of float
        Factors minus 1 of places and of the tail; differences of weights.
    """
    t_s = np.array([part.t_s for part in parts if part.what == PLACE])
    mean_s = float(shares.mean(axis=0) @ t_s)
    found = []
    for part in parts:
        if part.what == WEIGHT:
            found.append(margin * min(1.0, mean_s / max(abs(part.t_s - mean_s), 1e-300)))
        else:
            found.append(2 * margin if part.what == TAIL else margin)
    return found


def verdict_of_part(
    effects: Sequence[Effect], p: float, margin: float, level: float, can_differ: bool, trusted: bool
) -> str:
    """Return the verdict of one part.

    It is different if its p-value and one of its intervals are significant, same if every interval lies
    within the margin, and otherwise inconclusive.
    """
    if can_differ and p <= level and any(effect.is_certain for effect in effects):
        return DIFFERENT
    if trusted and all(effect.is_within(margin) for effect in effects):
        return SAME
    return INCONCLUSIVE


def decide(parts: Sequence[PartResult]) -> str:
    """Combine the verdicts of parts: one different part decides; same only if all are."""
    verdicts = {part.verdict for part in parts}
    if DIFFERENT in verdicts:
        return DIFFERENT
    return SAME if verdicts == {SAME} else INCONCLUSIVE


def _is_within(shift: Shift, margin: float) -> bool:
    if shift.low is None or shift.high is None:
        return False
    return shift.low * (1 + margin) >= 1 >= shift.high / (1 + margin)


def verdict_reason(
    verdict: str,
    units: ExchangeableUnits,
    parts: Sequence[PartResult],
    test: PermutationTest,
    can_differ: bool,
    margin: float,
    level: float,
) -> str:
    """Return the reason of a verdict in one sentence."""
    least = min(part.adjusted_p if part.adjusted_p is not None else 1.0 for part in parts)
    if verdict == DIFFERENT:
        return (
            f"p = {least:.2g} for the part that moved most, adjusted for {len(parts)} parts; level {level:g}"
        )
    if verdict == SAME:
        return f"no part moved by more than the margin: {margin:.0%} for modes, {2 * margin:.0%} for the tail"
    sizes = " + ".join(map(str, units.sizes))
    if units.what == RUNS and not can_differ:
        return (
            f"with {sizes} runs no rank or permutation test gives a p-value below {test.smallest_p:.2g}, "
            f"so that the level {level:g} is out of reach: {_enough(len(units.sizes), level)}"
        )
    if not units.are_trusted:
        if not units.are_blocks:
            return (
                "there is one run per group and its phases are unknown, so that the dependence between its "
                "calls is unknown: compare several runs per group"
            )
        return (
            f"one run per group gives {sizes} nearly independent blocks, and at least {FEWEST_BLOCKS} are "
            "needed: compare longer runs, or several runs per group"
        )
    loose = [part.name for part in parts if part.verdict == INCONCLUSIVE]
    return (
        f"no part certainly moved (p = {least:.2g}), but a move beyond the margin cannot be excluded for "
        f"{', '.join(loose)}"
    )


def _enough(groups: int, level: float) -> str:
    runs = next(n for n in range(2, 50) if smallest_p([n] * groups) <= level)
    return f"compare {' + '.join([str(runs)] * groups)} runs or more"


def verdict_notes(
    units: ExchangeableUnits, verdict: str, shifts: Sequence[Shift], margin: float
) -> list[str]:
    """Return the caveats of a verdict, one sentence each."""
    notes = []
    if verdict == SAME and not all(_is_within(shift, margin) for shift in shifts):
        notes.append(
            "the median lies between modes, where a small change of their weights moves it far: the modes "
            "are more informative than its ratio"
        )
    if units.what != RUNS and verdict == DIFFERENT:
        notes.append(
            "one run per group: these runs differ by more than each of them varies, but runs of one program "
            "often do; compare several runs per group to attribute the difference to a change"
        )
    if units.what != RUNS and verdict == SAME:
        notes.append("one run per group: these runs are the same, but the next ones may differ")
    return notes

"""What is said in the end: same, different or inconclusive, and why."""

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
    """How far each part may move and be called the same. A weight, so far that the mean of all calls moves
    by less than the margin: what counts of a mode that is a hundred times slower is the hundredth of its
    share."""
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
    if can_differ and p <= level and any(effect.is_certain for effect in effects):
        return DIFFERENT
    if trusted and all(effect.is_within(margin) for effect in effects):
        return SAME
    return INCONCLUSIVE


def decide(parts: Sequence[PartResult]) -> str:
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
    least = min(part.adjusted_p if part.adjusted_p is not None else 1.0 for part in parts)
    if verdict == DIFFERENT:
        return f"p = {least:.2g} for the part that moved most, in view of {len(parts)} parts; level {level:g}"
    if verdict == SAME:
        return (
            f"nothing can have moved by more than the margin: {margin:.0%} for modes, {2 * margin:.0%} "
            "for the tail"
        )
    sizes = " + ".join(map(str, units.sizes))
    if units.what == RUNS and not can_differ:
        return (
            f"with {sizes} runs no rank or permutation test gives a p below {test.smallest_p:.2g}, "
            f"so that a level of {level:g} cannot be reached: {_enough(len(units.sizes), level)}"
        )
    if not units.are_trusted:
        if not units.are_blocks:
            return (
                "there is one run a side and its phases are not known, so that it cannot be told how "
                "calls depend on each other: compare several runs a side"
            )
        return (
            f"of one run a side there are {sizes} blocks that hardly depend on each other, and at least "
            f"{FEWEST_BLOCKS} are needed: compare longer runs, or several a side"
        )
    loose = [part.name for part in parts if part.verdict == INCONCLUSIVE]
    return (
        f"no part is certain to have moved (p = {least:.2g}), but that nothing moved by more than the "
        f"margin is not certain either, for {', '.join(loose)}"
    )


def _enough(groups: int, level: float) -> str:
    runs = next(n for n in range(2, 50) if smallest_p([n] * groups) <= level)
    return f"compare {' + '.join([str(runs)] * groups)} runs or more"


def verdict_notes(
    units: ExchangeableUnits, verdict: str, shifts: Sequence[Shift], margin: float
) -> list[str]:
    notes = []
    if verdict == SAME and not all(_is_within(shift, margin) for shift in shifts):
        notes.append(
            "the median lies between modes, where it goes far with a small change of their weights: the "
            "modes tell more than its ratio"
        )
    if units.what != RUNS and verdict == DIFFERENT:
        notes.append(
            "one run a side: these runs differ by more than each of them varies by itself, but runs of "
            "the same "
            "program often do; several runs a side would tell whether the cause is what was changed"
        )
    if units.what != RUNS and verdict == SAME:
        notes.append("one run a side: these runs are the same, which need not hold for the next ones")
    return notes

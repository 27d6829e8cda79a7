"""The verdict of a comparison (same, different or inconclusive) and its reason."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ensembles.comparison.components import PLACE, RATIO, TAIL, TAIL_PLACE, WEIGHT, WIDTH, Component
from ensembles.comparison.model import ASSUMED_SPREAD, Effects, is_alike, runs_needed
from ensembles.comparison.report import DIFFERENT, INCONCLUSIVE, SAME, Move, PartResult, Shift
from ensembles.comparison.units import FEWEST_BLOCKS, RUNS, Units
from ensembles.model.units import count_text, number_text, share_text

SAME_LEVEL = 0.13
"""Level of the equivalence test of one part. All parts must pass, and few degrees of freedom cost the test
some of its level: a move that just reaches the margin is called the same in about 10 %.
"""

IDENTICAL = "the durations of these runs have the same histogram"
"""Reason of "same" where single runs do not differ at all."""

FASTER, SLOWER, MIXED = "faster", "slower", "mixed"


def margins_of_parts(parts: Sequence[Component], margin: float) -> np.ndarray:
    """Return the largest change of each part that counts as no change, as the model measures it.

    Shares of the calls and the location of the tail may change so far that the mean of all calls moves by
    less than the margin: of a mode that is a hundred times slower, a hundredth of its share counts. A width
    may change so far that the mean of the slower half of the mode's calls moves by the margin.
    """
    mean_s = sum(part.weight * part.t_s for part in parts if part.what == PLACE)
    octaves = -np.log2(1 - margin)
    found = []
    for part in parts:
        if part.what in (WEIGHT, TAIL):
            apart_s = abs((part.mean_s or part.t_s) - mean_s)
            found.append(margin * min(1.0, mean_s / max(apart_s, 1e-300)))
        elif part.what == TAIL_PLACE:
            found.append(float(np.log2(1 + margin * mean_s / (part.weight * part.mean_s))))
        elif part.what == WIDTH:
            found.append(float(np.log2(1 + octaves / part.width_octaves)))
        else:
            found.append(octaves * (2 if part.what == RATIO else 1))
    return np.array(found)


def verdicts_of_parts(
    parts: Sequence[Component], fitted: Effects, adjusted_p: np.ndarray, margin: np.ndarray, level: float
) -> list[str]:
    """Return the verdict of each part.

    It is different if an adjusted p-value is significant, same if a move beyond the margin is excluded in all
    groups, and otherwise inconclusive.
    """
    moved: list[bool] = np.any(adjusted_p <= level, axis=0).tolist()
    within: list[bool] = np.all(fitted.is_within(margin, SAME_LEVEL), axis=0).tolist()
    return [DIFFERENT if moved[i] else SAME if within[i] else INCONCLUSIVE for i in range(len(parts))]


def decide(parts: Sequence[PartResult]) -> str:
    """Combine the verdicts of parts: one different part decides; same only if all are.

    Ratios of modes follow from their locations, and need not be shown to be the same.
    """
    if any(part.verdict == DIFFERENT for part in parts):
        return DIFFERENT
    return SAME if all(part.verdict == SAME for part in parts if part.what != RATIO) else INCONCLUSIVE


def direction_of(moves: Sequence[Move], margin: float, mean_ratios: Sequence[float]) -> str | None:
    """Return whether what moved became slower or faster; mixed: some of it each; None: nothing moved."""
    factors = [move.slowdown for move in moves if move.slowdown is not None]
    for chosen in (factors, [ratio for ratio in mean_ratios if factors]):
        far = [factor for factor in chosen if not is_alike(factor, margin)]
        slower, faster = (any(factor > 1 for factor in far or factors), any(f < 1 for f in far or factors))
        if slower != faster:
            return SLOWER if slower else FASTER
    return MIXED if factors else None


def enough_runs(
    parts: Sequence[Component], fitted: Effects, margin: np.ndarray, level: float, units: Units
) -> int | None:
    """Return how many runs per group would find or exclude a move beyond the margin of every part."""
    needed = [2]
    for i, part in enumerate(parts):
        if part.what == RATIO or not margin[i]:
            continue
        known = fitted.spread[:, i][np.isfinite(fitted.spread[:, i])]
        if len(known):
            spread = float(known.max())
        elif units.what != RUNS and part.what == PLACE:
            spread = float(np.log2(1 + ASSUMED_SPREAD))
        else:
            continue
        runs = runs_needed(spread, float(margin[i]), level, SAME_LEVEL)
        if runs is None:
            return None
        needed.append(runs)
    return max(needed)


def verdict_reason(
    verdict: str,
    units: Units,
    parts: Sequence[PartResult],
    shifts: Sequence[Shift],
    overlap: float | None,
    runs: int | None,
    margin: float,
    level: float,
    tested: int,
    is_main: bool = True,
) -> str:
    """Return the reason of a verdict in one sentence."""
    least = min(part.adjusted_p if part.adjusted_p is not None else 1.0 for part in parts)
    if verdict == DIFFERENT:
        return (
            f"the part that moved most has p = {least:.2g}, adjusted for "
            f"{count_text(tested, 'tested part')}; level {level:g}"
        )
    if verdict == SAME:
        return (
            f"no mode, and no mean by its shares and widths, moved by more than the margin of "
            f"{share_text(margin)} (equivalence test, level {SAME_LEVEL:g})"
        )
    would = f"would find or exclude a move of {share_text(margin)}"
    several = "" if runs is None or not is_main else f" ({runs} runs per group {would})"
    if units.what == RUNS:
        loose = [part.name for part in parts if part.verdict == INCONCLUSIVE and part.what != RATIO]
        more = f": about {runs} runs per group {would}" if runs is not None else ": more runs are needed"
        return (
            f"no part certainly moved (p = {least:.2g}, adjusted for {count_text(tested, 'tested part')}), "
            "but a move beyond the margin cannot be excluded for "
            f"{', '.join(loose)}{more if is_main else ''}"
        )
    said = _of_these_runs(shifts, overlap)
    if units.are_enough:
        return (
            f"{said}, but runs of one program may differ as much, and one run per group does not show by how "
            f"much they do: compare several runs per group{several}"
        )
    if not units.are_blocks:
        return (
            f"{said}, but with one run per group variation from run to run is unknown, and so is that within "
            f"the run, because its phases are unknown: compare several runs per group{several}"
        )
    sizes = " + ".join(map(str, units.sizes))
    return (
        f"{said}, but with one run per group variation from run to run is unknown, and {sizes} nearly "
        f"independent blocks do not show that within the run (at least {FEWEST_BLOCKS} are needed): compare "
        f"several runs per group{several}"
    )


def _of_these_runs(shifts: Sequence[Shift], distance: float | None) -> str:
    """Say in which direction single runs differ, and whether their durations overlap."""
    said = []
    for shift in shifts:
        if shift.median_ratio is None:
            continue
        ratio = shift.median_ratio
        name = f"{shift.group}" if len(shifts) > 1 else "the second run"
        if f"{ratio:.3g}" == "1":
            said.append(f"{name} has the median of the first")
        elif shift.low is not None and shift.high is not None and shift.low <= 1 <= shift.high:
            said.append(f"the medians of {name} and the first do not differ significantly")
        elif ratio >= 1:
            said.append(
                f"calls of {name} are longer: their median is {number_text(ratio)} times that of the first"
            )
        else:
            said.append(
                f"calls of {name} are shorter: their median is {number_text(ratio)} times that of the first"
            )
    text = "; ".join(said) or "the medians are unknown"
    return f"{text}, without any overlap of durations" if distance is not None and distance >= 1 else text


def verdict_notes(units: Units, verdict: str, shifts: Sequence[Shift], margin: float) -> list[str]:
    """Return the caveats of a verdict, one sentence each."""
    notes = []
    if verdict == SAME and any(
        shift.median_ratio is not None and not is_alike(shift.median_ratio, margin) for shift in shifts
    ):
        notes.append(
            "the median lies between modes, where a small change of their weights moves it far: the modes "
            "are more informative than its ratio"
        )
    if units.what != RUNS and verdict == DIFFERENT:
        notes.append(
            "one run per group: variation from run to run is unknown; p and intervals of durations assume "
            f"{share_text(ASSUMED_SPREAD)}, and if runs vary more, chance may explain the difference; "
            "compare several runs per group to know whether the program or the machine changed"
        )
    if units.what != RUNS and verdict == SAME:
        notes.append(
            "one run per group: these runs are the same, but the next ones may differ; intervals assume that "
            f"runs vary by {share_text(ASSUMED_SPREAD)}"
        )
    return notes

"""Two or more groups of runs: the same, different, or not to be told, and what moved.

Where a group has several runs, runs are the units of the tests, for calls within a run are not independent. Where
every group is one run, contiguous blocks of its phases are. See docs/statistics.md."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from ensembles.errors import EnsioError
from ensembles.statistics.comparison_blocks import FEWEST_BLOCKS, blocks_of, scaled
from ensembles.statistics.comparison_distances import kolmogorov_smirnov, wasserstein_octaves
from ensembles.statistics.comparison_effects import effects_of, shifts_of, spreads_of
from ensembles.statistics.comparison_moves import modes_exchanged, moves_of, moves_of_matched_modes
from ensembles.statistics.comparison_partition import partition_of
from ensembles.statistics.comparison_parts import PLACE, TAIL, Part, Scores, quantile_octaves, scores_of, shares_of
from ensembles.statistics.comparison_permutation import PermutationTest, permutation_test, smallest_p
from ensembles.statistics.comparison_ranks import dunn_test, holm, rank_test
from ensembles.statistics.comparison_result import (
    ALL,
    DIFFERENT,
    INCONCLUSIVE,
    SAME,
    Comparison,
    Effect,
    Group,
    PartResult,
    Shift,
)
from ensembles.statistics.sample import Sample

FEWEST_CALLS = 30
"""Of a group: with fewer nothing is said."""
RUNS = "runs"
MARGIN = 0.1
LEVEL = 0.05


@dataclass(frozen=True)
class _Units:
    """What is permuted: histograms (u, BIN_COUNT), the group of each (u,), what they are, and for how many
    phases these remember themselves."""

    counts: np.ndarray
    group: np.ndarray
    what: str
    memory: float | None = None

    @property
    def sizes(self) -> list[int]:
        return np.bincount(self.group).tolist()

    @property
    def are_trusted(self) -> bool:
        """Whether they are known to be independent, and enough for an interval."""
        if self.what == RUNS:
            return sum(self.sizes) > len(self.sizes)
        return min(self.sizes) >= FEWEST_BLOCKS


def compare_samples(
    groups: Sequence[Sequence[Sample]],
    *,
    names: Sequence[str] | None = None,
    op: str | None = None,
    margin: float = MARGIN,
    level: float = LEVEL,
    seed: int = 0,
    unit: str = "phases",
) -> Comparison:
    """Compare groups of runs.

    Parameters
    ----------
    groups : sequence of sequences of Sample
        The runs of each group; the first group is what the others are compared with.
    names : sequence of str, optional
        Names of the groups.
    op : str, optional
        What kind of calls these are; it is only told.
    margin : float
        Groups are the same if it is certain that no place moved by more than a factor of 1 + `margin`, no weight
        by more than `margin` (of all calls), the tail by no more than a factor of 1 + 2 `margin`.
    level : float
        Chance of calling different what is the same; intervals hold with probability 1 − `level`.
    seed : int
        Of the permutations and the bootstrap.
    unit : str
        What the phases of the samples are, for the text.

    Raises
    ------
    EnsioError
        There are fewer than two groups, one is empty, or an option makes no sense.
    """
    if len(groups) < 2 or not all(len(group) for group in groups):
        raise EnsioError("a comparison needs two groups of runs at least, and a run in each")
    if not (0 < level < 0.5 and 0 < margin < 1):
        raise EnsioError(f"a level of {level:g} with a margin of {margin:g} makes no sense: take 0.05 and 0.1")
    names = list(names) if names is not None else [f"group {i}" for i in range(1, len(groups) + 1)]
    rng = np.random.default_rng(seed)
    groups = [[sample for sample in group if sample.total] for group in groups]
    told = [_group(name, group) for name, group in zip(names, groups, strict=True)]
    least = min(told, key=lambda group: group.calls)
    if least.calls < FEWEST_CALLS:
        reason = f"{least.name} has {least.calls:,} such calls, and at least {FEWEST_CALLS} are needed"
        return Comparison(INCONCLUSIVE, reason, op, told, margin, level)
    units = _units_of(groups, unit)
    calls = float(sum(group.calls for group in told))
    resolution_s = max(sample.resolution_s for group in groups for sample in group)
    partition = partition_of(units.counts.mean(axis=0), calls, resolution_s)
    scores = scores_of(units.counts, partition, resolution_s)
    shares = shares_of(units.counts, partition)
    test = permutation_test(scores.total, scores.size, units.group, rng)
    can_differ = units.are_trusted and test.smallest_p <= level
    effects = effects_of(scores, units.group, names, level)
    parts = [
        PartResult(
            part.name,
            part.what,
            part.mode,
            part.t_s,
            _verdict_of_part(part, mine, float(p), margin, level, can_differ, units.are_trusted),
            float(p),
            mine,
        )
        for part, mine, p in zip(scores.parts, effects, test.adjusted_p, strict=True)
    ]
    shifts = shifts_of(units.counts, units.group, names, level, rng, units.what == RUNS)
    verdict = _verdict(parts, shifts, margin)
    moved = []
    if verdict == DIFFERENT:
        moved = moves_of(parts)
        for g in modes_exchanged(shares, units.group):
            others = [move for move in moved if move.effect.group != names[g]]
            matched = moves_of_matched_modes(units.counts, units.group, g, names, level, calls, resolution_s)
            moved = others + (matched or [move for move in moved if move.effect.group == names[g]])
    by_run, run_group, run_scores = _runs(groups, partition, resolution_s)
    return Comparison(
        verdict=verdict,
        reason=_reason(verdict, units, parts, shifts, test, can_differ, margin, level),
        op=op,
        groups=told,
        margin=margin,
        level=level,
        shifts=shifts,
        moved=moved,
        parts=parts,
        tests=_tests(test, units, scores, names),
        distances=_distances(by_run, run_group, names),
        modes=spreads_of(run_scores, shares_of(by_run, partition), run_group),
        notes=_notes(units, verdict),
    )


def _group(name: str, runs: Sequence[Sample]) -> Group:
    median_s = None
    if runs:
        each = scaled([sample.counts[None].astype(np.float64) for sample in runs])
        median_s = float(2.0 ** quantile_octaves(each.sum(axis=0)[None], 0.5)[0] * 1e-9)
    return Group(name, len(runs), sum(sample.total for sample in runs), median_s)


def _units_of(groups: Sequence[Sequence[Sample]], unit: str) -> _Units:
    if max(len(group) for group in groups) > 1:
        runs = [sample.counts[None].astype(np.float64) for group in groups for sample in group]
        return _Units(scaled(runs), np.repeat(np.arange(len(groups)), [len(group) for group in groups]), RUNS)
    blocks, memory = blocks_of([group[0] for group in groups])
    what = f"blocks of {unit}" if all(group[0].phases_known for group in groups) else "runs whose phases are not known"
    return _Units(scaled(blocks), np.repeat(np.arange(len(groups)), [len(run) for run in blocks]), what, memory)


def _runs(
    groups: Sequence[Sequence[Sample]], partition: Any, resolution_s: float
) -> tuple[np.ndarray, np.ndarray, Scores]:
    """Histograms of whole runs, the group of each, and their scores; where every group is one run, all runs are
    taken for repetitions of the same."""
    counts = scaled([sample.counts[None].astype(np.float64) for group in groups for sample in group])
    group = np.repeat(np.arange(len(groups)), [len(group) for group in groups])
    return counts, group, scores_of(counts, partition, resolution_s)


def _verdict_of_part(
    part: Part,
    effects: Sequence[Effect],
    p: float,
    margin: float,
    level: float,
    can_differ: bool,
    trusted: bool,
) -> str:
    if can_differ and p <= level and any(effect.is_certain for effect in effects):
        return DIFFERENT
    if trusted and all(effect.is_within(2 * margin if part.what == TAIL else margin) for effect in effects):
        return SAME
    return INCONCLUSIVE


def _verdict(parts: Sequence[PartResult], shifts: Sequence[Shift], margin: float) -> str:
    if any(part.verdict == DIFFERENT for part in parts):
        return DIFFERENT
    if all(part.verdict == SAME for part in parts) and all(_is_within(shift, margin) for shift in shifts):
        return SAME
    return INCONCLUSIVE


def _is_within(shift: Shift, margin: float) -> bool:
    return shift.low is not None and shift.high is not None and shift.low * (1 + margin) >= 1 >= shift.high / (1 + margin)


def _reason(
    verdict: str,
    units: _Units,
    parts: Sequence[PartResult],
    shifts: Sequence[Shift],
    test: PermutationTest,
    can_differ: bool,
    margin: float,
    level: float,
) -> str:
    least = min(part.adjusted_p if part.adjusted_p is not None else 1.0 for part in parts)
    if verdict == DIFFERENT:
        return f"p = {least:.2g} for the part that moved most, in view of {len(parts)} parts; level {level:g}"
    if verdict == SAME:
        return f"no place can have moved by more than {margin:.0%}, no weight by more than {margin:.0%} of the calls"
    sizes = " + ".join(map(str, units.sizes))
    if units.what == RUNS and not can_differ:
        return (
            f"with {sizes} runs no rank or permutation test gives a p below {test.smallest_p:.2g}, "
            f"so that a level of {level:g} cannot be reached: {_enough(len(units.sizes), level)}"
        )
    if not units.are_trusted:
        if not units.what.startswith("blocks"):
            return (
                "there is one run a side and its phases are not known, so that it cannot be told how calls depend "
                "on each other: compare several runs a side"
            )
        return (
            f"of one run a side there are {sizes} blocks that hardly depend on each other, and at least "
            f"{FEWEST_BLOCKS} are needed: compare longer runs, or several a side"
        )
    loose = [part.name for part in parts if part.verdict == INCONCLUSIVE]
    loose += ["median"] * (not loose and not all(_is_within(shift, margin) for shift in shifts))
    return (
        f"no part is certain to have moved (p = {least:.2g}), but that nothing moved by more than the margin is not "
        f"certain either, for {', '.join(loose)}"
    )


def _enough(groups: int, level: float) -> str:
    runs = next(n for n in range(2, 50) if smallest_p([n] * groups) <= level)
    return f"compare {' + '.join([str(runs)] * groups)} runs or more"


def _notes(units: _Units, verdict: str) -> list[str]:
    if units.what == RUNS:
        return []
    notes = []
    if verdict == DIFFERENT:
        notes.append(
            "one run a side: these runs differ by more than each of them varies by itself, but runs of the same program "
            "often do; several runs a side would tell whether the cause is what was changed"
        )
    if verdict == SAME:
        notes.append("one run a side: these runs are the same, which need not hold for the next ones")
    return notes


def _tests(test: PermutationTest, units: _Units, scores: Scores, names: Sequence[str]) -> dict[str, Any]:
    with np.errstate(invalid="ignore", divide="ignore"):
        values = scores.total / scores.size
    by_group = [[column[units.group == g] for g in range(len(names))] for column in values.T]
    rank_p = [rank_test(groups) for groups in by_group]
    found: dict[str, Any] = {
        "units": units.what,
        "sizes": units.sizes,
        "memory": units.memory,
        "method": "permutation of units, studentised, step-down maximum over the parts",
        "arrangements": test.arrangements,
        "exact": test.exact,
        "smallest_p": test.smallest_p,
        "p": float(test.adjusted_p.min()),
        "rank_test": "Wilcoxon-Mann-Whitney" if len(names) == 2 else "Kruskal-Wallis",
        "parts": {
            part.name: {
                "p": float(test.p[i]),
                "adjusted_p": float(test.adjusted_p[i]),
                "rank_p": rank_p[i],
                "rank_holm_p": float(adjusted),
            }
            for i, (part, adjusted) in enumerate(zip(scores.parts, holm(rank_p), strict=True))
        },
    }
    if len(names) > 2:
        for part, groups in zip(scores.parts, by_group, strict=True):
            pairs = dunn_test(groups)
            found["parts"][part.name]["dunn_holm_p"] = [
                {"groups": [names[i], names[j]], "p": p} for (i, j), p in pairs.items()
            ]
    return found


def _distances(counts: np.ndarray, group: np.ndarray, names: Sequence[str]) -> dict[str, Any]:
    """Of each group to the first, and for comparison the largest between runs of one group."""
    pooled = [counts[group == g].sum(axis=0) for g in range(len(names))]
    between = [
        {
            "group": names[g],
            "kolmogorov_smirnov": kolmogorov_smirnov(pooled[0], pooled[g]),
            "wasserstein_octaves": wasserstein_octaves(pooled[0], pooled[g]),
        }
        for g in range(1, len(names))
    ]
    pairs = [
        (a, b) for g in range(len(names)) for a, b in combinations(np.flatnonzero(group == g).tolist(), 2)
    ][:1000]
    within = None
    if pairs:
        within = {
            "kolmogorov_smirnov": max(kolmogorov_smirnov(counts[a], counts[b]) for a, b in pairs),
            "wasserstein_octaves": max(wasserstein_octaves(counts[a], counts[b]) for a, b in pairs),
        }
    return {"between": between, "largest_within_a_group": within}


__all__ = ["ALL", "PLACE", "Comparison", "compare_samples"]

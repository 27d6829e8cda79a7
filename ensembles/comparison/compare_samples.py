"""Compare the samples of two or more groups of runs.

Calls within a run are not independent. The units of the tests are therefore runs if a group has several, and
contiguous blocks of phases if each group is one run. See docs/reference/methods/comparison.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np

from ensembles.comparison.components import Scores, component_shares, compute_scores, quantile_octaves
from ensembles.comparison.dependent_blocks import scaled
from ensembles.comparison.effects import estimate_effects, estimate_shifts, estimate_spreads, welch_p
from ensembles.comparison.exchangeable_units import RUNS, ExchangeableUnits, Kind, choose_units
from ensembles.comparison.hypothesis_tests import (
    kolmogorov_smirnov,
    run_tests,
    told_tests,
    wasserstein_octaves,
)
from ensembles.comparison.mode_partition import Partition, fit_partition
from ensembles.comparison.permutation import PermutationTest
from ensembles.comparison.report import (
    DIFFERENT,
    INCONCLUSIVE,
    Comparison,
    Group,
    Move,
    PartResult,
)
from ensembles.comparison.shifts import (
    common_factor,
    describe_shifts,
    modes_exchanged,
    moves_beside_factor,
    moves_of_matched_modes,
)
from ensembles.comparison.verdict import (
    LEVEL,
    MARGIN,
    compute_margins,
    decide,
    verdict_notes,
    verdict_of_part,
    verdict_reason,
)
from ensembles.model.errors import EnsioError
from ensembles.statistics.samples.counted_durations import CountedDurations

__all__ = ["FEWEST_CALLS", "Kind", "compare_kinds", "compare_samples"]

FEWEST_CALLS = 30
"""Number of calls of a group below which the comparison is inconclusive."""


def compare_samples(
    groups: Sequence[Sequence[CountedDurations]],
    *,
    names: Sequence[str] | None = None,
    margin: float = MARGIN,
    level: float = LEVEL,
    seed: int = 0,
    unit: str = "phases",
) -> Comparison:
    """Compare groups of runs for one kind of calls.

    Parameters
    ----------
    groups, unit
        As for `Kind`.
    names, margin, level, seed
        As for `compare_kinds`.

    Returns
    -------
    Comparison

    Raises
    ------
    EnsioError
        There are fewer than two groups, one is empty, or an option is out of range.
    """
    kind = Kind(groups, unit=unit)
    return compare_kinds([kind], names=names, margin=margin, level=level, seed=seed)[0]


def compare_kinds(
    kinds: Sequence[Kind],
    *,
    names: Sequence[str] | None = None,
    margin: float = MARGIN,
    level: float = LEVEL,
    seed: int = 0,
) -> list[Comparison]:
    """Compare groups of runs for several kinds of calls.

    Parameters
    ----------
    kinds : sequence of Kind
    names : sequence of str, optional
        Names of the groups.
    margin : float
        Groups are the same if certainly no location moved by more than a factor of 1 + `margin`, no weight by
        more than `margin` (of all calls) or than what moves the mean of all calls by that, and the tail by no
        more than a factor of 1 + 2 `margin`.
    level : float
        Probability of a false "different" for all kinds together; each interval has the confidence level
        1 − `level`.
    seed : int
        Seed of the permutations and the bootstrap.

    Returns
    -------
    list of Comparison
        One for each kind.

    Raises
    ------
    EnsioError
        There are fewer than two groups, one is empty, or an option is out of range.
    """
    for kind in kinds:
        if len(kind.groups) < 2 or not all(len(group) for group in kind.groups):
            raise EnsioError("a comparison needs at least two groups with at least one run each")
    if not (0 < level < 0.5 and 0 < margin < 1):
        raise EnsioError(
            f"the level {level:g} must be between 0 and 0.5, and the margin {margin:g} between 0 and 1: "
            "take 0.05 and 0.1"
        )
    names = list(names) if names is not None else [f"group {i}" for i in range(1, len(kinds[0].groups) + 1)]
    rng = np.random.default_rng(seed)
    prepared = [_prepared(kind, names) for kind in kinds]
    able = [one for one in prepared if isinstance(one, _Able)]
    tests = iter(run_tests([one.units for one in able], [one.scores for one in able], rng))
    return [
        _found(one, next(tests), names, margin, level, rng)
        if isinstance(one, _Able)
        else _too_few(one, margin, level)
        for one in prepared
    ]


@dataclass(frozen=True)
class _PreparedKind:
    """A kind of calls, possibly with too few calls for a test."""

    kind: Kind
    runs: list[list[CountedDurations]]
    told: list[Group]
    calls: float


@dataclass(frozen=True)
class _Able(_PreparedKind):
    """A kind of calls with the units, the partition and the scores of a test."""

    resolution_s: float
    units: ExchangeableUnits
    partition: Partition
    scores: Scores


def _prepared(kind: Kind, names: Sequence[str]) -> _PreparedKind:
    runs = [[sample for sample in group if sample.total] for group in kind.groups]
    told = [_group(name, group) for name, group in zip(names, runs, strict=True)]
    calls = float(sum(group.calls for group in told))
    if min(group.calls for group in told) < FEWEST_CALLS:
        return _PreparedKind(kind, runs, told, calls)
    units = choose_units(runs, kind.unit)
    resolution_s = max(sample.resolution_s for group in runs for sample in group)
    partition = fit_partition(units.counts.mean(axis=0), calls, resolution_s)
    scores = compute_scores(units.counts, partition, resolution_s)
    return _Able(kind, runs, told, calls, resolution_s, units, partition, scores)


def _too_few(one: _PreparedKind, margin: float, level: float) -> Comparison:
    least = min(one.told, key=lambda group: group.calls)
    reason = f"{least.name} has {least.calls:,} such calls, and at least {FEWEST_CALLS} are needed"
    return Comparison(INCONCLUSIVE, reason, one.kind.op, one.kind.layer, one.told, margin, level)


def _found(
    one: _Able,
    test: PermutationTest,
    names: Sequence[str],
    margin: float,
    level: float,
    rng: np.random.Generator,
) -> Comparison:
    units, scores = one.units, one.scores
    shares = component_shares(units.counts, one.partition)
    can_differ = units.are_trusted and test.smallest_p <= level
    by_welch = welch_p(scores, units.group, units.spread)
    told = told_tests(test, by_welch, units, scores, names)
    adjusted_p = np.maximum(test.adjusted_p, by_welch)
    effects = estimate_effects(scores, units.group, names, level, units.spread)
    parts = [
        PartResult(
            part.name,
            part.what,
            part.mode,
            part.t_s,
            verdict_of_part(mine, float(p), allowed, level, can_differ, units.are_trusted),
            allowed,
            float(p),
            mine,
        )
        for part, mine, p, allowed in zip(
            scores.parts, effects, adjusted_p, compute_margins(scores.parts, shares, margin), strict=True
        )
    ]
    shifts = estimate_shifts(units.counts, units.group, names, level, rng, units.what == RUNS, units.spread)
    verdict = decide(parts)
    moved = []
    if verdict == DIFFERENT:
        moved = _moved(parts, shares, one, names, level)
    by_run, run_group, run_scores = _runs(one.runs, one.partition, one.resolution_s)
    # If each of three or more groups is one run, all count as repetitions.
    repeated = np.zeros_like(run_group) if len(run_group) == len(names) > 2 else run_group
    return Comparison(
        verdict=verdict,
        reason=verdict_reason(verdict, units, parts, test, can_differ, margin, level),
        op=one.kind.op,
        layer=one.kind.layer,
        groups=one.told,
        margin=margin,
        level=level,
        shifts=shifts,
        moved=moved,
        parts=parts,
        tests=told,
        distances=_distances(by_run, run_group, names),
        modes=estimate_spreads(run_scores, component_shares(by_run, one.partition), repeated),
        notes=verdict_notes(units, verdict, shifts, margin),
    )


def _moved(
    parts: Sequence[PartResult],
    shares: np.ndarray,
    one: _Able,
    names: Sequence[str],
    level: float,
) -> list[Move]:
    """Describe what moved in each group.

    Either all durations moved by one factor, or modes were exchanged, or single parts moved. Modes have the
    numbers that they have among the parts, even if a group has fewer modes.
    """
    units, pooled = one.units, one.units.counts.sum(axis=0)
    exchanged = modes_exchanged(shares, units.group)
    moved = describe_shifts(parts)
    told: list[Move] = []
    for g in range(1, len(names)):
        factor = common_factor(parts, g)
        found: list[Move] | None = None
        options = (units.counts, units.group, g, names, level, one.calls, one.resolution_s, units.spread)
        if g in exchanged:
            found = moves_of_matched_modes(*options)
        elif factor is not None:
            found = moves_beside_factor(*options, factor)
        told += found or [move for move in moved if move.effect.group == names[g]]
    return [
        move
        if move.mode is None or move.t_s is None
        else replace(move, mode=one.partition.number_at(move.t_s, pooled))
        for move in told
    ]


def _group(name: str, runs: Sequence[CountedDurations]) -> Group:
    median_s = None
    if runs:
        each = scaled([sample.counts[None].astype(np.float64) for sample in runs])
        median_s = float(2.0 ** quantile_octaves(each.sum(axis=0)[None], 0.5)[0] * 1e-9)
        # A quantile of bins may lie beyond the shortest or the longest call.
        shortest, longest = min(run.min_s.min() for run in runs), max(run.max_s.max() for run in runs)
        median_s = float(np.clip(median_s, shortest, longest))
    return Group(name, len(runs), sum(sample.total for sample in runs), median_s)


def _runs(
    groups: Sequence[Sequence[CountedDurations]], partition: Partition, resolution_s: float
) -> tuple[np.ndarray, np.ndarray, Scores]:
    """Return histograms of whole runs, the group of each, and their scores."""
    counts = scaled([sample.counts[None].astype(np.float64) for group in groups for sample in group])
    group = np.repeat(np.arange(len(groups)), [len(group) for group in groups])
    return counts, group, compute_scores(counts, partition, resolution_s)


def _distances(counts: np.ndarray, group: np.ndarray, names: Sequence[str]) -> dict[str, Any]:
    """Return the distance of each group from the first, and the largest distance within a group."""
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

"""Compare the samples of two or more groups of runs.

Calls within a run are not independent. The units of the tests are therefore runs if a group has several. If
each group is one run, contiguous blocks of its phases show how far its values are uncertain. See
docs/reference/methods/comparison.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np

from ensembles.comparison.components import (
    PLACE,
    Partition,
    bin_octaves,
    component_shares,
    compute_scores,
    find_shifts,
    fit_partition,
    quantile_octaves,
    shifted,
)
from ensembles.comparison.hypothesis_tests import (
    LEVEL,
    kolmogorov_smirnov,
    rank_tests,
    smallest_rank_p,
    wasserstein_octaves,
)
from ensembles.comparison.model import Effects, RunValues, fit_effects, holm, separation_p
from ensembles.comparison.report import (
    ALL,
    DIFFERENT,
    INCONCLUSIVE,
    SAME,
    Comparison,
    Group,
    Move,
    PartResult,
)
from ensembles.comparison.shifts import (
    common_factor,
    describe_shifts,
    effects_of_parts,
    estimate_spreads,
    modes_exchanged,
    moves_of_matched_modes,
    shifts_of_medians,
)
from ensembles.comparison.times import MARGIN
from ensembles.comparison.units import (
    Kind,
    PartValues,
    Units,
    choose_units,
    medians_of_runs,
    scaled,
    value_parts,
)
from ensembles.comparison.verdict import (
    IDENTICAL,
    decide,
    direction_of,
    enough_runs,
    margins_of_parts,
    verdict_notes,
    verdict_reason,
    verdicts_of_parts,
)
from ensembles.model.errors import EnsioError
from ensembles.model.units import count_text
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
    """Compare groups of runs for one kind of calls."""
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
    """Compare groups of runs for several kinds of calls."""
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
    fitted = [
        _with_separation(one, effects)
        for one, effects in zip(able, _fit_together([one.values for one in able]), strict=True)
    ]
    medians = [fit_effects(medians_of_runs(one.units, rng)) for one in able]
    fitted = [_with_median(*each) for each in zip(able, fitted, medians, strict=True)]
    # The level holds for all parts, groups and kinds together.
    adjusted = iter(_adjusted([one.p for one in fitted]))
    tested = sum(one.p.size for one in fitted)
    effects = iter(zip(fitted, medians, strict=True))
    return [
        _found(one, *next(effects), next(adjusted), tested, names, margin, level)
        if isinstance(one, _Able)
        else _too_few(one, margin, level)
        for one in prepared
    ]


def _fit_together(values: Sequence[PartValues]) -> list[Effects]:
    """Fit the parts of all kinds whose runs are the same together, so that they share their variances."""
    families: dict[bytes, list[int]] = {}
    for number, one in enumerate(values):
        key = one.runs.group.tobytes() if one.runs.freedom is None else str(number).encode()
        families.setdefault(key, []).append(number)
    fitted: dict[int, Effects] = {}
    for members in families.values():
        runs = [values[number].runs for number in members]
        together = fit_effects(
            RunValues(
                np.hstack([one.value for one in runs]),
                runs[0].group,
                np.concatenate([one.family for one in runs]),
                np.concatenate([one.grain for one in runs]),
                _stacked([one.error for one in runs]),
                _stacked([one.freedom for one in runs]),
            )
        )
        ends = np.cumsum([one.value.shape[1] for one in runs])
        for number, begin, end in zip(members, [0, *ends[:-1]], ends, strict=True):
            fitted[number] = together.of_parts(slice(begin, end))
    return [fitted[number] for number in range(len(values))]


def _stacked(columns: Sequence[np.ndarray | None]) -> np.ndarray | None:
    known = [column for column in columns if column is not None]
    return np.hstack(known) if len(known) == len(columns) else None


def _with_separation(one: _Able, fitted: Effects) -> Effects:
    """Judge locations of single runs by the gap between all their durations, if nothing else is known."""
    if fitted.has_repetitions or np.isfinite(fitted.error).any():
        return fitted
    ends = [(sample.min_s.min(), sample.max_s.max()) for (sample,) in one.runs]
    p = fitted.p.copy()
    places = [part.what == PLACE for part in one.values.parts]
    for g in range(1, len(ends)):
        gap_s = max(ends[g][0] / max(ends[0][1], 1e-9), ends[0][0] / max(ends[g][1], 1e-9))
        p[g - 1, places] = separation_p(float(np.log2(max(gap_s, 1.0))))
    return replace(fitted, p=p)


def _with_median(one: _Able, fitted: Effects, medians: Effects) -> Effects:
    """Let the location of a lone mode be no more certain than the median, which is a location of it too."""
    places = np.flatnonzero([part.what == PLACE for part in one.values.parts])
    if len(places) != 1:
        return fitted
    p = fitted.p.copy()
    known = np.isfinite(medians.error[:, 0])
    p[known, places[0]] = np.maximum(p[known, places[0]], medians.p[known, 0])
    return replace(fitted, p=p)


def _adjusted(p: Sequence[np.ndarray]) -> list[np.ndarray]:
    if not p:
        return []
    together = holm(np.concatenate([one.ravel() for one in p]))
    ends = np.cumsum([one.size for one in p])[:-1]
    return [part.reshape(one.shape) for part, one in zip(np.split(together, ends), p, strict=True)]


@dataclass(frozen=True)
class _PreparedKind:
    """A kind of calls, possibly with too few calls for a test."""

    kind: Kind
    runs: list[list[CountedDurations]]
    told: list[Group]
    calls: float


@dataclass(frozen=True)
class _Able(_PreparedKind):
    """A kind of calls with the units, the modes and the values of a test."""

    resolution_s: float
    units: Units
    shift: np.ndarray
    partition: Partition
    aligned: np.ndarray
    values: PartValues


def _prepared(kind: Kind, names: Sequence[str]) -> _PreparedKind:
    runs = [[sample for sample in group if sample.total] for group in kind.groups]
    told = [summarize_group(name, group) for name, group in zip(names, runs, strict=True)]
    calls = float(sum(group.calls for group in told))
    if min(group.calls for group in told) < FEWEST_CALLS:
        return _PreparedKind(kind, runs, told, calls)
    units = choose_units(runs, kind.unit)
    resolution_s = max(sample.resolution_s for group in runs for sample in group)
    shift = find_shifts(units.members @ units.counts)
    aligned = shifted(units.counts, shift[units.run])
    partition = fit_partition(aligned.mean(axis=0), calls, resolution_s)
    scores = compute_scores(aligned, partition, resolution_s, shift[units.run])
    values = value_parts(scores, units)
    return _Able(kind, runs, told, calls, resolution_s, units, shift, partition, aligned, values)


def _too_few(one: _PreparedKind, margin: float, level: float) -> Comparison:
    least = min(one.told, key=lambda group: group.calls)
    reason = (
        f"{least.name} has {count_text(least.calls, 'such call')}, and at least {FEWEST_CALLS} are needed"
    )
    return Comparison(INCONCLUSIVE, reason, one.kind.op, one.kind.layer, one.told, margin, level)


def _found(
    one: _Able,
    fitted: Effects,
    medians: Effects,
    adjusted_p: np.ndarray,
    tested: int,
    names: Sequence[str],
    margin: float,
    level: float,
) -> Comparison:
    units, kinds_of_parts = one.units, one.values.parts
    allowed = margins_of_parts(kinds_of_parts, margin)
    verdicts = verdicts_of_parts(kinds_of_parts, fitted, adjusted_p, allowed, level)
    by_run = _whole([sample for group in one.runs for sample in group])
    aligned = shifted(by_run, one.shift)
    run_scores = compute_scores(aligned, one.partition, one.resolution_s, one.shift)
    distances = _distances(by_run, units.group, names)
    least_distance = min(between["kolmogorov_smirnov"] for between in distances["between"])
    farthest = max(between["kolmogorov_smirnov"] for between in distances["between"])
    identical = farthest == 0 and not fitted.has_repetitions
    if identical:  # about these runs, no test is needed
        verdicts = [SAME] * len(verdicts)
    effects = effects_of_parts(kinds_of_parts, fitted, adjusted_p, names, level)
    shares = component_shares(aligned, one.partition)
    places_s = [_place_s(one, shares, part.mode, part.t_s) for part in kinds_of_parts]
    parts = [
        PartResult(
            part.name,
            part.what,
            part.mode,
            places_s[i],
            verdicts[i],
            float(1 - 2.0 ** -allowed[i] if part.is_ratio else allowed[i]),
            float(adjusted_p[:, i].min()),
            effects[i],
            part.weight,
        )
        for i, part in enumerate(kinds_of_parts)
    ]
    shifts = shifts_of_medians(medians, names, level)
    # What is said of single runs is about these runs alone.
    of_these = shifts_of_medians(replace(medians, error=medians.error_within), names, level)
    verdict = decide(parts)
    moved = _moved(parts, one, names, level) if verdict == DIFFERENT else []
    # If each of three or more groups is one run, all count as repetitions.
    repeated = np.zeros_like(units.group) if len(units.group) == len(names) > 2 else units.group
    modes = estimate_spreads(run_scores, shares, repeated)
    tests = max(adjusted_p.size, 1)
    runs = enough_runs(kinds_of_parts, fitted, allowed, level / tests, units)
    return Comparison(
        verdict=verdict,
        reason=IDENTICAL
        if identical
        else verdict_reason(
            verdict, units, parts, of_these, least_distance, runs, margin, level, tested, one.kind.is_main
        ),
        op=one.kind.op,
        layer=one.kind.layer,
        groups=one.told,
        margin=margin,
        level=level,
        shifts=shifts,
        moved=moved,
        parts=parts,
        tests=_told_tests(one, fitted, adjusted_p, names) | {"adjusted_for": tested},
        distances=distances,
        modes=[
            replace(mode, t_s=_place_s(one, shares, number, mode.t_s))
            for number, mode in enumerate(modes, start=1)
        ],
        notes=verdict_notes(units, verdict, shifts, margin),
        direction=direction_of(moved, margin, _mean_ratios(units)),
        enough_runs=runs,
    )


def _mean_ratios(units: Units) -> list[float]:
    """Return the mean duration of all calls of each group but the first over that of the first."""
    group = units.group_of_units
    pooled = np.array([units.counts[group == g].sum(axis=0) for g in range(int(group.max()) + 1)])
    mean = pooled @ 2.0 ** bin_octaves() / pooled.sum(axis=1)
    ratios: list[float] = (mean[1:] / mean[0]).tolist()
    return ratios


def _told_tests(one: _Able, fitted: Effects, adjusted_p: np.ndarray, names: Sequence[str]) -> dict[str, Any]:
    """Return the tests of one kind of calls as numbers and texts, for `Comparison.tests`."""
    units = one.units
    ranks = rank_tests(one.values.by_unit, units.group_of_units, names)
    return {
        "units": units.what,
        "sizes": units.sizes,
        "memory": units.memory,
        "method": "t test of run-level effects, variances pooled and shrunk, Holm's correction",
        "has_repetitions": fitted.has_repetitions,
        "p": float(adjusted_p.min()),
        "rank_test": "Wilcoxon-Mann-Whitney" if len(names) == 2 else "Kruskal-Wallis",
        "smallest_p": smallest_rank_p(units.sizes),
        "parts": {
            part.name: {
                "p": float(fitted.p[:, i].min()),
                "holm_p": float(adjusted_p[:, i].min()),
                "degrees_of_freedom": fitted.freedom[:, i].tolist(),
                "spread": fitted.spread[:, i].tolist(),
                **ranks[i],
            }
            for i, part in enumerate(one.values.parts)
        },
    }


def _moved(parts: Sequence[PartResult], one: _Able, names: Sequence[str], level: float) -> list[Move]:
    """Describe what moved in each group."""
    units = one.units
    exchanged = modes_exchanged(component_shares(one.aligned, one.partition), units.group_of_units)
    told: list[Move] = []
    for g in range(1, len(names)):
        moved = describe_shifts(parts, g, level)
        factor = common_factor(parts, g, level)
        matched = (
            moves_of_matched_modes(units, g, names, level, one.calls, one.resolution_s)
            if moved and g in exchanged
            else []
        )
        if not matched and factor is not None and factor.value is not None:
            rest = [move for move in moved if move.what not in ("mode place", "mode ratio")]
            matched = [Move(ALL, None, None, factor, factor.value), *rest]
        told += matched or moved
    pooled = one.aligned.sum(axis=0)
    aligned_s = {
        (part.mode, part.t_s): aligned.t_s for part, aligned in zip(parts, one.values.parts, strict=True)
    }
    # Modes of groups that were matched are those of runs that are not aligned.
    common = 2.0 ** float(one.shift[units.group == 0].mean())
    found = []
    for move in told:
        if move.mode is not None and move.t_s is not None:
            place_s = aligned_s.get((move.mode, move.t_s), move.t_s / common)
            number = one.partition.number_at(place_s, pooled)
            before = move.effect.before if move.what == "mode place" else None
            move = replace(move, mode=number, t_s=before or move.t_s)
        found.append(move)
    return found


def _place_s(one: _Able, shares: np.ndarray, mode: int | None, aligned_s: float) -> float:
    """Return where a place of the aligned runs is in those runs of the first group that have its calls."""
    weight = np.ones(len(shares)) if mode is None else shares[:, mode - 1]
    first = np.where(one.units.group == 0, weight, 0.0)
    weight = first if first.any() else weight
    return aligned_s * float(2.0 ** np.average(one.shift, weights=weight if weight.any() else None))


def _whole(runs: Sequence[CountedDurations]) -> np.ndarray:
    """Return the histograms of whole runs, of equal weight."""
    return scaled([sample.counts[None].astype(np.float64) for sample in runs])


def summarize_group(name: str, runs: Sequence[CountedDurations]) -> Group:
    """Return number of runs and calls and the median of a group."""
    median_s = None
    if runs:
        median_s = float(2.0 ** quantile_octaves(_whole(runs).sum(axis=0)[None], 0.5)[0] * 1e-9)
        # A quantile of bins may lie beyond the shortest or the longest call.
        shortest, longest = min(run.min_s.min() for run in runs), max(run.max_s.max() for run in runs)
        median_s = float(np.clip(median_s, shortest, longest))
    return Group(name, len(runs), sum(sample.total for sample in runs), median_s)


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


def values_of_runs(runs: Sequence[CountedDurations]) -> PartValues | None:
    """Compute the value of each part of the distribution in each run."""
    one = _prepared(Kind([list(runs)]), ["runs"])
    return one.values if isinstance(one, _Able) else None

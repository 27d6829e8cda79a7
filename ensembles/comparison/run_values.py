"""The values of the parts in each run, with their errors within the run: what the model takes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ensembles.comparison.components import (
    PLACE,
    RATIO,
    TAIL,
    TAIL_PLACE,
    WEIGHT,
    WIDTH,
    Component,
    Scores,
    quantile_octaves,
)
from ensembles.comparison.model import RunValues
from ensembles.comparison.units import Units

BOOTSTRAP = 400

_FAMILIES = (PLACE, RATIO, WIDTH, WEIGHT, TAIL, TAIL_PLACE)


@dataclass(frozen=True)
class PartValues:
    """Values of the parts in runs and in units."""

    parts: list[Component]  # The parts of the scores, then the ratios of modes
    runs: RunValues  # Their values in each run
    by_unit: np.ndarray  # float64, shape (u, m): Values of the units, for rank tests


def value_parts(scores: Scores, units: Units) -> PartValues:
    """Compute the value of each part in each run.

    Notes
    -----
    The value of a run is the ratio of sums over its units. Its error within the run is that of a ratio
    estimate (W. G. Cochran, Sampling Techniques, 1977), and is widened for dependent blocks. A ratio of two
    modes is the difference of their locations, in which a factor common to the run cancels.
    """
    member = units.members
    with np.errstate(invalid="ignore", divide="ignore"):
        size = member @ scores.size
        value = member @ scores.total / size
        # What each unit adds to the value of its run: these sums are the errors of ratio estimates.
        linear = (scores.total - value[units.run] * scores.size) / size[units.run]
        by_unit = scores.total / scores.size
    n = member @ (scores.size > 0)
    parts, value, linear, by_unit, n = _with_ratios(scores.parts, value, linear, by_unit, n)
    with np.errstate(invalid="ignore", divide="ignore"):
        error = units.spread * np.sqrt(n / (n - 1) * (member @ np.where(np.isfinite(linear), linear, 0) ** 2))
    family = np.array([_FAMILIES.index(part.what) for part in parts])
    grain = np.array([part.grain_octaves if part.is_ratio else 0.0 for part in parts])
    trusted = units.are_blocks and units.are_enough
    runs = RunValues(
        value,
        units.group,
        family,
        grain,
        np.where(n > 1, error, np.nan) if trusted else None,
        n - 1 if trusted else None,
    )
    return PartValues(parts, runs, by_unit)


def _with_ratios(
    parts: list[Component], value: np.ndarray, linear: np.ndarray, by_unit: np.ndarray, n: np.ndarray
) -> tuple[list[Component], np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Add the location of each mode relative to that of the heaviest."""
    places = [at for at, part in enumerate(parts) if part.what == PLACE]
    if len(places) < 2:
        return parts, value, linear, by_unit, n
    heaviest = max(places, key=lambda at: parts[at].weight)
    others = [at for at in places if at != heaviest]
    more = [
        Component(
            RATIO,
            parts[at].mode,
            parts[at].t_s,
            parts[at].grain_octaves + parts[heaviest].grain_octaves,
            parts[at].weight,
        )
        for at in others
    ]
    value, linear, by_unit = (
        np.hstack([known, known[:, others] - known[:, [heaviest]]]) for known in (value, linear, by_unit)
    )
    n = np.hstack([n, np.minimum(n[:, others], n[:, [heaviest]])])
    return [*parts, *more], value, linear, by_unit, n


def medians_of_runs(units: Units, rng: np.random.Generator) -> RunValues:
    """Compute the median of each run; with blocks, its error comes from draws of blocks."""
    value = quantile_octaves(units.members @ units.counts, 0.5)[:, None]
    none = np.zeros(1)
    if not (units.are_blocks and units.are_enough):
        return RunValues(value, units.group, none.astype(int), none)
    error, freedom = np.full_like(value, np.nan), np.zeros_like(value)
    used = np.flatnonzero(units.counts.any(axis=0))
    for run in range(len(units.group)):
        mine = units.counts[units.run == run]
        n = len(mine)
        if n > 1:
            drawn = np.zeros((BOOTSTRAP, units.counts.shape[1]))
            drawn[:, used] = rng.multinomial(n, np.full(n, 1 / n), BOOTSTRAP) @ mine[:, used]
            variance = quantile_octaves(drawn, 0.5).var(ddof=1) * n / (n - 1)
            error[run], freedom[run] = units.spread * np.sqrt(variance), n - 1
    return RunValues(value, units.group, none.astype(int), none, error, freedom)

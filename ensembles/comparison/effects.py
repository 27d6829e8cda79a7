"""Sizes of effects with confidence intervals: by how much parts and medians moved."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ensembles.comparison.components import PLACE, Component, Scores
from ensembles.comparison.model import Effects
from ensembles.comparison.report import Effect, ModeSpread, Shift

SEEN_SHARE = 0.1
"""Part of its share in other runs or groups below which a mode is absent."""


def effects_of_parts(
    parts: Sequence[Component], fitted: Effects, adjusted_p: np.ndarray, names: Sequence[str], level: float
) -> list[list[Effect]]:
    """Describe how far each part moved in each group relative to the first group."""
    half = fitted.half_width(level)
    effects = []
    for i, part in enumerate(parts):
        mine = []
        for g in range(1, len(names)):
            before, after = fitted.mean[0, i], fitted.mean[g, i]
            if part.is_ratio:
                known = np.nan if part.what != PLACE else part.t_s
                before, after = known * 2.0**before, known * 2.0**after
            ends = _ends(part.is_ratio, fitted.value[g - 1, i], half[g - 1, i])
            p = float(adjusted_p[g - 1, i])
            mine.append(Effect(names[g], part.is_ratio, *ends, _known(before), _known(after), p))
        effects.append(mine)
    return effects


def shifts_of_medians(fitted: Effects, names: Sequence[str], level: float) -> list[Shift]:
    """Describe the ratio of each group's median to that of the first group."""
    half = fitted.half_width(level)[:, 0]
    return [
        Shift(name, *_ends(True, value, width))
        for name, value, width in zip(names[1:], fitted.value[:, 0], half, strict=True)
    ]


def _ends(is_ratio: bool, value: float, half: float) -> tuple[float | None, float | None, float | None]:
    """Return estimate and interval, as ratios if they are logarithms."""
    ends = np.array([value, value - half, value + half])
    ends = 2.0 ** np.clip(ends, -60, 60) if is_ratio else ends
    estimate, low, high = map(_known, ends.tolist())
    return estimate, low, high


def _known(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


def estimate_spreads(scores: Scores, shares: np.ndarray, group: np.ndarray) -> list[ModeSpread]:
    """Estimate how locations and weights of modes vary between runs of a group."""
    places = [i for i, part in enumerate(scores.parts) if part.what == "mode place"]
    freedom = len(group) - len(np.unique(group))
    spreads = []
    for k, i in enumerate(places):
        usual = float(shares[:, k].mean())
        seen = shares[:, k] >= SEEN_SHARE * usual
        with np.errstate(invalid="ignore", divide="ignore"):
            place = np.where(seen, scores.total[:, i] / scores.size[:, i], np.nan)
        place_spread, weight_spread = (_within(values, group) for values in (place, shares[:, k]))
        spreads.append(
            ModeSpread(
                t_s=scores.parts[i].t_s,
                weight=usual,
                place_spread=None if place_spread is None else 2.0**place_spread - 1,
                weight_spread=weight_spread if freedom else None,
                seen_in=int(seen.sum()),
                runs=len(group),
            )
        )
    return spreads


def _within(values: np.ndarray, group: np.ndarray) -> float | None:
    """Return the standard deviation around the means of the groups."""
    squares, freedom = 0.0, 0
    for g in np.unique(group):
        mine = values[(group == g) & np.isfinite(values)]
        if len(mine) > 1:
            squares += float(((mine - mine.mean()) ** 2).sum())
            freedom += len(mine) - 1
    return float(np.sqrt(squares / freedom)) if freedom else None

"""Describe what moved in terms of modes: each by itself, or all by one factor; with intervals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ensembles.comparison.components import (
    PLACE,
    RATIO,
    TAIL,
    WEIGHT,
    WIDTH,
    Component,
    Scores,
    component_shares,
    compute_scores,
    fit_partition,
)
from ensembles.comparison.model import Effects, fit_effects
from ensembles.comparison.report import ALL, Effect, ModeSpread, Move, PartResult, Shift
from ensembles.comparison.units import Units, value_parts
from ensembles.model.levels import A_TENTH, LITTLE


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
        seen = shares[:, k] >= A_TENTH * usual
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


GAP_OCTAVES = 1.0
"""Cost of a mode without partner. The cost of two partners is their distance in octaves plus that of their
shares.
"""


def describe_shifts(parts: Sequence[PartResult], g: int, level: float) -> list[Move]:
    """Return the parts that moved in a group.

    The ratio of two modes is left out if the location of one of them moved: that says more.
    """
    mean_s = _mean_s(parts)
    place = {part.mode: part.effects[g - 1] for part in parts if part.what == PLACE}
    moved = [
        (part, effect)
        for part in parts
        if (effect := part.effects[g - 1]).adjusted_p is not None and effect.adjusted_p <= level
    ]
    placed = any(part.what == PLACE for part, _ in moved)
    return [
        Move(part.what, part.mode, part.t_s, effect, _slowdown(part, effect, place, mean_s))
        for part, effect in moved
        if not (part.what == RATIO and placed)
    ]


def _mean_s(parts: Sequence[PartResult]) -> float:
    weights = {part.mode: (part.weight, part.t_s) for part in parts if part.what == PLACE}
    return sum(weight * t_s for weight, t_s in weights.values())


def _slowdown(
    part: PartResult, effect: Effect, place: dict[int | None, Effect], mean_s: float
) -> float | None:
    """Return the factor by which the part or, for a share, the mean of all calls becomes longer."""
    if effect.value is None or part.what == WIDTH:
        return None
    if part.what in (WEIGHT, TAIL):
        return max(1 + effect.value * (part.t_s - mean_s) / mean_s, 0.0) if mean_s else None
    if part.what == RATIO:
        # Either of the two modes may have moved: the one whose location is farther from where it was.
        moved = [one.value for one in place.values() if one.value is not None]
        is_slower = max(moved, key=lambda value: abs(np.log(value)), default=effect.value) > 1
        factor = max(effect.value, 1 / effect.value)
        return factor if is_slower else 1 / factor
    return effect.value


def common_factor(parts: Sequence[PartResult], g: int, level: float) -> Effect | None:
    """Return the factor by which all modes of a group moved, if there may be one.

    All locations certainly moved (of three or more, all but one), and all intervals contain the factor.
    """
    places = [part.effects[g - 1] for part in parts if part.what == PLACE]
    certain = [
        effect
        for effect in places
        if effect.adjusted_p is not None and effect.adjusted_p <= level and effect.is_certain
    ]
    if not certain or len(certain) < len(places) - (len(places) > 2):
        return None
    return _together(certain, places)


def _together(certain: Sequence[Effect], every: Sequence[Effect]) -> Effect | None:
    """Return the common factor of some effects; None: an interval of `every` does not contain it."""
    value, low, high = (
        np.log2([getattr(effect, name) for effect in certain]) for name in ("value", "low", "high")
    )
    half = (high - low) / 2
    weight = 1 / half**2
    middle = float(weight @ value / weight.sum())
    # The errors of one run's locations may be correlated, so that averaging does not reduce the interval.
    around = float(weight @ half / weight.sum())
    for effect in every:
        if effect.low is None or effect.high is None:
            return None
        if not (np.log2(effect.low) <= middle + around and np.log2(effect.high) >= middle - around):
            return None
    ends = [float(2.0**end) for end in (middle, middle - around, middle + around)]
    return replace(certain[0], value=ends[0], low=ends[1], high=ends[2], before=None, after=None)


def modes_exchanged(shares: np.ndarray, group: np.ndarray) -> list[int]:
    """Return the groups that lack a mode of the first group, or have one that the first lacks."""
    by_group = np.array([shares[group == g].mean(axis=0) for g in range(group.max() + 1)])
    found = []
    for g in range(1, len(by_group)):
        less, more = np.minimum(by_group[0], by_group[g]), np.maximum(by_group[0], by_group[g])
        if ((less < A_TENTH * more) & (more >= LITTLE)).any():
            found.append(g)
    return found


def moves_of_matched_modes(
    units: Units, g: int, names: Sequence[str], level: float, calls: float, resolution_s: float
) -> list[Move]:
    """Return what moved between two groups whose modes lie at different places.

    The modes of each group are estimated, matched, and compared pair by pair.
    """
    chosen = [units.of_groups(number).counts for number in (0, g)]
    partitions = [fit_partition(mine.mean(axis=0), calls / 2, resolution_s) for mine in chosen]
    scores = [compute_scores(mine, cut, resolution_s) for mine, cut in zip(chosen, partitions, strict=True)]
    shares = [component_shares(mine, cut) for mine, cut in zip(chosen, partitions, strict=True)]
    places = [np.array([part.t_s for part in one.parts if part.what == PLACE]) for one in scores]
    weights = [one.mean(axis=0) for one in shares]
    mean_s = float(weights[0] @ places[0])
    moves: list[Move] = []
    pairs = matched(np.log2(places[0]), weights[0], np.log2(places[1]), weights[1])
    for i, j in pairs:
        values = value_parts(_joined(scores, shares, i, j, places), units.of_groups(0, g))
        fitted = fit_effects(values.runs)
        found = effects_of_parts(values.parts, fitted, fitted.p, [names[0], names[g]], level)
        for part, (effect,) in zip(values.parts, found, strict=True):
            if effect.is_certain and effect.adjusted_p is not None and effect.adjusted_p <= level:
                slowdown = effect.value
                if part.what == WEIGHT and effect.value is not None:
                    slowdown = max(1 + effect.value * (part.t_s - mean_s) / mean_s, 0.0)
                moves.append(Move(part.what, part.mode, part.t_s, effect, slowdown))
    moved = [move.effect for move in moves if move.what == PLACE]
    factor = _together(moved, moved) if len(moved) == len(moves) == len(pairs) else None
    return [Move(ALL, None, None, factor, factor.value)] if factor else moves


def matched(
    place_a: np.ndarray, weight_a: np.ndarray, place_b: np.ndarray, weight_b: np.ndarray
) -> list[tuple[int | None, int | None]]:
    """Match the modes of two groups, in increasing order; None: no partner.

    The alignment keeps the order and has the least cost: partners cost their distance in octaves plus the
    difference of their shares, a mode without partner costs `GAP_OCTAVES` plus its share. Two single modes
    are always partners.

    References
    ----------
    S. B. Needleman and C. D. Wunsch, "A general method applicable to the search for similarities in the amino
    acid sequence of two proteins", Journal of Molecular Biology 48, 1970.

    Examples
    --------
    >>> one, weights = np.array([0.0, 3.0]), np.array([0.5, 0.5])
    >>> matched(one, weights, np.array([0.1, 1.5, 3.1]), np.array([0.4, 0.1, 0.5]))
    [(0, 0), (None, 1), (1, 2)]
    """
    n, m = len(place_a), len(place_b)
    if n == m == 1:
        return [(0, 0)]
    cost = np.full((n + 1, m + 1), np.inf)
    cost[0, 0] = 0.0
    step: dict[tuple[int, int], tuple[int, int]] = {}
    for i in range(n + 1):
        for j in range(m + 1):
            ways = []
            if i and j:
                apart = abs(place_a[i - 1] - place_b[j - 1]) + abs(weight_a[i - 1] - weight_b[j - 1])
                ways.append((cost[i - 1, j - 1] + apart, (i - 1, j - 1)))
            if i:
                ways.append((cost[i - 1, j] + GAP_OCTAVES + weight_a[i - 1], (i - 1, j)))
            if j:
                ways.append((cost[i, j - 1] + GAP_OCTAVES + weight_b[j - 1], (i, j - 1)))
            if ways:
                cost[i, j], step[i, j] = min(ways)
    pairs: list[tuple[int | None, int | None]] = []
    i, j = n, m
    while i or j:
        a, b = step[i, j]
        pairs.append((a if a < i else None, b if b < j else None))
        i, j = a, b
    return pairs[::-1]


def _joined(
    scores: Sequence[Scores],
    shares: Sequence[np.ndarray],
    i: int | None,
    j: int | None,
    places: Sequence[np.ndarray],
) -> Scores:
    """Return the scores of location and weight of one pair of modes in the units of both groups."""
    modes = (i, j)
    units = [len(share) for share in shares]
    weight = np.concatenate(
        [np.zeros(n) if k is None else share[:, k] for k, n, share in zip(modes, units, shares, strict=True)]
    )
    number = (i if i is not None else j or 0) + 1
    t_s = float(places[0][i] if i is not None else places[1][j])
    parts = [Component(WEIGHT, number, t_s)]
    total, size = [weight], [np.ones(sum(units))]
    if i is not None and j is not None:
        # Scores are relative to the mode of their group; both become relative to that of the first group.
        beyond = [0.0, float(np.log2(places[1][j] / places[0][i]))]
        size.append(np.concatenate([one.size[:, k] for one, k in zip(scores, modes, strict=True)]))
        total.append(
            np.concatenate(
                [
                    one.total[:, k] + off * one.size[:, k]
                    for one, k, off in zip(scores, modes, beyond, strict=True)
                ]
            )
        )
        grain = max(scores[0].parts[i].grain_octaves, scores[1].parts[j].grain_octaves)
        parts.append(Component(PLACE, number, t_s, grain))
    return Scores(parts, np.column_stack(total), np.column_stack(size))

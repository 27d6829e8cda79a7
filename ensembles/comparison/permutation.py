"""Tests by permutation of whole units (runs, or blocks of a run), of many parts at once.

The statistic is studentised, which keeps the level where groups scatter differently (Chung and Romano,
Exact and asymptotically robust permutation tests, 2013); parts are judged together by the step-down
maximum (Westfall and Young, Resampling-Based Multiple Testing, 1993), which, unlike Holm's bound, is not
lost to the smallest p-value that a few runs allow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from math import comb, prod

import numpy as np

MOST_EXACT = 4_000
RANDOM = 1_999

_LEAST_SPREAD = 1e-6
"""Octaves, or share: units closer than that are equal."""


@dataclass(frozen=True)
class Estimates:
    """Values of the parts in groups, under one or many arrangements of the units.

    Attributes
    ----------
    value, variance, freedom : ndarray of float64, shape (groups, arrangements, m)
        Ratio estimates, their variances, and degrees of freedom; nan where a group has no call of a part.
    """

    value: np.ndarray
    variance: np.ndarray
    freedom: np.ndarray


@dataclass(frozen=True)
class PermutationTest:
    """What permutations say.

    Attributes
    ----------
    p, adjusted_p : ndarray of float64, shape (m,)
        Of each part for itself, and in view of the others.
    arrangements : int
        How many were compared, the true one included.
    exact : bool
        All that there are; else a random choice.
    smallest_p : float
        What the test cannot go below with so few units.
    """

    p: np.ndarray
    adjusted_p: np.ndarray
    arrangements: int
    exact: bool
    smallest_p: float


def estimates(total: np.ndarray, size: np.ndarray, members: np.ndarray) -> Estimates:
    """Ratio estimates of groups of units, and their variances by linearisation.

    Parameters
    ----------
    total, size : ndarray of float64, shape (u, m)
        See `ensembles.comparison.components.Scores`.
    members : ndarray of float64, shape (groups, arrangements, u)
        1.0 where a unit is in the group.
    """
    centre = total.sum(axis=0) / np.maximum(size.sum(axis=0), 1e-300)
    rest = total - centre * size
    units = members @ (size > 0)
    with np.errstate(invalid="ignore", divide="ignore"):
        weight = members @ size
        value = members @ rest / weight
        squares = members @ rest**2 - 2 * value * (members @ (rest * size)) + value**2 * (members @ size**2)
        variance = units / (units - 1) * np.maximum(squares, 0) / weight**2
        single = units < 2
        if single.any():
            # A group of one unit scatters as the others do.
            scatter = np.where(single, 0.0, variance * units * (units - 1)).sum(axis=0)
            freedom = np.where(single, 0.0, units - 1).sum(axis=0)
            variance = np.where(single, scatter / freedom / units, variance)
            return Estimates(value + centre, variance, np.where(single, freedom, units - 1))
    return Estimates(value + centre, variance, units - 1)


def statistic(found: Estimates) -> np.ndarray:
    """How far groups are apart, in standard errors: shape (arrangements, m), 0 where that cannot be said.

    Of two groups |difference| over its standard error; of more the root of the weighted sum of squares
    around the weighted mean (Welch, On the comparison of several mean values, 1951), which is the same for
    two."""
    weight = 1 / (found.variance + _LEAST_SPREAD**2)
    weight = np.where(np.isfinite(found.value) & np.isfinite(weight), weight, 0.0)
    value = np.where(weight > 0, found.value, 0.0)
    mean = (weight * value).sum(axis=0) / np.maximum(weight.sum(axis=0), 1e-300)
    apart = np.where(np.abs(value - mean) < _LEAST_SPREAD, 0.0, value - mean)
    return np.sqrt((weight * apart**2).sum(axis=0))


def permutation_test(
    total: np.ndarray, size: np.ndarray, group: np.ndarray, rng: np.random.Generator, spread: float = 1.0
) -> PermutationTest:
    """Whether groups of units differ, part by part.

    Parameters
    ----------
    total, size : ndarray of float64, shape (u, m)
        See `ensembles.comparison.components.Scores`.
    group : ndarray of int64, shape (u,)
        Group of each unit, from 0, each with one unit at least.
    rng : numpy Generator
        Chooses arrangements where there are more than `MOST_EXACT`.
    spread : float
        By which factor standard errors are larger than the units tell, as neighbours depend on each other:
        what was found is made smaller by it, what permutations give is not, for they tear neighbours apart.
    """
    sizes = np.bincount(group)
    groups, exact = _arrangements(group, sizes, rng)
    members = (groups[None] == np.arange(len(sizes))[:, None, None]).astype(np.float64)
    found = statistic(estimates(total, size, members))
    found[0] /= spread
    seen = found[0] * (1 - 1e-9)
    p = (found >= seen).mean(axis=0)
    order = np.argsort(-found[0])
    running = np.maximum.accumulate(found[:, order[::-1]], axis=1)[:, ::-1]
    stepped = np.maximum.accumulate((running >= seen[order]).mean(axis=0))
    adjusted = np.empty_like(stepped)
    adjusted[order] = stepped
    return PermutationTest(p, adjusted, len(groups), exact, max(smallest_p(sizes), 1 / len(groups)))


def smallest_p(sizes: np.ndarray | Sequence[int]) -> float:
    """Least p-value that a permutation test of so many units can give: groups of equal size may be
    exchanged as a whole."""
    units: list[int] = np.asarray(sizes).tolist()
    arrangements = prod(comb(sum(units[: i + 1]), size) for i, size in enumerate(units))
    alike = prod(_factorial(units.count(size)) for size in set(units))
    return min(alike / arrangements, 1.0)


def _factorial(n: int) -> int:
    return prod(range(1, n + 1))


def _arrangements(group: np.ndarray, sizes: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, bool]:
    """Groups of the units, shape (arrangements, u), the true ones first."""
    n = len(group)
    if len(sizes) == 2 and comb(n, int(sizes[1])) <= MOST_EXACT:
        chosen = np.array(list(combinations(range(n), int(sizes[1]))))
        all_of_them = np.zeros((len(chosen), n), np.int64)
        np.put_along_axis(all_of_them, chosen, 1, axis=1)
        return np.concatenate([group[None], all_of_them[(all_of_them != group).any(axis=1)]]), True
    random = rng.permuted(np.broadcast_to(group, (RANDOM, n)), axis=1)
    return np.concatenate([group[None], random]), False

"""Sizes of effects with confidence intervals: by how much parts and medians moved."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ensembles.comparison.components import Scores, quantile_octaves
from ensembles.comparison.hypothesis_tests import holm
from ensembles.comparison.permutation import estimates
from ensembles.comparison.report import Effect, ModeSpread, Shift

BOOTSTRAP = 400
SEEN_SHARE = 0.1
LEAST_HALF = 1e-6
"""Smallest half width of an interval: octaves, or a share of the calls."""


def estimate_effects(
    scores: Scores, group: np.ndarray, names: Sequence[str], level: float, spread: float = 1.0
) -> list[list[Effect]]:
    """Estimate how far each part moved in each group relative to the first group.

    Parameters
    ----------
    scores : Scores
    group : ndarray of int64, shape (u,)
        Group of each unit.
    names : sequence of str
        Names of the groups.
    level : float
        Intervals have the confidence level 1 − `level`.
    spread : float
        Factor by which standard errors exceed those of independent units.

    Returns
    -------
    list of list of Effect
        By part, then by group without the first.

    Notes
    -----
    Welch's interval, with the variances of ratio estimates and Satterthwaite's degrees of freedom. It is
    widened by the rounding of bins and of the clock.

    References
    ----------
    B. L. Welch, "The generalization of 'Student's' problem when several different population variances are
    involved", Biometrika 34, 1947.
    """
    found = estimates(scores.total, scores.size, one_hot(group)[:, None, :])
    value, variance, freedom = (array[:, 0, :] for array in (found.value, found.variance, found.freedom))
    effects = []
    for i, part in enumerate(scores.parts):
        mine = []
        for g in range(1, len(names)):
            half = spread * half_width(variance[[0, g], i], freedom[[0, g], i], level)
            half += part.grain_octaves if part.is_ratio else 0.0
            ends = value[0, i], value[g, i]
            if part.is_ratio:
                # The tail is measured relative to its mode, and has no location.
                places = [part.t_s * 2.0**end for end in ends] if part.mode else [np.nan, np.nan]
            else:
                places = list(ends)
            mine.append(_effect(names[g], part.is_ratio, ends[1] - ends[0], half, *places))
        effects.append(mine)
    return effects


def one_hot(group: np.ndarray) -> np.ndarray:
    """Return which units are in which group: float64, shape (groups, u)."""
    members: np.ndarray = (group == np.arange(group.max() + 1)[:, None]).astype(np.float64)
    return members


def half_width(variance: np.ndarray, freedom: np.ndarray, level: float) -> float:
    """Return half the width of the interval of a difference; nan if a variance is unknown."""
    from scipy.special import stdtrit

    together = float(variance.sum())
    if not (np.isfinite(together) and (freedom >= 1).all()):
        return float("nan")
    shares = float((variance**2 / freedom).sum())
    return float(stdtrit(together**2 / shares, 1 - level / 2) * np.sqrt(together)) if shares > 0 else 0.0


def welch_p(scores: Scores, group: np.ndarray, spread: float = 1.0) -> np.ndarray:
    """Compute adjusted p-values of Welch's t test.

    They are adjusted for the number of groups that are compared with the first (Bonferroni) and for the
    number of parts (Holm). Permutations of few units are too liberal if a small group scatters more than a
    large one. Therefore this test, which allows for unequal variances, must confirm their result.

    Parameters
    ----------
    scores : Scores
    group : ndarray of int64, shape (u,)
        Group of each unit.
    spread : float
        Factor by which standard errors exceed those of independent units.

    Returns
    -------
    ndarray of float64, shape (m,)
        1 if a variance is unknown.
    """
    from scipy.special import stdtr

    found = estimates(scores.total, scores.size, one_hot(group)[:, None, :])
    value, variance, freedom = (array[:, 0, :] for array in (found.value, found.variance, found.freedom))
    with np.errstate(invalid="ignore", divide="ignore"):
        together = variance[1:] + variance[0]
        shares = variance[1:] ** 2 / freedom[1:] + variance[0] ** 2 / freedom[0]
        apart = np.abs(value[1:] - value[0])
        # Equal units have variance 0, for which the degrees of freedom are undefined.
        statistic = np.where(apart < LEAST_HALF, 0.0, apart / np.sqrt(together + LEAST_HALF**2)) / spread
        p = 2 * stdtr(np.clip(np.where(shares > 0, together**2 / shares, 1e9), 1, 1e9), -statistic)
    known = np.isfinite(together) & (np.minimum(freedom[1:], freedom[0]) >= 1)
    p = np.where(known & np.isfinite(p), p, 1.0).min(axis=0) * len(p)
    return holm(np.minimum(p, 1.0))


def _effect(name: str, is_ratio: bool, difference: float, half: float, before: float, after: float) -> Effect:
    half = max(half, LEAST_HALF) if np.isfinite(half) else half
    ends = np.array([difference, difference - half, difference + half])
    ends = 2.0 ** np.clip(ends, -60, 60) if is_ratio else ends
    known = (float(x) if np.isfinite(x) else None for x in (*ends.tolist(), before, after))
    return Effect(name, is_ratio, *known)


def estimate_shifts(
    counts: np.ndarray,
    group: np.ndarray,
    names: Sequence[str],
    level: float,
    rng: np.random.Generator,
    runs: bool,
    spread: float = 1.0,
) -> list[Shift]:
    """Estimate the ratio of each group's median to that of the first group.

    With runs as units, log2 of their medians form a sample for each group. With blocks, the standard error of
    the run's median comes from a bootstrap of blocks.

    Parameters
    ----------
    counts : ndarray of float64, shape (u, BIN_COUNT)
        Histogram of each unit.
    group : ndarray of int64, shape (u,)
        Group of each unit.
    names : sequence of str
        Names of the groups.
    level : float
        Intervals have the confidence level 1 − `level`.
    rng : numpy.random.Generator
    runs : bool
        Units are runs; else they are blocks of one run per group.
    spread : float
        Factor by which standard errors exceed those of independent units.

    Returns
    -------
    list of Shift
        One for each group but the first.
    """
    used = np.flatnonzero(counts.any(axis=0))
    value, variance, freedom = [], [], []
    for g in range(group.max() + 1):
        mine = counts[group == g]
        n = len(mine)
        if runs:
            medians = quantile_octaves(mine, 0.5)
            value.append(medians.mean())
            variance.append(medians.var(ddof=1) / n if n > 1 else np.nan)
        else:
            value.append(quantile_octaves(mine.sum(axis=0)[None], 0.5)[0])
            drawn = np.zeros((BOOTSTRAP, counts.shape[1]))
            drawn[:, used] = rng.multinomial(n, np.full(n, 1 / n), BOOTSTRAP) @ mine[:, used]
            variance.append(quantile_octaves(drawn, 0.5).var(ddof=1) * n / (n - 1) if n > 1 else np.nan)
        freedom.append(n - 1)
    known_variance, all_freedom = np.array(variance), np.array(freedom, dtype=np.float64)
    units = all_freedom + 1
    known = ~np.isnan(known_variance)
    if runs and known.any():
        # A group of one run gets the variance of the others.
        scatter = (known_variance * units * all_freedom)[known].sum() / all_freedom[known].sum()
        known_variance = np.where(known, known_variance, scatter / units)
        all_freedom = np.where(known, all_freedom, all_freedom[known].sum())
    shifts = []
    for g in range(1, len(value)):
        half = spread * half_width(known_variance[[0, g]], all_freedom[[0, g]], level)
        effect = _effect(names[g], True, value[g] - value[0], half, np.nan, np.nan)
        shifts.append(Shift(names[g], effect.value, effect.low, effect.high))
    return shifts


def estimate_spreads(scores: Scores, shares: np.ndarray, group: np.ndarray) -> list[ModeSpread]:
    """Estimate how locations and weights of modes vary between runs of a group.

    Parameters
    ----------
    scores : Scores
        Of runs.
    shares : ndarray of float64, shape (runs, modes)
        Share of each run's calls in each mode.
    group : ndarray of int64, shape (runs,)
        Runs of one group are repetitions.

    Returns
    -------
    list of ModeSpread
        One for each mode.
    """
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

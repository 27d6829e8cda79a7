"""Posterior distribution of a generalised Pareto tail, from the slowest calls.

Above a high threshold the excess of nearly every distribution is close to a generalised Pareto distribution
(Balkema and de Haan 1974; Pickands 1975), ``P(excess > x) = (1 + xi x / sigma)**(-1 / xi)``: bounded for ``xi
< 0``, exponential for 0, a power law above. It is fitted to the excess of the duration, and to that of its
logarithm, which is closer to a log-normal or Weibull tail. The data determine the weights of both.

Calls are exact values or counts of intervals. The integral over (xi, sigma) is a sum over a grid that follows
the posterior: it takes milliseconds, is reproducible, and needs no convergence diagnosis.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

SHAPE_LOW, SHAPE_HIGH = -1.5, 1.0
"""Range of the shape. Below -1 the density rises towards its end; from 1 on there is no mean."""

LOGARITHM_WEIGHT, LOGARITHM_HIGH = 0.3, 0.1
"""Prior weight of tails of the logarithm, and their largest shape. Shape 0 is a power law of the duration;
greater shapes are heavier than any power law.
"""

_SHAPE_STEP = LOGARITHM_HIGH
_SHAPES = np.arange(SHAPE_LOW + _SHAPE_STEP / 2, SHAPE_HIGH, _SHAPE_STEP)
_DROP = 14.0
"""The posterior is truncated where its log density is lower than the maximum by this."""
_COARSE, _FINE = 30, 20

_MOST_RATIO = 1e100
"""Largest duration over the threshold: beyond, a prediction is refused as too wide in any case."""


@dataclass(frozen=True)
class Excesses:
    """Calls above a threshold, in units of it: ``t / threshold - 1``."""

    exact: np.ndarray  # Exactly known excesses
    low: np.ndarray  # low, high, count: Intervals of excess, and the number of calls in each
    high: np.ndarray
    count: np.ndarray

    @property
    def total(self) -> int:
        """Number of calls."""
        return len(self.exact) + int(self.count.sum())

    @property
    def largest(self) -> float:
        """Lower bound of the longest call."""
        return float(max(self.exact.max(initial=0.0), self.low.max(initial=0.0)))

    def in_logarithm(self) -> Excesses:
        """Return the excesses of the logarithm: ``log(t / threshold)``."""
        return Excesses(np.log1p(self.exact), np.log1p(self.low), np.log1p(self.high), self.count)


@dataclass(frozen=True)
class Nodes:
    """Weighted tails; the weights of both kinds add up to 1."""

    # shape, scale, weight: xi, sigma (in units of the threshold), and posterior probability
    shape: np.ndarray
    scale: np.ndarray  # shape (m,)
    weight: np.ndarray  # shape (m,)
    logarithmic: np.ndarray  # Whether the tail is one of the logarithm; shape (m,)

    def log_survival(self, ratio: np.ndarray) -> np.ndarray:
        """Return the log probability to be longer, given that the threshold is exceeded."""
        ratio = np.asarray(ratio, dtype=np.float64)[..., None]
        return _log_survival(
            np.where(self.logarithmic, np.log(ratio), ratio - 1.0), self.shape, 1.0 / self.scale
        )

    def exceeded_with(self, log_chance: np.ndarray | float) -> np.ndarray:
        """Return what is exceeded with a probability: durations over the threshold, shape (..., m)."""
        log_chance = np.asarray(log_chance, dtype=np.float64)[..., None]
        straight = np.abs(self.shape) < 1e-9
        with np.errstate(over="ignore"):
            excess = self.scale * np.where(
                straight,
                -log_chance,
                np.expm1(-self.shape * log_chance) / np.where(straight, 1.0, self.shape),
            )
            ratio = np.where(self.logarithmic, np.exp(excess), 1.0 + excess)
        return np.minimum(ratio, _MOST_RATIO)

    def only(self, place: int) -> Nodes:
        """Return one of the tails, with weight 1."""
        one = slice(place, place + 1)
        return Nodes(self.shape[one], self.scale[one], np.ones(1), self.logarithmic[one])

    def thinned(self, number: int) -> Nodes:
        """Return a few tails of equal weight that represent all.

        They lie at even steps of the cumulated weight, in the order of what they exceed with probability
        1e-6.
        """
        order = np.argsort(self.exceeded_with(np.log(1e-6)))
        steps = (np.arange(number) + 0.5) / number
        chosen = order[np.searchsorted(np.cumsum(self.weight[order]), steps * (1 - 1e-9))]
        return Nodes(
            self.shape[chosen], self.scale[chosen], np.full(number, 1 / number), self.logarithmic[chosen]
        )


def compute_posterior(excesses: Excesses) -> Nodes:
    """Compute the posterior of the tail from excesses.

    The prior is ``1 / sigma``, and flat in xi on (-1.5, 1). For tails of the logarithm it is flat on (-1.5,
    0.1), and their weight is 0.3.
    """
    # A density of the logarithm is one of the excess over (1 + excess).
    return kinds_posterior(excesses, excesses.in_logarithm(), float(np.log1p(excesses.exact).sum()))


def kinds_posterior(plain: Excesses, of_logarithm: Excesses, log_jacobian: float) -> Nodes:
    """Compute the posterior from excesses of both kinds, of the same calls."""
    kinds = [
        _weighted(plain, -np.log(1.0 - LOGARITHM_WEIGHT)),
        _weighted(of_logarithm, log_jacobian - np.log(LOGARITHM_WEIGHT), LOGARITHM_HIGH),
    ]
    shape, scale, log_weight = (np.concatenate(parts) for parts in zip(*kinds, strict=True))
    logarithmic = np.repeat([False, True], [len(kind[0]) for kind in kinds])
    weight = np.exp(log_weight - log_weight.max())
    kept = weight > 1e-6 * weight.max()
    return Nodes(shape[kept], scale[kept], weight[kept] / weight[kept].sum(), logarithmic[kept])


def _weighted(
    excesses: Excesses, log_jacobian: float, highest: float = SHAPE_HIGH
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return shapes, scales and log posterior weights of one kind of tail."""
    shapes = _SHAPES[highest > _SHAPES]
    log_prior = -np.log(len(shapes))
    largest = max(excesses.largest, 1e-12)

    def density(shape: np.ndarray, place: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        scale = np.where(shape < 0, -shape * (1.0 + np.exp(place)), np.exp(place)) * largest
        # d log sigma / d place: the place of a bounded tail is log(end / largest - 1), so that the
        # grid is fine where the end is close to the largest.
        jacobian = np.where(shape < 0, -np.log1p(np.exp(-place)), 0.0)
        return _log_likelihood(excesses, shape, scale) + jacobian, scale

    def places(shape: np.ndarray) -> np.ndarray:
        return np.where(shape < 0, np.linspace(-20, 10, _COARSE), np.linspace(-12, 4, _COARSE))

    shape = shapes[:, None]
    place = places(shape)
    value = density(shape, place)[0]
    best = value.max(1)
    if not np.isfinite(best).any():
        raise ValueError("these excesses are impossible for a generalised Pareto distribution")
    near = np.flatnonzero(best > best.max() - _DROP)
    chosen = slice(max(near[0] - 1, 0), near[-1] + 2)
    shape, place, value = shape[chosen], place[chosen], value[chosen]
    # The maximum of a narrow posterior lies between two places of the coarse grid: include neighbours.
    near = value > value.max(1, keepdims=True) - _DROP
    step = place[:, 1] - place[:, 0]
    for _ in range(2):
        low = np.where(near, place, np.inf).min(1) - step
        high = np.where(near, place, -np.inf).max(1) + step
        place = low[:, None] + (high - low)[:, None] * np.linspace(0.0, 1.0, _FINE)
        value, scale = density(shape, place)
        near = value > value.max(1, keepdims=True) - _DROP
        step = (high - low) / (_FINE - 1)
        if (near.sum(1) > _FINE // 3).all():
            break
    log_weight = value + np.log(step)[:, None] + log_prior - log_jacobian
    kept = log_weight > log_weight.max() - _DROP
    return np.broadcast_to(shape, kept.shape)[kept], scale[kept], log_weight[kept]


def _log_likelihood(excesses: Excesses, shape: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """Return log likelihoods, shape (a, b), for shapes (a, 1) and scales (a, b)."""
    inverse = 1.0 / scale[..., None]
    shape_ = shape[..., None]
    value = np.zeros(scale.shape)
    if len(excesses.exact):
        survival = _log_survival(excesses.exact, shape_, inverse)
        with np.errstate(invalid="ignore"):
            value += ((1.0 + shape_) * survival).sum(-1) - len(excesses.exact) * np.log(scale)
    if len(excesses.count):
        edges, place = np.unique(np.concatenate([excesses.low, excesses.high]), return_inverse=True)
        survival = _log_survival(edges, shape_, inverse)
        low, high = np.split(place, 2)
        with np.errstate(divide="ignore", invalid="ignore"):
            inside = survival[..., low] + np.log(-np.expm1(survival[..., high] - survival[..., low]))
        value += inside @ excesses.count.astype(np.float64)
    return np.where(np.isfinite(value), value, -np.inf)


def _log_survival(excess: np.ndarray, shape: np.ndarray, inverse_scale: np.ndarray) -> np.ndarray:
    straight = np.abs(shape) < 1e-9
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        reach = np.where(straight, 0.0, shape) * inverse_scale * excess
        value = -np.log1p(np.maximum(reach, -1.0)) / np.where(straight, 1.0, shape)
        value = np.where(straight, -excess * inverse_scale, value)
    return np.where(reach <= -1.0, -np.inf, value)

"""Location, weight and width of clusters of log duration, with confidence intervals from one bootstrap."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ensembles.model.levels import FEWEST, MOST_SEEN
from ensembles.statistics import special
from ensembles.statistics.modes.density import (
    LogCells,
    Smoother,
    highest,
    lowest,
    places_of_shares,
    replicates,
    resampled_phases,
    shortest_span,
)
from ensembles.statistics.samples.counted_durations import CountedDurations

_DEGREE = 3
_REACH = 1.3
_MOST_CALLS_AT_FULL_REACH = 2 * MOST_SEEN
_STEPS = 12
_TOP_GRID = 201


def fitted_tops(
    cells: LogCells, drawn: np.ndarray, top: float, sigma: float, low: float, high: float
) -> np.ndarray | None:
    """Fit the position of a peak's maximum by local likelihood.

    Counts are Poisson, and the log density is a cubic within 1.3 sigma, less with very many calls. A kernel
    estimate of the mode is biased towards the heavier flank; the cubic follows the skewness. For gamma and
    Weibull densities the bias is below a third of the standard deviation up to 1e5 to 1e6 calls.
    """
    calls = drawn[0, slice(*np.searchsorted(cells.edges, [low, high]))].sum()
    reach = _REACH * sigma * min(1.0, (_MOST_CALLS_AT_FULL_REACH / max(calls, 1.0)) ** (1 / 11))
    middle = 0.5 * (cells.edges[1:] + cells.edges[:-1])
    for _ in range(3):
        near = (np.abs(middle - top) <= reach) & (middle > low) & (middle < high)
        if near.sum() < 2 * FEWEST:
            return None
        u = (middle[near] - top) / reach
        at = np.linspace(max(u[0], -1), min(u[-1], 1), _TOP_GRID)
        first = _tops(u, cells.widths[near] / reach, drawn[:1, near], at)[0]
        if not at[0] < first < at[-1]:
            return None
        if abs(first) < 0.05:
            break
        top = float(top + reach * first)
    found = _tops(u, cells.widths[near] / reach, drawn[:, near], at)
    tops: np.ndarray = top + reach * np.where(np.isfinite(found), found, first)
    return tops


def _tops(u: np.ndarray, width: np.ndarray, counts: np.ndarray, at: np.ndarray) -> np.ndarray:
    """Return the maxima of the fitted cubics: shape (r,); NaN: the fit failed."""
    fit, converged = fit_log_density(u, width, counts, _DEGREE)
    places = highest(at, fit @ np.vander(at, _DEGREE + 1, increasing=True).T)
    return np.where(converged, places, np.nan)


def fit_log_density(
    u: np.ndarray, width: np.ndarray, counts: np.ndarray, degree: int
) -> tuple[np.ndarray, np.ndarray]:
    """Fit a polynomial to the log density by Poisson likelihood."""
    powers = np.vander(u, 2 * degree + 1, increasing=True)
    design = powers[:, : degree + 1]
    sums = np.add.outer(np.arange(degree + 1), np.arange(degree + 1))
    fit = np.zeros((len(counts), degree + 1))
    fit[:, 0] = np.log(np.maximum(counts.sum(axis=1), 0.5) / width.sum()) + 0.2
    if degree > 1:
        fit[:, 2] = -0.6
    for _ in range(_STEPS):
        mean = width * np.exp(np.clip(fit @ design.T, -50, 50))
        slope = (counts - mean) @ design
        bend = (mean @ powers)[:, sums] + 1e-9 * np.eye(degree + 1)
        step = np.linalg.solve(bend, slope[:, :, None])[:, :, 0]
        step *= np.minimum(1.0, 2.0 / np.maximum(np.abs(step).max(axis=1, keepdims=True), 1e-300))
        fit += step
    return fit, np.abs(step).max(axis=1) < 1e-3


_VALLEY_GRID = 257
_BANDWIDTH = 0.97
_LEAST_BANDWIDTH_IN_CELLS = 0.6
_LEAST_CALLS_OF_FIT = 1000
_SHARES = ((200, 0.5, 1.349), (np.inf, 0.3, 0.7706))
"""Share of the calls whose shortest interval gives a width, and its length for a normal density."""

Span = tuple[float, float]


@dataclass(frozen=True, eq=False)
class ModeEstimates:
    """Estimates of each cluster with the ends of their intervals."""

    place: np.ndarray  # place, weight, width: Estimate, low, high; locations in log seconds; shape (m, 3)
    weight: np.ndarray  # shape (m, 3)
    width: np.ndarray  # shape (m, 3)
    bounds: np.ndarray  # First edge, antimodes and last edge, in log seconds; shape (m + 1,)


def measured(
    sample: CountedDurations, cells: LogCells, spans: list[Span], level: float, seed: int, size: int
) -> ModeEstimates:
    """Estimate location, weight and width of clusters.

    Intervals are percentiles of replicates, farther for few phases; the shorter side of the interval of a
    place is at least the geometric mean of both (docs/reference/methods/modes.md, Place, weight, width).
    """
    rng = np.random.default_rng(seed)
    drawn = np.concatenate([cells.counts[None, :].astype(np.float64), replicates(sample, cells, size, rng)])
    clusters = (len(spans) + 1) // 2
    middles = [0.5 * (low + high) for low, high in spans[1::2]]
    around = [cells.edges[0], *middles, cells.edges[-1]]
    bandwidths = [_bandwidth(cells, around[i], around[i + 1]) for i in range(clusters)]
    bounds = np.empty((clusters + 1, len(drawn)))
    bounds[0], bounds[-1] = cells.edges[0], cells.edges[-1]
    for i in range(1, clusters):
        bounds[i] = _valleys(cells, drawn, spans[2 * i - 2 : 2 * i + 1], min(bandwidths[i - 1 : i + 1]))
    place = np.array([_places(cells, drawn, bounds[i, 0], bounds[i + 1, 0]) for i in range(clusters)])
    total = drawn.sum(axis=1)
    below = np.array([_calls_below(cells, drawn, at) for at in bounds])
    weight = np.diff(below, axis=0) / total
    tails = [below[:-1] + share * np.diff(below, axis=0) for share in (0.15865, 0.84135)]
    ends = [np.array([places_of_shares(cells, drawn, calls) for calls in rows]) for rows in tails]
    width = 0.5 * (ends[1] - ends[0])
    # Calls are assumed to lie evenly in a cell; where the density slopes, this shifts a quantile.
    cell = np.interp(0.5 * (ends[0] + ends[1])[:, 0], cells.edges[:-1], cells.widths)
    blur = cell**2 / (4 * width[:, 0] + 1e-9)
    stretch = _stretch(resampled_phases(sample), level)
    places, weights, widths = (_with_interval(values, level, stretch) for values in (place, weight, width))
    beside = np.abs(places[:, 1:] - places[:, :1])
    beside = np.maximum(beside, np.sqrt(beside.prod(axis=1, keepdims=True)))
    places[:, 1:] = places[:, :1] + beside * [-1, 1]
    widths += np.outer(np.minimum(blur, 0.5 * width[:, 0]), [0, -1, 1])
    return ModeEstimates(places, np.clip(weights, 0, 1), np.maximum(widths, 0), bounds[:, 0])


def _stretch(phases: int, level: float) -> float:
    """Return the factor by which percentiles of so many resampled phases are too near; 0 phases: calls."""
    if not phases:
        return 1.0
    end = 0.5 + 0.5 * level
    return float(special.stdtrit(phases - 1, end) / special.ndtri(end) * np.sqrt(phases / (phases - 1)))


def _with_interval(values: np.ndarray, level: float, stretch: float) -> np.ndarray:
    tail = 0.5 - 0.5 * level
    found = values[:, :1]
    ends = np.quantile(values[:, 1:], [tail, 1 - tail], axis=1, method="weibull").T
    low, high = (found + stretch * (ends - found)).T
    return np.stack([found[:, 0], np.minimum(low, found[:, 0]), np.maximum(high, found[:, 0])], axis=1)


def _bandwidth(cells: LogCells, low: float, high: float) -> float:
    """Return the bandwidth with which a normal kernel estimates the mode of these calls best.

    It is that for a normal density of the width of the densest part, so that calls far away do not matter.
    """
    sigma, calls = _width_of_densest(cells, low, high)
    middle = np.searchsorted(cells.edges, 0.5 * sum(shortest_span(cells, low, high, 0.3))) - 1
    least = cells.widths[int(np.clip(middle, 0, len(cells.counts) - 1))]
    return float(max(_BANDWIDTH * sigma * max(calls, 1.0) ** (-1 / 7), _LEAST_BANDWIDTH_IN_CELLS * least))


def _width_of_densest(cells: LogCells, low: float, high: float) -> tuple[float, float]:
    """Return the standard deviation of a normal density as narrow as the densest part, and all calls."""
    before = np.concatenate([[0], np.cumsum(cells.counts)])
    calls = float(np.diff(np.interp([low, high], cells.edges, before))[0])
    share, normal = next((share, normal) for most, share, normal in _SHARES if calls < most)
    first, last = shortest_span(cells, low, high, share)
    return (last - first) / normal, calls


def _places(cells: LogCells, drawn: np.ndarray, low: float, high: float) -> np.ndarray:
    """Return the maximum between two antimodes for each row of counts.

    It is that of a kernel estimate from the calls between them; of many calls, that of a local likelihood
    fit, which is not drawn towards the heavier flank.
    """
    sigma, calls = _width_of_densest(cells, low, high)
    bandwidth = _bandwidth(cells, low, high)
    middle = 0.5 * (cells.edges[1:] + cells.edges[:-1])
    mine = np.where((middle >= low) & (middle <= high), drawn, 0.0)
    first, last = shortest_span(cells, low, high, 0.5)
    first, last = max(low, first - 2 * bandwidth), min(high, last + 2 * bandwidth)
    at = np.linspace(first, last, int(np.clip((last - first) / (0.2 * bandwidth), 16, 2048)))
    places = highest(at, Smoother(cells, at, bandwidth)(mine))
    if calls >= _LEAST_CALLS_OF_FIT:
        fitted = fitted_tops(cells, drawn, float(places[0]), sigma, low, high)
        if fitted is not None:
            return fitted
    return places


def _valleys(cells: LogCells, drawn: np.ndarray, spans: list[Span], bandwidth: float) -> np.ndarray:
    """Return the antimode between two modes for each row of counts, near the significantly low interval."""
    left, valley, right = spans
    at = np.linspace(max(valley[0] - bandwidth, left[1]), min(valley[1] + bandwidth, right[0]), _VALLEY_GRID)
    return lowest(at, Smoother(cells, at, bandwidth)(drawn))


def _calls_below(cells: LogCells, drawn: np.ndarray, at: np.ndarray) -> np.ndarray:
    """Return the number of calls below a position, for each row of counts."""
    cell = np.clip(np.searchsorted(cells.edges, at, side="right") - 1, 0, len(cells.counts) - 1)
    before = np.cumsum(drawn, axis=1)
    row = np.arange(len(drawn))
    part = np.clip((at - cells.edges[cell]) / cells.widths[cell], 0, 1)
    below: np.ndarray = before[row, cell] - (1 - part) * drawn[row, cell]
    return below

"""Location, weight and width of a known number of modes, with confidence intervals."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ensembles.statistics.modes.density import (
    LogCells,
    Smoother,
    highest,
    lowest,
    places_of_shares,
    replicates,
    shortest_span,
)
from ensembles.statistics.samples.counted_durations import CountedDurations

_DEGREE = 3
_REACH = 1.3
_MOST_CALLS_AT_FULL_REACH = 1e5
_LEAST_CELLS = 10
_STEPS = 12
_TOP_GRID = 201


def fitted_tops(
    cells: LogCells, drawn: np.ndarray, top: float, sigma: float, low: float, high: float
) -> np.ndarray | None:
    """Fit the position of a peak's maximum by local likelihood.

    Parameters
    ----------
    cells : LogCells
    drawn : ndarray of float64, shape (r, cells)
        Counts, one fit a row; the first row is the ensemble, the others are replicates.
    top, sigma : float
        Approximate position and width of the peak, in log time.
    low, high : float
        Adjacent antimodes; cells beyond them are not used.

    Returns
    -------
    ndarray of float64, shape (r,), or None
        None: the peak fills too few cells, or has no maximum there.

    Notes
    -----
    Counts are Poisson, and the log density is a cubic within 1.3 sigma, less with very many calls. A kernel
    estimate of the mode is biased towards the heavier flank; the cubic follows the skewness. For gamma and
    Weibull densities the bias is below a third of the standard deviation up to 1e5 to 1e6 calls.

    References
    ----------
    C. R. Loader, "Local likelihood density estimation", Annals of Statistics 24, 1996.
    """
    calls = drawn[0, slice(*np.searchsorted(cells.edges, [low, high]))].sum()
    reach = _REACH * sigma * min(1.0, (_MOST_CALLS_AT_FULL_REACH / max(calls, 1.0)) ** (1 / 11))
    middle = 0.5 * (cells.edges[1:] + cells.edges[:-1])
    for _ in range(3):
        near = (np.abs(middle - top) <= reach) & (middle > low) & (middle < high)
        if near.sum() < _LEAST_CELLS:
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
    powers = np.vander(u, 2 * _DEGREE + 1, increasing=True)
    design = powers[:, : _DEGREE + 1]
    sums = np.add.outer(np.arange(_DEGREE + 1), np.arange(_DEGREE + 1))
    fit = np.zeros((len(counts), _DEGREE + 1))
    fit[:, 0] = np.log(np.maximum(counts.sum(axis=1), 0.5) / width.sum()) + 0.2
    fit[:, 2] = -0.6
    for _ in range(_STEPS):
        mean = width * np.exp(np.clip(fit @ design.T, -50, 50))
        slope = (counts - mean) @ design
        bend = (mean @ powers)[:, sums] + 1e-9 * np.eye(_DEGREE + 1)
        step = np.linalg.solve(bend, slope[:, :, None])[:, :, 0]
        step *= np.minimum(1.0, 2.0 / np.maximum(np.abs(step).max(axis=1, keepdims=True), 1e-300))
        fit += step
    places = highest(at, fit @ np.vander(at, _DEGREE + 1, increasing=True).T)
    return np.where(np.abs(step).max(axis=1) < 1e-3, places, np.nan)


_GRID = 193
_VALLEY_GRID = 257
_MIDDLE = 0.6827
_BANDWIDTH = 1.0
_LEAST_BANDWIDTH_IN_CELLS = 0.6
_MOST_BANDWIDTH_IN_SPANS = 0.5
_LEAST_CALLS_OF_CLIFF = 6

Span = tuple[float, float]


@dataclass(frozen=True, eq=False)
class ModeEstimates:
    """Estimates of each mode with the ends of their intervals.

    Attributes
    ----------
    place, weight, width : ndarray of float64, shape (m, 3)
        Estimate, low, high; locations in log seconds.
    bounds : ndarray of float64, shape (m + 1,)
        First edge, antimodes and last edge, in log seconds.
    """

    place: np.ndarray
    weight: np.ndarray
    width: np.ndarray
    bounds: np.ndarray


def measured(
    sample: CountedDurations, cells: LogCells, spans: list[Span], level: float, seed: int, size: int
) -> ModeEstimates:
    """Estimate location, weight and width of modes.

    Parameters
    ----------
    sample : CountedDurations
    cells : LogCells
    spans : list of (float, float)
        Intervals of log time that are high, low, high, ..., high.
    level : float
        Confidence level of the intervals.
    seed : int
        Seed of the bootstrap.
    size : int
        Number of bootstrap samples.

    Returns
    -------
    ModeEstimates
    """
    rng = np.random.default_rng(seed)
    drawn = np.concatenate([cells.counts[None, :].astype(np.float64), replicates(sample, cells, size, rng)])
    modes = (len(spans) + 1) // 2
    middles = [0.5 * (low + high) for low, high in spans[1::2]]
    around = [cells.edges[0], *middles, cells.edges[-1]]
    peaks = [_peak(cells, spans[2 * i], around[i], around[i + 1]) for i in range(modes)]
    place = np.array(
        [_places(cells, drawn, spans[2 * i], around[i], around[i + 1], peaks[i]) for i in range(modes)]
    )
    bounds = np.empty((modes + 1, len(drawn)))
    bounds[0], bounds[-1] = cells.edges[0], cells.edges[-1]
    for i in range(1, modes):
        bounds[i] = _valleys(
            cells, drawn, spans[2 * i - 2 : 2 * i + 1], min(peaks[i - 1].bandwidth, peaks[i].bandwidth)
        )
    total = drawn.sum(axis=1)
    below = np.array([_calls_below(cells, drawn, at) for at in bounds])
    weight = np.diff(below, axis=0) / total
    tails = [below[:-1] + share * np.diff(below, axis=0) for share in (0.5 - _MIDDLE / 2, 0.5 + _MIDDLE / 2)]
    ends = [np.array([places_of_shares(cells, drawn, calls) for calls in rows]) for rows in tails]
    width = 0.5 * (ends[1] - ends[0])
    # Calls are assumed to lie evenly in a cell; where the density slopes, this shifts a quantile.
    cell = np.interp(0.5 * (ends[0] + ends[1])[:, 0], cells.edges[:-1], cells.widths)
    blur = cell**2 / (4 * width[:, 0] + 1e-9)
    places, weights, widths = (_with_interval(values, level) for values in (place, weight, width))
    widths += np.outer(np.minimum(blur, 0.5 * width[:, 0]), [0, -1, 1])
    return ModeEstimates(places, weights, widths, bounds[:, 0])


def _with_interval(values: np.ndarray, level: float) -> np.ndarray:
    tail = 0.5 - 0.5 * level
    low, high = np.quantile(values[:, 1:], [tail, 1 - tail], axis=1, method="weibull")
    return np.stack([values[:, 0], np.minimum(low, values[:, 0]), np.maximum(high, values[:, 0])], axis=1)


@dataclass(frozen=True)
class _Peak:
    """Width of a peak as that of a normal density, and the bandwidth for it."""

    sigma: float
    bandwidth: float


def _peak(cells: LogCells, span: Span, low: float, high: float) -> _Peak:
    """Estimate the width of a peak between two antimodes.

    It follows from the shortest interval with 30 % of the calls there.
    """
    first, last = shortest_span(cells, low, high, 0.3)
    sigma = (last - first) / (2 * 0.3853)
    before = np.concatenate([[0], np.cumsum(cells.counts)])
    calls = np.diff(np.interp([low, high], cells.edges, before))[0]
    middle = int(np.clip(np.searchsorted(cells.edges, 0.5 * (first + last)) - 1, 0, len(cells.counts) - 1))
    natural = _BANDWIDTH * sigma * (max(calls, 8) / 1000) ** (-1 / 9)
    natural = min(natural, _MOST_BANDWIDTH_IN_SPANS * (span[1] - span[0]))
    return _Peak(sigma, max(natural, _LEAST_BANDWIDTH_IN_CELLS * cells.widths[middle]))


def _places(
    cells: LogCells, drawn: np.ndarray, span: Span, low: float, high: float, peak: _Peak
) -> np.ndarray:
    """Return the location of a mode for each row of counts, near the interval that is significantly high."""
    bandwidth = peak.bandwidth
    at = np.linspace(low, high, int(np.clip((high - low) / (0.25 * bandwidth), 16, 4096)))
    density = Smoother(cells, at, bandwidth)(drawn[0])
    inside = (at >= span[0] - bandwidth) & (at <= span[1] + bandwidth)
    top = int(np.argmax(np.where(inside, density, -np.inf)))
    near = np.flatnonzero(density < 0.6 * density[top])
    rising = np.diff(density) > 0
    ends_left = np.concatenate([[0], near[near < top], np.flatnonzero(~rising[:top]) + 1])
    ends_right = np.concatenate([[len(at) - 1], near[near > top], np.flatnonzero(rising[top:]) + top])
    first, last = max(low, at[ends_left.max()] - bandwidth), min(high, at[ends_right.min()] + bandwidth)
    fine = np.linspace(first, last, _GRID)
    cliffs = _cliffs(cells, first, last, bandwidth, density[top])
    if not cliffs:
        fitted = fitted_tops(cells, drawn, float(at[top]), peak.sigma, low, high)
        if fitted is not None:
            return fitted
    return highest(fine, Smoother(cells, fine, bandwidth, not cliffs, cliffs)(drawn))


def _cliffs(cells: LogCells, low: float, high: float, bandwidth: float, peak: float) -> list[float]:
    """Return the ends of the cells at which the density is still as high as at the peak."""
    before = np.concatenate([[0], np.cumsum(cells.counts)])
    found = []
    for edge, inward in ((cells.edges[0], 1), (cells.edges[-1], -1)):
        if low <= edge <= high:
            width = max(0.3 * bandwidth, cells.widths[0 if inward > 0 else -1])
            calls = np.diff(np.interp(sorted([edge, edge + inward * width]), cells.edges, before))[0]
            if calls >= _LEAST_CALLS_OF_CLIFF and calls / width > 0.6 * peak:
                found.append(float(edge))
    return found


def _valleys(cells: LogCells, drawn: np.ndarray, spans: list[Span], bandwidth: float) -> np.ndarray:
    """Return the antimode between two modes for each row of counts, near the significantly low interval."""
    left, valley, right = spans
    at = np.linspace(max(valley[0] - bandwidth, left[1]), min(valley[1] + bandwidth, right[0]), _VALLEY_GRID)
    return lowest(at, Smoother(cells, at, bandwidth, sharp=False)(drawn))


def _calls_below(cells: LogCells, drawn: np.ndarray, at: np.ndarray) -> np.ndarray:
    """Return the number of calls below a position, for each row of counts."""
    cell = np.clip(np.searchsorted(cells.edges, at, side="right") - 1, 0, len(cells.counts) - 1)
    before = np.cumsum(drawn, axis=1)
    row = np.arange(len(drawn))
    part = np.clip((at - cells.edges[cell]) / cells.widths[cell], 0, 1)
    below: np.ndarray = before[row, cell] - (1 - part) * drawn[row, cell]
    return below

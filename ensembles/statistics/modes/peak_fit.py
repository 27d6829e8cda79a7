"""The top of a peak: a cubic fitted to the logarithm of the density about it."""

from __future__ import annotations

import numpy as np

from ensembles.statistics.modes.density import highest
from ensembles.statistics.modes.logcells import LogCells

_DEGREE = 3
_REACH = 1.3
_MOST_CALLS_AT_FULL_REACH = 1e5
_LEAST_CELLS = 10
_STEPS = 12
_GRID = 201


def fitted_tops(
    cells: LogCells, drawn: np.ndarray, top: float, sigma: float, low: float, high: float
) -> np.ndarray | None:
    """Where a peak is highest, for each row of counts.

    Parameters
    ----------
    drawn : ndarray of float64, shape (r, cells)
        Counts, those of the ensemble itself first.
    top, sigma : float
        About where the peak is in log time, and how wide.
    low, high : float
        The valleys beside it: no cell beyond them is looked at.

    Returns
    -------
    ndarray of float64, shape (r,), or None
        None: the peak is in too few cells, or has no top there.

    Notes
    -----
    Local likelihood (Loader, Local likelihood density estimation, Annals of Statistics 1996): counts are
    Poisson, and the log density is a cubic within 1.3 sigma, less where there are very many calls. A kernel
    estimate of the mode is drawn towards the heavier flank; the cubic follows the skew. Of gamma and Weibull
    densities its error is below a third of its standard deviation up to some 1e5 to 1e6 calls.
    """
    calls = drawn[0, slice(*np.searchsorted(cells.edges, [low, high]))].sum()
    reach = _REACH * sigma * min(1.0, (_MOST_CALLS_AT_FULL_REACH / max(calls, 1.0)) ** (1 / 11))
    middle = 0.5 * (cells.edges[1:] + cells.edges[:-1])
    for _ in range(3):
        near = (np.abs(middle - top) <= reach) & (middle > low) & (middle < high)
        if near.sum() < _LEAST_CELLS:
            return None
        u = (middle[near] - top) / reach
        at = np.linspace(max(u[0], -1), min(u[-1], 1), _GRID)
        first = _tops(u, cells.widths[near] / reach, drawn[:1, near], at)[0]
        if not at[0] < first < at[-1]:
            return None
        if abs(first) < 0.05:
            break
        top = float(top + reach * first)
    found = _tops(u, cells.widths[near] / reach, drawn[:, near], at)
    return top + reach * np.where(np.isfinite(found), found, first)


def _tops(u: np.ndarray, width: np.ndarray, counts: np.ndarray, at: np.ndarray) -> np.ndarray:
    """Places of the maxima of the fitted cubics: shape (r,); NaN where a fit fails."""
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

"""SiZer: at which smoothing the density of log duration rises and falls significantly."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ensembles.statistics.modes.density import LogCells, by_phase, resampled_phases
from ensembles.statistics.samples.counted_durations import CountedDurations

POSITIONS, BANDWIDTHS = 161, 24
_LEAST_CALLS = 5.0
_MOST_GROUPS = 512
_BEYOND = 4.0


@dataclass(frozen=True, eq=False)
class Sizer:
    """Significant slopes of the density of log duration, by position and bandwidth.

    A mode that is real at some smoothing is a rise followed by a fall in its row. What was certified can be
    judged here by eye, and what was not.

    Attributes
    ----------
    t_s : ndarray of float64, shape (g,)
        Positions, in seconds, at equal distances in log time.
    bandwidth : ndarray of float64, shape (b,)
        Standard deviations of the kernel in log duration, increasing.
    slope : ndarray of int8, shape (b, g)
        1: the density rises significantly. -1: it falls. 0: neither. -2: fewer than five calls are near.
    level : float
        Probability that no slope of a row is significant if the density is flat.
    """

    t_s: np.ndarray
    bandwidth: np.ndarray
    slope: np.ndarray
    level: float


def compute_sizer(sample: CountedDurations, level: float = 0.95) -> Sizer:
    """Compute the significant slopes.

    Notes
    -----
    The slope of a kernel estimate is a mean over calls; its variance is that over phases, if five or more
    are known, else over calls. The quantile allows for as many independent places in a row as there are
    kernels' worth of calls.

    References
    ----------
    P. Chaudhuri and J. S. Marron, "SiZer for exploration of structures in curves", Journal of the American
    Statistical Association 94, 1999.

    Examples
    --------
    >>> random = np.random.default_rng(1)
    >>> sizer = compute_sizer(CountedDurations.from_durations(random.lognormal(0.0, 0.2, 1000)))
    >>> row = sizer.slope[12]
    >>> float(sizer.t_s[row == 1].max()) < 1 < float(sizer.t_s[row == -1].min())
    True
    """
    cells = LogCells.from_counts(sample.counts, sample.resolution_s)
    span = cells.edges[-1] - cells.edges[0]
    at = np.linspace(cells.edges[0], cells.edges[-1], POSITIONS)
    bandwidth = np.geomspace(max(span / POSITIONS, np.median(cells.widths)), max(span / 3, 0.05), BANDWIDTHS)
    middle = 0.5 * (cells.edges[1:] + cells.edges[:-1])
    from ensembles.statistics.special import ndtri

    phases = resampled_phases(sample)
    groups = None
    if phases:
        groups = by_phase(sample, cells, np.arange(phases) % min(phases, _MOST_GROUPS)).astype(np.float64)
    slope = np.zeros((len(bandwidth), len(at)), np.int8)
    total = float(cells.counts.sum())
    for row, h in enumerate(bandwidth):
        u = (middle[:, None] - at) / h
        kernel = np.exp(-0.5 * np.minimum(u * u, _BEYOND**2))
        kernel[np.abs(u) > _BEYOND] = 0.0
        gradient = u * kernel
        near = cells.counts @ kernel
        sums = cells.counts @ gradient
        if groups is None:
            variance = cells.counts @ gradient**2 - sums**2 / total
        else:
            each = groups @ gradient
            variance = len(each) * each.var(axis=0, ddof=1)
        seen = near >= _LEAST_CALLS
        places = total / near[seen].mean() if seen.any() else 1.0
        quantile = ndtri(0.5 + 0.5 * level ** (1 / max(places, 1.0)))
        beyond = np.abs(sums) > quantile * np.sqrt(np.maximum(variance, 0)) + 1e-9 * total
        slope[row] = np.where(seen, np.sign(sums) * beyond, -2)
    return Sizer(np.exp(at), bandwidth, slope, level)

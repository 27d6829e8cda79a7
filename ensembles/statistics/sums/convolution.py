"""Distribution of the time of k consecutive calls, by convolution.

A sum of k independent durations has the k-fold convolution of their distribution. It is computed by FFT on a
grid of equal steps. The probability of a duration is divided between the two adjacent grid points such that
its mean is kept. The sum of k durations that are rounded down to the grid is at most the true sum, and less
by at most k steps: `Sums.error_s` is that bound. Callers refine the grid until it is small enough.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import scipy.fft

from ensembles.summaries.bins import bin_edges_s

if TYPE_CHECKING:
    from scipy.sparse import csr_array


@dataclass(frozen=True, eq=False)
class Pieces:
    """A distribution of durations as increasing, disjoint intervals of even density.

    Attributes
    ----------
    low_s, high_s : ndarray of float64, shape (m,)
        Ends of each interval in seconds; equal for a single value.
    probability : ndarray of float64, shape (m,)
        Adds up to 1.
    """

    low_s: np.ndarray
    high_s: np.ndarray
    probability: np.ndarray

    @classmethod
    def from_counts(cls, counts: np.ndarray, min_s: float, max_s: float) -> Pieces:
        """Make the distribution of counts, without calls beyond the extremes.

        Parameters
        ----------
        counts : ndarray of integers, shape (BIN_COUNT,)
            Number of calls in each bin.
        min_s, max_s : float
            Shortest and longest call, in seconds.

        Returns
        -------
        Pieces
        """
        used = np.flatnonzero(counts)
        edges_s = bin_edges_s()
        return cls(
            low_s=np.clip(edges_s[used], min_s, max_s),
            high_s=np.clip(edges_s[used + 1] - 1e-9, min_s, max_s),
            probability=counts[used] / counts.sum(),
        )

    def scaled(self, factor: float) -> Pieces:
        """Return the distribution of the durations times a factor."""
        return Pieces(self.low_s * factor, self.high_s * factor, self.probability)

    @property
    def mean_s(self) -> float:
        """Mean duration in seconds."""
        return float(self.probability @ (self.low_s + self.high_s)) / 2


def on_grid(pieces: Pieces, step_s: float, size: int) -> csr_array:
    """Divide the probability of each interval among the points 0, step, 2 step, ...

    A duration between two points gives them the shares that keep its mean. For an interval of constant
    density the shares are second differences of the integral of its distribution function.

    Parameters
    ----------
    pieces : Pieces
    step_s : float
        Step of the grid in seconds.
    size : int
        Number of points; the last one is at least the longest duration.

    Returns
    -------
    scipy.sparse.csr_array of float64, shape (m, size)
        Each row adds up to 1.
    """
    from scipy.sparse import csr_array

    low, high = pieces.low_s / step_s, pieces.high_s / step_s
    first = np.floor(low).astype(np.int64)
    points = np.floor(high).astype(np.int64) + 2 - first
    row = np.repeat(np.arange(len(low)), points)
    begin = np.concatenate([[0], np.cumsum(points)])
    point = first[row] + np.arange(begin[-1]) - begin[:-1][row]
    left, right, middle = (_hat_integral(point + shift, low[row], high[row]) for shift in (-1, 1, 0))
    share = np.clip(left + right - 2 * middle, 0, None)
    inside = point < size
    return csr_array((share[inside], (row[inside], point[inside])), shape=(len(low), size))


def _hat_integral(at: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Return the mean of max(T - at, 0) for T uniform between low and high.

    Its second difference in `at` is the mean of the hat function around a point.
    """
    width = high - low
    spread = (np.maximum(high - at, 0) ** 2 - np.maximum(low - at, 0) ** 2) / (
        2 * np.where(width > 0, width, 1)
    )
    # For an interval much narrower than a step the difference of squares is inaccurate: take its middle.
    integral: np.ndarray = np.where(width > 1e-4, spread, np.maximum((low + high) / 2 - at, 0))
    return integral


@dataclass(frozen=True, eq=False)
class Sums:
    """Distribution functions of sums of k durations, on a grid.

    Attributes
    ----------
    step_s : float
        Step of the grid in seconds.
    cumulative : ndarray of float64, shape (families, size)
        Probability that the sum is at most 0, step, 2 step, ...; one row for each distribution of durations.
    error_s : float
        Largest error of a quantile, in seconds.
    """

    step_s: float
    cumulative: np.ndarray
    error_s: float


def convolve_sums(on_points: np.ndarray, step_s: float, k: int) -> Sums:
    """Compute the distribution of the sum of k independent durations.

    Parameters
    ----------
    on_points : ndarray of float64, shape (families, size)
        Probabilities on a grid that contains the largest sum; one row for each distribution.
    step_s : float
        Step of the grid in seconds.
    k : int
        Number of durations, at least 1.

    Returns
    -------
    Sums

    Notes
    -----
    The transform of a k-fold convolution is the k-th power of the transform. The grid is padded so that sums
    do not wrap around. Rounding errors of the transform are about 1e-16; probabilities below 1e-13 are
    unreliable.

    Examples
    --------
    The sum of two dice:

    >>> dice = np.array([[0.0, *[1 / 6] * 6, *[0.0] * 6]])
    >>> float(convolve_sums(dice, 1.0, 2).cumulative[0, 7].round(6))
    0.583333
    """
    size = on_points.shape[1]
    length = scipy.fft.next_fast_len(2 * size, real=True)
    density = (
        on_points if k == 1 else scipy.fft.irfft(scipy.fft.rfft(on_points, length) ** k, length)[:, :size]
    )
    cumulative = np.clip(np.cumsum(density, axis=1), 0, 1)
    return Sums(step_s, np.maximum.accumulate(cumulative, axis=1), k * step_s)

"""The time of k successive calls: the distribution of a sum, by convolution.

A sum of k independent durations has the k-fold convolution of their distribution. It is computed on a grid of
equal steps by FFT, where a duration's probability goes to the two grid points around it in such a way that
its mean is kept. The sum of k durations that are moved down to the grid is never larger than the true sum,
and never smaller by more than k steps: `Sums.error_s` is that bound, and the caller refines the grid until
it is small enough.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.fft

from ensembles.summaries.bins import bin_edges_s


@dataclass(frozen=True, eq=False)
class Pieces:
    """A distribution of durations as pieces of even density, rising and apart.

    Attributes
    ----------
    low_s, high_s : ndarray of float64, shape (m,)
        Ends of each piece; equal where it is a single value.
    probability : ndarray of float64, shape (m,)
        Adds up to 1.
    """

    low_s: np.ndarray
    high_s: np.ndarray
    probability: np.ndarray

    @classmethod
    def from_counts(cls, counts: np.ndarray, min_s: float, max_s: float) -> Pieces:
        """The distribution that counts under the bin law stand for; no calls beyond the extremes.

        Parameters
        ----------
        counts : ndarray of integers, shape (BIN_COUNT,)
        min_s, max_s : float
            Shortest and longest call.
        """
        used = np.flatnonzero(counts)
        edges_s = bin_edges_s()
        return cls(
            low_s=np.clip(edges_s[used], min_s, max_s),
            high_s=np.clip(edges_s[used + 1] - 1e-9, min_s, max_s),
            probability=counts[used] / counts.sum(),
        )

    def scaled(self, factor: float) -> Pieces:
        """The distribution of the durations times a factor."""
        return Pieces(self.low_s * factor, self.high_s * factor, self.probability)

    @property
    def mean_s(self) -> float:
        """Mean duration, seconds."""
        return float(self.probability @ (self.low_s + self.high_s)) / 2


def on_grid(pieces: Pieces, step_s: float, size: int) -> np.ndarray:
    """How the probability of each piece lies on the points 0, step, 2 step, ...

    A duration t between two points gives them the shares that keep its mean. For a piece of even density from
    a to b that is the second difference of the integral of its distribution function.

    Parameters
    ----------
    pieces : Pieces
    step_s : float
        Step of the grid, seconds.
    size : int
        Number of points; the last lies at or above the longest duration.

    Returns
    -------
    scipy.sparse.csr_array of float64, shape (m, size)
        Row i adds up to 1.
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
    """Mean of max(T - at, 0) for T spread evenly from low to high: its second difference in `at` is the mean
    of the hat function around a point."""
    width = high - low
    spread = (np.maximum(high - at, 0) ** 2 - np.maximum(low - at, 0) ** 2) / (
        2 * np.where(width > 0, width, 1)
    )
    # Of a piece much narrower than a step the difference of squares keeps too few digits: take its middle.
    return np.where(width > 1e-4, spread, np.maximum((low + high) / 2 - at, 0))


@dataclass(frozen=True, eq=False)
class Sums:
    """Distribution functions of sums of k durations, on a grid.

    Attributes
    ----------
    step_s : float
        Step of the grid, seconds.
    cumulative : ndarray of float64, shape (families, size)
        Probability that the sum is at most 0, step, 2 step, ...; one row for each distribution of durations.
    error_s : float
        No quantile is off by more, seconds.
    """

    step_s: float
    cumulative: np.ndarray
    error_s: float


def convolve_sums(on_points: np.ndarray, step_s: float, k: int) -> Sums:
    """Distribution of the sum of k independent durations of each of some distributions.

    Parameters
    ----------
    on_points : ndarray of float64, shape (families, size)
        Probabilities on a grid that reaches up to the largest sum.
    step_s : float
        Step of the grid, seconds.
    k : int
        Number of durations, at least 1.

    Notes
    -----
    The transform of a k-fold convolution is the k-th power of the transform. The grid is padded so that no
    sum comes round to its beginning. Rounding errors of the transform are some 1e-16 of a probability of 1,
    so that probabilities below about 1e-13 are not to be relied on.
    """
    size = on_points.shape[1]
    length = scipy.fft.next_fast_len(2 * size, real=True)
    density = (
        on_points if k == 1 else scipy.fft.irfft(scipy.fft.rfft(on_points, length) ** k, length)[:, :size]
    )
    cumulative = np.clip(np.cumsum(density, axis=1), 0, 1)
    return Sums(step_s, np.maximum.accumulate(cumulative, axis=1), k * step_s)

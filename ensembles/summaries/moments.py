"""Moments of durations, one set for each function, that can be merged."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ensembles.model.events import Call, Events
from ensembles.passes.summary import Summary
from ensembles.summaries.calltable import SUM_COLUMNS, central_sums, compute_call_sums

LEAST_FOR_SKEWNESS, LEAST_FOR_KURTOSIS = 3, 4
"""Fewest durations that have a skewness and a kurtosis: with fewer, these are the same for all."""


@dataclass(frozen=True)
class CentralMoments:
    """The moments of a set of durations; ``+`` merges two sets.

    References
    ----------
    P. Pébay, "Formulas for Robust, One-Pass Parallel Computation of Covariances and Arbitrary-Order
    Statistical Moments", Sandia National Laboratories, SAND2008-6212, 2008. They contain the formulas of
    T. F. Chan, G. H. Golub and R. J. LeVeque for the second order.
    """

    n: int  # Number of durations
    mean_ns: float  # Mean
    # Sums of the second, third and fourth powers of the deviations from the mean, in ns², ns³ and ns⁴
    sums: tuple[float, float, float]
    # min_ns, max_ns: Least and largest duration
    min_ns: int
    max_ns: int

    @classmethod
    def from_durations(cls, duration_ns: np.ndarray) -> CentralMoments:
        """Compute the moments of durations."""
        values = duration_ns.astype(np.float64)
        mean = float(values.mean())
        values -= mean
        square = values * values
        values *= square
        second, third = float(square.sum()), float(values.sum())
        square *= square
        low, high = int(duration_ns.min()), int(duration_ns.max())
        return cls(len(duration_ns), mean, (second, third, float(square.sum())), low, high)

    def __add__(self, other: CentralMoments) -> CentralMoments:
        """Compute the moments of the union of both sets."""
        a, b = float(self.n), float(other.n)
        n = a + b
        delta = other.mean_ns - self.mean_ns
        (a2, a3, a4), (b2, b3, b4) = self.sums, other.sums
        second = a2 + b2 + delta**2 * a * b / n
        third = a3 + b3 + delta**3 * a * b * (a - b) / n**2 + 3 * delta * (a * b2 - b * a2) / n
        fourth = (
            a4
            + b4
            + delta**4 * a * b * (a * a - a * b + b * b) / n**3
            + 6 * delta**2 * (a * a * b2 + b * b * a2) / n**2
            + 4 * delta * (a * b3 - b * a3) / n
        )
        mean = self.mean_ns + delta * b / n
        low, high = min(self.min_ns, other.min_ns), max(self.max_ns, other.max_ns)
        return CentralMoments(self.n + other.n, mean, (second, third, fourth), low, high)

    @property
    def std_ns(self) -> float:
        """Standard deviation of the sample (divisor n − 1), ns; NaN for fewer than two durations."""
        return float(np.sqrt(max(self.sums[0], 0.0) / (self.n - 1))) if self.n > 1 else float("nan")

    @property
    def skewness(self) -> float:
        """Third standardised moment, ``m3 / m2**1.5`` with divisor n.

        NaN if all durations are equal, or there are fewer than three: that of two is always 0.
        """
        second, third, _ = self.sums
        known = self._varies and self.n >= LEAST_FOR_SKEWNESS
        return float(np.sqrt(self.n) * third / second**1.5) if known else float("nan")

    @property
    def excess_kurtosis(self) -> float:
        """Fourth standardised moment less 3, ``m4 / m2**2 - 3`` with divisor n.

        NaN if all durations are equal, or there are fewer than four: that of two is always -2, of three -1.5.
        """
        second, _, fourth = self.sums
        known = self._varies and self.n >= LEAST_FOR_KURTOSIS
        return self.n * fourth / second**2 - 3.0 if known else float("nan")

    @property
    def _varies(self) -> bool:
        return self.max_ns > self.min_ns and self.sums[0] > 0


class CallMoments(Summary):
    """A mergeable summary: the moments of the durations of each function.

    `moments`: functions that occurred.
    """

    of_all_calls = True
    columns = SUM_COLUMNS
    results = ("moments",)
    added_up = ("moments",)
    result_types = (CentralMoments,)

    def __init__(self) -> None:
        self.moments: dict[Call, CentralMoments] = {}

    def add(self, chunk: Events) -> None:
        """Add events."""
        if not len(chunk):
            return
        found = compute_call_sums(chunk)
        mean_ns = found.time_ns / np.maximum(found.count, 1)
        sums = central_sums(chunk.call, chunk.duration, mean_ns)
        for i in found.present.tolist():
            n, low, high = int(found.count[i]), int(found.shortest_ns[i]), int(found.longest_ns[i])
            second, third, fourth = sums[i].tolist()
            call, more = (
                chunk.calls[i],
                CentralMoments(n, float(mean_ns[i]), (second, third, fourth), low, high),
            )
            self.moments[call] = self.moments[call] + more if call in self.moments else more

"""Durations of an ensemble, counted by bin and by phase.

The size of a sample is the number of distinct bins in each phase, not the number of calls. Statistics take
the same time for a thousand calls and for a billion.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from ensembles.model.errors import EnsioError
from ensembles.model.levels import MOST_DENSE
from ensembles.model.units import HALF_INT64, S_PER_NS
from ensembles.summaries import kernels
from ensembles.summaries.bins import BIN_COUNT, bin_index, bin_low_ns
from ensembles.summaries.keyed_sums import unique_counts
from ensembles.summaries.phasecounts import PhaseCounts

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


def bin_phase_index(group: np.ndarray, groups: int, duration_ns: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Count calls by group and bin."""
    if groups > MOST_DENSE:
        return unique_counts(group * BIN_COUNT + bin_index(duration_ns))
    found = PhaseCounts(np.arange(1, groups))
    kernels.count_groups(group, duration_ns, None, found.cuts, found.arrays)
    counts = found.arrays["counts"].reshape(-1)
    place = np.flatnonzero(counts)
    return place, counts[place]


def numbered(number: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the distinct numbers, increasing, and the index of each entry among them."""
    low, high = (int(number.min()), int(number.max())) if len(number) else (0, 0)
    if high - low > 4 * len(number) + 1024:
        ids, place = np.unique(number, return_inverse=True)
        return ids, place.reshape(-1)
    used = np.bincount(number - low) > 0 if len(number) else np.zeros(0, bool)
    return np.flatnonzero(used) + low, (np.cumsum(used) - 1)[number - low]


LARGEST_S = HALF_INT64 * S_PER_NS
"""Longest duration that is counted, in seconds."""


@dataclass(frozen=True, eq=False)
class CountedDurations:
    """Durations of calls, counted by phase and bin."""

    phase: np.ndarray  # Numbers of the phases, in the order of time; shape (p,)
    n: np.ndarray  # Number of calls of each phase, at least one; shape (p,)
    # min_s, max_s: Exact duration of the shortest and the longest call of each phase, in seconds
    min_s: np.ndarray
    max_s: np.ndarray  # shape (p,)
    begin: np.ndarray  # Index of the first entry of each phase in `bin` and `count`; the last element is m
    bin: np.ndarray  # Bins of the bin law that hold calls of a phase, increasing within it; shape (m,)
    count: np.ndarray  # Number of calls in each; shape (m,)
    resolution_s: float = 0.0  # Step of the clock in seconds, if it is visible; 0.0: finer than the bins
    phases_known: bool = True  # False: phases are unknown, and all calls are in one phase
    # mean_s, variance_s2: Exact mean and variance (divisor n) of each phase; None: known from the bins only
    mean_s: np.ndarray | None = None
    variance_s2: np.ndarray | None = None  # shape (p,)

    @classmethod
    def from_durations(
        cls, durations_s: np.ndarray, phase: np.ndarray | None = None, resolution_s: float = 0.0
    ) -> CountedDurations:
        """Count durations."""
        durations_s = np.asarray(durations_s, dtype=np.float64).reshape(-1)
        try:
            counts, stats = kernels.count_seconds(durations_s, LARGEST_S)
        except ValueError:
            bad = int(np.sum(~((durations_s >= 0) & (durations_s < LARGEST_S))))
            raise EnsioError(
                f"{bad:,} of {len(durations_s):,} durations are negative, not a number or longer than 146 "
                "years: leave them out"
            ) from None
        if phase is None:
            calls = max(len(durations_s), 1)
            beyond = stats[2] / calls
            variance = max(float(stats[3] / calls - beyond**2), 0.0)
            mean = float(stats[4] + beyond)
            return cls.from_counts(counts, stats[0], stats[1], mean, variance, resolution_s)
        number = np.asarray(phase, dtype=np.int64)
        if number.shape != durations_s.shape:
            raise ValueError(f"there are {len(durations_s)} durations and {len(number)} phases")
        ids, group = numbered(number)
        place, count = bin_phase_index(group, len(ids), np.rint(durations_s * 1e9).astype(np.int64))
        low, high = np.full(len(ids), np.inf), np.zeros(len(ids))
        np.minimum.at(low, group, durations_s)
        np.maximum.at(high, group, durations_s)
        n = np.bincount(group, minlength=len(ids))
        mean_s = np.bincount(group, durations_s, len(ids)) / n
        return cls(
            phase=ids,
            n=n,
            min_s=low,
            max_s=high,
            begin=np.searchsorted(place, np.arange(len(ids) + 1) * BIN_COUNT),
            bin=place % BIN_COUNT,
            count=count,
            resolution_s=resolution_s,
            mean_s=mean_s,
            variance_s2=np.bincount(group, (durations_s - mean_s[group]) ** 2, len(ids)) / n,
        )

    @classmethod
    def from_phase_counts(cls, found: PhaseCounts, phase: np.ndarray | None) -> CountedDurations:
        """Make a sample of the counts of one pass over a run."""
        arrays = found.arrays
        n = arrays["counts"].sum(axis=1)
        used = np.flatnonzero(n)
        number = np.zeros(len(n), np.int64) if phase is None else np.asarray(phase, np.int64)
        used = used[np.argsort(number[used], kind="stable")]
        ids, first = np.unique(number[used], return_index=True)
        if not len(used):
            return cls.from_counts(np.zeros(BIN_COUNT, np.int64), 0.0, 0.0)
        counts, sums = (np.add.reduceat(arrays[name][used], first, axis=0) for name in ("counts", "sums"))
        n, (row, bins) = counts.sum(axis=1), np.nonzero(counts)
        mean_ns = sums[:, 0] / n
        return cls(
            phase=ids,
            n=n,
            min_s=np.minimum.reduceat(arrays["least"][used], first) * 1e-9,
            max_s=np.maximum.reduceat(arrays["most"][used], first) * 1e-9,
            begin=np.searchsorted(row, np.arange(len(ids) + 1)),
            bin=bins,
            count=counts[row, bins],
            phases_known=phase is not None,
            mean_s=mean_ns * 1e-9,
            variance_s2=np.maximum(sums[:, 1] / n - mean_ns**2, 0) * 1e-18,
        )

    @classmethod
    def from_counts(
        cls,
        counts: np.ndarray,
        min_s: float,
        max_s: float,
        mean_s: float | None = None,
        variance_s2: float | None = None,
        resolution_s: float = 0.0,
    ) -> CountedDurations:
        """Make a sample of a histogram, without phases."""
        counts = np.asarray(counts, dtype=np.int64)
        if counts.shape != (BIN_COUNT,) or counts.min() < 0:
            raise ValueError(f"a histogram has {BIN_COUNT} counts, none of them negative")
        used, total = np.flatnonzero(counts), int(counts.sum())
        some = total > 0

        def of_phase(value: float | None) -> np.ndarray | None:
            return None if value is None else np.array([value] * some, np.float64)

        return cls(
            phase=np.zeros(int(some), np.int64),
            n=np.array([total] * some, np.int64),
            min_s=np.array([min_s] * some, np.float64),
            max_s=np.array([max_s] * some, np.float64),
            begin=np.array([0, len(used)][: 1 + some], np.int64),
            bin=used,
            count=counts[used],
            resolution_s=resolution_s,
            phases_known=False,
            mean_s=of_phase(mean_s),
            variance_s2=of_phase(variance_s2),
        )

    @cached_property
    def mean_and_variance(self) -> tuple[float, float] | None:
        """Mean (s) and variance (s², divisor n) of all calls; None: known from the bins only."""
        if self.mean_s is None or self.variance_s2 is None or not self.total:
            return None
        weight = self.n / self.total
        mean_s = float(weight @ self.mean_s)
        return mean_s, float(weight @ (self.variance_s2 + (self.mean_s - mean_s) ** 2))

    @property
    def group(self) -> np.ndarray:
        """Place of the phase of each entry of `bin` and `count`: int64, shape (m,)."""
        return np.repeat(np.arange(len(self.n)), np.diff(self.begin))

    @property
    def total(self) -> int:
        """Number of calls."""
        return int(self.n.sum())

    @cached_property
    def counts(self) -> np.ndarray:
        """Number of calls in each bin of the bin law, in all phases: int64, shape (BIN_COUNT,)."""
        counts = np.zeros(BIN_COUNT, np.int64)
        np.add.at(counts, self.bin, self.count)
        return counts

    def quantile_s(self, levels: ArrayLike) -> np.ndarray:
        """Compute quantiles of the durations of all phases together.

        Durations are assumed to be spread evenly over the whole ns of a bin. The error is less than 3.1 %,
        the width of a bin; quantiles are exact below 64 ns, at level 0 and at level 1.
        """
        levels = np.asarray(levels, dtype=np.float64)
        if not self.total:
            return np.full(levels.shape, np.nan)
        used = np.flatnonzero(self.counts)
        before = np.concatenate([[0], np.cumsum(self.counts[used])])
        position = levels * before[-1]
        number = np.clip(np.searchsorted(before, position, side="left") - 1, 0, len(used) - 1)
        edges_ns = np.append(bin_low_ns().astype(np.float64), 2.0**64)
        low, high = edges_ns[used[number]], edges_ns[used[number] + 1] - 1
        part = np.clip((position - before[number]) / self.counts[used[number]], 0, 1)
        quantile: np.ndarray = np.clip((low + part * (high - low)) * 1e-9, self.min_s.min(), self.max_s.max())
        return quantile

    def chosen(self, phases: np.ndarray) -> CountedDurations:
        """Return the sample of some phases."""
        positions = np.arange(len(self.phase))[phases]
        lengths = np.diff(self.begin)[positions]
        entry = np.arange(lengths.sum()) + np.repeat(
            self.begin[positions] - np.concatenate([[0], np.cumsum(lengths)[:-1]])[: len(positions)], lengths
        )
        return replace(
            self,
            phase=self.phase[positions],
            n=self.n[positions],
            min_s=self.min_s[positions],
            max_s=self.max_s[positions],
            begin=np.concatenate([[0], np.cumsum(lengths)]),
            bin=self.bin[entry],
            count=self.count[entry],
            mean_s=None if self.mean_s is None else self.mean_s[positions],
            variance_s2=None if self.variance_s2 is None else self.variance_s2[positions],
        )

    def pooled(self) -> CountedDurations:
        """Return the same calls as one phase."""
        mean_s, variance_s2 = self.mean_and_variance or (None, None)
        if not self.total:
            return replace(self, phases_known=False)
        return CountedDurations.from_counts(
            self.counts, self.min_s.min(), self.max_s.max(), mean_s, variance_s2, self.resolution_s
        )

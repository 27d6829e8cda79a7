"""Ensembles by ordinal: durations of the first, second, ... call on a file."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ensembles import _compiled
from ensembles.model.fields import Fields
from ensembles.model.levels import MOST
from ensembles.structure.ordinals.numbering import RankLevels
from ensembles.structure.ordinals.trend import Trend, fit_trend
from ensembles.summaries.bins import ALL_ORDINALS, BIN_COUNT, UNKNOWN_ORDINAL, bin_low_ns, ordinal_range
from ensembles.summaries.cells import CellSummary
from ensembles.summaries.keyed_sums import unique_counts

APART = 1024
"""Ordinals up to this one have separate ensembles; larger ones have 32 ensembles an octave."""


def ordinal_class_index(ordinal: np.ndarray) -> np.ndarray:
    """Compute the class of each ordinal."""
    ordinal = np.asarray(ordinal, np.int64)
    octave = np.maximum(np.floor(np.log2(np.maximum(ordinal - 1, 1))).astype(np.int64) - 10, 0)
    beyond = APART + 32 * octave + ((ordinal - 1 - (APART << octave)) >> (5 + octave))
    return np.where(ordinal <= APART, ordinal - 1, beyond)


def class_ranges(size: int) -> tuple[np.ndarray, np.ndarray]:
    """Compute the ordinals of the first classes."""
    number = np.arange(size, dtype=np.int64)
    octave = np.maximum(number - APART, 0) // 32
    width = np.where(number < APART, 1, np.int64(32) << octave)
    low = np.where(
        number < APART, number + 1, (APART << octave) + 1 + (np.maximum(number - APART, 0) % 32) * width
    )
    return low, low + width - 1


@dataclass(frozen=True)
class OrdinalTotals(Fields):
    """Statistics of the calls of one ordinal, or of a range of ordinals."""

    # ordinal, to: First and last ordinal; they are equal up to `APART`
    ordinal: int
    to: int
    n: int  # Number of calls
    tasks: int | None  # Number of tasks that made them; None: not known
    # median_s, p90_s, min_s, max_s, mean_s: Median, 90 % quantile, extremes and mean of the durations in
    # seconds
    median_s: float
    p90_s: float
    min_s: float
    max_s: float
    mean_s: float


__all__ = ["APART", "KEPT", "OrdinalEnsembles", "OrdinalTotals", "class_ranges", "ordinal_class_index"]

KEPT = 1 << 22
"""Largest number of calls that are held for exact quantiles. Others come from bins that are 3.1 % wide."""


class OrdinalEnsembles:
    """The durations of calls by ordinal; mergeable.

    `kept`: largest number of calls that are held one by one, for exact quantiles. `n_unknown`: number of
    calls whose ordinal is not known.

    Examples
    --------
    Two ranks make three calls each, the third of which is slow:

    >>> from ensembles.structure.ordinals.ensembles import OrdinalEnsembles
    >>> ensembles = OrdinalEnsembles()
    >>> ordinal, rank = np.array([1, 2, 3, 1, 2, 3]), np.array([0, 0, 0, 1, 1, 1])
    >>> ensembles.add(ordinal, np.array([5, 5, 9, 5, 7, 9]) * 10**9, rank)
    >>> [(totals.ordinal, totals.n, round(totals.median_s, 6)) for totals in ensembles.totals()]
    [(1, 2, 5.0), (2, 2, 6.0), (3, 2, 9.0)]
    >>> ensembles.curve(2)
    (array([5., 7.]), array([0.5, 1. ]))
    """

    results = (
        *("_parts", "_bins", "_low", "_high", "_n", "_sum", "_min", "_max", "_by_rank"),
        *("n_unknown", "_highest"),
    )

    def __init__(self, kept: int = KEPT) -> None:
        self._kept = kept
        self._parts: list[tuple[np.ndarray, np.ndarray]] | None = []
        self._bins: dict[str, np.ndarray] = {"place": np.empty(0, np.int64), "count": np.empty(0, np.int64)}
        self._dense = np.empty((0, BIN_COUNT), np.int64)  # counts that are not in `_bins` yet, by class
        self._low = np.empty(0, np.int64)  # of each class
        self._high = np.empty(0, np.int64)
        self._n = np.empty(0, np.int64)
        self._sum: np.ndarray = np.empty(0, np.float64)
        self._min = np.empty(0, np.int64)
        self._max = np.empty(0, np.int64)
        self._by_rank = RankLevels()
        self.n_unknown = 0
        self._highest = 0

    def add(self, ordinal: np.ndarray, duration_ns: np.ndarray, rank: np.ndarray) -> None:
        """Add calls."""
        if not len(ordinal):
            return
        ordinal = np.ascontiguousarray(ordinal, np.int64)
        duration_ns = np.ascontiguousarray(duration_ns, np.int64)
        self._highest = max(self._highest, int(ordinal.max()))
        self._grow(int(ordinal_class_index(ordinal.max())) + 1)
        if len(self._dense) < len(self._n):
            self._dense = np.pad(self._dense, ((0, len(self._n) - len(self._dense)), (0, 0)))
        row, calls, levels = self._by_rank.rows_for(np.asarray(rank), len(self._n))
        number = np.empty(len(ordinal), np.uint16)
        totals = (self._dense, self._n, self._sum, self._min, self._max)
        logs = np.log(np.maximum(duration_ns, 1))
        _compiled.count_ordinals(ordinal, duration_ns, row, logs, number, *totals, calls, levels)
        self._by_rank.close()
        if self._parts is not None:
            self._parts.append((number, duration_ns))
            self._forget_if_many()

    def merge(self, other: OrdinalEnsembles) -> None:
        """Add the calls of other ensembles."""
        self._grow(len(other._n))
        size = len(other._n)
        self._n[:size] += other._n
        self._sum[:size] += other._sum
        self._min[:size] = np.minimum(self._min[:size], other._min)
        self._max[:size] = np.maximum(self._max[:size], other._max)
        other.condense()
        self._add_bins(other._bins["place"], other._bins["count"])
        self._by_rank.merge(other._by_rank)
        self.n_unknown += other.n_unknown
        self._highest = max(self._highest, other._highest)
        if self._parts is not None and other._parts is not None:
            self._parts += other._parts
            self._forget_if_many()
        else:
            self._parts = None

    def condense(self) -> None:
        """Move the counts to the bins that occur."""
        place = np.flatnonzero(self._dense)
        if len(place):
            self._add_bins(place, self._dense.reshape(-1)[place])
        self._dense = np.empty((0, BIN_COUNT), np.int64)

    @classmethod
    def from_cells(cls, summary: CellSummary, chosen: np.ndarray) -> OrdinalEnsembles:
        """Make ensembles of the first 16 ordinals, and of octaves beyond, from a recorded summary."""
        found = cls()
        found._parts = None
        cells = summary.cells
        known = chosen & ~np.isin(cells["ordinal_class"], (ALL_ORDINALS, UNKNOWN_ORDINAL))
        found.n_unknown = int(cells["count"][chosen & ~known].sum())
        classes = np.unique(cells["ordinal_class"][known])
        ranges = np.array([ordinal_range(int(number)) for number in classes], np.int64).reshape(-1, 2)
        found._low, found._high = ranges[:, 0], ranges[:, 1]
        found._highest = int(ranges[:, 1].max(initial=0))
        size = len(classes)
        group = np.searchsorted(classes, cells["ordinal_class"][known])
        found._n = np.bincount(group, cells["count"][known], minlength=size).astype(np.int64)
        found._sum = np.bincount(group, cells["time_ns"][known].astype(np.float64), minlength=size)
        found._min, found._max = np.full(size, np.iinfo(np.int64).max), np.zeros(size, np.int64)
        np.minimum.at(found._min, group, cells["min_ns"][known])
        np.maximum.at(found._max, group, cells["max_ns"][known])
        cell, number, count = summary.histogram
        mine = known[cell]
        of_cell = np.zeros(len(known), np.int64)
        of_cell[known] = group
        found._add_bins(of_cell[cell[mine]] * BIN_COUNT + number[mine], count[mine])
        return found

    @property
    def n(self) -> int:
        """Number of calls."""
        return int(self._n.sum())

    @property
    def exact(self) -> bool:
        """Whether quantiles are exact, and not those of bins."""
        return self._parts is not None

    def curve(self, ordinal: int) -> tuple[np.ndarray, np.ndarray]:
        """Compute the progress curve F_p(t) of an ordinal.

        It is the fraction of the calls of the ordinal that took no longer than t.

        References
        ----------
        Uselton et al., "Parallel I/O Performance: From Events to Ensembles", IPDPS 2010, Fig. 5a.
        """
        at = np.flatnonzero((self._low <= ordinal) & (ordinal <= self._high) & (self._n > 0))
        if not len(at):
            raise KeyError(f"there is no call of ordinal {ordinal}")
        if self._parts is not None:
            number, duration = self._whole()
            t_s, count = np.unique(duration[number == at[0]] * 1e-9, return_counts=True)
        else:
            t_s, count = self._of_bins(int(at[0]))
        return t_s, np.cumsum(count) / count.sum()

    def totals(self) -> list[OrdinalTotals]:
        """Compute the statistics of the ordinals that occurred, rising."""
        tasks = self._tasks()
        quantiles = self._quantiles((0.5, 0.9))
        return [
            OrdinalTotals(
                ordinal=int(self._low[at]),
                to=min(int(self._high[at]), self._highest),
                n=int(self._n[at]),
                tasks=None if tasks is None else int(tasks[at]),
                median_s=float(quantiles[at, 0]),
                p90_s=float(quantiles[at, 1]),
                min_s=float(self._min[at]) * 1e-9,
                max_s=float(self._max[at]) * 1e-9,
                mean_s=float(self._sum[at] / self._n[at]) * 1e-9,
            )
            for at in np.flatnonzero(self._n).tolist()
        ]

    def trend(self) -> Trend:
        """Test whether calls become slower with their ordinal (`fit_trend`).

        The typical duration of an ordinal is the median over tasks of their geometric mean duration.
        """
        used = np.flatnonzero(self._n)
        if not self._by_rank:
            with np.errstate(divide="ignore"):
                level = np.log(np.maximum(self._quantiles((0.5,))[used, 0], 1e-9))
            return fit_trend(self._low[used], self._high[used], level)
        tasks = self._tasks()
        assert tasks is not None
        # Ordinals that fewer tasks reach are left out: these tasks may differ.
        used = used[tasks[used] >= MOST * tasks[used].max(initial=0)]
        # Ordinals after one that was left out are not its successors.
        used = used[: int(np.argmin(np.append(np.diff(used) == 1, False))) + 1] if len(used) else used
        level = self._by_rank.medians(used)

        def by_rank(first: int, last: int) -> np.ndarray:
            return self._by_rank.columns(used[first : last + 1])

        return fit_trend(self._low[used], self._high[used], level, by_rank)

    def _grow(self, size: int) -> None:
        if size <= len(self._n):
            return
        more = size - len(self._n)
        self._low, self._high = class_ranges(size)
        self._n = np.pad(self._n, (0, more))
        self._sum = np.pad(self._sum, (0, more))
        self._min = np.pad(self._min, (0, more), constant_values=np.iinfo(np.int64).max)
        self._max = np.pad(self._max, (0, more))

    def _add_bins(self, place: np.ndarray, count: np.ndarray) -> None:
        places, counts = np.append(self._bins["place"], place), np.append(self._bins["count"], count)
        self._bins = dict(zip(("place", "count"), unique_counts(places, counts), strict=True))

    def _forget_if_many(self) -> None:
        if self._parts is not None and sum(len(part[0]) for part in self._parts) > self._kept:
            self._parts = None

    def _whole(self) -> tuple[np.ndarray, np.ndarray]:
        if not self._parts:
            return np.empty(0, np.int64), np.empty(0, np.int64)
        if len(self._parts) > 1:
            numbers, durations = zip(*self._parts, strict=True)
            self._parts = [(np.concatenate(numbers), np.concatenate(durations))]
        return self._parts[0]

    def _tasks(self) -> np.ndarray | None:
        """Count the tasks of each class; None: not known."""
        return self._by_rank.tasks(len(self._n)) if len(self._by_rank) else None

    def _of_bins(self, number: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the upper ends, s, of the bins of a class within its extremes, and their counts."""
        self.condense()
        low, high = np.searchsorted(self._bins["place"], [number * BIN_COUNT, (number + 1) * BIN_COUNT])
        bins, count = self._bins["place"][low:high] - number * BIN_COUNT, self._bins["count"][low:high]
        edges = np.append(bin_low_ns().astype(np.float64), 2.0**64)
        return np.minimum(edges[bins + 1] - 1, self._max[number]) * 1e-9, count

    def _quantiles(self, levels: tuple[float, ...]) -> np.ndarray:
        """Compute quantiles of each class in seconds: shape (classes, levels)."""
        found = np.full((len(self._n), len(levels)), np.nan)
        if self._parts is not None:
            number, duration = self._whole()
            order = np.argsort(number, kind="stable")
            parts = np.split(duration[order], np.cumsum(self._n)[:-1]) if len(self._n) else []
            for at in np.flatnonzero(self._n).tolist():
                found[at] = np.quantile(parts[at], levels) * 1e-9
            return found
        for at in np.flatnonzero(self._n).tolist():
            t_s, count = self._of_bins(at)
            reached = np.searchsorted(np.cumsum(count), np.multiply(levels, count.sum()))
            found[at] = t_s[np.minimum(reached, len(t_s) - 1)]
        return found

"""How long the p-th read of a stride takes: the numbers on which strided read-ahead is judged.

All times are per byte and logarithms: differences are factors, and reads of different sizes can be compared.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ensembles.structure.strided_reads import MOST_POSITIONS

HEALTHY_READS = 3
"""The client recognises a stride when it appears for the third time; the reads after that are read ahead."""

LEAST_READS = HEALTHY_READS + 2
"""Of a strided run that can be judged: one read alone cannot get worse."""


@dataclass(frozen=True)
class StridedRuns:
    """Strided runs of one kind (with writes between the reads, or without), one row a run.

    Attributes
    ----------
    rank, run : ndarray of int64, shape (r,)
        The task, and which of its runs on the file it is.
    time : ndarray of float64, shape (r, p)
        Logarithm of the nanoseconds a byte of the read at each position; nan: there is none.
    writing : ndarray of float64, shape (r, p)
        The same of what was written since the read before.
    """

    rank: np.ndarray
    run: np.ndarray
    time: np.ndarray
    writing: np.ndarray

    @classmethod
    def of_rows(cls, rows: np.ndarray) -> StridedRuns:
        """Those of rows of `ensembles.structure.strided_reads.ROW`, sorted by run and position."""
        keys = ("rank", "layer", "file", "run")
        new = np.ones(len(rows), bool)
        new[1:] = np.logical_or.reduce([rows[name][1:] != rows[name][:-1] for name in keys])
        first = np.flatnonzero(new)
        row = np.cumsum(new) - 1
        single = rows["position"] <= MOST_POSITIONS
        width = int(rows["position"][single].max(initial=HEALTHY_READS))
        time, writing = np.full((2, len(first), width), np.nan)
        at = row[single], rows["position"][single].astype(np.int64) - 1
        time[at] = np.log(np.maximum(rows["duration_ns"], 1) / rows["bytes"])[single]
        with np.errstate(divide="ignore", invalid="ignore"):
            rate = np.log(np.maximum(rows["writing_ns"], 1) / rows["written_bytes"])
        writing[at] = np.where(rows["written_bytes"] > 0, rate, np.nan)[single]
        return cls(rows["rank"][first].astype(np.int64), rows["run"][first].astype(np.int64), time, writing)

    def __len__(self) -> int:
        return len(self.rank)

    def some(self, mask: np.ndarray) -> StridedRuns:
        """The runs that a mask chooses."""
        return StridedRuns(self.rank[mask], self.run[mask], self.time[mask], self.writing[mask])

    @property
    def base(self) -> np.ndarray:
        """Of each run the median of the reads before the stride is recognised: shape (r,)."""
        return _median(self.time[:, :HEALTHY_READS])

    @property
    def rise(self) -> np.ndarray:
        """Of each run the median of the reads after that less `base`: shape (r,)."""
        return _median(self.time[:, HEALTHY_READS:]) - self.base

    def levels(self) -> np.ndarray:
        """The typical time of each position, relative to the reads before the stride is recognised, as far as
        half of the runs go: shape (positions,)."""
        relative = self.time - self.base[:, None]
        many = np.count_nonzero(~np.isnan(relative), axis=0) >= 0.5 * len(self)
        width = int(np.argmin(np.append(many[HEALTHY_READS:], False))) + HEALTHY_READS
        return _median(relative[:, :width].T)

    def writing_rise(self) -> float | None:
        """By how much longer writes take after the stride is recognised than before; None: not known."""
        if self.writing.shape[1] <= HEALTHY_READS + 1:
            return None
        # What is written before the read at a position; the write before the fourth is not hit yet.
        before = _median(self.writing[:, 1 : HEALTHY_READS + 1])
        rise = _median(self.writing[:, HEALTHY_READS + 1 :]) - before
        return float(np.nanmedian(rise)) if not np.isnan(rise).all() else None


def judgeable(rows: np.ndarray) -> np.ndarray:
    """Rows of runs that are long enough, and of which two reads before the stride is recognised are known."""
    return rows[rows["reads"] >= LEAST_READS]


def growth(positions: int) -> np.ndarray:
    """What is expected where read-ahead fails: nothing before the stride is recognised, then more and more,
    by ever less: shape (positions,)."""
    after = np.maximum(np.arange(positions) - HEALTHY_READS + 1, 0)
    return np.log2(1.0 + after)


def likeness(levels: np.ndarray) -> np.ndarray:
    """Correlation of each row with `growth`: shape (rows,); 0 where a row is constant or too short.

    Parameters
    ----------
    levels : ndarray of float64, shape (rows, positions)
        nan: there is none.
    """
    known = ~np.isnan(levels)
    count = np.maximum(known.sum(axis=1), 1)
    shape = np.where(known, growth(levels.shape[1]), 0.0)
    shape = np.where(known, shape - (shape.sum(axis=1) / count)[:, None], 0.0)
    values = np.where(known, levels, 0.0)
    values = np.where(known, values - (values.sum(axis=1) / count)[:, None], 0.0)
    norm = np.sqrt((shape**2).sum(axis=1) * (values**2).sum(axis=1))
    return np.where(norm > 1e-12, (shape * values).sum(axis=1) / np.maximum(norm, 1e-12), 0.0)


def p_of_ordinals(groups: list[np.ndarray], seed: int = 0, arrangements: int = 9_999) -> float:
    """How often the positions of the groups in an order by chance would look as much like `growth`.

    Tasks that make their p-th reads at the same time share what befalls them, so the positions are the only
    sample: the typical times of a group's positions are permuted, whatever the number of tasks.

    Parameters
    ----------
    groups : list of ndarray of float64
        `StridedRuns.levels` of each.
    seed : int
        Of the random orders.
    """
    rng = np.random.default_rng(seed)
    seen, chance = 0.0, np.zeros(arrangements)
    for levels in groups:
        shape = growth(len(levels))
        shape = (shape - shape.mean()) / max(float(np.linalg.norm(shape - shape.mean())), 1e-12)
        values = levels - levels.mean()
        values = values / max(float(np.linalg.norm(values)), 1e-12)
        seen += float(values @ shape)
        chance += rng.permuted(np.broadcast_to(values, (arrangements, len(values))), axis=1) @ shape
    return float((1 + np.count_nonzero(chance >= seen - 1e-9)) / (1 + arrangements))


def p_of_tasks(runs: StridedRuns) -> float:
    """The same if the tasks were independent of each other: the correlation of each run with `growth`, of which
    the mean over all orders of n reads is 0 and the variance 1 / (n - 1), added up over the runs.

    References
    ----------
    E. J. G. Pitman, "Significance tests which may be applied to samples from any populations. II. The
    correlation coefficient test", 1937 (moments of r over permutations).
    """
    from scipy.stats import norm

    count = np.count_nonzero(~np.isnan(runs.time), axis=1)
    variance = float(np.sum(1.0 / (count - 1)))
    return float(norm.sf(likeness(runs.time).sum() / np.sqrt(variance)))


def by_task(rank: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Mean of the values of each task: shape (tasks,); nan is left out."""
    known = ~np.isnan(values)
    _, where = np.unique(rank[known], return_inverse=True)
    where = where.reshape(-1)
    return np.bincount(where, values[known]) / np.maximum(np.bincount(where), 1)


def _median(values: np.ndarray) -> np.ndarray:
    """Median of each row without nan; nan where there is nothing."""
    result = np.full(len(values), np.nan)
    known = ~np.isnan(values).all(axis=1)
    result[known] = np.nanmedian(values[known], axis=1)
    return result

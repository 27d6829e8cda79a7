"""How long the p-th read of a stride takes: the numbers on which strided read-ahead is judged.

All times are per byte and logarithms: differences are factors, and reads of different sizes can be compared.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import permutations

import numpy as np

from ensembles.structure.strides.summary import MOST_POSITIONS

HEALTHY_READS = 3
"""The client recognises a stride when it appears for the third time; the reads after that are read ahead."""

LEAST_READS = HEALTHY_READS + 2
"""Of a strided run that can be judged: one read alone cannot get worse."""

_EXACT = 7
"""Of so many positions all orders are looked at, of more `_ORDERS` by chance."""

_ORDERS = 9_999

_MOST_GROUPS = 64
"""Of which the scatter is looked at."""

_OF_MEDIAN = 1.4826
"""The standard deviation of a normal distribution over its median absolute deviation."""


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
    def from_rows(cls, rows: np.ndarray) -> StridedRuns:
        """Those of rows that are `judgeable`."""
        new = _begins(rows)
        first, row = np.flatnonzero(new), np.cumsum(new) - 1
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
        return np.median(self.time[:, :HEALTHY_READS], axis=1)

    @property
    def rise(self) -> np.ndarray:
        """Of each run the median of the reads after that less `base`: shape (r,)."""
        return _median(self.time[:, HEALTHY_READS:]) - self.base

    @property
    def with_writes(self) -> np.ndarray:
        """Whether writes mostly come before the read at each position, in its run: bool, shape (p,)."""
        mostly = 2 * np.count_nonzero(~np.isnan(self.writing), axis=0) > len(self)
        mostly[:1] = False  # what was written before the first read belongs to what was before the run
        return mostly

    def levels(self) -> np.ndarray:
        """The typical time of each position, relative to the reads before the stride is recognised, as far as
        half of the runs go: shape (positions,)."""
        # Not `base`: one of three reads is its own median, which would hide that positions differ.
        relative = self.time - self.time[:, :HEALTHY_READS].mean(axis=1)[:, None]
        many = np.count_nonzero(~np.isnan(relative), axis=0) >= 0.5 * len(self)
        width = int(np.argmin(np.append(many[HEALTHY_READS:], False))) + HEALTHY_READS
        return _median(relative[:, :width].T)

    def scatter(self) -> tuple[float, float]:
        """By how much the typical times of successive reads, and of what is written between them, differ by
        chance: standard deviations, of the groups together. They are made from the median of the absolute
        differences, so that a few jumps do not count; 0 where there are none."""
        steps: tuple[list[np.ndarray], list[np.ndarray]] = ([], [])
        for number in np.unique(self.run)[:_MOST_GROUPS]:
            group = self.some(self.run == number)
            typical = _median(group.writing[:, 1:].T)
            for found, levels in zip(steps, (group.levels()[1:], typical[~np.isnan(typical)]), strict=True):
                found.append(np.abs(np.diff(levels)))
        reads, writes = (np.concatenate([*found, np.empty(0)]) for found in steps)
        return _of_median(reads), _of_median(writes)

    def writing_rise(self) -> float | None:
        """By how much longer writes take after the stride is recognised than before; None: not known."""
        if self.writing.shape[1] <= HEALTHY_READS + 1:
            return None
        # What is written before the read at a position; the write before the fourth is not hit yet.
        before = _median(self.writing[:, 1 : HEALTHY_READS + 1])
        rise = _median(self.writing[:, HEALTHY_READS + 1 :]) - before
        return float(np.nanmedian(rise)) if not np.isnan(rise).all() else None


def judgeable(rows: np.ndarray) -> np.ndarray:
    """Rows of runs that are long enough, and of which all reads are known from the first on."""
    first = _begins(rows)
    whole = (rows["position"][first] == 1) & (rows["reads"][first] >= LEAST_READS)
    return rows[whole[np.cumsum(first) - 1]] if len(rows) else rows


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


def p_of_ordinals(groups: list[np.ndarray], plain: np.ndarray, seed: int = 0) -> float:
    """How often the positions of the groups in an order by chance would look as much like `growth`.

    Tasks that make their p-th reads at the same time share what befalls them, so the positions are the only
    sample: the typical times of a group's positions are permuted, whatever the number of tasks. Where there
    are reads without writes between, those after the stride is recognised are among them, and should look
    like reads before that.

    Parameters
    ----------
    groups : list of ndarray of float64
        `StridedRuns.levels` of each.
    plain : ndarray of float64
        The levels of the reads without writes between; empty: there are none.
    seed : int
        Of the random orders, where there are too many to look at all.
    """
    rng = np.random.default_rng(seed)
    seen, chance, exact = 0.0, np.zeros(1), False
    for levels in groups:
        more = plain[HEALTHY_READS:]
        shape = np.concatenate([growth(len(levels)), np.zeros(len(more))])
        shape = (shape - shape.mean()) / max(float(np.linalg.norm(shape - shape.mean())), 1e-12)
        values = np.concatenate([levels, more])
        values = values - values.mean()
        values = values / max(float(np.linalg.norm(values)), 1e-12)
        exact = len(groups) == 1 and len(values) <= _EXACT
        if exact:
            orders = np.array(list(permutations(values.tolist())))
        else:
            orders = rng.permuted(np.broadcast_to(values, (_ORDERS, len(values))), axis=1)
        seen += float(values @ shape)
        chance = chance + orders @ shape
    alike = np.count_nonzero(chance >= seen - 1e-9)
    return float(alike / len(chance)) if exact else float((1 + alike) / (1 + len(chance)))


def p_of_tasks(runs: StridedRuns) -> float:
    """The same if the tasks were independent of each other: the correlation of each run with `growth`, of
    which the mean over all orders of n reads is 0 and the variance 1 / (n - 1), added up over the runs.

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


def _begins(rows: np.ndarray) -> np.ndarray:
    """Whether each row is the first of its run: bool, shape (n,)."""
    new = np.ones(len(rows), bool)
    keys = ("rank", "layer", "file", "run")
    new[1:] = np.logical_or.reduce([rows[name][1:] != rows[name][:-1] for name in keys])
    return new


def _of_median(differences: np.ndarray) -> float:
    return float(_OF_MEDIAN * np.median(differences) / np.sqrt(2)) if len(differences) else 0.0


def _median(values: np.ndarray) -> np.ndarray:
    """Median of each row without nan; nan where there is nothing."""
    result = np.full(len(values), np.nan)
    known = ~np.isnan(values).all(axis=1)
    result[known] = np.nanmedian(values[known], axis=1)
    return result

"""Duration of the p-th read of a stride: data of rule ``strided-readahead``.

All times are logarithms of times per byte. Differences are factors, and reads of different sizes compare.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import permutations

import numpy as np

from ensembles.structure.strides import MOST_POSITIONS

HEALTHY_READS = 3
"""The client recognises a stride when it appears for the third time; the reads after that are read ahead."""

LEAST_READS = HEALTHY_READS + 2
"""Of a strided run that can be judged: one read alone cannot get worse."""

_EXACT = 7
"""Largest number of positions whose orders are enumerated; of more, `_ORDERS` random orders are drawn."""

_ORDERS = 9_999

MOST_GROUPS = 64
"""Largest number of groups whose scatter is computed, or whose positions are permuted."""

_OF_MEDIAN = 1.4826
"""Ratio of the standard deviation to the median absolute deviation of a normal distribution."""


@dataclass(frozen=True)
class StridedRuns:
    """Strided runs with, or without, writes between their reads; one row a run."""

    # rank, run: int64, shape (r,): The task, and the index of the run among those of its file
    rank: np.ndarray
    run: np.ndarray
    # float64, shape (r, p): Logarithm of ns per byte of the read at each position; NaN: there is no read
    time: np.ndarray
    writing: np.ndarray  # float64, shape (r, p): The same of the writes since the read before

    @classmethod
    def from_rows(cls, rows: np.ndarray) -> StridedRuns:
        """Make runs from rows that `judgeable` returned."""
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
        """Select runs by a mask."""
        return StridedRuns(self.rank[mask], self.run[mask], self.time[mask], self.writing[mask])

    @property
    def base(self) -> np.ndarray:
        """Median of the reads before the stride is recognised, of each run: shape (r,)."""
        base: np.ndarray = np.median(self.time[:, :HEALTHY_READS], axis=1)
        return base

    @property
    def rise(self) -> np.ndarray:
        """Median of the later reads minus `base`, of each run: shape (r,)."""
        rise: np.ndarray = _median(self.time[:, HEALTHY_READS:]) - self.base
        return rise

    @property
    def with_writes(self) -> np.ndarray:
        """Whether writes come before the read at each position, in most runs.

        The shape is (p,).
        """
        mostly: np.ndarray = 2 * np.count_nonzero(~np.isnan(self.writing), axis=0) > len(self)
        mostly[:1] = False  # writes before the first read are not part of the run
        return mostly

    def levels(self, quantile: float = 0.5) -> np.ndarray:
        """Compute the typical time of each position that at least half of the runs reach."""
        # Not `base`: the median of three reads is one of them, which would hide differences of positions.
        relative = self.time - self.time[:, :HEALTHY_READS].mean(axis=1)[:, None]
        many = np.count_nonzero(~np.isnan(relative), axis=0) >= 0.5 * len(self)
        width = int(np.argmin(np.append(many[HEALTHY_READS:], False))) + HEALTHY_READS
        return _quantile(relative[:, :width].T, quantile)

    def scatter(self) -> tuple[float, float]:
        """Estimate the random variation of successive reads, and of writes between."""
        steps: tuple[list[np.ndarray], list[np.ndarray]] = ([], [])
        for number in np.unique(self.run)[:MOST_GROUPS]:
            group = self.some(self.run == number)
            typical = _median(group.writing[:, 1:].T)
            for found, levels in zip(steps, (group.levels()[1:], typical[~np.isnan(typical)]), strict=True):
                found.append(np.abs(np.diff(levels)))
        reads, writes = (np.concatenate([*found, np.empty(0)]) for found in steps)
        return _of_median(reads), _of_median(writes)

    def writing_rise(self) -> float | None:
        """Compute the rise of write times after the stride is recognised.

        None: not known.
        """
        if self.writing.shape[1] <= HEALTHY_READS + 1:
            return None
        # Writes before the read at a position; the write before the fourth read is not affected yet.
        before = _median(self.writing[:, 1 : HEALTHY_READS + 1])
        rise = _median(self.writing[:, HEALTHY_READS + 1 :]) - before
        return float(np.nanmedian(rise)) if not np.isnan(rise).all() else None


def judgeable(rows: np.ndarray) -> np.ndarray:
    """Select the rows of runs that are long enough and whose first read is known."""
    first = _begins(rows)
    whole = (rows["position"][first] == 1) & (rows["reads"][first] >= LEAST_READS)
    return rows[whole[np.cumsum(first) - 1]] if len(rows) else rows


def growth(positions: int) -> np.ndarray:
    """Compute the expected shape of a failing read-ahead: shape (positions,).

    It is 0 before the stride is recognised, and then rises as a logarithm.
    """
    after = np.maximum(np.arange(positions) - HEALTHY_READS + 1, 0)
    return np.log2(1.0 + after)


def likeness(levels: np.ndarray) -> np.ndarray:
    """Compute the correlation of each row with `growth`.

    Examples
    --------
    >>> from ensembles.diagnosis.rules.strided_readahead.profile import growth, likeness
    >>> likeness(np.array([growth(8), -growth(8), np.ones(8)])).round(6) + 0.0
    array([ 1., -1.,  0.])
    """
    known = ~np.isnan(levels)
    count = np.maximum(known.sum(axis=1), 1)
    shape = np.where(known, growth(levels.shape[1]), 0.0)
    shape = np.where(known, shape - (shape.sum(axis=1) / count)[:, None], 0.0)
    values = np.where(known, levels, 0.0)
    values = np.where(known, values - (values.sum(axis=1) / count)[:, None], 0.0)
    norm = np.sqrt((shape**2).sum(axis=1) * (values**2).sum(axis=1))
    return np.where(norm > 1e-12, (shape * values).sum(axis=1) / np.maximum(norm, 1e-12), 0.0)


def p_of_ordinals(groups: list[np.ndarray], plain: np.ndarray) -> float:
    """Compute the p-value of the likeness to `growth`, by permutation of positions.

    Tasks that make their p-th reads at the same time share disturbances, so that the positions are the only
    sample: the typical times of a group's positions are permuted, whatever the number of tasks. Reads without
    writes between them, after the stride is recognised, are permuted with them: under a failing read-ahead
    they look like reads before it.
    """
    rng = np.random.default_rng(0)
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
    """Compute the p-value of the likeness to `growth`, assuming independent tasks.

    The statistic is the sum over runs of the correlation with `growth`. Over all orders of n reads, the
    correlation has mean 0 and variance 1 / (n - 1).

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
    """Compute the mean of the values of each task: shape (tasks,); NaN is left out."""
    known = ~np.isnan(values)
    _, where = np.unique(rank[known], return_inverse=True)
    where = where.reshape(-1)
    return np.bincount(where, values[known]) / np.maximum(np.bincount(where), 1)


def _begins(rows: np.ndarray) -> np.ndarray:
    """Compute whether each row is the first of its run: bool, shape (n,)."""
    new = np.ones(len(rows), bool)
    keys = ("rank", "layer", "file", "run")
    new[1:] = np.logical_or.reduce([rows[name][1:] != rows[name][:-1] for name in keys])
    return new


def _of_median(differences: np.ndarray) -> float:
    return float(_OF_MEDIAN * np.median(differences) / np.sqrt(2)) if len(differences) else 0.0


def _median(values: np.ndarray) -> np.ndarray:
    """Compute the median of each row without NaN; NaN for rows without values."""
    return _quantile(values, 0.5)


def _quantile(values: np.ndarray, quantile: float) -> np.ndarray:
    """Compute a quantile of each row without NaN; NaN for rows without values."""
    result = np.full(len(values), np.nan)
    known = ~np.isnan(values).all(axis=1)
    result[known] = np.nanquantile(values[known], quantile, axis=1)
    return result

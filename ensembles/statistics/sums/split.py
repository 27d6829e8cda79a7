"""Splitting: predict the time of k calls before a barrier from single calls.

One call of a task that moves S bytes is replaced by k calls of S/k bytes, followed by the barrier. Each of
the k calls is assumed to last a k-th of a whole call. By the law of large numbers the sum of the k varies
less as k grows, and the slowest of N tasks approaches the mean.

Calls of one phase and of one task are correlated, and the common part does not average out. The correlation
is measured (`ensembles.statistics.resampling.dependence`) and modelled by a Gaussian copula with two factors,
one that all tasks of a phase share and one that the k calls of a task share:

    F_k(t | p) = E_r[ G_k(t | p, r) ],    F_N,k(t) = E_p[ F_k(t | p)^N ]

where G_k is the k-fold convolution of the distribution of a call given both factors.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr, ndtri, stdtr

from ensembles.model.errors import EnsioError
from ensembles.model.units import seconds_text
from ensembles.statistics.resampling.dependence import INDEPENDENT, Dependence
from ensembles.statistics.samples.counted_durations import CountedDurations
from ensembles.statistics.sums.convolution import Pieces, convolve_sums, on_grid


@dataclass(frozen=True)
class SplitTime:
    """Time of the slowest of N tasks that make `calls` calls each before the barrier.

    Attributes
    ----------
    calls : int
        Number k of calls.
    median_s, low_s, high_s : float
        Median and central interval of the time until the last task is done, in seconds.
    mean_s : float
        Mean over many phases, in seconds.
    speedup : float
        Mean for one call over this mean.
    independent_speedup : float
        Speedup if calls were independent, an upper bound.
    spread : float
        Coefficient of variation of a single task's sum.
    error_s : float
        Largest error of the times by the grid, in seconds.
    """

    calls: int
    median_s: float
    low_s: float
    high_s: float
    mean_s: float
    speedup: float
    independent_speedup: float
    spread: float
    error_s: float


@dataclass(frozen=True)
class Split:
    """Predicted gain by splitting calls.

    Attributes
    ----------
    tasks : int
        Number N of tasks.
    n : int
        Number of calls from which it is predicted.
    level : float
        Probability of the intervals.
    splits : tuple of SplitTime
        One for each k.
    dependence : Dependence
        Correlations that were assumed.
    notes : tuple of str
        Caveats, one sentence each.
    refused : str or None
        Reason of a refusal; then `splits` is empty.
    """

    tasks: int
    n: int
    level: float
    splits: tuple[SplitTime, ...]
    dependence: Dependence
    notes: tuple[str, ...]
    refused: str | None = None

    def __str__(self) -> str:
        return self.text()

    def text(self, per: str = "") -> str:
        """Return a table.

        Parameters
        ----------
        per : str
            Appended to the units of time, such as ``/MiB``.

        Returns
        -------
        str
        """
        if self.refused:
            return f"no prediction: {self.refused}"
        from tabulate import tabulate

        def told(seconds: float) -> str:
            return seconds_text(seconds) + per

        rows = [
            (
                one.calls,
                told(one.median_s),
                f"{told(one.low_s)} – {told(one.high_s)}",
                told(one.mean_s),
                f"{one.speedup:.2f}",
                f"{one.independent_speedup:.2f}",
                f"{one.spread:.2f}",
            )
            for one in self.splits
        ]
        interval = f"{self.level * 100:g} % interval"
        head = ("calls", "median", interval, "mean", "speedup", "upper bound", "spread")
        lags = self.dependence.lags
        by_phase = self.dependence.of_phase
        alike = f"{by_phase:.2f} by phase, {lags[0]:.2f} by task" if len(lags) else "unknown"
        return "\n".join(
            [
                f"The slowest of {self.tasks:,} tasks, if each of {self.n:,} calls is split into smaller "
                "ones:",
                "",
                tabulate(rows, head, stralign="right", disable_numparse=True),
                "",
                "upper bound: speedup if calls were independent; spread: coefficient of variation of the",
                f"time of one task. Correlation of calls: {alike}.",
            ]
        )

    def to_json(self) -> dict[str, object]:
        """Return the object that ``ensio split --json`` prints."""
        return {
            "tasks": self.tasks,
            "n": self.n,
            "level": self.level,
            "splits": [vars(split) for split in self.splits],
            "dependence": {
                "phase": self.dependence.phase,
                "task": float(self.dependence.lags[0]) if len(self.dependence.lags) else None,
            },
            "notes": list(self.notes),
            "refused": self.refused,
        }


_FACTOR = np.linspace(-4.5, 4.5, 37)
_FIRST_GRID, _LAST_GRID = 1 << 12, 1 << 17
_RELATIVE_ERROR = 0.01
_NO_CORRELATION = 1e-6


@dataclass(frozen=True)
class _Slowest:
    """The slowest of N tasks: quantiles, mean, coefficient of variation of one sum, and error of the grid."""

    low_s: float
    median_s: float
    high_s: float
    mean_s: float
    spread: float
    error_s: float


def predict_split(
    sample: CountedDurations,
    calls: Sequence[int] = (1, 2, 4, 8),
    tasks: int = 1,
    dependence: Dependence | None = None,
    level: float = 0.9,
) -> Split:
    """Predict the time of a phase in which every task makes k calls instead of one.

    Parameters
    ----------
    sample : CountedDurations
        Durations of whole calls.
    calls : sequence of int
        Numbers k of calls to predict for.
    tasks : int
        Number N of tasks that wait for each other.
    dependence : Dependence, optional
        Measured correlations. None: unknown; calls are then assumed to be independent, and a note says so.
    level : float
        Probability of the central intervals, between 0 and 1.

    Returns
    -------
    Split

    Raises
    ------
    EnsioError
        A number of calls or tasks, or the level, is out of range.

    References
    ----------
    A. Uselton et al., "Parallel I/O performance: From events to ensembles", IPDPS 2010.

    R. B. Nelsen, An Introduction to Copulas, 2006.

    Examples
    --------
    Independent exponential durations: the slowest of 64 gains most.

    >>> sample = CountedDurations.from_durations(np.random.default_rng(1).exponential(1.0, 20_000))
    >>> split = predict_split(sample, calls=[1, 4, 16], tasks=64)
    >>> [round(one.speedup, 1) for one in split.splits]
    [1.0, 1.9, 2.8]
    """
    if tasks < 1 or not calls or min(calls) < 1 or not 0 < level < 1:
        raise EnsioError("a split needs at least one task, one call per task, and a level between 0 and 1")
    known = INDEPENDENT if dependence is None else dependence
    refused = _refusal(sample)
    if refused:
        return Split(tasks, sample.total, level, (), known, (), refused)
    marginal = Pieces.from_counts(sample.counts, float(sample.min_s.min()), float(sample.max_s.max()))
    levels = ((1 - level) / 2, 0.5, (1 + level) / 2)
    one = _slowest(marginal, 1, tasks, known, levels)
    one_alone = _slowest(marginal, 1, tasks, INDEPENDENT, levels)
    splits = []
    for k in calls:
        found = one if k == 1 else _slowest(marginal, k, tasks, known, levels)
        alone = one_alone if k == 1 else _slowest(marginal, k, tasks, INDEPENDENT, levels)
        speedup, independent = _ratio(one, found), _ratio(one_alone, alone)
        splits.append(SplitTime(calls=k, speedup=speedup, independent_speedup=independent, **vars(found)))
    return Split(tasks, sample.total, level, tuple(splits), known, _notes(sample, tasks, dependence))


def _ratio(one: _Slowest, found: _Slowest) -> float:
    return one.mean_s / found.mean_s if found.mean_s else 1.0


def _refusal(sample: CountedDurations) -> str | None:
    if sample.total < 30:
        return f"{sample.total} calls are too few for the distribution of a sum: at least 30 are needed"
    return None


def _notes(sample: CountedDurations, tasks: int, dependence: Dependence | None) -> tuple[str, ...]:
    notes = []
    if dependence is None or not len(dependence.lags):
        notes.append(
            "the correlation of consecutive calls of a task is unknown: they are assumed to be independent, "
            "so the speedup is an upper bound"
        )
    if dependence is None or dependence.phase is None:
        notes.append(
            "the correlation of calls by phase is unknown: the prediction holds for phases like the measured "
            "ones"
        )
    if tasks > sample.total:
        notes.append(
            f"{tasks:,} tasks reach beyond the {sample.total:,} measured calls: the longest of these "
            "represents all longer ones, so that times are lower bounds (see ensio tail)"
        )
    return tuple(notes)


def _slowest(
    marginal: Pieces, k: int, tasks: int, dependence: Dependence, levels: tuple[float, float, float]
) -> _Slowest:
    """Compute the slowest of the tasks on a grid that is fine enough."""
    calls = marginal.scaled(1 / k)
    size = _FIRST_GRID
    while True:
        step_s = float(calls.high_s[-1]) * k / (size - k - 2) or 1e-12
        found = _on_grid(calls, k, tasks, dependence, levels, step_s, size)
        if found.error_s <= _RELATIVE_ERROR * found.low_s or size >= _LAST_GRID:
            return found
        size *= 4


def _on_grid(
    calls: Pieces,
    k: int,
    tasks: int,
    dependence: Dependence,
    levels: tuple[float, float, float],
    step_s: float,
    size: int,
) -> _Slowest:
    of_phase, of_task = dependence.of_phase, dependence.of_task(k)
    shared = of_phase + (1 - of_phase) * max(of_task, 0.0)
    shift = np.sqrt(shared) * _FACTOR if shared > _NO_CORRELATION else np.zeros(1)
    conditional = _given(calls.probability, shift, shared)
    sums = convolve_sums(np.asarray(conditional @ on_grid(calls, step_s, size)), step_s, k)
    grid_s = step_s * np.arange(size)
    one = (_normal_weights() if len(shift) > 1 else np.ones(1)) @ sums.cumulative
    mean_s, square = _mean(one, grid_s), _mean(one, grid_s**2)
    slowest = _slowest_cumulative(sums.cumulative, tasks, of_phase / max(shared, _NO_CORRELATION), dependence)
    low, median, high = (_quantile(slowest, step_s, level) for level in levels)
    return _Slowest(
        low_s=low,
        median_s=median,
        high_s=high,
        mean_s=_mean(slowest, grid_s),
        spread=float(np.sqrt(max(square - mean_s**2, 0.0)) / mean_s) if mean_s else 0.0,
        error_s=sums.error_s,
    )


def _mean(cumulative: np.ndarray, values: np.ndarray) -> float:
    return float(np.diff(cumulative, prepend=0.0) @ values)


def _slowest_cumulative(
    cumulative: np.ndarray, tasks: int, share: float, dependence: Dependence
) -> np.ndarray:
    """Return the distribution function of the slowest of N tasks.

    It is the expectation over the phase's factor of (expectation over the task's factor of F)^N.

    `share` is the phase's part of the common variance of calls.
    """
    slowest: np.ndarray
    if len(cumulative) == 1:
        slowest = cumulative[0] ** tasks
    elif share <= 0:
        slowest = (_normal_weights() @ cumulative) ** tasks
    elif share >= 1 - 1e-9:
        slowest = _phase_weights(dependence.phases) @ cumulative**tasks
    else:
        kernel = _cells(ndtr, (_FACTOR[None, :] - np.sqrt(share) * _FACTOR[:, None]) / np.sqrt(1 - share))
        slowest = _phase_weights(dependence.phases) @ (kernel @ cumulative) ** tasks
    return slowest


def _phase_weights(phases: int) -> np.ndarray:
    """Return the probabilities of a new phase's factor, estimated from p phases.

    They follow Student's t with p - 1 degrees of freedom, wider by sqrt(1 + 1/p): the predictive distribution
    of one more normal value.
    """
    wider = np.sqrt(1 + 1 / phases)
    weights: np.ndarray = _cells(lambda x: stdtr(phases - 1, x / wider), _FACTOR[None, :])[0]
    return weights


def _normal_weights() -> np.ndarray:
    weights: np.ndarray = _cells(ndtr, _FACTOR[None, :])[0]
    return weights


def _cells(distribution: Callable[[np.ndarray], np.ndarray], position: np.ndarray) -> np.ndarray:
    """Return the probability of the cell around each point of a row of points; rows add up to 1."""
    middle = (position[:, 1:] + position[:, :-1]) / 2
    ends = [np.zeros((len(position), 1)), distribution(middle), np.ones((len(position), 1))]
    return np.diff(np.concatenate(ends, axis=1), axis=1)


def _given(probability: np.ndarray, shift: np.ndarray, shared: float) -> np.ndarray:
    """Return the probability of each interval, given the common factors.

    Returns
    -------
    ndarray of float64, shape (len(shift), m)
    """
    if len(shift) == 1:
        return probability[None, :]
    cut = ndtri(np.clip(np.cumsum(probability)[:-1], 1e-300, 1 - 1e-16))
    below = ndtr((cut[None, :] - shift[:, None]) / np.sqrt(1 - shared))
    ones = np.ones((len(shift), 1))
    return np.diff(np.concatenate([0 * ones, below, ones], axis=1), axis=1)


def _quantile(cumulative: np.ndarray, step_s: float, level: float) -> float:
    """Return where a distribution function on the grid reaches a level."""
    after = min(int(np.searchsorted(cumulative, level)), len(cumulative) - 1)
    if after == 0:
        return 0.0
    rise = cumulative[after] - cumulative[after - 1]
    return step_s * (after - 1 + (float((level - cumulative[after - 1]) / rise) if rise > 0 else 1.0))

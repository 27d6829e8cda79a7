"""Predict the maximum of N calls by the method that the data allow."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from ensembles.model.errors import EnsioError
from ensembles.model.units import count_text, seconds_text
from ensembles.statistics.extremes.exchangeability import (
    CallAttributes,
    Exchangeability,
    Factor,
    check_exchangeability,
)
from ensembles.statistics.extremes.order_statistics import (
    Equation1,
    UpperOrderStatistics,
    compute_equation1,
    max_tasks,
)
from ensembles.statistics.extremes.pareto_tail import fit_pareto_tail
from ensembles.statistics.extremes.phase_maxima import PhaseMaxima, phase_maxima
from ensembles.statistics.extremes.stationarity import time_blocks, unsettled
from ensembles.statistics.samples.counted_durations import CountedDurations
from ensembles.summaries.bins import bin_edges_s

METHODS = {
    "within-reach": "order statistics of the calls, for any distribution",
    "beyond": "a tail fitted above the last mode, with its uncertainty",
    "phases": "the slowest calls of past phases",
    "phases-carried": "the slowest calls of past phases, extrapolated along the tails of their phases",
    "blocks": "the slowest calls of blocks of time, because phases are unknown or have a single call",
}
"""Methods of a prediction: what it is based on."""


@dataclass(frozen=True)
class Tail:
    """Prediction of the slowest of N new calls.

    Attributes
    ----------
    n, tasks : int
        Number of calls of the ensemble, and number N of new calls, one for each task.
    median_s, mean_s, low_s, high_s : float or None
        Median, mean and ends of the prediction interval, in seconds. The interval includes the uncertainty of
        the fitted distribution. None: refused; a mean may also be infinite for all that the data show.
    level : float
        Probability of the interval.
    method : str
        Method, a key of `METHODS`; ``refused``.
    observed_max_s : float or None
        The slowest call of the ensemble, in seconds.
    exchangeable : bool or None
        Whether no test found a dependence on phase, task or time; None: no test was possible.
    broken_by : tuple of Factor
        Factors on which durations depend, the strongest first.
    phases : int or None
        Number of phases of the ensemble; None: unknown.
    effective_phases : float or None
        Effective number of independent phases: neighbours in time resemble each other.
    effective_n : float
        Effective sample size: number of independent calls.
    extremal_index : float or None
        One over the mean size of the clusters in time of slow calls; None: times are unknown.
    equation1 : Equation1 or None
        Result of the paper's Equation 1; None: there are no calls.
    refused : str or None
        Reason of a refusal.
    unsettled : str or None
        Reason why the prediction holds for phases from the whole run, but not for the next ones: the run
        drifts, or has just changed. None: there is no sign of that.
    """

    n: int
    tasks: int
    median_s: float | None
    mean_s: float | None
    low_s: float | None
    high_s: float | None
    level: float
    method: str
    observed_max_s: float | None
    exchangeable: bool | None
    broken_by: tuple[Factor, ...]
    phases: int | None
    effective_phases: float | None
    effective_n: float
    extremal_index: float | None
    equation1: Equation1 | None
    refused: str | None
    unsettled: str | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the object that ``ensio tail --json`` prints."""
        found = {field.name: getattr(self, field.name) for field in fields(self)}
        found["equation1"] = None if self.equation1 is None else self.equation1.to_json()
        found["broken_by"] = [
            {"by": one.name, "p_value": one.p_value, "share": one.share, "groups": one.groups}
            for one in self.broken_by
        ]
        return found

    def __str__(self) -> str:
        what = f"the slowest of {count_text(self.tasks, 'call')}"
        if self.refused or self.low_s is None or self.high_s is None or self.median_s is None:
            lines = [f"{what}: no prediction, {self.refused}"]
        else:
            lines = [
                f"{what}: {seconds_text(self.low_s)} to {seconds_text(self.high_s)} with probability "
                f"{100 * self.level:g} %, median {seconds_text(self.median_s)}",
                f"  based on {METHODS[self.method]}",
            ]
            if self.unsettled:
                lines.append(f"  {self.unsettled}")
        if self.equation1 is not None:
            lines.append(
                "  Equation 1 (independent calls of one distribution): "
                f"{seconds_text(self.equation1.low_s)} to {seconds_text(self.equation1.high_s)}"
            )
        return "\n".join(lines)


LARGEST = 1000
"""Number of longest calls whose exact durations are used, if they are known."""

FEWEST_PHASES = 5
FEWEST_EFFECTIVE = 8
"""Least effective number of phases, if there are many phases. Estimates of a smaller number are more often
too high than too low.
"""

FEWEST_CALLS = 20
MOST_STEP = 1024
"""Largest ratio of N to the calls of a phase to which the tail of a phase is extrapolated."""


def predict_maximum(
    sample: CountedDurations,
    tasks: int,
    level: float = 0.9,
    *,
    calls: CallAttributes | None = None,
    seed: int = 0,
) -> Tail:
    """Predict the slowest of ``tasks`` new calls.

    Parameters
    ----------
    sample : CountedDurations
        Calls by phase and bin. Calls of phase -1 are in no phase, and are left out if there are phases.
    tasks : int
        Number N of new calls: all those of a phase, one for each task.
    level : float
        Probability of the prediction interval; the probabilities below and above it are equal.
    calls : CallAttributes, optional
        Attributes of each call. With them, exchangeability is also tested for ranks, nodes, ordinals and
        time, and the exact durations of the longest calls are used.
    seed : int
        Seed of the permutation tests of exchangeability.

    Returns
    -------
    Tail

    Raises
    ------
    EnsioError
        ``tasks`` or ``level`` is out of range.

    Notes
    -----
    Exchangeable calls: order statistics of the calls as far as they reach (`order_statistics.max_tasks`),
    beyond that a tail fitted above the last mode (`pareto_tail`). If phases differ, each phase is one
    observation (`phase_maxima`). Without phases, or with phases of one call, blocks of time replace them.
    docs/reference/methods/tail.md has the calibration.

    Examples
    --------
    >>> sample = CountedDurations.from_durations(np.random.default_rng(1).lognormal(0.0, 0.1, 20_000))
    >>> predict_maximum(sample, tasks=100).method, predict_maximum(sample, tasks=100_000).method
    ('within-reach', 'beyond')
    >>> bool(predict_maximum(sample, tasks=100_000).median_s > sample.max_s.max())
    True
    """
    if isinstance(tasks, bool) or not tasks >= 1 or tasks != int(tasks) or tasks > 2**53:
        raise EnsioError(f"{tasks} tasks have no slowest one: give a whole number from 1 on")
    if not 0 < level < 1:
        raise EnsioError(f"the level {level} is not between 0 and 1: give for example 0.9")
    sample = in_phases(sample)
    if calls is not None and len(calls.durations_s) > sample.total and calls.phase is not None:
        calls = calls.chosen(calls.phase >= 0)
    tested = check_exchangeability(sample, calls, seed)
    return answer(sample, int(tasks), level, tested, calls)


def in_phases(sample: CountedDurations) -> CountedDurations:
    """Return the calls that are in a phase; if none is, all calls as one phase."""
    inside = sample.phase >= 0
    if not sample.phases_known or inside.all():
        return sample
    return sample.chosen(inside) if inside.any() else sample.pooled()


def answer(
    sample: CountedDurations,
    tasks: int,
    level: float,
    tested: Exchangeability,
    calls: CallAttributes | None = None,
) -> Tail:
    """Predict the maximum, with exchangeability already tested.

    Parameters
    ----------
    sample : CountedDurations
        From `in_phases`.
    tasks : int
        Number N of new calls.
    level : float
        Probability of the prediction interval.
    tested : Exchangeability
        Of the same calls.
    calls : CallAttributes, optional
        Attributes of each call.

    Returns
    -------
    Tail
    """
    side = (1.0 - level) / 2.0
    levels = np.array([side, 0.5, 1.0 - side])
    found = _Found(refused=_no_answer(sample))
    if found.refused is None:
        largest_s = None
        if calls is not None and len(calls.durations_s) == sample.total:
            largest_s = _largest(sample, calls.durations_s)
        found = _found(sample, tasks, level, levels, tested, calls, largest_s)
        found = _honest_about_the_clock(found, sample.resolution_s)
    low, median, high = (None if value is None else float(value) for value in found.quantiles_s)
    return Tail(
        n=sample.total,
        tasks=tasks,
        median_s=median,
        mean_s=found.mean_s,
        low_s=low,
        high_s=high,
        level=level,
        method=found.method,
        observed_max_s=float(sample.max_s.max()) if sample.total else None,
        exchangeable=tested.exchangeable,
        broken_by=tested.broken_by,
        phases=len(sample.n) if sample.phases_known else None,
        effective_phases=found.effective,
        effective_n=tested.effective_n,
        extremal_index=tested.extremal_index,
        equation1=compute_equation1(sample, tasks, level) if sample.total else None,
        refused=found.refused,
        unsettled=found.unsettled,
    )


def _largest(sample: CountedDurations, durations_s: np.ndarray) -> np.ndarray:
    """Return the longest calls, without sorting all calls."""
    longer = sample.counts[::-1].cumsum()[::-1]
    enough = np.flatnonzero(longer >= min(LARGEST, sample.total))[-1]
    some = durations_s[durations_s >= bin_edges_s()[enough] * (1 - 1e-9)]
    return np.sort(some)[-LARGEST:]


@dataclass(frozen=True, eq=False)
class _Found:
    quantiles_s: Any = (None, None, None)
    mean_s: float | None = None
    method: str = "refused"
    effective: float | None = None
    refused: str | None = None
    unsettled: str | None = None


def _no_answer(sample: CountedDurations) -> str | None:
    """Return why a sample cannot support any prediction; None: it can."""
    if sample.total == 0:
        return "there are no calls"
    if sample.total < FEWEST_CALLS:
        some = count_text(sample.total, "call")
        return f"{some}: too few for a tail, which needs at least {FEWEST_CALLS}"
    low_s, high_s = float(sample.min_s.min()), float(sample.max_s.max())
    if low_s == high_s:
        return f"all {sample.total:,} calls took {seconds_text(high_s)}, so that there is no tail"
    if sample.resolution_s > 0 and high_s - low_s < 2.5 * sample.resolution_s:
        return (
            f"the step of the clock ({seconds_text(sample.resolution_s)}) is nearly the range of the "
            f"durations ({seconds_text(high_s - low_s)})"
        )
    return None


def _found(
    sample: CountedDurations,
    tasks: int,
    level: float,
    levels: np.ndarray,
    tested: Exchangeability,
    calls: CallAttributes | None,
    largest_s: np.ndarray | None,
) -> _Found:
    if sample.phases_known and len(sample.n) > 1:
        single = np.median(sample.n) < 2
        if single and calls is not None and calls.start_ns is not None:
            return _of_blocks(sample, tasks, levels, calls, "most phases have a single call")
        if single or tested.breaks("phase", "slow calls of a phase") or len(sample.n) * 1.5 > sample.total:
            return _of_phases(sample, tasks, levels)
    elif tested.breaks("time") and calls is not None and calls.start_ns is not None:
        why = "durations change with time and phases are unknown"
        return _of_blocks(sample, tasks, levels, calls, why)
    return _of_exchangeable(sample, tasks, level, levels, largest_s)


def _of_blocks(
    sample: CountedDurations, tasks: int, levels: np.ndarray, calls: CallAttributes, why: str
) -> _Found:
    blocks = time_blocks(calls, tasks, sample.resolution_s)
    if blocks is None:
        most = f"fewer than {sample.total:,} tasks"
        return _Found(refused=f"{why}: give the phases in which tasks act together, or ask for {most}")
    found = _of_phases(blocks, tasks, levels)
    return found if found.refused else replace(found, method="blocks")


def _of_exchangeable(
    sample: CountedDurations, tasks: int, level: float, levels: np.ndarray, largest_s: np.ndarray | None
) -> _Found:
    tail = fit_pareto_tail(sample, largest_s)
    if tasks <= max_tasks(sample.total, level):
        quantiles_s = UpperOrderStatistics.from_sample(sample, largest_s).quantiles_s(tasks, levels)
        return _Found(quantiles_s, tail.mean_s(tasks) if tail else None, "within-reach")
    if tail is None:
        return _Found(
            refused=f"the slowest of the {sample.total:,} calls are too few, or too similar, for a fit of "
            "their tail"
        )
    return _Found(tail.quantiles_s(tasks, levels), tail.mean_s(tasks), "beyond")


def _of_phases(sample: CountedDurations, tasks: int, levels: np.ndarray) -> _Found:
    if len(sample.n) < FEWEST_PHASES:
        return _Found(
            refused=f"phases differ, and {count_text(len(sample.n), 'phase')} are too few to estimate how "
            f"much: at least {FEWEST_PHASES} are needed"
        )
    most = int(sample.n.max())
    if np.median(sample.n) < 2:
        return _Found(
            refused=f"phases differ, and most of the {len(sample.n):,} have a single call, so that they "
            "have no maximum of several"
        )
    if tasks > most * MOST_STEP:
        return _Found(
            refused=f"phases differ, and none has more than {count_text(most, 'call')}, too few to "
            f"extrapolate to {tasks:,}"
        )
    maxima: PhaseMaxima = phase_maxima(sample, tasks)
    if maxima.effective < min(FEWEST_EFFECTIVE, len(sample.n)):
        return _Found(
            effective=maxima.effective,
            refused=f"neighbouring phases are so similar that the effective number of {len(sample.n):,} "
            f"phases is {maxima.effective:.1f}: at least {FEWEST_EFFECTIVE} are needed",
        )
    low, median, high = maxima.quantiles_s(levels)
    mean_s = maxima.mean_s()
    return _Found(
        (low, median, high),
        mean_s if math.isfinite(mean_s) else None,
        "phases-carried" if maxima.carried else "phases",
        maxima.effective,
        unsettled=unsettled(np.median(maxima.log_s, axis=1), maxima.log_median_s),
    )


def _honest_about_the_clock(found: _Found, resolution_s: float) -> _Found:
    """Widen the interval by half a step of the clock on each side, which is the error of a duration."""
    if found.refused is not None or resolution_s <= 0:
        return found
    low, median, high = found.quantiles_s
    if high - low < 1.5 * resolution_s:
        return _Found(
            effective=found.effective,
            refused=f"the prediction ({seconds_text(float(median))}) is uncertain only by the step of the "
            f"clock ({seconds_text(resolution_s)})",
        )
    half = 0.5 * resolution_s
    return replace(found, quantiles_s=(max(low - half, 0.0), median, high + half))

"""The maximum of N calls: choose the method that the data allow, and report which it was."""

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
    "within-reach": "the calls seen, with no assumption on their distribution",
    "beyond": "a tail above the last mode, with its uncertainty",
    "phases": "the slowest calls of the phases seen",
    "phases-carried": "the slowest calls of the phases seen, each carried up the tail of its phase",
    "blocks": "the slowest calls of stretches of time, as phases are not known or have a single call",
}
"""What an answer can stand on."""


@dataclass(frozen=True)
class Tail:
    """The slowest of N calls to come.

    Attributes
    ----------
    n, tasks : int
        Calls that were seen; calls, one a task, of which the slowest is asked for.
    median_s, mean_s, low_s, high_s : float or None
        Of its predictive distribution: the next one lies between low and high with the chance ``level``, what
        the data leave uncertain included. None: refused, or (the mean) not finite as far as the data say.
    level : float
    method : str
        What it stands on, a key of `METHODS`; ``refused``.
    observed_max_s : float or None
        The slowest call seen.
    exchangeable : bool or None
        No test found that it matters which phase, task or time a call belongs to; None: nothing could be
        tested.
    broken_by : tuple of Factor
        What matters, the most first.
    phases : int or None
        Phases that were seen; None: not known.
    effective_phases : float or None
        Independent phases that they are worth, as neighbours in time resemble each other.
    effective_n : float
        Independent calls that the calls are worth.
    extremal_index : float or None
        One over the mean number of slow calls that come together in time; None: times are not known.
    equation1 : Equation1 or None
        The paper's answer; None: there are no calls.
    refused : str or None
        Why there is no answer.
    unsettled : str or None
        Why the answer holds for phases from all over such a run, and not for those that come next: the run
        drifts, or has just changed. None: nothing says so.
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
        """A dict with the names of the attributes, as ``ensio tail --json`` prints it."""
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
            lines = [f"{what}: no answer, {self.refused}"]
        else:
            lines = [
                f"{what}: {seconds_text(self.low_s)} to {seconds_text(self.high_s)} with a chance of "
                f"{100 * self.level:g} %, median {seconds_text(self.median_s)}",
                f"  stands on {METHODS[self.method]}",
            ]
            if self.unsettled:
                lines.append(f"  {self.unsettled}")
        if self.equation1 is not None:
            lines.append(
                f"  Equation 1 (all calls independent and alike): {seconds_text(self.equation1.low_s)} to "
                f"{seconds_text(self.equation1.high_s)}"
            )
        return "\n".join(lines)


LARGEST = 1000
"""Longest calls that are used exactly, where the calls are there."""

FEWEST_PHASES = 5
FEWEST_EFFECTIVE = 8
"""Independent phases that many phases must be worth. An estimate of so few is more often too high than too
low."""

FEWEST_CALLS = 20
MOST_STEP = 1024
"""A phase's tail is carried up to so many times its calls."""


def predict_maximum(
    sample: CountedDurations,
    tasks: int,
    level: float = 0.9,
    *,
    calls: CallAttributes | None = None,
    seed: int = 0,
) -> Tail:
    """The distribution of the slowest of ``tasks`` new calls.

    Parameters
    ----------
    sample : Sample
        Calls by phase and bin. Calls of phase -1 are in none, and are left out where there are phases.
    tasks : int
        Calls of which the slowest is asked for: all those of a phase, one for each task.
    level : float
        Chance with which it shall lie between low and high, as often below as above.
    calls : Calls, optional
        What is known of each call: with it exchangeability is tested along ranks, nodes, ordinals and time,
        and the longest calls are known exactly.
    seed : int
        Of the permutations in tests of exchangeability.

    Raises
    ------
    EnsioError
        ``tasks`` or ``level`` makes no sense.
    """
    if isinstance(tasks, bool) or not tasks >= 1 or tasks != int(tasks) or tasks > 2**53:
        raise EnsioError(f"there is no slowest of {tasks} tasks: give a whole number from 1 on")
    if not 0 < level < 1:
        raise EnsioError(f"a level of {level} is no chance: give one between 0 and 1, as 0.9")
    sample = in_phases(sample)
    if calls is not None and len(calls.durations_s) > sample.total and calls.phase is not None:
        calls = calls.chosen(calls.phase >= 0)
    tested = check_exchangeability(sample, calls, seed)
    return answer(sample, int(tasks), level, tested, calls)


def in_phases(sample: CountedDurations) -> CountedDurations:
    """The calls that are in a phase; all of them, if none is."""
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
    """As `predict_maximum`, when exchangeability has been tested."""
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
    """The longest calls: no more than are needed are sorted."""
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
    """Why a sample says nothing about its slowest call, whatever is asked."""
    if sample.total == 0:
        return "there are no calls"
    if sample.total < FEWEST_CALLS:
        some = count_text(sample.total, "call")
        return f"{some} say too little about slow ones: at least {FEWEST_CALLS} are needed"
    low_s, high_s = float(sample.min_s.min()), float(sample.max_s.max())
    if low_s == high_s:
        return f"all {sample.total:,} calls took {seconds_text(high_s)}, which says nothing about slower ones"
    if sample.resolution_s > 0 and high_s - low_s < 2.5 * sample.resolution_s:
        return (
            f"the clock's step of {seconds_text(sample.resolution_s)} is nearly as long as what durations "
            f"differ by ({seconds_text(high_s - low_s)})"
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
        why = "durations change with time and phases are not known"
        return _of_blocks(sample, tasks, levels, calls, why)
    return _of_exchangeable(sample, tasks, level, levels, largest_s)


def _of_blocks(
    sample: CountedDurations, tasks: int, levels: np.ndarray, calls: CallAttributes, why: str
) -> _Found:
    blocks = time_blocks(calls, tasks, sample.resolution_s)
    if blocks is None:
        most = f"fewer than {sample.total:,} tasks"
        return _Found(refused=f"{why}: tell the phases in which tasks act together, or ask for {most}")
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
            refused=f"the slowest of the {sample.total:,} calls differ too little, or are too few, to say "
            "what a slower one would be"
        )
    return _Found(tail.quantiles_s(tasks, levels), tail.mean_s(tasks), "beyond")


def _of_phases(sample: CountedDurations, tasks: int, levels: np.ndarray) -> _Found:
    if len(sample.n) < FEWEST_PHASES:
        return _Found(
            refused=f"phases differ, and {count_text(len(sample.n), 'phase')} say too little about how much: "
            f"at least {FEWEST_PHASES} are needed"
        )
    most = int(sample.n.max())
    if np.median(sample.n) < 2:
        return _Found(
            refused=f"phases differ, and most of the {len(sample.n):,} have a single call: there is no "
            "slowest of several in them"
        )
    if tasks > most * MOST_STEP:
        return _Found(
            refused=f"phases differ, and none has more than {count_text(most, 'call')}, which says too "
            f"little about {tasks:,}"
        )
    maxima: PhaseMaxima = phase_maxima(sample, tasks)
    if maxima.effective < min(FEWEST_EFFECTIVE, len(sample.n)):
        return _Found(
            effective=maxima.effective,
            refused=f"neighbouring phases resemble each other so much that {len(sample.n):,} are worth "
            f"{maxima.effective:.1f}: at least {FEWEST_EFFECTIVE} independent ones are needed",
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
    """Durations are known to half a step of the clock, and so are the ends of an interval."""
    if found.refused is not None or resolution_s <= 0:
        return found
    low, median, high = found.quantiles_s
    if high - low < 1.5 * resolution_s:
        return _Found(
            effective=found.effective,
            refused=f"the answer ({seconds_text(float(median))}) is known to the clock's step of "
            f"{seconds_text(resolution_s)} only",
        )
    half = 0.5 * resolution_s
    return replace(found, quantiles_s=(max(low - half, 0.0), median, high + half))

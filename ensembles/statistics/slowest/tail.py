"""The slowest of N calls: chooses what the answer stands on, and says which it was."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ensembles.errors import EnsioError
from ensembles.statistics.sample import Sample
from ensembles.statistics.slowest.beyond import beyond
from ensembles.statistics.slowest.blocks_in_time import blocks_in_time
from ensembles.statistics.slowest.equation1 import equation1_of
from ensembles.statistics.slowest.exchangeability import Calls, Exchangeability, exchangeability_of
from ensembles.statistics.slowest.phases_as_sample import PhaseMaxima, phase_maxima
from ensembles.statistics.slowest.settled import unsettled
from ensembles.statistics.slowest.tail_result import Tail
from ensembles.statistics.slowest.within_reach import Longest, reach
from ensembles.summaries.bins import bin_edges_s
from ensembles.units import count_text, seconds_text

LARGEST = 1000
"""Longest calls that are used exactly, where the calls are there."""

FEWEST_PHASES = 5
FEWEST_EFFECTIVE = 8
"""Independent phases that many phases must be worth. An estimate of so few is more often too high than too
low."""

FEWEST_CALLS = 20
MOST_STEP = 1024
"""A phase's tail is carried up to so many times its calls."""


def slowest_of(
    sample: Sample, tasks: int, level: float = 0.9, *, calls: Calls | None = None, seed: int = 0
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
    tested = exchangeability_of(sample, calls, seed)
    return answer(sample, int(tasks), level, tested, calls)


def in_phases(sample: Sample) -> Sample:
    """The calls that are in a phase; all of them, if none is."""
    inside = sample.phase >= 0
    if not sample.phases_known or inside.all():
        return sample
    return sample.chosen(inside) if inside.any() else sample.pooled()


def answer(
    sample: Sample, tasks: int, level: float, tested: Exchangeability, calls: Calls | None = None
) -> Tail:
    """As `slowest_of`, when exchangeability has been tested."""
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
        equation1=equation1_of(sample, tasks, level) if sample.total else None,
        refused=found.refused,
        unsettled=found.unsettled,
    )


def _largest(sample: Sample, durations_s: np.ndarray) -> np.ndarray:
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


def _no_answer(sample: Sample) -> str | None:
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
    sample: Sample,
    tasks: int,
    level: float,
    levels: np.ndarray,
    tested: Exchangeability,
    calls: Calls | None,
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


def _of_blocks(sample: Sample, tasks: int, levels: np.ndarray, calls: Calls, why: str) -> _Found:
    blocks = blocks_in_time(calls, tasks, sample.resolution_s)
    if blocks is None:
        most = f"fewer than {sample.total:,} tasks"
        return _Found(refused=f"{why}: tell the phases in which tasks act together, or ask for {most}")
    found = _of_phases(blocks, tasks, levels)
    return found if found.refused else replace(found, method="blocks")


def _of_exchangeable(
    sample: Sample, tasks: int, level: float, levels: np.ndarray, largest_s: np.ndarray | None
) -> _Found:
    tail = beyond(sample, largest_s)
    if tasks <= reach(sample.total, level):
        quantiles_s = Longest.of(sample, largest_s).quantiles_s(tasks, levels)
        return _Found(quantiles_s, tail.mean_s(tasks) if tail else None, "within-reach")
    if tail is None:
        return _Found(
            refused=f"the slowest of the {sample.total:,} calls differ too little, or are too few, to say "
            "what a slower one would be"
        )
    return _Found(tail.quantiles_s(tasks, levels), tail.mean_s(tasks), "beyond")


def _of_phases(sample: Sample, tasks: int, levels: np.ndarray) -> _Found:
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

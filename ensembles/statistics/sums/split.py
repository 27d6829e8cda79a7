"""Splitting: predict the time of k calls before a barrier from single calls.

One call of a task that moves S bytes is replaced by k calls of S/k bytes, followed by the barrier. Each of
the k calls is assumed to last a k-th of a whole call. By the law of large numbers the sum of the k varies
less as k grows, and the slowest of N tasks approaches the mean.

The time of a task is the mean of k calls. Tasks of past phases with such times are formed from consecutive
calls of the recorded tasks, or, where the task of a call is unknown, from calls of a phase in random order.
The slowest of N of these tasks is predicted by the model of `ensembles.statistics.extremes.slowest_of_n`; one
call of a split is its `Tail`.
"""

from __future__ import annotations

import numbers
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ensembles.model.errors import EnsioError
from ensembles.model.fields import Fields
from ensembles.model.levels import MOST_DENSE, check_level
from ensembles.model.units import count_text
from ensembles.statistics.extremes.exchangeability import CallAttributes
from ensembles.statistics.extremes.slowest_of_n import SlowestOfN, check_tasks
from ensembles.statistics.extremes.tail import Tail
from ensembles.statistics.samples.counted_durations import CountedDurations
from ensembles.statistics.sums.consecutive_calls import MOST_CALLS as MOST_TAKEN
from ensembles.statistics.sums.consecutive_calls import ConsecutiveCalls
from ensembles.summaries.bins import bin_edges_s


@dataclass(frozen=True)
class SplitTime(Fields):
    """Time of the slowest of N tasks that make `calls` calls each before the barrier.

    Attributes
    ----------
    calls : int
        Number k of calls.
    median_s, low_s, high_s : float or None
        Median and central interval of the time until the last task is done, in seconds; None: refused.
    mean_s : float or None
        Mean over many phases, in seconds; None: the data do not determine it.
    speedup : float or None
        Mean for one call over this mean; of medians, if a mean is undetermined.
    most_speedup : float
        Upper bound of the speedup: the least of k, and of the time of the slowest of N calls over the mean
        time of a call. No splitting is faster than the mean.
    spread : float
        Coefficient of variation of a single task's time.
    refused : str or None
        Reason of a refusal.
    """

    calls: int
    median_s: float | None
    low_s: float | None
    high_s: float | None
    mean_s: float | None
    speedup: float | None
    most_speedup: float
    spread: float
    refused: str | None = None


@dataclass(frozen=True)
class Split(Fields):
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
    notes : tuple of str
        Caveats, one sentence each.
    refused : str or None
        Reason of a refusal; then `splits` is empty.
    assumes : str
        What the prediction takes for granted, and no measured call shows.
    per : {"call", "MiB"}
        What durations are of.
    """

    tasks: int
    n: int
    level: float
    splits: tuple[SplitTime, ...]
    notes: tuple[str, ...]
    refused: str | None = None
    assumes: str = "a k-th of the bytes takes a k-th of the time: no latency, no fixed cost of a call"
    per: str = "call"

    def to_json(self) -> dict[str, object]:
        """Return the object that ``ensio split --json`` prints."""
        return {name: value for name, value in super().to_json().items() if name != "per"}


MOST_CALLS = MOST_TAKEN // 2
"""Calls from which the times of k calls are formed; of more, as many are drawn."""

_DRAWS, _DRAWN_CALLS = 9, MOST_CALLS // 2
"""Number of random orders, each of all calls, of which the typical answer is given, and calls in all of them.

Of few phases with few calls, a single order may give each the same slowest task, by luck, and so an interval
next to nothing wide.
"""


def predict_split(
    sample: CountedDurations,
    calls: Sequence[int] = (1, 2, 4, 8),
    tasks: int = 1,
    successive: ConsecutiveCalls | None = None,
    level: float = 0.9,
    *,
    attributes: CallAttributes | None = None,
    why_not: str | None = None,
) -> Split:
    """Predict the time of a phase in which every task makes k calls instead of one.

    References
    ----------
    A. Uselton et al., "Parallel I/O performance: From events to ensembles", IPDPS 2010.

    Examples
    --------
    Independent exponential durations: the slowest of 64 gains most.

    >>> sample = CountedDurations.from_durations(np.random.default_rng(1).exponential(1.0, 20_000))
    >>> split = predict_split(sample, calls=[1, 4, 16], tasks=64)
    >>> [round(one.speedup, 1) for one in split.splits]
    [1.0, 1.9, 2.8]
    """
    calls, tasks, level = check_calls(calls), check_tasks(tasks), check_level(level)
    if why_not is not None:
        return Split(tasks, sample.total, level, (), (), why_not)
    model = SlowestOfN.fit(sample, calls=attributes)
    one = model.tail(tasks, level)
    if one.refused is not None:
        return Split(tasks, sample.total, level, (), (), one.refused)
    grouped = model.grouped(tasks)
    values_s, group = _calls_by_phase(grouped)
    whole = one
    if grouped.total > MOST_CALLS:
        # Of calls that are left out, means of few very long ones change; speedups compare like with like.
        whole = SlowestOfN(_counted(values_s, group, grouped, 1), model.tested).tail(tasks, level)
    splits = []
    for k in calls:
        drawn = [
            _times_of_tasks(values_s, group, k, successive, seed)
            for seed in range(1 if k == 1 else _draws(len(values_s)))
        ]
        found = (
            one
            if k == 1
            else _typical(
                [
                    SlowestOfN(_counted(times_s, group, grouped, k), model.tested).tail(tasks, level)
                    for times_s in drawn
                ]
            )
        )
        if successive is not None and successive.are_alone and found.high_s is not None:
            found = replace(found, high_s=max(found.high_s, one.high_s or 0.0))
        times_s = drawn[0]
        base = one if k == 1 or whole.refused is not None else whole
        mean_s = found.mean_s if k == 1 else _rescaled(found.mean_s, base.mean_s, one.mean_s)
        speedup, most = _speedup(base, base if k == 1 else found, values_s.mean(), k)
        spread = float(times_s.std() / times_s.mean()) if times_s.any() else 0.0
        splits.append(
            SplitTime(
                k,
                found.median_s,
                found.low_s,
                found.high_s,
                mean_s,
                speedup,
                most,
                spread,
                found.refused,
            )
        )
    return Split(tasks, sample.total, level, tuple(splits), _notes(sample, successive, max(calls)))


def times_of_tasks(
    sample: CountedDurations,
    calls: Sequence[int] = (1, 2, 4, 8),
    tasks: int = 1,
    successive: ConsecutiveCalls | None = None,
    *,
    attributes: CallAttributes | None = None,
) -> dict[int, CountedDurations]:
    """Return the times of single tasks from which `predict_split` predicts the slowest."""
    calls, tasks = check_calls(calls), check_tasks(tasks)
    if not sample.total:
        return {}
    grouped = SlowestOfN.fit(sample, calls=attributes).grouped(tasks)
    values_s, group = _calls_by_phase(grouped)
    return {k: _counted(_times_of_tasks(values_s, group, k, successive), group, grouped, k) for k in calls}


def _counted(times_s: np.ndarray, group: np.ndarray, grouped: CountedDurations, k: int) -> CountedDurations:
    """Count the times of tasks by phase."""
    return replace(CountedDurations.from_durations(times_s, group), resolution_s=grouped.resolution_s / k)


def check_calls(calls: Iterable[int]) -> list[int]:
    """Return the numbers of calls of a split, or raise an `EnsioError`."""
    numbers_of_calls = list(calls) if isinstance(calls, Iterable) else []
    for k in numbers_of_calls:
        if isinstance(k, bool) or not isinstance(k, numbers.Real) or k != int(k) or not 1 <= k <= MOST_SPLIT:
            raise EnsioError(
                f"a call cannot be split into {k!r}: give whole numbers from 1 to {MOST_SPLIT:,}"
            )
    if not numbers_of_calls:
        raise EnsioError(f"{calls!r} is not a list of numbers of calls: give one, such as [1, 2, 4]")
    return [int(k) for k in numbers_of_calls]


MOST_SPLIT = 4 * MOST_DENSE
"""Most calls into which one is split."""


def _rescaled(mean_s: float | None, of_some_s: float | None, of_all_s: float | None) -> float | None:
    """Return a mean of some of the calls, as it is of all of them."""
    if mean_s is None or of_some_s is None or of_all_s is None or of_some_s <= 0:
        return mean_s
    return mean_s * (of_all_s / of_some_s)


def _speedup(one: Tail, found: Tail, mean_s: float, k: int) -> tuple[float | None, float]:
    """Return the speedup, and its upper bound."""
    whole = one.mean_s if one.mean_s is not None else one.median_s
    assert whole is not None
    most = max(min(whole / mean_s if mean_s > 0 else 1.0, float(k)), 1.0)
    if one.mean_s is not None and found.mean_s is not None:
        return (min(one.mean_s / found.mean_s, most) if found.mean_s > 0 else 1.0), most
    if one.median_s is None or found.median_s is None:
        return None, most
    return (min(one.median_s / found.median_s, most) if found.median_s > 0 else 1.0), most


def _notes(sample: CountedDurations, successive: ConsecutiveCalls | None, most: int) -> tuple[str, ...]:
    notes = []
    made = 1 if successive is None else successive.calls_of_a_task
    if made == 1:
        notes.append(
            "the correlation of consecutive calls of a task is unknown: they are assumed to be independent, "
            "so that the speedup may be lower"
        )
    elif made < most:
        notes.append(
            f"each task made {count_text(made, 'call')} at most, which come again in longer sums: more calls "
            "may gain more"
        )
    if most > 1 and successive is not None and successive.are_alone:
        notes.append(
            "no task made several calls in a phase: intervals reach from calls that differ to calls that are "
            "all alike, which gain nothing; record a run with more calls"
        )
    if not sample.phases_known:
        notes.append(
            "the correlation of calls by phase is unknown: the prediction holds for phases like the measured "
            "ones"
        )
    return tuple(notes)


def _calls_by_phase(sample: CountedDurations) -> tuple[np.ndarray, np.ndarray]:
    """Return durations and phase of each call, in increasing order by phase, with bins spread evenly."""
    count = sample.count
    if sample.total > MOST_CALLS:  # evenly spaced calls keep the quantiles of each phase
        kept = np.floor(np.cumsum(count) * (MOST_CALLS / sample.total))
        count = np.diff(kept, prepend=0.0).astype(np.int64)
    entry = np.repeat(np.arange(len(count)), count)
    place = np.arange(len(entry)) - np.repeat(np.cumsum(count) - count, count)
    edges = bin_edges_s()
    low, high = edges[sample.bin[entry]], edges[sample.bin[entry] + 1]
    group = sample.group[entry]
    values_s = low + (place + 0.5) / count[entry] * (high - low)
    values_s = np.clip(values_s, sample.min_s[group], sample.max_s[group])
    last = np.flatnonzero(np.diff(group, append=-1) != 0)
    values_s[last] = sample.max_s[group[last]]
    return values_s, group


def _draws(calls: int) -> int:
    """Return in how many random orders so many calls are put: an odd number."""
    return max(min(_DRAWN_CALLS // max(calls, 1), _DRAWS) - 1 | 1, 1)


def _typical(tails: Sequence[Tail]) -> Tail:
    """Return medians over predictions from other random orders; refused, where most of them are."""
    answered = [tail for tail in tails if tail.refused is None]
    if 2 * len(answered) < len(tails):
        return next(tail for tail in tails if tail.refused is not None)

    def middle(name: str) -> float | None:
        values = [getattr(tail, name) for tail in answered]
        known = [value for value in values if value is not None]
        return float(np.median(known)) if 2 * len(known) > len(values) else None

    return replace(
        answered[0],
        low_s=middle("low_s"),
        median_s=middle("median_s"),
        mean_s=middle("mean_s"),
        high_s=middle("high_s"),
    )


def _times_of_tasks(
    values_s: np.ndarray, group: np.ndarray, k: int, successive: ConsecutiveCalls | None, seed: int = 0
) -> np.ndarray:
    """Return times of tasks that make k calls of a k-th each: as many as there are calls in each phase."""
    if k == 1:
        return values_s
    if successive is not None and successive.calls_of_a_task > 1:
        return successive.mean_times_s(values_s, group, k, seed)
    rng = np.random.default_rng(seed)
    times_s = np.zeros(len(values_s))
    for _ in range(k):
        times_s[np.lexsort((rng.random(len(values_s)), group))] += values_s
    return times_s / k

"""Coverage of predictions of the slowest call, on the data themselves.

Parts of the data are left out and predicted from the rest.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ensembles.model.fields import Fields
from ensembles.model.levels import FEWEST, FEWEST_IN_TIME, FEWEST_SLOW, check_level
from ensembles.statistics.extremes.exchangeability import CallAttributes
from ensembles.statistics.extremes.next_phase import NextPhase, predict_next
from ensembles.statistics.extremes.phase_maxima import drawn_maxima
from ensembles.statistics.extremes.slowest_of_n import SlowestOfN, check_tasks, in_phases
from ensembles.statistics.extremes.stationarity import time_blocks
from ensembles.statistics.extremes.tail import Tail
from ensembles.statistics.samples.counted_durations import CountedDurations
from ensembles.summaries.bins import bin_edges_s


@dataclass(frozen=True)
class Coverage(Fields):
    """Coverage of the predictions for one kind of parts that were left out.

    Attributes
    ----------
    kind : str
        What was left out: ``phases`` (some at a time, at random), ``next phase`` (each is predicted from
        those before it: prequential coverage), ``ranks`` (a random half), or ``calls`` (at random, if phases
        are unknown).
    coverage : float or None
        Share of the trials whose slowest call lay within its prediction interval; None: no trial.
    below, above : float or None
        Shares below and above the interval.
    trials, refused : int
        Number of phases left out with a prediction, and with a refusal. Phases with less than half of the
        usual number of calls are not predicted.
    width : float or None
        Median of high / low.
    reason : str or None
        Why there is no trial, or why predictions were refused.
    """

    kind: str
    coverage: float | None = None
    below: float | None = None
    above: float | None = None
    trials: int = 0
    refused: int = 0
    width: float | None = None
    reason: str | None = None


@dataclass(frozen=True)
class Backtest(Fields):
    """Coverage of the prediction intervals for the slowest of N calls.

    Attributes
    ----------
    coverage, trials, refused, width
        Those of the first of `kinds`.
    level : float
        Level of the prediction intervals.
    tasks : int or None
        Number N of calls; None: as many as each phase has.
    kinds : tuple of Coverage
        One for each kind of parts that were left out.
    pit : ndarray of float64 or None
        Places of the phases in their predicted distributions, each predicted from those before it;
        uniform if predictions are right. None: there are too few phases.
    """

    coverage: float | None
    level: float
    trials: int
    tasks: int | None
    refused: int
    width: float | None
    kinds: tuple[Coverage, ...]
    pit: np.ndarray | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the object that ``ensio tail --backtest --json`` prints; `pit` is counted in tenths."""
        pit = None if self.pit is None else np.histogram(self.pit, 10, (0.0, 1.0))[0].tolist()
        return super().to_json() | {"pit": pit}


MOST_FITS = 40
"""Predictions for one kind of parts; each may have many trials."""


def run_backtest(
    sample: CountedDurations,
    tasks: int | None = None,
    level: float = 0.9,
    *,
    calls: CallAttributes | None = None,
    seed: int = 0,
) -> Backtest:
    """Measure coverage by predicting parts of an ensemble that are left out.

    Examples
    --------
    >>> phase = np.repeat(np.arange(40), 100)
    >>> durations_s = np.random.default_rng(1).lognormal(0.0, 0.1, 4000)
    >>> backtest = run_backtest(CountedDurations.from_durations(durations_s, phase))
    >>> [kind.kind for kind in backtest.kinds], backtest.coverage > 0.75
    (['phases', 'next phase'], True)
    """
    tasks, level = None if tasks is None else check_tasks(tasks), check_level(level)
    rng = np.random.default_rng(seed)
    sample = in_phases(sample)
    if sample.phases_known and len(sample.n) > 1:
        if np.median(sample.n) < 2 and calls is not None and calls.start_ns is not None:
            blocks = time_blocks(calls, tasks or _block_of(sample.total), sample.resolution_s)
            sample, calls = (sample, calls) if blocks is None else (blocks, None)
        if sample.total > len(sample.n) and np.median(sample.n) < 2:
            reason = "most phases have a single call, so that they have no maximum of several"
            nothing = Coverage("phases", refused=len(sample.n), reason=reason)
            return Backtest(None, level, 0, tasks, len(sample.n), None, (nothing,))
        kinds = [
            _counted("phases", _phases_left_out(sample, rng), tasks, level, rng, sample),
            _of_next(following := _next_phases(sample, tasks, level, rng), sample),
        ]
        if calls is not None and calls.rank is not None and calls.phase is not None:
            kinds.append(_counted("ranks", _ranks_left_out(calls, sample, rng), tasks, level, rng, None))
    else:
        splits = _calls_left_out(sample, tasks, rng)
        following, kinds = None, [_counted("calls", splits, None, level, rng, None)]
    first = kinds[0]
    return Backtest(
        first.coverage,
        level,
        first.trials,
        tasks,
        first.refused,
        first.width,
        tuple(kinds),
        None if following is None else following.pit,
    )


def _block_of(calls: int) -> int:
    """Return the number of calls of a block if phases are unknown: the square root of their number."""
    return max(round(math.sqrt(calls)), 1)


def _phases_left_out(
    sample: CountedDurations, rng: np.random.Generator
) -> Iterator[tuple[CountedDurations, CountedDurations]]:
    p = len(sample.n)
    if p < 2 * FEWEST:
        return
    fold = rng.permutation(p) % min(p, MOST_FITS)
    for one in range(fold.max() + 1):
        yield sample.chosen(fold != one), sample.chosen(fold == one)


def _next_phases(
    sample: CountedDurations, tasks: int | None, level: float, rng: np.random.Generator
) -> NextPhase | None:
    """Predict each phase from those before it; None: too few phases, or with fewer calls than `tasks`."""
    if tasks is not None and tasks > 1.1 * float(np.median(sample.n)):
        return None
    return predict_next(drawn_maxima(sample, tasks, rng)[1], level)


def _of_next(found: NextPhase | None, sample: CountedDurations) -> Coverage:
    if found is None:
        reason = f"at least {FEWEST_IN_TIME} phases with as many calls are needed"
        return Coverage("next phase", refused=len(sample.n), reason=reason)
    return Coverage(
        "next phase", found.coverage, found.below, found.above, found.trials, 0, found.width, None
    )


def _ranks_left_out(
    calls: CallAttributes, sample: CountedDurations, rng: np.random.Generator
) -> Iterator[tuple[CountedDurations, CountedDurations]]:
    assert calls.rank is not None
    assert calls.phase is not None
    inside = calls.phase >= 0 if sample.phases_known else np.ones(len(calls.durations_s), bool)
    ranks, place = np.unique(calls.rank, return_inverse=True)
    if len(ranks) < 4 or len(sample.n) < 2 * FEWEST:
        return
    for _ in range(2 * FEWEST):
        left = (rng.permutation(len(ranks)) < len(ranks) // 2)[place.reshape(-1)]
        yield tuple(  # type: ignore[misc]
            CountedDurations.from_durations(calls.durations_s[part], calls.phase[part], sample.resolution_s)
            for part in (inside & ~left, inside & left)
        )


def _counted(
    kind: str,
    splits: Iterator[tuple[CountedDurations, CountedDurations]],
    tasks: int | None,
    level: float,
    rng: np.random.Generator,
    whole: CountedDurations | None,
) -> Coverage:
    """Predict the parts that were left out, and count what the intervals contain."""
    typical = None if whole is None else float(np.median(whole.n))
    least = 0.0 if typical is None else 0.5 * typical
    inside: list[np.ndarray] = []
    widths: list[float] = []
    refused, reason = 0, None
    for seen, left in splits:
        left = left.chosen(left.n >= (least or 0.5 * float(np.median(left.n))))
        if not len(left.n):
            continue
        sizes, slowest_s = left.n, left.max_s
        if tasks is not None and typical is not None:
            if tasks > typical:
                seen = _thinned(seen, tasks / typical, rng)
                if not len(seen.n) or np.median(seen.n) < FEWEST:
                    reason = f"phases of {typical:,.0f} calls are too small to thin for {tasks:,} tasks"
                    refused += len(sizes)
                    continue
            else:
                sizes, slowest_s = drawn_maxima(left, tasks, rng)
                slowest_s = np.exp(slowest_s)
        model = SlowestOfN.fit(seen)
        for size in _sizes(sizes):
            mine = slowest_s[sizes == size]
            found = model.tail(int(size), level)
            if found.low_s is None or found.high_s is None:
                refused, reason = refused + len(mine), found.refused
                continue
            inside.append(_place(mine, found, seen.resolution_s))
            widths.append(found.high_s / max(found.low_s, 1e-9))
    if not inside:
        few = f"at least {2 * FEWEST} phases and 4 ranks are needed"
        if kind == "calls":
            few = f"without phases, --tasks and at least {FEWEST * FEWEST_SLOW} calls are needed"
        return Coverage(kind, refused=refused, reason=reason or few)
    below, within, above = np.concatenate(inside, axis=1).mean(1)
    trials = sum(part.shape[1] for part in inside)
    return Coverage(
        kind, float(within), float(below), float(above), trials, refused, float(np.median(widths)), reason
    )


def _sizes(sizes: np.ndarray) -> np.ndarray:
    """Return the four commonest sizes of phases, so that there are few predictions."""
    values, count = np.unique(sizes, return_counts=True)
    return values[np.argsort(-count, kind="stable")[:4]]


def _place(slowest_s: np.ndarray, found: Tail, resolution_s: float) -> np.ndarray:
    """Return whether durations lie below, within and above an interval: float64, shape (3, k)."""
    slack = 1e-9 + 1e-6 * resolution_s
    below = slowest_s < (found.low_s or 0.0) - slack
    above = slowest_s > (found.high_s or 0.0) + slack
    return np.array([below, ~(below | above), above], dtype=np.float64)


def _thinned(sample: CountedDurations, by: float, rng: np.random.Generator) -> CountedDurations:
    """Keep each call with the probability 1 / by."""
    kept = rng.binomial(sample.count, 1.0 / by)
    group = sample.group
    size = np.bincount(group, kept, minlength=len(sample.n)).astype(np.int64)
    edges = bin_edges_s()
    used = kept > 0
    low_s, high_s = np.full(len(size), np.inf), np.zeros(len(size))
    # Each call of a bin is equally likely to be kept.
    share = rng.random(len(kept)) ** (1.0 / np.maximum(kept, 1))
    value_s = edges[sample.bin] + share * (edges[sample.bin + 1] - edges[sample.bin])
    value_s = np.minimum(value_s, sample.max_s[group])
    np.minimum.at(low_s, group[used], edges[sample.bin][used])
    np.maximum.at(high_s, group[used], value_s[used])
    thinned = replace(
        sample,
        n=size,
        min_s=np.where(size > 0, low_s, 0.0),
        max_s=high_s,
        begin=np.concatenate([[0], np.cumsum(np.bincount(group[used], minlength=len(size)))]),
        bin=sample.bin[used],
        count=kept[used],
        mean_s=None,
        variance_s2=None,
    )
    return thinned.chosen(size > 0)


def _calls_left_out(
    sample: CountedDurations, tasks: int | None, rng: np.random.Generator
) -> Iterator[tuple[CountedDurations, CountedDurations]]:
    """Leave out calls at random, as many to the others as ``tasks`` to all calls: phases are unknown."""
    if tasks is None or sample.total < FEWEST * FEWEST_SLOW:
        return
    pooled, edges = sample.pooled(), bin_edges_s()
    for _ in range(MOST_FITS):
        seen = _thinned(pooled, 1.0 + tasks / sample.total, rng)
        rest = sample.counts - (seen.counts if len(seen.n) else 0)
        if not len(seen.n) or not rest.any():
            continue
        last = int(np.flatnonzero(rest)[-1])
        share = rng.random() ** (1.0 / rest[last])
        longest_s = min(edges[last] + share * (edges[last + 1] - edges[last]), float(sample.max_s.max()))
        yield seen, CountedDurations.from_counts(rest, float(sample.min_s.min()), longest_s)

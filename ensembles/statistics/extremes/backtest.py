"""How often predictions of the slowest call came true on the data themselves: leave some out, predict them,
count."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from ensembles.model.errors import EnsioError
from ensembles.model.units import count_text
from ensembles.statistics.extremes.exchangeability import CallAttributes, check_exchangeability
from ensembles.statistics.extremes.maximum import Tail, answer, in_phases
from ensembles.statistics.extremes.stationarity import time_blocks
from ensembles.statistics.samples.counted_durations import CountedDurations


@dataclass(frozen=True)
class Coverage:
    """What became of the predictions of one way of leaving out.

    Attributes
    ----------
    kind : str
        What was left out: ``phases`` (some at a time, at random), ``later phases`` (the second half),
        ``ranks`` (a random half), or ``calls`` (at random; where phases are not known).
    coverage : float or None
        Share of the trials in which the slowest call left out lay within its interval; None: no trial.
    below, above : float or None
        Shares below and above the interval.
    trials, refused : int
        Left-out phases with a prediction, and without: predictions that were refused. Phases with less than
        half of the usual number of calls are not predicted.
    width : float or None
        Median of high / low.
    reason : str or None
        Why there is no trial, or why predictions were refused.
    """

    kind: str
    coverage: float | None
    below: float | None
    above: float | None
    trials: int
    refused: int
    width: float | None
    reason: str | None


@dataclass(frozen=True)
class Backtest:
    """Coverage of the intervals for the slowest of N on the data themselves.

    Attributes
    ----------
    coverage, trials, refused, width
        Those of the first way of leaving out.
    level : float
    tasks : int or None
        As asked for; None: as many as each phase had.
    kinds : tuple of Coverage
        All ways of leaving out.
    """

    coverage: float | None
    level: float
    trials: int
    tasks: int | None
    refused: int
    width: float | None
    kinds: tuple[Coverage, ...]

    def to_json(self) -> dict[str, Any]:
        """A dict with the names of the attributes."""
        found = {field.name: getattr(self, field.name) for field in fields(self)}
        found["kinds"] = [{one.name: getattr(kind, one.name) for one in fields(kind)} for kind in self.kinds]
        return found

    def __str__(self) -> str:
        lines = [f"intervals meant to hold in {100 * self.level:g} % of cases"]
        for kind in self.kinds:
            if kind.coverage is None:
                lines.append(f"  {kind.kind} left out: no trial, {kind.reason}")
                continue
            lines.append(
                f"  {kind.kind} left out: held in {100 * kind.coverage:.0f} % of "
                f"{count_text(kind.trials, 'trial')}, median width a factor of {kind.width:.3g}"
                + (f"; {kind.refused:,} refused" if kind.refused else "")
            )
        return "\n".join(lines)


MOST_FITS = 40
"""Predictions that are made for a way of leaving out; each may have many trials."""

_FEWEST_PHASES = 10
_RANK_SPLITS = 10
_LEAST_THINNED = 4


def run_backtest(
    sample: CountedDurations,
    tasks: int | None = None,
    level: float = 0.9,
    *,
    calls: CallAttributes | None = None,
    seed: int = 0,
) -> Backtest:
    """Leave parts of an ensemble out, predict their slowest calls from the rest, and count.

    Parameters
    ----------
    sample : Sample
    tasks : int, optional
        For fewer than the calls of a phase, so many of the left-out phase are drawn; for more, the phases
        that are predicted from are thinned instead, so that the step from their calls to those predicted is
        as large as it would be from all of them to ``tasks``.
    level : float
    calls : Calls, optional
        With their ranks, ranks are left out too; with their times, calls without phases are left out in time.
    seed : int
        Of what is left out.

    Raises
    ------
    EnsioError
        ``tasks`` makes no sense.
    """
    if tasks is not None and tasks < 1:
        raise EnsioError(f"there is no slowest of {tasks} tasks: give a whole number from 1 on")
    rng = np.random.default_rng(seed)
    sample = in_phases(sample)
    if sample.phases_known and len(sample.n) > 1:
        if np.median(sample.n) < 2 and calls is not None and calls.start_ns is not None:
            blocks = time_blocks(calls, tasks or _block_of(sample.total), sample.resolution_s)
            sample, calls = (sample, calls) if blocks is None else (blocks, None)
        if sample.total > len(sample.n) and np.median(sample.n) < 2:
            reason = "most phases have a single call: there is no slowest of several in them"
            nothing = Coverage("phases", None, None, None, 0, len(sample.n), None, reason)
            return Backtest(None, level, 0, tasks, len(sample.n), None, (nothing,))
        kinds = [
            _counted("phases", _phases_left_out(sample, rng), tasks, level, rng, sample),
            _counted("later phases", _later_phases(sample), tasks, level, rng, sample, coming=True),
        ]
        if calls is not None and calls.rank is not None and calls.phase is not None:
            kinds.append(_counted("ranks", _ranks_left_out(calls, sample, rng), tasks, level, rng, None))
    else:
        kinds = [_calls_left_out(sample, tasks, level, rng)]
    first = kinds[0]
    return Backtest(first.coverage, level, first.trials, tasks, first.refused, first.width, tuple(kinds))


def _block_of(calls: int) -> int:
    """Calls of which the slowest is predicted, where phases are none: the square root of them all, so that
    stretches are many and their calls are, too."""
    return max(round(calls**0.5), 1)


def _phases_left_out(
    sample: CountedDurations, rng: np.random.Generator
) -> Iterator[tuple[CountedDurations, CountedDurations]]:
    p = len(sample.n)
    if p < _FEWEST_PHASES:
        return
    fold = rng.permutation(p) % min(p, MOST_FITS)
    for one in range(fold.max() + 1):
        yield sample.chosen(fold != one), sample.chosen(fold == one)


def _later_phases(sample: CountedDurations) -> Iterator[tuple[CountedDurations, CountedDurations]]:
    half = len(sample.n) // 2
    if len(sample.n) >= _FEWEST_PHASES:
        yield sample.chosen(np.arange(half)), sample.chosen(np.arange(half, len(sample.n)))


def _ranks_left_out(
    calls: CallAttributes, sample: CountedDurations, rng: np.random.Generator
) -> Iterator[tuple[CountedDurations, CountedDurations]]:
    assert calls.rank is not None
    assert calls.phase is not None
    inside = calls.phase >= 0 if sample.phases_known else np.ones(len(calls.durations_s), bool)
    ranks, place = np.unique(calls.rank, return_inverse=True)
    if len(ranks) < 4 or len(sample.n) < _FEWEST_PHASES:
        return
    for _ in range(_RANK_SPLITS):
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
    coming: bool = False,
) -> Coverage:
    """Predict what was left out, and count. ``coming``: it is what came next, of which a run that has not
    settled says nothing."""
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
                if not len(seen.n) or np.median(seen.n) < _LEAST_THINNED:
                    reason = f"phases of {typical:,.0f} calls are too small to be thinned for {tasks:,} tasks"
                    refused += len(sizes)
                    continue
            else:
                sizes, slowest_s = _drawn(left, tasks, rng)
        tested = check_exchangeability(seen)
        for size in _sizes(sizes):
            mine = slowest_s[sizes == size]
            found = answer(seen, int(size), level, tested)
            if found.low_s is None or found.high_s is None or (coming and found.unsettled):
                refused, reason = refused + len(mine), found.refused or found.unsettled
                continue
            inside.append(_place(mine, found, seen.resolution_s))
            widths.append(found.high_s / max(found.low_s, 1e-9))
    if not inside:
        return Coverage(
            kind,
            None,
            None,
            None,
            0,
            refused,
            None,
            reason or f"at least {_FEWEST_PHASES} phases and 4 ranks are needed",
        )
    below, within, above = np.concatenate(inside, axis=1).mean(1)
    trials = sum(part.shape[1] for part in inside)
    return Coverage(
        kind, float(within), float(below), float(above), trials, refused, float(np.median(widths)), reason
    )


def _sizes(sizes: np.ndarray) -> np.ndarray:
    """The different sizes of phases that are predicted: the commonest ones, so that predictions stay few."""
    values, count = np.unique(sizes, return_counts=True)
    return values[np.argsort(-count, kind="stable")[:4]]


def _place(slowest_s: np.ndarray, found: Tail, resolution_s: float) -> np.ndarray:
    """Whether durations lie below, within and above an interval: float64, shape (3, k)."""
    slack = 1e-9 + 1e-6 * resolution_s
    below = slowest_s < (found.low_s or 0.0) - slack
    above = slowest_s > (found.high_s or 0.0) + slack
    return np.array([below, ~(below | above), above], dtype=np.float64)


def _drawn(left: CountedDurations, tasks: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """The slowest of ``tasks`` calls drawn from each phase that has so many."""
    from ensembles.statistics.extremes.phase_maxima import longest_log_s

    left = left.chosen(left.n >= tasks)
    if not len(left.n):
        return left.n, left.max_s
    chance = np.where(left.n > tasks, tasks / left.n.astype(np.float64), 1.0)
    rank = np.minimum(rng.geometric(chance), left.n - tasks + 1).astype(np.float64)
    slowest_s = np.exp(longest_log_s(left, rank[:, None])[:, 0])
    return np.full(len(left.n), tasks), slowest_s


def _thinned(sample: CountedDurations, by: float, rng: np.random.Generator) -> CountedDurations:
    """Each call is kept with the chance 1 / by."""
    from dataclasses import replace

    from ensembles.summaries.bins import bin_edges_s

    kept = rng.binomial(sample.count, 1.0 / by)
    group = np.repeat(np.arange(len(sample.n)), np.diff(sample.begin))
    size = np.bincount(group, kept, minlength=len(sample.n)).astype(np.int64)
    edges = bin_edges_s()
    used = kept > 0
    low_s, high_s = np.full(len(size), np.inf), np.zeros(len(size))
    # Within a bin it is not known which call was kept: any of them is as likely.
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
    sample: CountedDurations, tasks: int | None, level: float, rng: np.random.Generator
) -> Coverage:
    """Calls of no known phases: so many are left out at random that the step to them is as large as to
    ``tasks``."""
    kind = "calls"
    reason: str | None
    if tasks is None or sample.total < 100:
        reason = (
            "without phases the number of tasks must be told" if tasks is None else "fewer than 100 calls"
        )
        return Coverage(kind, None, None, None, 0, 0, None, reason)
    ratio = tasks / sample.total
    tested = check_exchangeability(sample.pooled())
    inside, widths, refused, reason = [], [], 0, None
    for _ in range(MOST_FITS):
        seen = _thinned(sample.pooled(), 1.0 + ratio, rng)
        rest = sample.counts - (seen.counts if len(seen.n) else 0)
        if not len(seen.n) or rest.sum() < 1:
            refused, reason = refused + 1, "too few calls are left"
            continue
        found = answer(seen, int(rest.sum()), level, tested)
        if found.low_s is None or found.high_s is None:
            refused, reason = refused + 1, found.refused
            continue
        inside.append(_place(_longest_of(sample, rest, rng), found, sample.resolution_s))
        widths.append(found.high_s / max(found.low_s, 1e-9))
    if not inside:
        return Coverage(kind, None, None, None, 0, refused, None, reason)
    below, within, above = np.concatenate(inside, axis=1).mean(1)
    width = float(np.median(widths))
    return Coverage(kind, float(within), float(below), float(above), len(inside), refused, width, reason)


def _longest_of(sample: CountedDurations, counts: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    from ensembles.summaries.bins import bin_edges_s

    last, edges = int(np.flatnonzero(counts)[-1]), bin_edges_s()
    share = rng.random() ** (1.0 / counts[last])
    return np.array([min(edges[last] + share * (edges[last + 1] - edges[last]), float(sample.max_s.max()))])

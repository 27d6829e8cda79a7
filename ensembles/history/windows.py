"""Tests of the latest runs of a series: one run, or several together, against the runs before them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ensembles.comparison.components import TAIL, TAIL_PLACE, WEIGHT
from ensembles.comparison.hypothesis_tests import LEVEL as ALIKE_LEVEL
from ensembles.comparison.model import LEAST_ERROR, holm
from ensembles.comparison.times import LEAST_SPREAD_OF_NEW_RUN, make_total
from ensembles.history.series import CALLS, COMMON, TIME, Series

WINDOWS = (1, 3, 7)
"""Numbers of latest runs that are judged together."""

_FAR = 4.0
"""Standard deviations of the other runs from which on a run of the baseline is a slow night."""

_MOST_FAR = 0.25
"""Share of the baseline that slow nights are at most."""

_LEAST_RUNS = 6
"""Runs of a baseline that show which of them are slow nights."""

_MEDIAN_VARIANCE = np.pi / 2


@dataclass(frozen=True)
class Tested:
    """One part of one window."""

    part: int  # Number of the part in the series
    runs: int  # Length of the window
    change: float  # Difference from the baseline, as the series has it
    absolute: float  # The same, not relative to the common factor
    # low, high: Prediction interval of the value at the level of the check, before the correction for many
    # tests
    low: float
    high: float
    p: float  # Adjusted for all tests of the experiment


def judge_windows(
    series: Series,
    windows: Sequence[int],
    most: int,
    least: int,
    margin: float,
    level: float,
    baseline: Sequence[int] | None = None,
    confirm: bool = True,
) -> list[Tested]:
    """Test every part in every window.

    Parameters
    ----------
    windows : sequence of int
        Lengths of the windows; each ends with the latest run.
    margin, level : float
        As for `check`: of numbers of calls, and of all tests together.
    confirm : bool
        Whether a single run in which everything takes longer does not count.

    Notes
    -----
    A t test of the mean of the window against that of the baseline, with the variance from run to run. Its
    variance counts the correlation of successive runs, estimated as an autoregression of order one. Shares of
    calls and rates vary at least as much as so few calls do, if they are independent: the p-value of a share
    is at least that of a binomial test. Of the common factor and of the place of tails, which vary at random,
    the median of the window is taken; a single run needs a second one, and the common factor a window of
    three. Single nights on which everything is slow, which such a median leaves out, are drawn in to `_FAR`
    standard deviations in the baseline, too: else they would hide what lasts. The runs since a change have to
    be as alike as those before: spells of slow nights are not.
    Numbers of calls that are the same in each run since a change need no window.
    """
    found: list[Tested] = []
    count = len(series.value)
    for runs in windows:
        before = (
            list(range(max(0, count - runs - most), count - runs)) if baseline is None else list(baseline)
        )
        if len(before) < least or count < runs:
            continue
        rows = np.arange(count - runs, count)
        found += _test(series, before, rows, margin, level / (len(windows) * 4), confirm)
    adjusted = holm(np.array([one.p for one in found])).tolist() if found else []
    tested = [
        Tested(one.part, one.runs, one.change, one.absolute, one.low, one.high, float(p))
        for one, p in zip(found, adjusted, strict=True)
    ]
    if baseline is None and confirm:
        tested += _steps(series, windows, most, least, margin, level)
    return sorted(tested, key=lambda one: (one.p, -abs(one.change)))


def _steps(
    series: Series, windows: Sequence[int], most: int, least: int, margin: float, level: float
) -> list[Tested]:
    """Find the numbers of calls that are the same in each run since a change, and in each before it."""
    found = []
    for at, part in enumerate(series.parts):
        value = series.value[:, at]
        runs = len(value) - 1 - int(np.flatnonzero(value != value[-1]).max(initial=-1))
        before = value[: len(value) - runs][-most:]
        if part.what != CALLS or runs in windows or runs > most or len(before) < least or np.ptp(before) > 0:
            continue
        if make_total("calls", [before.tolist(), value[-runs:].tolist()], margin, level).is_finding:
            change, usual = float(value[-1] - before[0]), float(before[0])
            found.append(Tested(at, runs, change, change, usual, usual, 0.0))
    return found


def _test(
    series: Series, before: Sequence[int], rows: np.ndarray, margin: float, level: float, confirm: bool
) -> list[Tested]:
    from ensembles.statistics.special import stdtr, stdtrit

    old, new = series.value[np.asarray(before)], series.value[rows]
    found = []
    for at, part in enumerate(series.parts):
        mine, latest = old[:, at][np.isfinite(old[:, at])], new[:, at][np.isfinite(new[:, at])]
        of_all = part.what in (COMMON, TIME)
        if len(mine) < 2 or not len(latest) or (part.what == TIME and not confirm):
            continue  # of named numbers of runs the gate judges the times
        if of_all and confirm and len(latest) == 1:
            continue  # a busy file system slows single runs
        if part.what == CALLS:
            total = make_total("calls", [mine.tolist(), latest.tolist()], margin, level)
            change = float(latest.mean() - mine.mean())
            p = 0.0 if total.is_finding else 1.0
            found.append(Tested(at, len(rows), change, change, float(mine.min()), float(mine.max()), p))
            continue
        m, n, usual = len(mine), len(latest), mine
        robust = (of_all or part.what == TAIL_PLACE) and n > 1
        if robust and n > 2:
            mine = _drawn_in(mine, float(np.sqrt(series.drawn[list(before), at].mean())))
        memory = _memory(mine, is_cautious=of_all)
        of_mine, of_latest = _inflation(m, memory), _inflation(n, memory)
        variance = float(mine.var(ddof=1)) / max(1 - (of_mine - 1) / (m - 1), 0.3)
        usable = max((m - 1) * (1 - memory**2) / (1 + memory**2), 1.0)
        own = _MEDIAN_VARIANCE if robust and n > 2 else 1.0
        # Few runs of few calls may vary less by luck than so few calls can.
        of_old, of_new = (
            max(variance, float(series.drawn[runs, at].mean())) for runs in (list(before), rows)
        )
        error = np.sqrt(of_old * of_mine / m + own * of_new * of_latest / n) + LEAST_ERROR
        centre = mine.mean()
        change = float((np.median(latest) if robust else latest.mean()) - centre)
        if n == 1 and part.what == TAIL_PLACE:
            change = _least_of_pair(series, before, int(rows[0]), at)
        statistic = max(abs(change) - part.grain, 0.0) / error
        p = float(2 * stdtr(usable, -statistic))
        moved = np.append(usual, latest) - centre
        if robust and n > 2 and confirm and not _is_one_change(moved, n, change, usable):
            p = 1.0
        if part.what in (WEIGHT, TAIL):
            p = max(p, _binomial_p(series, at, before, rows))
        if n == 1 and part.what == COMMON and not confirm and abs(change) < _least_of_one_run(m):
            p = 1.0
        half = float(stdtrit(usable, 1 - level / 2)) * error + part.grain
        size = float(series.absolute[rows, at][np.isfinite(new[:, at])].mean())
        absolute = size - float(series.absolute[np.asarray(before), at][np.isfinite(old[:, at])].mean())
        found.append(Tested(at, len(rows), change, absolute, float(centre - half), float(centre + half), p))
    return found


def _binomial_p(series: Series, at: int, before: Sequence[int], rows: np.ndarray) -> float:
    """Return the two-sided p-value that as many of the new calls are in a share, if calls are independent."""
    from scipy.special import betainc

    share = series.value[:, at]
    usual = float(np.nanmean(share))
    calls = usual * (1 - usual) / np.maximum(series.drawn[:, at], LEAST_ERROR**2)
    if not calls.any():
        return 1.0
    old, new = (float(np.nansum((share * calls)[np.asarray(of)])) for of in (before, rows))
    part = float(calls[rows].sum() / (calls[rows].sum() + calls[list(before)].sum()))
    more = betainc(new, old + 1, part) if new else 1.0
    fewer = betainc(old, new + 1, 1 - part) if old else 1.0
    return float(min(2 * more, 2 * fewer, 1.0))


def _drawn_in(values: np.ndarray, least: float) -> np.ndarray:
    """Draw few far values in to `_FAR` standard deviations of the others, by their median deviation."""
    if len(values) < _LEAST_RUNS:
        return values
    middle = float(np.median(values))
    most = _FAR * max(1.4826 * float(np.median(np.abs(values - middle))), least, LEAST_ERROR)
    if np.count_nonzero(np.abs(values - middle) > most) > _MOST_FAR * len(values):
        return values
    found: np.ndarray = np.clip(values, middle - most, middle + most)
    return found


def _is_one_change(moved: np.ndarray, runs: int, change: float, freedom: float) -> bool:
    """Whether the runs since a change are as alike as those before it.

    A changed program moves all runs by one factor, a busy file system each by another.

    `moved`: all runs, from the mean before; the last `runs` are the window. The last one, and more than two
    thirds of them, show half of the change.
    """
    from ensembles.statistics.special import fdtrc

    shows = moved * change > change**2 / 2
    first = int(np.flatnonzero(~shows[:-runs]).max(initial=-1)) + 1
    since, before = moved[first:][shows[first:]], moved[:first]
    if not shows[-1] or 3 * shows[-runs:].sum() <= 2 * runs or len(before) < 2:
        return False
    ratio = float(since.var(ddof=1)) / max(float(before.var(ddof=1)), LEAST_ERROR**2)
    return bool(fdtrc(len(since) - 1, freedom, ratio) > ALIKE_LEVEL)


def _least_of_one_run(baselines: int) -> float:
    """Return from how many octaves on one new run is slower, as in ``ensio compare``."""
    return 1.96 * float(np.log2(1 + LEAST_SPREAD_OF_NEW_RUN) * np.sqrt(1 + 1 / baselines))


def _least_of_pair(series: Series, before: Sequence[int], row: int, at: int) -> float:
    """Return the smaller of the changes of the latest two runs; 0 if they go opposite ways."""
    rest = [one for one in before if one != row - 1]
    if row < 1 or len(rest) < 2:
        return 0.0
    pair = series.value[[row - 1, row], at] - series.value[np.asarray(rest), at].mean()
    return float(np.sign(pair[0]) * np.abs(pair).min()) if pair[0] * pair[1] > 0 else 0.0


def _memory(values: np.ndarray, is_cautious: bool = False) -> float:
    """Estimate the correlation of successive runs, corrected for its bias in short series.

    `is_cautious`: one standard error is added, as of the common factor, in which busy weeks show; too small
    an estimate gives alarms.
    """
    rest = values - values.mean()
    squares = float(rest @ rest)
    if len(values) < 8 or squares <= 0:
        return 0.0
    seen = float(rest[1:] @ rest[:-1]) / squares
    likely = seen + (1 + 3 * seen) / len(values)
    error = np.sqrt(max(1 - likely**2, 0.0) / len(values))
    return float(np.clip(likely + is_cautious * error, 0.0, 0.8))


def _inflation(n: int, memory: float) -> float:
    """Return by how much correlation increases the variance of a mean of n runs."""
    lag = np.arange(1, n)
    return float(1 + 2 * ((1 - lag / n) * memory**lag).sum())


def first_changed(series: Series, parts: Sequence[int], begin: int, lasts: bool = True) -> int:
    """Return the run with which a change begins: the division with the least sum of squares.

    `lasts`: several runs show it, so that distances from medians count: one slow night is not its begin.
    """
    values = series.value[begin:, list(parts)]
    spread = np.where(np.nanstd(values, axis=0) > 0, np.nanstd(values, axis=0), 1.0)
    scaled = np.where(np.isfinite(values), (values - np.nanmean(values, axis=0)) / spread, 0.0)

    def apart(of: np.ndarray) -> float:
        return float(np.abs(of - np.median(of, axis=0)).sum() if lasts else of.var(axis=0).sum() * len(of))

    both = {at: apart(scaled[:at]) + apart(scaled[at:]) for at in range(1 + lasts, len(scaled) - lasts)}
    return begin + min(both, key=both.__getitem__, default=len(scaled) - 1)

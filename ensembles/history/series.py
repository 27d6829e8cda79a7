"""The series of an experiment, one value of each part in each run, and tests of its latest runs.

One run, or several together, is tested against the runs before.

A run that meets a busy file system takes longer everywhere. The location of the mode with most calls is
therefore one part, the common factor, and other durations are taken relative to it: a mode that moves alone
is seen however busy the night.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ensembles.comparison.compare_samples import FEWEST_CALLS, values_of_runs
from ensembles.comparison.components import PLACE, RATIO, TAIL, TAIL_PLACE, WEIGHT
from ensembles.comparison.hypothesis_tests import FIRST_TESTED
from ensembles.comparison.hypothesis_tests import LEVEL as ALIKE_LEVEL
from ensembles.comparison.model import LEAST_ERROR, holm, is_alike
from ensembles.comparison.times import LEAST_SHARE, LEAST_SPREAD_OF_NEW_RUN, MARGIN, make_total
from ensembles.comparison.units import WAITS_FOR_TASKS
from ensembles.history.record import KindRecord, RunRecord
from ensembles.summaries.bins import bin_edges_s

COMMON, PHASE, RATE, CALLS, TIME = "common factor", "phase time", "rate", "calls", "time"

_MOST_PHASES = 16
_WEIGHT_GRAIN = 0.002  # a change of a share that is never one


@dataclass(frozen=True)
class Part:
    """One part of an experiment that can change."""

    # `COMMON`, ``mode place``, ``mode width``, ``mode weight``, ``tail``, ``tail place``, `PHASE`, `RATE`,
    # `CALLS` or `TIME`, of the whole run
    what: str
    name: str  # As in texts: ``mode 2 place``, ``phase 3 time``
    # layer, op: Kind of calls; None: the part belongs to the run
    layer: str | None = None
    op: str | None = None
    t_s: float | None = None  # Location of the mode, in seconds
    slower: int = 1  # 1: it takes longer if the value grows; −1: if the value falls
    grain: float = 0.0  # Differences that are not larger are none
    calls: float = 0.0  # Calls of the mode in all runs
    # number, kind: Of a phase: its number and name
    number: int = 0
    kind: str = ""


@dataclass(frozen=True)
class Series:
    """Values of all parts in all runs."""

    parts: list[Part]  # m parts; the first is `COMMON` if there are locations
    # float64, shape (r, m): Locations as log2 of their ratio to the part's, times in seconds and rates in
    # bytes/s as log2, all relative to the common factor; widths as log2; weights and tails as shares; calls
    # as numbers. nan: the run does not have the part.
    value: np.ndarray
    absolute: np.ndarray  # float64, shape (r, m): The same, not relative
    # float64, shape (r, m): Variance of a value because its run has so few calls, as if these were
    # independent; 0: not computed. Calls of one phase vary more, which runs show, if they are not too few or
    # too lucky.
    drawn: np.ndarray
    reference: int | None = None  # Part to which the others are relative: the mode with most calls


Column = tuple[Part, np.ndarray, np.ndarray | float]
"""A part with its values and their `Series.drawn`."""


def make_series(records: Sequence[RunRecord], baseline: Sequence[int]) -> Series:
    """Compute the values of all parts."""
    columns: list[Column] = []
    other_sizes = kinds_of_other_sizes(records, baseline)
    for layer, op in kinds_of(records):
        of_kind = _parts_of_kind(records, layer, op)
        columns += of_kind[:1] if (layer, op) in other_sizes else of_kind
    columns += _phases(records) + _rates(records, baseline) + _time(records)
    parts = [part for part, *_ in columns]
    absolute, drawn = np.zeros((2, len(records), len(columns)))
    for at, (_, of_part, variance) in enumerate(columns):
        absolute[:, at], drawn[:, at] = of_part, variance
    places = [
        at for at, part in enumerate(parts) if part.what == PLACE and np.isfinite(absolute[:, at]).all()
    ]
    if not places:
        return Series(parts, absolute, absolute, drawn)
    reference = max(places, key=lambda at: parts[at].calls)
    common = absolute[:, reference] - absolute[np.asarray(baseline), reference].mean()
    value = absolute.copy()
    for at, part in enumerate(parts):
        if part.what in (PLACE, PHASE, RATE):
            value[:, at] -= part.slower * common
    first = Part(COMMON, "all durations", grain=parts[reference].grain)
    value, absolute = (np.column_stack([common, rest]) for rest in (value, absolute))
    drawn = np.column_stack([drawn[:, reference], drawn])
    return Series([first, *parts], value, absolute, drawn, reference + 1)


def kinds_of_other_sizes(
    records: Sequence[RunRecord], baseline: Sequence[int]
) -> dict[tuple[str, str], tuple[float, float]]:
    """Return the kinds of calls with another mean size in the latest run: before and after, in bytes.

    Durations of other sizes are not compared.
    """
    found = {}
    for layer, op in kinds_of(records):
        old, new = (
            [kind for at in rows if (kind := records[at].kind(layer, op)) is not None]
            for rows in (baseline, [len(records) - 1])
        )
        calls = [sum(kind.calls for kind in kinds) for kinds in (old, new)]
        moved = [sum(kind.bytes for kind in kinds) for kinds in (old, new)]
        if all(calls) and all(moved):
            before, after = moved[0] / calls[0], moved[1] / calls[1]
            if not is_alike(after / before, MARGIN):
                found[layer, op] = (before, after)
    return found


def kinds_of(records: Sequence[RunRecord]) -> list[tuple[str, str]]:
    """Return layer and operation of the kinds of I/O calls of some runs, most time first."""
    times_s: dict[tuple[str, str], float] = {}
    for record in records:
        for kind in record.kinds:
            key = (kind.layer, kind.op)
            if key not in WAITS_FOR_TASKS:
                times_s[key] = times_s.get(key, 0.0) + kind.time_s
    return sorted(times_s, key=lambda key: -times_s[key])


def _parts_of_kind(records: Sequence[RunRecord], layer: str, op: str) -> list[Column]:
    runs = [one.kind(layer, op) for one in records]
    calls = np.array([0.0 if kind is None else kind.calls for kind in runs])
    columns: list[Column] = [(Part(CALLS, "calls", layer, op), calls, 0.0)]
    if any(kind is not None and kind.calls and not kind.counts for kind in runs):
        return columns + _means(runs, layer, op)
    made = [at for at, kind in enumerate(runs) if kind is not None and kind.counts]
    time_s = sum(kind.time_s for kind in runs if kind is not None)
    if len(made) < 2 or time_s < LEAST_SHARE * sum(one.totals.get("io_time_s", 0.0) for one in records):
        return columns
    kept = [kind for kind in runs if kind is not None and kind.counts]
    found = values_of_runs([kind.sample() for kind in kept])
    if found is None:
        return columns
    mean_s = time_s / max(calls.sum(), 1.0)
    modes = [part for part in found.parts if part.what == PLACE]
    for at, part in enumerate(found.parts):
        if part.what == RATIO:
            continue  # locations are relative to the common factor
        if part.what in (TAIL, TAIL_PLACE) and np.median(calls[made]) < FEWEST_CALLS:
            continue  # a single call would be the tail
        value = np.full(len(records), np.nan)
        value[made] = found.runs.value[:, at]
        if part.what == WEIGHT and len(modes) == 2 and part.mode == 1:
            value, part = 1 - value, replace(part, mode=2, t_s=modes[1].t_s, weight=modes[1].weight)
        slower = -1 if part.what == WEIGHT and part.t_s < mean_s else 1
        grain = _WEIGHT_GRAIN if part.what == WEIGHT else part.grain_octaves
        many = part.weight * float(calls.sum())
        drawn = _drawn_of_shares(value, calls) if part.what in (WEIGHT, TAIL) else 0.0
        columns.append((Part(part.what, part.name, layer, op, part.t_s, slower, grain, many), value, drawn))
    return columns


def _drawn_of_shares(value: np.ndarray, calls: np.ndarray) -> np.ndarray:
    """Return the variance of binomial shares of so many calls, with the share of all runs."""
    known = np.isfinite(value)
    share = (float(value[known] @ calls[known]) + 0.5) / (float(calls[known].sum()) + 1)
    variance: np.ndarray = share * (1 - share) / np.maximum(calls, 1)
    return variance


def _means(runs: Sequence[KindRecord | None], layer: str, op: str) -> list[Column]:
    """Mean durations, where only sums are known."""
    value = np.full(len(runs), np.nan)
    for at, kind in enumerate(runs):
        if kind is not None and kind.calls and kind.time_s > 0:
            value[at] = np.log2(kind.time_s / kind.calls)
    if not np.isfinite(value).any():
        return []
    calls = float(sum(kind.calls for kind in runs if kind is not None))
    octave = float(np.nanmean(value))
    return [(Part(PLACE, "mean duration", layer, op, 2.0**octave, calls=calls), value - octave, 0.0)]


def _phases(records: Sequence[RunRecord]) -> list[Column]:
    """Times of the phases, if all runs have the same phases."""
    numbers = {tuple((one.phase, one.name) for one in record.phases) for record in records}
    if len(numbers) != 1 or not (phases := next(iter(numbers))) or len(phases) > _MOST_PHASES:
        return []
    columns: list[Column] = []
    for at, (number, name) in enumerate(phases):
        time_s = np.array([record.phases[at].time_s for record in records])
        if (time_s > 0).all():
            label = f"phase {number} time" if name is None else f"phase {number} ({name}) time"
            part = Part(PHASE, label, number=number, kind=name or "")
            columns.append((part, np.log2(time_s), 0.0))
    return columns


def _time(records: Sequence[RunRecord]) -> list[Column]:
    """Time in I/O of whole runs, which decides as in ``ensio compare``: that of the critical path first."""
    for what in (*FIRST_TESTED, "io_time_s"):
        time_s = np.array([record.totals.get(what, 0.0) for record in records])
        if (time_s > 0).all():
            return [(Part(TIME, "time in I/O", t_s=1.0), np.log2(time_s), 0.0)]
    return []


def _rates(records: Sequence[RunRecord], baseline: Sequence[int]) -> list[Column]:
    """Rates of reads and writes; not of other numbers of bytes, where time decides."""
    columns: list[Column] = []
    for op in ("read", "write"):
        rate = np.array([record.rates_bytes_per_s.get(op, 0.0) for record in records])
        moved = np.array([sum(one.bytes for one in record.kinds if one.op == op) for record in records])
        usual = float(moved[np.asarray(baseline)].mean())
        is_alike = not moved.any() or (1 - MARGIN) * usual <= moved[-1] <= usual / (1 - MARGIN)
        if (rate > 0).all() and is_alike:
            columns.append(
                (Part(RATE, f"{op} rate", op=op, slower=-1), np.log2(rate), _drawn_of_means(records, op))
            )
    return columns


def _drawn_of_means(records: Sequence[RunRecord], op: str) -> np.ndarray:
    """Return the variance of the log2 of mean durations, with the durations of all runs."""
    layer = next((layer for layer, of_kind in kinds_of(records) if of_kind == op), None)
    middles_s = 0.5 * (bin_edges_s()[:-1] + bin_edges_s()[1:])
    runs = [one.kind(layer, op) for one in records]
    counts = np.zeros(len(middles_s))
    for kind in runs:
        if kind is not None and kind.counts:
            counts[np.array(kind.bins)] += kind.counts
    if not counts.any():
        return np.zeros(len(records))
    mean_s = float(counts @ middles_s) / counts.sum()
    spread = float(counts @ (middles_s - mean_s) ** 2) / counts.sum() / mean_s**2
    calls = np.array([0 if kind is None else kind.calls for kind in runs])
    variance: np.ndarray = spread / np.log(2) ** 2 / np.maximum(calls, 1)
    return variance


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

"""Times and totals a run of groups of runs.

Times are apart by a t test with the run as unit; numbers of calls, bytes, files and phases need no test.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np

from ensembles.comparison.hypothesis_tests import LEVEL
from ensembles.comparison.model import RunValues, fit_effects, holm, runs_needed
from ensembles.model.levels import A_TENTH, LITTLE, MOST, RARE
from ensembles.model.sanitize_text import sanitize_text
from ensembles.model.units import bytes_text, number_text, ratio_text, seconds_text, share_text

if TYPE_CHECKING:
    from ensembles.model.counters import Counters
    from ensembles.run.run import Run


LEAST_CALLS = 10
"""Numbers of calls that differ by less do not count as a finding. Kinds of calls with fewer calls a run are
tested only if their share of the time in I/O is a twentieth."""

COUNTS = (
    "tasks",
    "io_tasks",
    "calls",
    "opens",
    "bytes",
    "mean_size_bytes",
    "bytes_read",
    "bytes_written",
    "files",
    "phases",
    "unended",
)
"""Totals that the program determines; the others are times."""


@dataclass(frozen=True)
class Total:
    """A total of the runs of each group.

    Attributes
    ----------
    what : str
        ``calls``, ``bytes``, ``mean_size_bytes`` and ``time_s`` of one kind of calls; of runs: ``tasks``,
        ``files``, ``phases``, ``bytes_read``, ``bytes_written``, ``io_time_s`` and ``wait_time_s`` (summed
        over tasks), ``span_s``, of several tasks ``io_tasks`` (tasks with I/O calls) and, if it is known,
        ``critical_path_s`` (I/O on the critical path), ``unended`` (processes that did not end, if any),
        ``tasks_at_once`` (mean number that live at one time, or all; of runs of which some never do);
        of counters of another tool ``opens``, ``run_time_s`` and, if it is known, ``slowest_task_s`` (in
        the interface in which the slowest task takes longest).
    typical, low, high : list of float
        Mean, least and greatest value of the runs of each group.
    ratios : list of float or None
        Mean of each group but the first over that of the first; None: the first has none.
    differs : bool or None
        Whether the values of some group lie all below or all above those of the first; None for times.
    is_finding : bool
        Whether a number of calls is another one, beyond the margin and beyond its variation from run to run.
    """

    what: str
    typical: list[float]
    low: list[float]
    high: list[float]
    ratios: list[float | None]
    differs: bool | None
    is_finding: bool


def make_total(what: str, values: Sequence[Sequence[float]], margin: float, level: float) -> Total:
    """Make a total.

    Examples
    --------
    >>> from ensembles.comparison.times import make_total
    >>> syncs = make_total("calls", [[4, 4, 4], [2052]], margin=0.1, level=0.05)
    >>> syncs.ratios, syncs.differs, syncs.is_finding
    ([513.0], True, True)
    """
    typical = [float(np.mean(group)) for group in values]
    low, high = [float(min(group)) for group in values], [float(max(group)) for group in values]
    apart = [low[g] > high[0] or high[g] < low[0] for g in range(1, len(values))]
    ratios = [value / typical[0] if typical[0] else None for value in typical[1:]]
    return Total(
        what,
        typical,
        low,
        high,
        ratios,
        any(apart) if what in COUNTS else None,
        what == "calls"
        and any(is_apart and _is_another(values, g, margin, level) for g, is_apart in enumerate(apart, 1)),
    )


def counts_text(totals: Sequence[Total], names: Sequence[str] = ()) -> str:
    """Return how many calls of a kind the groups make, with their sizes if these differ.

    Examples
    --------
    >>> calls = make_total("calls", [[128], [2048]], margin=0.1, level=0.05)
    >>> sizes = make_total("mean_size_bytes", [[262144], [16384]], margin=0.1, level=0.05)
    >>> counts_text([calls, sizes])
    '2,048 calls of 16.0 KiB a run instead of 128 of 256 KiB'
    """
    by_name = {total.what: total for total in totals}
    calls, sizes = by_name["calls"].typical, by_name.get("mean_size_bytes")
    of = [""] * len(calls)
    if sizes is not None and sizes.differs and all(sizes.typical):
        of = [f" of {bytes_text(value)}" for value in sizes.typical]
    others = list(range(1, len(calls)))
    if len(names) > 2:
        others = [at for at in others if calls[at] != calls[0]]
    told = [
        f"{number_text(calls[at], 6)}{' calls' if at == others[0] else ''}{of[at]}"
        + (f" ({sanitize_text(names[at])})" if len(names) > 2 else "")
        for at in others
    ]
    return f"{' and '.join(told)} a run instead of {number_text(calls[0], 6)}{of[0]}"


def _is_another(values: Sequence[Sequence[float]], g: int, margin: float, level: float) -> bool:
    before, after = float(np.mean(values[0])), float(np.mean(values[g]))
    if abs(after - before) < LEAST_CALLS or min(before, after) >= (1 - margin) * max(before, after):
        return False
    if all(len(set(values[number])) == 1 for number in (0, g)):
        return True  # each run of a group makes the same number of calls
    both = np.log2(1 + np.concatenate([values[0], values[g]]))[:, None]
    group = np.repeat([0, 1], [len(values[0]), len(values[g])])
    return bool(fit_effects(RunValues(both, group, np.zeros(1, int), np.zeros(1))).p[0, 0] <= level)


@dataclass(frozen=True)
class ComparedSums:
    """The sums over a run that are compared without a test."""

    totals: dict[str, float]  # Value of each total of runs (`Total.what`) that is known of the run
    # Calls and bytes of its reads and writes by layer and operation
    moved: dict[tuple[str, str], tuple[int, int]]


def totals_of_runs(
    groups: Sequence[Sequence[ComparedSums]], margin: float, level: float
) -> tuple[list[Total], dict[tuple[str, str], list[Total]]]:
    """Compute the totals of whole runs, and bytes and sizes of their reads and writes."""
    found = [[run.totals for run in group] for group in groups]
    runs = [one for group in found for one in group]
    names = [name for name in runs[0] if all(name in one for one in runs)]
    if all(one.get("tasks_at_once") == one.get("tasks") for one in runs):
        names = [name for name in names if name != "tasks_at_once"]  # it says nothing
    of_runs = [
        make_total(name, [[one[name] for one in group] for group in found], margin, level) for name in names
    ]
    of_kinds = {}
    for kind in dict.fromkeys(kind for group in groups for run in group for kind in run.moved):
        moved = [[run.moved.get(kind, (0, 0)) for run in group] for group in groups]
        sizes = [[bytes_ / calls if calls else 0.0 for calls, bytes_ in group] for group in moved]
        of_kinds[kind] = [
            make_total("bytes", [[bytes_ for _, bytes_ in group] for group in moved], margin, level),
            make_total("mean_size_bytes", sizes, margin, level),
        ]
    return of_runs, of_kinds


def sums_of_run(run: Run) -> ComparedSums:
    """Compute the sums over a run."""
    from ensembles.passes.group import SummaryRequest
    from ensembles.passes.summary import ignoring_run
    from ensembles.run.headline import find_time_in_io, path_request
    from ensembles.summaries.active_time import unions_ns
    from ensembles.summaries.calltable import CallTable
    from ensembles.summaries.ranktable import empty_ranks
    from ensembles.summaries.runtotals import RunTotals

    wanted = {
        "table": SummaryRequest(ignoring_run(CallTable)),
        "totals": SummaryRequest(ignoring_run(RunTotals)),
    }
    if run.tasks > 1:
        wanted |= path_request(run)
        if run.reading.needs_pass_for_ranks:
            wanted["ranks"] = SummaryRequest(empty_ranks)
    filled = run.summarize(wanted).summaries
    run.reading.keep_ranks(filled.get("ranks"))
    table, totals = filled["table"], filled["totals"]
    waited_ns = sum(sums.time_ns for call, sums in table.totals.items() if call.waits_for_tasks)
    found: dict[str, float] = {
        "tasks": run.tasks,
        "calls": table.events,
        "bytes_read": totals.bytes_read,
        "bytes_written": totals.bytes_written,
        "files": len(table.files),
        "io_time_s": totals.io_time_ns * 1e-9,
        "wait_time_s": waited_ns * 1e-9,
        "span_s": table.span_ns * 1e-9,
    }
    if run.tasks > 1:
        in_io = find_time_in_io(run, filled)
        if in_io.tasks:
            found["io_tasks"] = in_io.tasks
        if in_io.critical_path_s is not None:
            found["critical_path_s"] = in_io.critical_path_s
    ranked = [each for each in run.info.processes if each.rank >= 0 and each.start_unix_ns < each.end_unix_ns]
    if len({each.rank for each in ranked}) == run.tasks:
        found["tasks_at_once"] = run.tasks
    if not run.info.live_together:
        lives = [(each.rank, each.start_unix_ns, each.end_unix_ns) for each in ranked]
        alive_ns = unions_ns(*np.array(lives, np.int64).T)[1]
        found["tasks_at_once"] = max(round(1e-9 * float(alive_ns.sum()) / run.length_s, 2), 1.0)
    found |= _sums_of_counters(run.counters)
    if run.reading.knows_phases and run.phases is not None:
        found["phases"] = run.phases.count
    unended = sum(not process.ended for process in run.info.processes)
    if unended:
        found["unended"] = unended
    moved: dict[tuple[str, str], tuple[int, int]] = {}
    for call, sums in table.totals.items():
        if call.op in ("read", "write"):
            calls, bytes_ = moved.get((call.layer, call.op), (0, 0))
            moved[call.layer, call.op] = calls + sums.count, bytes_ + sums.bytes
    return ComparedSums(found, moved)


def _sums_of_counters(counters: Counters) -> dict[str, float]:
    """Return what only counters say: opens, the time of the job, and that of its slowest task."""
    modules = counters.modules.values()
    opens = [value or 0 for each in modules for name, value in each.totals.items() if name.endswith("OPENS")]
    slowest_s = [each.slowest_rank_s for each in modules if not each.slowest_is_bound]
    found = {"opens": float(sum(opens))} if opens else {}
    found |= {"run_time_s": counters.run_time_s} if counters.run_time_s > 0 else {}
    return found | ({"slowest_task_s": max(slowest_s)} if slowest_s and counters.tasks > 1 else {})


ASSUMED_SPREAD_OF_TIMES = 0.25
"""Standard deviation of the time in I/O from run to run that is assumed where each group has one run.

Of seven programs that were repeated three to five times on one machine it was 9 to 32 %. The durations of
calls within a run (`ensembles.comparison.model.ASSUMED_SPREAD`) vary less from run to run than their sum.
"""

ASSUMED_SPREAD_OF_KINDS = 0.5
"""The same of the time in calls of one kind. Of these programs it was 7 to 40 % for reads, writes and syncs
with a hundredth of the time in I/O or more, and 12 to 42 % for opens. Twice that is assumed of single runs
whose calls do not show that they differ, and of whole runs for the part of the difference that these hold: on
a busy machine, as many syncs or writes took two to eight times as long in some runs as in others."""

LEAST_SPREAD_OF_NEW_RUN = 0.15
"""Least standard deviation of the time in I/O from run to run with which one new run is judged, however alike
its baselines are: nothing shows how much its group varies, and a busy machine slows one run of ten or so. Of
repeated healthy runs 8 % failed against four baselines without it, and 2.5 % with it; runs that take 1.5
times as long are found as often (docs/reference/calibration/compare.md)."""

LEAST_SPREAD_OF_NEW_KIND = 0.2
"""The same of the time in calls of one kind."""

FEWEST_FREEDOM = 3
"""Runs beyond the first of each group from which on they show how much they vary: as four runs and one."""

MARGIN = A_TENTH
"""Largest relative change that counts as no change."""

OF_PROCESSES = ("tasks", "tasks_at_once", "unended", "run_time_s", "span_s")
"""Totals of a run that do not depend on which of its calls are recorded."""

OF_IO = ("critical_path_s", "slowest_task_s", "io_time_s")
"""Times of whole runs that fail ``--fail-on`` if they are longer."""

LEAST_SHARE = RARE
"""Kinds of calls with a smaller share of the time in I/O in all groups are not tested."""

LEAST_OF_WHOLE = MOST
"""Least part of what a kind of calls adds by which the time in I/O of the whole run is longer, too."""

SPREAD_OF = {
    True: (ASSUMED_SPREAD_OF_TIMES, LEAST_SPREAD_OF_NEW_RUN),
    False: (ASSUMED_SPREAD_OF_KINDS, LEAST_SPREAD_OF_NEW_KIND),
}
"""Of whole runs, and of kinds of calls: what is assumed of few runs, and of one new run against many."""

_LEAST_S = 1e-9


@dataclass(frozen=True)
class TimeChange:
    """A time a run of a group, relative to that of the first group.

    Attributes
    ----------
    what : str
        ``io_time_s``, ``critical_path_s``, ``slowest_task_s``, ``wait_time_s``, ``span_s``; of a kind of
        calls ``posix write``.
    group : str
        Name of the group.
    runs : list of int
        Number of runs of the first group and of this one.
    before_s, after_s : float
        Means of the runs of the first group and of this one.
    ratio : float or None
        `after_s` over `before_s`; None: the first is 0.
    low, high : float or None
        95 % interval of the ratio of geometric means; None: not tested.
    p : float or None
        p-value of the t test on the logarithms of the times of runs; None: not tested, because a group takes
        no time or the time is below `LEAST_SHARE` of that in I/O. Of so few runs that they show their
        variation with less than `FEWEST_FREEDOM` degrees of freedom, it is that of a normal test with their
        variation or, if that is larger, the assumed one. Of one new run against more, it is at least that of
        a normal test with the assumed variation.
    adjusted_p : float or None
        The same with Holm's correction for all kinds of calls and groups. Of whole runs the first time (I/O
        of the critical path, else time in I/O) has its p, corrected for the groups, and the others count only
        as far as it does.
    assumed_spread : float or None
        The standard deviation from run to run, relative to the time, that `p` assumes, because so few runs,
        or the baselines of one new run, vary by less. None: the runs show it themselves, or the time is not
        tested.
    """

    what: str
    group: str
    runs: list[int]
    before_s: float
    after_s: float
    ratio: float | None
    low: float | None = None
    high: float | None = None
    p: float | None = None
    adjusted_p: float | None = None
    assumed_spread: float | None = None

    def is_certain(self, level: float) -> bool:
        """Whether the time is certainly another one."""
        return self.adjusted_p is not None and self.adjusted_p <= level

    def is_longer(self, level: float, factor: float = 1.0) -> bool:
        """Whether the time is certainly longer, and by this factor."""
        return self.is_certain(level) and self.ratio is not None and self.ratio > 1 and self.ratio >= factor

    def is_shorter(self, level: float) -> bool:
        """Whether the time is certainly shorter."""
        return self.is_certain(level) and self.ratio is not None and self.ratio < 1

    @property
    def text(self) -> str:
        """Both times and their ratio: ``749 ms → 9.58 s, × 12.8``."""
        ratio = "" if self.ratio is None else f", {ratio_text(self.ratio)}"
        return f"{seconds_text(self.before_s)} → {seconds_text(self.after_s)}{ratio}"

    @property
    def evidence(self) -> str:
        """The p-value, with what it assumes: ``p 0.0012``, ``p 0.028 if runs vary by 25 %``."""
        if self.adjusted_p is None:
            return "not tested"
        assumed = self.assumed_spread
        return f"p {self.adjusted_p:.2g}" + (f" if runs vary by {share_text(assumed)}" if assumed else "")

    @property
    def is_of_single_runs(self) -> bool:
        """Whether both groups have one run, of which only an assumed variation can judge."""
        return max(self.runs) == 1

    @property
    def is_of_one_new_run(self) -> bool:
        """Whether one run is compared with several."""
        return min(self.runs) == 1 < max(self.runs)


def runs_that_decide(change: TimeChange, level: float) -> int | None:
    """Return how many runs per group would show a change of this size, at the variation that its p is for.

    Examples
    --------
    Of two runs, assumed to vary by 25 %, one takes 1.8 times as long:

    >>> from ensembles.comparison.times import runs_that_decide, time_changes
    >>> (change,) = time_changes({"io_time_s": [[1.0], [1.8]]}, ["a", "b"], ["io_time_s"], True)["io_time_s"]
    >>> round(change.p, 3), runs_that_decide(change, 0.05)
    (0.063, 4)
    """
    from ensembles.statistics.special import ndtri

    if change.p is None or not 0 < change.p < 1 or change.low is None or change.high is None:
        return None
    octaves = abs(math.log2(change.low * change.high) / 2)
    error = octaves / float(ndtri(1 - change.p / 2))
    spread = error / math.sqrt(sum(1 / n for n in change.runs))
    if change.is_of_single_runs:  # several show how much they vary, of which more is assumed than most do
        spread = min(spread, math.log2(1 + ASSUMED_SPREAD_OF_KINDS))
    return runs_needed(spread, octaves, level, 0.5) if octaves else None


def time_changes(
    times_s: Mapping[str, Sequence[Sequence[float]]],
    names: Sequence[str],
    tested: Sequence[str],
    of_whole_runs: bool = False,
    unsteady: Mapping[str, float] = MappingProxyType({}),
) -> dict[str, list[TimeChange]]:
    """Test whether times a run of groups differ from those of the first group.

    `unsteady`: the part of each that is assumed to vary twice as much as the times of kinds of calls.

    Examples
    --------
    Four baselines, and one new run that takes three times as long:

    >>> from ensembles.comparison.times import time_changes
    >>> times_s = {"io_time_s": [[1.0, 1.2, 0.9, 1.1], [3.1]]}
    >>> (change,) = time_changes(times_s, ["a", "b"], ["io_time_s"])["io_time_s"]
    >>> round(change.ratio, 2), change.is_longer(0.05, 1.1)
    (2.95, True)
    """
    found = {what: _untested(what, values, names) for what, values in times_s.items()}
    for what in tested:
        few, one = SPREAD_OF[of_whole_runs]
        few += unsteady.get(what, 0.0) * (2 * ASSUMED_SPREAD_OF_KINDS - few)
        found[what] = _tested(found[what], times_s[what], (few, one))
    for family in (tested[:1], tested[1:]) if of_whole_runs else (tested,):
        places = [(what, at) for what in family for at, each in enumerate(found[what]) if each.p is not None]
        adjusted = holm([found[what][at].p or 0.0 for what, at in places]).tolist()
        for (what, at), p in zip(places, adjusted, strict=True):
            if of_whole_runs and what != tested[0]:
                first = found[tested[0]][at].adjusted_p
                p = 1.0 if first is None else max(p, first)
            found[what][at] = replace(found[what][at], adjusted_p=p)
    return found


def _untested(what: str, values_s: Sequence[Sequence[float]], names: Sequence[str]) -> list[TimeChange]:
    means = [float(np.mean(group)) for group in values_s]
    return [
        TimeChange(
            what,
            names[at],
            [len(values_s[0]), len(values_s[at])],
            means[0],
            means[at],
            means[at] / means[0] if means[0] else None,
        )
        for at in range(1, len(means))
    ]


def _tested(
    changes: Sequence[TimeChange], values_s: Sequence[Sequence[float]], assumed: tuple[float, float]
) -> list[TimeChange]:
    """Add the t test: of few runs, and of one new run, with an assumed variation."""
    from ensembles.statistics.special import ndtri

    normal = float(ndtri(1 - LEVEL / 2))
    logs = [
        np.log2(np.maximum(group, _LEAST_S)) if any(group) else np.full(len(group), np.nan)
        for group in values_s
    ]
    sizes = list(map(len, logs))
    group, one = np.repeat(np.arange(len(logs)), sizes), np.zeros(1)
    value = np.array([float(each.mean() - logs[0].mean()) for each in logs[1:]])
    half, p, between = np.full(len(value), np.inf), np.ones(len(value)), np.zeros(len(value))
    if max(sizes) > 1:
        fitted = fit_effects(RunValues(np.concatenate(logs)[:, None], group, one.astype(int), one))
        half, p, between = fitted.half_width(LEVEL)[:, 0], fitted.p[:, 0], fitted.error[:, 0]
    few = sum(sizes) - len(sizes) < FEWEST_FREEDOM
    spread = [assumed[0] if few else assumed[1] if min(sizes[0], n) == 1 else 0.0 for n in sizes[1:]]
    runs = np.array([1 / sizes[0] + 1 / n for n in sizes[1:]])
    error = np.log2(1 + np.array(spread)) * np.sqrt(runs)
    with np.errstate(invalid="ignore", divide="ignore"):
        if few:
            # Two or three runs can be close to each other by accident: their t test alone would be certain.
            p, half = 2 * _tail(value / between), normal * between
        is_assumed = (error > 0) & ((2 * _tail(value / error) > p) | ~np.isfinite(p))
        p = np.where(is_assumed, 2 * _tail(value / error), p)
    half = np.fmax(half, normal * error)
    return [
        replace(
            change,
            low=2.0 ** (v - h),
            high=2.0 ** (v + h),
            p=float(q),
            assumed_spread=each if is_mine else None,
        )
        if math.isfinite(v) and math.isfinite(h)
        else change
        for change, v, h, q, each, is_mine in zip(
            changes, value.tolist(), half.tolist(), p.tolist(), spread, is_assumed.tolist(), strict=True
        )
    ]


def _tail(z: np.ndarray) -> np.ndarray:
    """Return the probability that a normal value is farther from 0 to one side."""
    from ensembles.statistics.special import ndtr

    return np.asarray(ndtr(-np.abs(z)))


def kinds_to_test(
    times_s: Mapping[str, Sequence[Sequence[float]]],
    calls: Mapping[str, Sequence[Sequence[float]]],
    least_share: float = LEAST_SHARE,
) -> list[str]:
    """Return the kinds of calls that take enough of the time in I/O in some group."""
    means = {what: [float(np.mean(group)) for group in values] for what, values in times_s.items()}
    if not means:
        return []
    least_s = min(sum(each) for each in zip(*means.values(), strict=True))
    return [
        what
        for what, each in means.items()
        if max(each) >= least_s * (least_share if _are_many(calls[what]) else LITTLE)
    ]


def _are_many(calls: Sequence[Sequence[float]]) -> bool:
    return max(float(np.mean(group)) for group in calls) >= LEAST_CALLS

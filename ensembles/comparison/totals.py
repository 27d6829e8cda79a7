"""What needs no test: numbers of calls, bytes, files and phases, and times, of the runs of each group."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ensembles.comparison.model import RunValues, fit_effects
from ensembles.model.sanitize_text import sanitize_text
from ensembles.model.units import bytes_text, number_text

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
        over tasks), ``span_s``, and of several tasks ``io_tasks`` (tasks with I/O calls) and, if it is known,
        ``critical_path_s`` (I/O on the critical path); of counters of another tool ``opens``, ``run_time_s``
        and, if it is known, ``slowest_task_s`` (in the interface in which the slowest task takes longest).
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
    >>> from ensembles.comparison.totals import make_total
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
    names = [name for name in found[0][0] if all(name in one for group in found for one in group)]
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
    from ensembles.run.headline import blocked_request, find_time_in_io
    from ensembles.summaries.calltable import CallTable
    from ensembles.summaries.ranktable import empty_ranks
    from ensembles.summaries.runtotals import RunTotals

    wanted = {
        "table": SummaryRequest(ignoring_run(CallTable)),
        "totals": SummaryRequest(ignoring_run(RunTotals)),
    }
    if run.tasks > 1:
        wanted |= blocked_request(run)
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
    found |= _sums_of_counters(run.counters)
    if run.reading.knows_phases and run.phases is not None:
        found["phases"] = run.phases.count
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

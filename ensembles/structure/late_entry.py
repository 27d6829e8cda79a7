"""The task that enters collective calls later than the others, which wait for it inside them.

Commands, pictures and findings ask here, so that all of them name the same task.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from ensembles.model.fields import Fields
from ensembles.model.levels import MOST, NEARLY_ALL, RARE, SEVERAL, SIGNIFICANT
from ensembles.model.units import count_text, seconds_text
from ensembles.structure.phases.critical_path import CriticalIo
from ensembles.structure.phases.late_calls import LEAST_RATIO
from ensembles.summaries.collective_steps import CollectiveEntries, is_meeting

if TYPE_CHECKING:
    from ensembles.structure.recorded_run import RecordedRun

LEAST_SHARE = RARE
"""Share of the run for which others wait, from which on a task is named, and waiting inside phases too."""


@dataclass(frozen=True)
class LateEntry(Fields):
    """A task that enters collective calls late.

    `late_s`: by how much it enters later than the other tasks in the median, summed over calls, as far as the
    others spend that time inside the calls. `call`, `calls`, `call_late_s`: the function at which it is late
    most, how often it calls it, and the part of `late_s` there. `io_s`: by how much longer than the other
    tasks in the median it is in I/O calls; in collective ones, by how much later it leaves them than it
    enters them (it makes requests for the others), if it meets the others after that.
    """

    rank: int
    late_s: float
    call: str
    calls: int
    call_late_s: float
    io_s: float = 0.0

    @property
    def is_of_io(self) -> bool:
        """Whether its I/O explains `MOST` of its lateness or more: findings are about that."""
        return self.io_s >= MOST * self.late_s

    def __str__(self) -> str:
        most = f", {seconds_text(self.call_late_s)} of it in "
        if self.call_late_s >= NEARLY_ALL * self.late_s:
            most = ", in "
        why = "look at what it does before (computation, messages, other I/O)"
        if self.is_of_io:
            why = f"it is {seconds_text(self.io_s)} longer in I/O calls, which ensio diagnose examines"
        return (
            f"rank {self.rank} enters collective calls later than the others, by "
            f"{seconds_text(self.late_s)} in all{most}{count_text(self.calls, 'call')} of {self.call}; they "
            f"wait for it inside: {why}"
        )


def late_entry(
    found: CollectiveEntries, tasks: int, run_s: float, clock_error_ns: int = 0
) -> LateEntry | None:
    """Find the task for which the others wait in collective calls.

    Only functions count that all tasks of the run call equally often, `SEVERAL` times or more. A task
    that enters late also spends less time inside: one for which no other task waits is not named.

    None: no task is late by `LEAST_SHARE` of the run and by habit (`is_habit`), several tasks are, or the
    calls cannot be compared.
    """
    rows = found.table.columns()
    if tasks < 2 or not len(rows["n"]):
        return None
    calls, times, meetings = [], [], []
    for call in sorted(set(rows["call"].tolist())):
        parts = [
            {name: column[chosen] for name, column in rows.items()}
            for part in sorted(set(rows["part"].tolist()))
            if (chosen := (rows["call"] == call) & (rows["part"] == part)).any()
        ]
        if not all(len(part["n"]) == tasks and (part["n"] == part["n"][0]).all() for part in parts):
            continue
        count = sum(int(part["n"][0]) for part in parts)
        if count < SEVERAL:
            continue
        calls.append((found.names[call], count))
        # Rows of all parts are in the order of ranks.
        whole = {name: np.sum([part[name] for part in parts], axis=0) for name in ("start_ns", "time_ns")}
        times.append(_late_ns(whole, clock_error_ns * count))
        meetings.append([_late_ns(part, clock_error_ns * int(part["n"][0])) for part in parts])
    if not calls:
        return None
    late_ns = np.array(times)
    of_tasks = late_ns.sum(axis=0)
    last = int(np.argmax(of_tasks))
    if of_tasks[last] < max(LEAST_SHARE * run_s * 1e9, LEAST_RATIO * np.delete(of_tasks, last).max(), 1.0):
        return None
    most = int(np.argmax(late_ns[:, last]))
    if not is_habit(np.array(meetings[most]), last):
        return None
    ranks = np.unique(rows["rank"])
    return LateEntry(
        int(ranks[last]), 1e-9 * float(of_tasks[last]), *calls[most], 1e-9 * float(late_ns[most, last])
    )


def is_habit(late: np.ndarray, task: int) -> bool:
    """Check whether a task is the last again and again, more often than chance would have it.

    If nothing distinguished the tasks, each would be the last of a meeting with the same probability. The
    number of its meetings is then binomial; the level is divided by the number of tasks, as the worst was
    chosen (Bonferroni).

    `late`: how late each task comes; NaN: it does not come.

    Examples
    --------
    >>> from ensembles.structure.late_entry import is_habit
    >>> is_habit(np.tile([0.0, 0.0, 3.0, 0.0], (8, 1)), 2), is_habit(np.eye(4), 2)
    (True, False)
    """
    late = late[np.isfinite(late).sum(axis=1) > 1]
    if not len(late):
        return False
    tasks = float(np.isfinite(late).sum(axis=1).mean())
    most = np.nanmax(late, axis=1)
    # Of several that come last together, none is.
    is_last = (late[:, task] == most) & ((late == most[:, None]).sum(axis=1) == 1)
    times = int(is_last.sum())
    if not times:
        return False
    return binomial_tail(times, len(late), 1 / tasks) * tasks <= SIGNIFICANT


def binomial_tail(least: int, trials: int, p: float) -> float:
    """Return the probability of `least` successes or more, from 1 on, in so many trials."""
    number = np.arange(1, trials + 1)
    log_ways = np.cumsum(np.log((trials - number + 1) / number))
    log_p = log_ways + number * np.log(p) + (trials - number) * np.log1p(-p)
    return float(np.exp(log_p[least - 1 :]).sum())


def late_of_run(entries: CollectiveEntries, io: CriticalIo, run: RecordedRun) -> LateEntry | None:
    """Find the task for which others wait in collective calls, and whether its own I/O makes it late."""
    found = late_entry(entries, run.tasks, run.length_s, run.info.clock_error_ns)
    if found is None:
        return None
    rows, meetings = io.to_arrays(), entries.table.columns()
    ranks = np.unique(meetings["rank"])  # also those that make no other calls
    mine = ranks == found.rank
    # Waiting for others in collective calls does not count.
    is_io = np.array([call.layer == "mpiio" for call in run.calls], bool)[meetings["call"]]
    known = np.isin(rows["rank"], ranks)
    busy, waits = (
        np.bincount(np.searchsorted(ranks, rank), time_ns, len(ranks))
        for rank, time_ns in (
            (rows["rank"][known], rows["io_ns"][known]),
            (meetings["rank"][is_io], meetings["time_ns"][is_io]),
        )
    )
    own = busy - waits
    io_s = max(1e-9 * float(own[mine].sum() - np.median(own[~mine])), 0.0)
    return _before_meeting(replace(found, io_s=io_s), entries, run)


def _before_meeting(found: LateEntry, entries: CollectiveEntries, run: RecordedRun) -> LateEntry:
    """Say what makes a task late for a meeting that follows collective I/O calls.

    A task that leaves these later than the others also entered them later, or it is longer inside, as it
    makes requests for the others.
    """
    layers = {(call.name, call.layer) for call in run.calls}
    if (found.call, "mpiio") in layers or 2 * found.call_late_s < found.late_s:
        return found
    entered: list[tuple[float, str, int]] = []
    left_s = 0.0
    for number, ranks, count, start_ns, time_ns in _calls_of_all(entries, run):
        if run.calls[number].layer == "mpiio":
            of_rank = int(np.searchsorted(ranks, found.rank))
            enters_ns, leaves_ns = (
                float(_beyond_others(ns)[of_rank]) for ns in (start_ns, start_ns + time_ns)
            )
            entered.append((1e-9 * max(enters_ns, 0.0), run.calls[number].name, count))
            left_s += 1e-9 * max(leaves_ns, 0.0)
    if left_s < MOST * found.call_late_s:
        return found
    entered_s = sum(late_s for late_s, _, _ in entered)
    if entered_s < MOST * left_s:
        return replace(found, io_s=found.io_s + left_s - entered_s)
    late_s, call, calls = max(entered)
    return replace(found, late_s=entered_s, call=call, calls=calls, call_late_s=late_s)


def leaves_later(entries: CollectiveEntries, run: RecordedRun, rank: int) -> tuple[float, str]:
    """Find the collective call that a task leaves later than the others, although all tasks had entered it.

    By how much it leaves later than the other tasks in the median, summed over the calls of the function
    where that is most, s, and the function. 0 and ``""``: it does not, or the calls cannot be compared.
    """
    found, meets = (0.0, ""), is_meeting(run.calls)
    for call, ranks, _, start_ns, time_ns in _calls_of_all(entries, run):
        if meets[call] and run.calls[call].layer != "mpiio" and rank in ranks and len(ranks) > 1:
            leaves_ns = _beyond_others(start_ns + time_ns)
            found = max(found, (1e-9 * float(leaves_ns[np.searchsorted(ranks, rank)]), run.calls[call].name))
    return found


def _calls_of_all(
    entries: CollectiveEntries, run: RecordedRun
) -> Iterator[tuple[int, np.ndarray, int, np.ndarray, np.ndarray]]:
    """Yield functions that all tasks call equally often: ranks, calls, and sums of starts and durations."""
    rows = entries.table.columns()
    for call in np.unique(rows["call"]).tolist():
        mine = rows["call"] == call
        ranks, at = np.unique(rows["rank"][mine], return_inverse=True)
        count, start_ns, time_ns = (
            np.bincount(at, rows[name][mine]) for name in ("n", "start_ns", "time_ns")
        )
        if len(ranks) >= run.tasks and (count == count[0]).all():
            yield call, ranks, int(count[0]), start_ns, time_ns


def _late_ns(rows: dict[str, np.ndarray], error_ns: int) -> np.ndarray:
    """Return how late each task is, as far as the others wait for it: shape (tasks,), ns."""
    late = _beyond_others(rows["start_ns"]) - error_ns
    late_ns: np.ndarray = np.maximum(np.minimum(late, -_beyond_others(rows["time_ns"])), 0.0)
    return late_ns


def _beyond_others(values: np.ndarray) -> np.ndarray:
    """Return by how much each value exceeds the median of the other ones."""
    order = np.argsort(values, kind="stable")
    ordered, count = values[order].astype(np.float64), len(values)
    place = np.empty(count, np.int64)
    place[order] = np.arange(count)
    # Without its own value, the middle of those that are left: one place further for each below it.
    low, high = (count - 2) // 2, (count - 1) // 2
    middle = (ordered[low + (place <= low)] + ordered[high + (place <= high)]) / 2
    beyond: np.ndarray = values - middle
    return beyond

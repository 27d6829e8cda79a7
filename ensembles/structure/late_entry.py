"""The task that enters collective calls later than the others, which wait for it inside them.

Commands, pictures and findings ask here, so that all of them name the same task.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ensembles.model.units import count_text, seconds_text
from ensembles.structure.phases.critical_path import CriticalIo
from ensembles.summaries.collective_entries import CollectiveEntries

if TYPE_CHECKING:
    from ensembles.run.run import Run

LEAST_PART = 0.5
"""Part of its lateness that a task spends longer in other I/O calls than the others do: these explain it."""

LEAST_SHARE = 0.01
"""Share of the run for which the others wait, from which the task is named."""

LEAST_CALLS = 3
"""Calls of a function by each task: what happens once is not a habit."""

LEAST_RATIO = 2.0
"""Least ratio of its lateness to that of the next task: else tasks are late in turns, or several are."""

_NEARLY_ALL = 0.95


@dataclass(frozen=True)
class LateEntry:
    """A task that enters collective calls late.

    Attributes
    ----------
    rank : int
    late_s : float
        By how much it enters later than the other tasks in the median, summed over calls, as far as the
        others spend that time inside the calls, s.
    call : str
        The function at which it is late most.
    calls : int
        Number of its calls of the function.
    call_late_s : float
        The part of `late_s` at that function, s.
    io_s : float
        By how much longer than the other tasks in the median it is in I/O calls, without collective ones, s.
    """

    rank: int
    late_s: float
    call: str
    calls: int
    call_late_s: float
    io_s: float = 0.0

    @property
    def is_of_io(self) -> bool:
        """Whether its I/O explains `LEAST_PART` of its lateness or more: findings are about that."""
        return self.io_s >= LEAST_PART * self.late_s

    def to_json(self) -> dict[str, Any]:
        """A dict with the names of the attributes."""
        return asdict(self)

    def __str__(self) -> str:
        most = f", {seconds_text(self.call_late_s)} of it in "
        if self.call_late_s >= _NEARLY_ALL * self.late_s:
            most = ", in "
        why = "look at what it does before (computation, messages, other I/O)"
        if self.is_of_io:
            why = f"it is {seconds_text(self.io_s)} longer in other I/O calls, which ensio diagnose examines"
        return (
            f"rank {self.rank} enters collective calls later than the others, by "
            f"{seconds_text(self.late_s)} in all{most}{count_text(self.calls, 'call')} of {self.call}; they "
            f"wait for it inside: {why}"
        )


def late_entry(
    found: CollectiveEntries, tasks: int, run_s: float, clock_error_ns: int = 0
) -> LateEntry | None:
    """Find the task for which the others wait in collective calls.

    Only functions count that all tasks of the run call equally often, `LEAST_CALLS` times or more. A task
    that enters late also spends less time inside: one for which no other task waits is not named.

    Parameters
    ----------
    found : CollectiveEntries
    tasks : int
        Tasks of the run.
    run_s : float
        Length of the run.
    clock_error_ns : int
        Largest error between the clocks of different nodes, which counts in each call.

    Returns
    -------
    LateEntry or None
        None: no task is late by `LEAST_SHARE` of the run, several tasks are, or the calls cannot be compared.
    """
    rows = found.table.columns()
    if tasks < 2 or not len(rows["n"]):
        return None
    calls, times = [], []
    for call in np.unique(rows["call"]).tolist():
        mine = rows["call"] == call
        count = rows["n"][mine]
        if len(count) != tasks or (count != count[0]).any() or count[0] < LEAST_CALLS:
            continue
        error = clock_error_ns * int(count[0])
        late = _beyond_others(rows["start_ns"][mine]) - error
        waits_less = -_beyond_others(rows["time_ns"][mine])
        calls.append((found.names[call], int(count[0])))
        times.append(np.maximum(np.minimum(late, waits_less), 0.0))
    if not calls:
        return None
    late_ns = np.array(times)
    of_tasks = late_ns.sum(axis=0)
    last = int(np.argmax(of_tasks))
    if of_tasks[last] < max(LEAST_SHARE * run_s * 1e9, LEAST_RATIO * np.delete(of_tasks, last).max(), 1.0):
        return None
    most = int(np.argmax(late_ns[:, last]))
    ranks = np.unique(rows["rank"])
    return LateEntry(
        int(ranks[last]), 1e-9 * float(of_tasks[last]), *calls[most], 1e-9 * float(late_ns[most, last])
    )


def late_of_run(entries: CollectiveEntries, io: CriticalIo, run: Run, run_s: float) -> LateEntry | None:
    """Find the task for which others wait in collective calls, and whether its own I/O makes it late.

    Parameters
    ----------
    entries, io : CollectiveEntries, CriticalIo
        Of the whole run, filled.
    run : Run
    run_s : float
        Length of the run.

    Returns
    -------
    LateEntry or None
        As for `late_entry`.
    """
    found = late_entry(entries, run.tasks, run_s, run.info.clock_error_ns)
    if found is None:
        return None
    rows, meetings = io.to_arrays(), entries.table.columns()
    ranks = np.unique(rows["rank"])
    mine = ranks == found.rank
    if not mine.any() or mine.all():
        return found
    # Waiting for others in collective calls does not count.
    is_io = np.array([call.layer == "mpiio" for call in run.calls], bool)[meetings["call"]]
    is_io &= np.isin(meetings["rank"], ranks)
    busy, waits = (
        np.bincount(np.searchsorted(ranks, rank), time_ns, len(ranks))
        for rank, time_ns in (
            (rows["rank"], rows["io_ns"]),
            (meetings["rank"][is_io], meetings["time_ns"][is_io]),
        )
    )
    own = busy - waits
    return replace(found, io_s=max(1e-9 * float(own[mine].sum() - np.median(own[~mine])), 0.0))


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

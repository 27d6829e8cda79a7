"""The task that enters collective calls later than the others, which wait for it inside them."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from ensembles.model.units import count_text, seconds_text
from ensembles.summaries.collective_entries import CollectiveEntries

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
    """

    rank: int
    late_s: float
    call: str
    calls: int
    call_late_s: float

    def to_json(self) -> dict[str, Any]:
        """A dict with the names of the attributes."""
        return asdict(self)

    def __str__(self) -> str:
        most = f", {seconds_text(self.call_late_s)} of it in "
        if self.call_late_s >= _NEARLY_ALL * self.late_s:
            most = ", in "
        return (
            f"rank {self.rank} enters collective calls later than the others, by "
            f"{seconds_text(self.late_s)} in all{most}{count_text(self.calls, 'call')} of {self.call}; they "
            "wait for it inside: look at what it does before (computation, messages, other I/O)"
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

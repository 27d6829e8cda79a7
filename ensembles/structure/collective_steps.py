"""Steps of a collective call of MPI-IO: communication, storage, and waiting for other tasks.

The n-th calls of a function on a file belong together, if all tasks that call it do so equally often. No task
can be served before the last one has entered. So each moment that a task spends in such a call is one of four
kinds, the first that applies:

1. *storage*: the task is in a read, write or sync of a layer below;
2. *entry*: another task has not entered yet, and the task waits for it;
3. *storage of others*: another task is in storage for the same call, and the task waits for it;
4. *communication*: the rest, in which tasks exchange data.

If a task returns before the last one has entered, the tasks did not wait for each other in this call, and the
time without storage is all communication, or work of the library.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ensembles.model.distinct import distinct_rows
from ensembles.model.fields import Fields
from ensembles.model.units import NS_PER_S, count_text
from ensembles.summaries.active_time import MOST_EXACT, disjoint
from ensembles.summaries.collective_steps import CollectiveSteps

NO_STORAGE = (
    "no storage call inside of collective calls was recorded: preload the recorder, or link the MPI library "
    "statically, and record the layer posix"
)


STEPS = ("communication", "storage", "entry", "others_storage")
"""Steps of a collective call, as in the names of attributes and columns."""


@dataclass(frozen=True)
class StepTimes(Fields):
    """Where the tasks of the calls of one function spent their time."""

    call: str  # The function
    collective_calls: int  # Number of collective calls, each of several tasks
    calls: int  # Number of calls, summed over tasks
    tasks: int  # Number of tasks that made them
    independent_calls: int  # Calls, among `calls`, in which tasks did not wait for each other
    time_s: float  # Duration of the calls, summed over tasks. It is the sum of the following.
    # communication_s, storage_s, entry_s, others_storage_s: Time in each kind of step
    # (`ensembles.structure.collective_steps`)
    communication_s: float
    storage_s: float
    entry_s: float
    others_storage_s: float

    def to_json(self) -> dict[str, Any]:
        """Return the fields, and ``shares`` of the time by step."""
        shares = {step: getattr(self, f"{step}_s") / self.time_s if self.time_s else None for step in STEPS}
        return super().to_json() | {"shares": shares}


@dataclass(frozen=True)
class CollectiveStepTable:
    """The steps of all collective calls of a run."""

    rows: tuple[StepTimes, ...]  # By function, the one with the longest time first
    # Calls of functions that some tasks called on a file more often than others; they are in no row
    unmatched_calls: int
    refused: str | None  # Why there are no rows
    crowded: str = ""  # Which tasks share processors, so that messages wait for one; ``""`` if none do

    def to_json(self) -> dict[str, Any]:
        """A dict with the names of the attributes."""
        return {
            "rows": [row.to_json() for row in self.rows],
            "unmatched_calls": self.unmatched_calls,
            "refused": self.refused,
            "crowded": self.crowded,
        }


def step_table(
    found: CollectiveSteps, clock_error_ns: int = 0, crowded: str = ""
) -> CollectiveStepTable | None:
    """Divide the time of collective calls into steps."""
    if not found.collective.count:
        return None
    if not found.is_complete:
        return CollectiveStepTable(
            (),
            0,
            f"{count_text(found.collective.count, 'collective call')} and "
            f"{count_text(found.storage.count, 'storage call')} inside calls are too many: at most "
            f"{MOST_EXACT:,} of each are examined",
        )
    calls, storage = found.collective.to_arrays(), found.storage.to_arrays()
    matched, number = _together(calls)
    unmatched = int(np.count_nonzero(~matched))
    calls = {name: column[matched] for name, column in calls.items()}
    owner = _call_around(calls, storage)
    if not (owner >= 0).any():
        return CollectiveStepTable((), unmatched, NO_STORAGE)
    parts, independent = times_of_steps(calls, number[matched], storage, owner, clock_error_ns)
    rows = []
    for call in np.unique(calls["call"]).tolist():
        mine = calls["call"] == call
        times = [float(column[mine].sum()) / NS_PER_S for column in parts]
        rows.append(
            StepTimes(
                found.names[call],
                len(np.unique(number[matched][mine])),
                int(np.count_nonzero(mine)),
                len(np.unique(calls["rank"][mine])),
                int(np.count_nonzero(independent[mine])),
                float((calls["end"] - calls["start"])[mine].sum()) / NS_PER_S,
                *times,
            )
        )
    rows.sort(key=lambda row: (-row.time_s, row.call))
    return CollectiveStepTable(tuple(rows), unmatched, None, crowded)


def _together(calls: dict[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Tell which calls can be matched, and number the collective calls that they are part of."""
    _, group = distinct_rows(calls["call"], calls["file"])
    order = np.lexsort((calls["start"], calls["rank"], group))
    of_group, of_rank = group[order], calls["rank"][order]
    new = np.concatenate([[True], (of_group[1:] != of_group[:-1]) | (of_rank[1:] != of_rank[:-1])])
    first = np.flatnonzero(new)
    counts = np.diff(np.append(first, len(order)))
    nth = np.arange(len(order)) - np.repeat(first, counts)
    least = np.full(of_group[-1] + 1, np.iinfo(np.int64).max)
    most = np.zeros_like(least)
    np.minimum.at(least, of_group[first], counts)
    np.maximum.at(most, of_group[first], counts)
    matched = (least == most)[group]
    place = np.empty(len(order), np.int64)
    place[order] = nth
    return matched, distinct_rows(group, place)[1]


def _call_around(calls: dict[str, np.ndarray], storage: dict[str, np.ndarray]) -> np.ndarray:
    """Find the collective call of the same thread in which each storage call begins; −1: none."""
    n, m = len(calls["start"]), len(storage["start"])
    rank, thread, start = (np.concatenate([calls[k], storage[k]]) for k in ("rank", "thread", "start"))
    is_storage = np.arange(n + m) >= n
    order = np.lexsort((is_storage, start, thread, rank))
    last = np.maximum.accumulate(np.where(is_storage[order], -1, np.arange(n + m)))
    around = np.full(n + m, -1, np.int64)
    known = last >= 0
    around[order[known]] = order[last[known]]
    owner = around[n:]
    holds = owner >= 0
    mine = owner[holds]
    inside = storage["start"][holds] <= calls["end"][mine]
    inside &= calls["rank"][mine] == storage["rank"][holds]
    inside &= calls["thread"][mine] == storage["thread"][holds]
    owner[np.flatnonzero(holds)[~inside]] = -1
    return owner


class _Lines:
    """Spans on separate lines, laid one behind the other, and the length of their union before a point."""

    def __init__(
        self, line: np.ndarray, start: np.ndarray, end: np.ndarray, low: np.ndarray, high: np.ndarray
    ):
        self._low = low
        self._base = np.concatenate([[0], np.cumsum(high - low + 1)])[:-1]
        place = self._base[line] - low[line]
        spans = (
            disjoint([np.stack([place + start, place + end])]) if len(line) else np.empty((2, 0), np.int64)
        )
        self._start, self._length = spans[0], spans[1] - spans[0]
        self._before = np.concatenate([[0], np.cumsum(self._length)])

    def covered(self, line: np.ndarray, start: np.ndarray, end: np.ndarray) -> np.ndarray:
        """Length of the union of a line's spans within start to end."""
        length: np.ndarray = self._until(line, end) - self._until(line, start)
        return length

    def _until(self, line: np.ndarray, time: np.ndarray) -> np.ndarray:
        at = self._base[line] - self._low[line] + time
        last = np.searchsorted(self._start, at, side="right") - 1
        if not len(self._start):
            return np.zeros(len(at), np.int64)
        within = np.clip(at - self._start[np.maximum(last, 0)], 0, self._length[np.maximum(last, 0)])
        length: np.ndarray = np.where(last < 0, 0, self._before[np.maximum(last, 0)] + within)
        return length


def times_of_steps(
    calls: dict[str, np.ndarray],
    number: np.ndarray,
    storage: dict[str, np.ndarray],
    owner: np.ndarray,
    clock_error_ns: int,
) -> tuple[tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray], np.ndarray]:
    """Compute the time that each call spends in each kind of step."""
    start, end = calls["start"], calls["end"]
    _, number = np.unique(number, return_inverse=True)
    count = int(number.max()) + 1
    entry, exit_ = np.full(count, np.iinfo(np.int64).min), np.full(count, np.iinfo(np.int64).max)
    low, high = exit_.copy(), entry.copy()
    np.maximum.at(entry, number, start)
    np.minimum.at(exit_, number, end)
    np.minimum.at(low, number, start)
    np.maximum.at(high, number, end)
    independent = (exit_ + 2 * clock_error_ns < entry)[number]

    mine = owner >= 0
    at = owner[mine]
    inner_start = np.clip(storage["start"][mine], start[at], end[at])
    inner_end = np.clip(storage["end"][mine], start[at], end[at])
    each = np.arange(len(start))
    own = _Lines(at, inner_start, inner_end, start, end)
    of_all = _Lines(number[at], inner_start, inner_end, low, high)

    storage_ns = own.covered(each, start, end)
    entered = np.where(independent, start, np.minimum(entry[number], end))
    entry_ns = entered - start - own.covered(each, start, entered)
    others_ns = of_all.covered(number, entered, end) - own.covered(each, entered, end)
    others_ns[independent] = 0
    return (end - start - storage_ns - entry_ns - others_ns, storage_ns, entry_ns, others_ns), independent

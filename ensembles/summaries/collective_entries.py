"""When tasks enter the calls in which all of them wait for each other."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ensembles.model.events import Call, Events, of_calls
from ensembles.passes.summary import Summary
from ensembles.summaries.keyed_sums import KeyedSums

_ALL_TO_ALL = "allgather allgatherv allreduce alltoall alltoallv alltoallw reduce_scatter"
_MEETINGS = frozenset(f"MPI_{name.capitalize()}" for name in (*_ALL_TO_ALL.split(" "), "barrier"))
_OF_FILES = frozenset(f"MPI_File_{name}" for name in ("open", "close", "set_size", "set_view", "sync"))

PARTS = 16
"""Number of sums of each task and function, among which its calls are dealt out in turn.

What happens once is in one of them, what a task does again and again is in all.
"""


@of_calls
def is_meeting(calls: Sequence[Call]) -> np.ndarray:
    """Return which functions no task leaves before all have entered, as a rule: bool, shape (len(calls),)."""

    def meets(call: Call) -> bool:
        if call.layer == "mpisync":
            return call.name in _MEETINGS
        return call.layer == "mpiio" and (call.name.endswith("_all") or call.name in _OF_FILES)

    return np.array([meets(call) for call in calls], bool)


class CollectiveEntries(Summary):
    """A mergeable summary: entries of tasks into collective calls of MPI, as sums.

    `names`: names of all functions of the run, which the column ``call`` indexes.
    `table`: by ``call``, ``part`` (index of the call among those of the task and function, modulo `PARTS`)
    and ``rank``: ``n``, ``start_ns`` (sum of the starts) and ``time_ns`` (sum of the durations). If tasks
    call a function equally often, differences of ``start_ns`` are how much later one task enters its calls
    than another, summed over the calls.

    Examples
    --------
    >>> from ensembles.model.events import Call, Events
    >>> from ensembles.summaries.collective_entries import CollectiveEntries
    >>> columns = {"call": [0, 0], "rank": [0, 1], "start": [5, 9], "duration": [6, 2]}
    >>> entries = CollectiveEntries()
    >>> entries.add(Events.partly(columns, (Call("MPI_Barrier", "mpisync", "wait"),), ("",)))
    >>> entries.table.columns()["start_ns"].tolist()
    [5, 9]
    """

    columns = ("call", "rank", "start", "duration")
    results = ("names", "table")

    def __init__(self) -> None:
        self.names: tuple[str, ...] = ()
        self.table = KeyedSums(("call", "part", "rank"), ("n", "start_ns", "time_ns"))
        self._rank = -1
        self._counts: dict[int, int] = {}

    def add(self, chunk: Events) -> None:
        """Add events."""
        self.names = self.names or tuple(call.name for call in chunk.calls)
        meets = is_meeting(chunk.calls)
        if not meets.any() or not len(chunk):
            return
        at = np.flatnonzero(meets[chunk.call])
        columns = (chunk.call, chunk.rank, chunk.start, chunk.duration)
        call, rank, start, duration = (column[at].astype(np.int64) for column in columns)
        part = self._indices(call, rank, int(chunk.rank[-1])) % PARTS
        times = {"n": np.ones(len(at), np.int64), "start_ns": start, "time_ns": duration}
        self.table.add({"call": call, "part": part, "rank": rank, **times})

    def _indices(self, call: np.ndarray, rank: np.ndarray, last_rank: int) -> np.ndarray:
        """Number the calls of each task and function from 0; the first task may go on from the last chunk."""
        index = np.empty(len(call), np.int64)
        counts = self._counts if last_rank == self._rank else {}
        for number in np.flatnonzero(np.bincount(call)).tolist() if len(call) else ():
            mine = np.flatnonzero(call == number)
            of_rank = rank[mine]
            first = np.flatnonzero(np.append(True, of_rank[1:] != of_rank[:-1]))
            lengths = np.diff(np.append(first, len(mine)))
            nth = np.arange(len(mine)) - np.repeat(first, lengths)
            if of_rank[0] == self._rank:
                nth[: lengths[0]] += self._counts.get(number, 0)
            if of_rank[-1] == last_rank:
                counts[number] = int(nth[-1]) + 1
            index[mine] = nth
        self._rank, self._counts = last_rank, counts
        return index

    def merge(self, other: CollectiveEntries) -> None:
        """Add the entries of another part of the run."""
        self.names = self.names or other.names
        self.table.merge(other.table)

    def to_arrays(self) -> dict[str, np.ndarray]:
        """Return the columns of `table`."""
        return self.table.columns()

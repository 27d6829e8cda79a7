"""Collective calls of MPI-IO and the storage calls inside them, for the steps of a collective call.

When tasks enter the calls in which all of them wait for each other.

Time of collective I/O, and the part of it in which some task was in a storage call.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ensembles.model.calls import STORAGE
from ensembles.model.events import Call, Events, of_calls
from ensembles.model.units import NS_PER_S
from ensembles.passes.summary import ANY_ORDER, Summary
from ensembles.summaries.active_time import disjoint, union_ns
from ensembles.summaries.held_calls import HeldCalls
from ensembles.summaries.kernels import moving_ns
from ensembles.summaries.keyed_sums import KeyedSums


@of_calls
def _is_collective(calls: Sequence[Call]) -> np.ndarray:
    of_layer = np.array([call.layer == "mpiio" for call in calls], bool)
    collective: np.ndarray = of_layer & (kinds_of_calls(calls) == 0)
    return collective


class CollectiveSteps(Summary):
    """A mergeable summary: the collective calls of MPI-IO, and the storage calls inside other calls.

    Collective are the blocking calls whose names end in ``_all``. Storage calls are the reads, writes and
    syncs of the layers posix and stdio. They are held (`HeldCalls`), 48 and 32 bytes each.
    `ensembles.structure.collective_steps` divides the time of the calls into steps.

    `names`: names of all functions of the run, which the column ``call`` indexes.
    """

    of_all_calls = True
    columns = ("call", "file", "rank", "thread", "depth", "start", "duration", "flight")
    requires = ANY_ORDER
    results = ("names", "collective", "storage")
    meaning = 1

    def __init__(self) -> None:
        self.names: tuple[str, ...] = ()
        self.collective = HeldCalls("call", "file", "rank", "thread", "start", "end")
        self.storage = HeldCalls("rank", "thread", "start", "end")

    def add(self, chunk: Events) -> None:
        """Add events."""
        self.names = self.names or tuple(call.name for call in chunk.calls)
        kind = shared_kinds(chunk)
        if kind is None:
            return
        end = chunk.start + moving_ns(chunk)
        calls = _is_collective(chunk.calls)[chunk.call] & (chunk.flight < 0)
        inside = (kind == 1) & (chunk.depth > 0)
        of_both = (chunk.rank, chunk.thread, chunk.start, end)
        self.collective.add(*(column[calls] for column in (chunk.call, chunk.file, *of_both)))
        self.storage.add(*(column[inside] for column in of_both))

    def merge(self, other: CollectiveSteps) -> None:
        """Add the calls of another part of the run."""
        self.names = self.names or other.names
        self.collective.merge(other.collective)
        self.storage.merge(other.storage)

    @property
    def is_complete(self) -> bool:
        """Whether all calls are held."""
        return self.collective.is_complete and self.storage.is_complete


_ALL_TO_ALL = "allgather allgatherv allreduce alltoall alltoallv alltoallw reduce_scatter"
_MEETINGS = frozenset(f"MPI_{name.capitalize()}" for name in (*_ALL_TO_ALL.split(" "), "barrier"))
_OF_ONE_TASK = [f"MPI_{name}" for name in ("Gather", "Gatherv", "Reduce", "Bcast", "Scatter", "Scatterv")]
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
    """

    columns = ("call", "rank", "start", "duration")
    results = ("names", "table")
    meaning = 1

    def __init__(self) -> None:
        self.names: tuple[str, ...] = ()
        self.table = KeyedSums(("call", "part", "rank"), ("n", "start_ns", "time_ns"))
        self._rank = -1
        self._counts: dict[int, int] = {}

    def add(self, chunk: Events) -> None:
        """Add events."""
        self.names = self.names or tuple(call.name for call in chunk.calls)
        meets = is_meeting(chunk.calls) | np.array([call.name in _OF_ONE_TASK for call in chunk.calls])
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


_STORING = ("read", "write", "sync")


@of_calls
def kinds_of_calls(calls: Sequence[Call]) -> np.ndarray:
    """Classify functions: 0 collective I/O, 1 a read, write or sync of storage, -1 neither; int8."""
    kinds = [
        0
        if call.name.endswith("_all") and call.layer in ("mpiio", "pnetcdf")
        else 1
        if call.layer in STORAGE and call.op in _STORING
        else -1
        for call in calls
    ]
    return np.array(kinds, np.int8)


def shared_kinds(chunk: Events) -> np.ndarray | None:
    """Return `kinds_of_calls` of each event, computed once for all summaries of a chunk.

    None: no call of the chunk is collective, and none is inside another one.
    """
    return chunk.remembered(shared_kinds, _kinds_of_events)


def _kinds_of_events(chunk: Events) -> np.ndarray | None:
    kind: np.ndarray = kinds_of_calls(chunk.calls)[chunk.call]
    return kind if chunk.depth.any() or not kind.all() else None


class CollectiveTime(Summary):
    """A mergeable summary: the time in which at least one task was in a call of collective I/O.

    Collective are the calls of MPI-IO and PnetCDF whose names end in ``_all``, inside other calls too.
    Storage calls are the reads, writes and syncs of the layers posix and stdio that are inside other calls;
    non-blocking ones last until they complete. Both are held (`HeldCalls`).
    """

    of_all_calls = True
    columns = ("call", "depth", "start", "duration", "flight")
    requires = ANY_ORDER
    results = ("collective", "storage")
    meaning = 1

    def __init__(self) -> None:
        self.collective, self.storage = HeldCalls("start", "end"), HeldCalls("start", "end")

    def add(self, chunk: Events) -> None:
        """Add events."""
        kind = shared_kinds(chunk)
        if kind is None:
            return
        end = chunk.start + moving_ns(chunk)
        for held, mine in ((self.collective, kind == 0), (self.storage, (kind == 1) & (chunk.depth > 0))):
            held.add(chunk.start[mine], end[mine])

    def merge(self, other: CollectiveTime) -> None:
        """Add the calls of another summary."""
        self.collective.merge(other.collective)
        self.storage.merge(other.storage)

    def condense(self) -> None:
        """Join the times of calls that overlap."""
        for held in (self.collective, self.storage):
            held.hold_instead(disjoint([held.rows()]))

    def to_json(self) -> dict[str, float] | None:
        """Return the times, or None.

        ``time_s``: time in which at least one task was in a collective call. ``storage_s``: the part of it in
        which some task was in a storage call too. ``above_storage_s``, ``above_storage_share``: the rest, in
        which tasks exchanged data or waited for each other, and its share. None: there are no collective
        calls, no storage call inside them was recorded, or there are too many calls.
        """
        held = self.collective, self.storage
        if not all(each.count and each.is_complete for each in held):
            return None
        spans = [each.rows() for each in held]
        collective_ns, storage_ns = (union_ns([each]) for each in spans)
        both_ns = collective_ns + storage_ns - union_ns(spans)
        if not both_ns:
            return None
        return {
            "time_s": collective_ns / NS_PER_S,
            "storage_s": both_ns / NS_PER_S,
            "above_storage_s": (collective_ns - both_ns) / NS_PER_S,
            "above_storage_share": 1.0 - both_ns / collective_ns,
        }

"""Time of collective I/O, and the part of it in which some task was in a storage call."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ensembles.model.calls import STORAGE
from ensembles.model.events import Call, Events, of_calls
from ensembles.model.units import NS_PER_S
from ensembles.passes.summary import ANY_ORDER, Summary
from ensembles.summaries.active_time import MOST_EXACT, disjoint, union_ns
from ensembles.summaries.spreading import moving_ns

_STORING = ("read", "write", "sync")


@of_calls
def kinds_of_calls(calls: Sequence[Call]) -> np.ndarray:
    """Return what each function is: 0 collective I/O, 1 a read, write or sync of storage, −1 neither.

    The result is int8, shape (len(calls),).
    """
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
    non-blocking ones last until they complete.

    `calls`, `storage_calls`: numbers of these calls.

    Examples
    --------
    >>> from ensembles.model.events import Call, Events
    >>> from ensembles.summaries.collective_time import CollectiveTime
    >>> calls = Call("pwrite", "posix", "write"), Call("MPI_File_write_all", "mpiio", "write")
    >>> columns = {"call": [0, 1], "depth": [1, 0], "start": [6, 0], "duration": [2, 10], "flight": [-1, -1]}
    >>> time = CollectiveTime()
    >>> time.add(Events.partly(columns, calls, ("",)))
    >>> time.to_json()
    {'time_s': 1e-08, 'storage_s': 2e-09, 'above_storage_s': 8e-09, 'above_storage_share': 0.8}
    """

    of_all_calls = True
    columns = ("call", "depth", "start", "duration", "flight")
    requires = ANY_ORDER
    results = ("_calls", "_spans")

    def __init__(self) -> None:
        self._calls = [0, 0]
        self._spans: list[list[np.ndarray]] = [[], []]

    @property
    def calls(self) -> int:
        """Number of collective calls."""
        return self._calls[0]

    @property
    def storage_calls(self) -> int:
        """Number of storage calls inside others."""
        return self._calls[1]

    def add(self, chunk: Events) -> None:
        """Add events."""
        if not len(chunk):
            return
        kind = shared_kinds(chunk)
        if kind is None:
            return
        for number, mine in enumerate((kind == 0, (kind == 1) & (chunk.depth > 0))):
            count = int(np.count_nonzero(mine))
            if count:
                start = chunk.start[mine]
                self._hold(number, count, [np.stack([start, start + moving_ns(chunk)[mine]])])

    def _hold(self, number: int, calls: int, spans: list[np.ndarray]) -> None:
        self._calls[number] += calls
        self._spans[number] = [*self._spans[number], *spans] if self._calls[number] <= MOST_EXACT else []

    def merge(self, other: CollectiveTime) -> None:
        """Add the calls of another summary."""
        for number in range(2):
            self._hold(number, other._calls[number], other._spans[number])

    def condense(self) -> None:
        """Join the times of calls that overlap."""
        self._spans = [[disjoint(spans)] if spans else [] for spans in self._spans]

    def to_arrays(self) -> dict[str, np.ndarray]:
        """Return ``calls``: of collective I/O, and of storage inside calls."""
        return {"calls": np.array(self._calls, np.int64)}

    def to_json(self) -> dict[str, float] | None:
        """Return the times, or None.

        ``time_s``: time in which at least one task was in a collective call. ``storage_s``: the part of it in
        which some task was in a storage call too. ``above_storage_s``, ``above_storage_share``: the rest, in
        which tasks exchanged data or waited for each other, and its share. None: there are no collective
        calls, no storage call inside them was recorded, or there are too many calls.
        """
        if not all(self._calls) or max(self._calls) > MOST_EXACT:
            return None
        collective_ns, storage_ns = map(union_ns, self._spans)
        both_ns = collective_ns + storage_ns - union_ns([*self._spans[0], *self._spans[1]])
        if not both_ns:
            return None
        return {
            "time_s": collective_ns / NS_PER_S,
            "storage_s": both_ns / NS_PER_S,
            "above_storage_s": (collective_ns - both_ns) / NS_PER_S,
            "above_storage_share": 1.0 - both_ns / collective_ns,
        }

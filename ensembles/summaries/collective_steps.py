"""Collective calls of MPI-IO and the storage calls inside them, for the steps of a collective call."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ensembles.model.events import Call, Events, of_calls
from ensembles.passes.summary import ANY_ORDER, Summary
from ensembles.summaries.active_time import MOST_EXACT
from ensembles.summaries.collective_time import kinds_of_calls, shared_kinds
from ensembles.summaries.spreading import moving_ns

_CALL_COLUMNS = ("call", "file", "rank", "thread", "start", "end")
_STORAGE_COLUMNS = ("rank", "thread", "start", "end")


@of_calls
def _is_collective(calls: Sequence[Call]) -> np.ndarray:
    of_layer = np.array([call.layer == "mpiio" for call in calls], bool)
    collective: np.ndarray = of_layer & (kinds_of_calls(calls) == 0)
    return collective


class CollectiveSteps(Summary):
    """A mergeable summary: the collective calls of MPI-IO, and the storage calls inside other calls.

    Collective are the blocking calls whose names end in ``_all``. Storage calls are the reads, writes and
    syncs of the layers posix and stdio. Up to `MOST_EXACT` of either are held, 48 and 32 bytes each.
    `ensembles.structure.collective_steps` divides the time of the calls into steps.

    `names`: names of all functions of the run, which the column ``call`` indexes.

    Examples
    --------
    >>> from ensembles.model.events import Call, Events
    >>> from ensembles.summaries.collective_steps import CollectiveSteps
    >>> calls = Call("pwrite", "posix", "write"), Call("MPI_File_write_all", "mpiio", "write")
    >>> columns = {"call": [0, 1], "file": [0, 0], "rank": [0, 0], "thread": [0, 0], "depth": [1, 0],
    ...            "start": [6, 0], "duration": [2, 10], "flight": [-1, -1]}
    >>> steps = CollectiveSteps()
    >>> steps.add(Events.partly(columns, calls, ("",)))
    >>> steps.is_complete, steps.collective()["end"].tolist(), steps.storage()["start"].tolist()
    (True, [10], [6])
    """

    of_all_calls = True
    columns = ("call", "file", "rank", "thread", "depth", "start", "duration", "flight")
    requires = ANY_ORDER
    results = ("names", "_counts", "_collective", "_storage")

    def __init__(self) -> None:
        self.names: tuple[str, ...] = ()
        self._counts = [0, 0]
        self._collective: list[np.ndarray] = []
        self._storage: list[np.ndarray] = []

    def add(self, chunk: Events) -> None:
        """Add events."""
        self.names = self.names or tuple(call.name for call in chunk.calls)
        kind = shared_kinds(chunk)
        if kind is None:
            return
        end = chunk.start + moving_ns(chunk)
        calls = _is_collective(chunk.calls)[chunk.call] & (chunk.flight < 0)
        inside = (kind == 1) & (chunk.depth > 0)
        held: list[list[np.ndarray]] = []
        for mine, names in ((calls, _CALL_COLUMNS), (inside, _STORAGE_COLUMNS)):
            at = np.flatnonzero(mine)
            columns = [end if name == "end" else getattr(chunk, name) for name in names]
            held.append([np.stack([column[at].astype(np.int64) for column in columns])] if len(at) else [])
        self._hold(*held)

    def _hold(self, calls: list[np.ndarray], storage: list[np.ndarray]) -> None:
        self._counts[0] += sum(part.shape[1] for part in calls)
        self._counts[1] += sum(part.shape[1] for part in storage)
        self._collective += calls
        self._storage += storage
        self._drop()

    def _drop(self) -> None:
        if not self.is_complete:
            self._collective, self._storage = [], []

    def merge(self, other: CollectiveSteps) -> None:
        """Add the calls of another part of the run."""
        self.names = self.names or other.names
        self._counts = [sum(both) for both in zip(self._counts, other._counts, strict=True)]
        self._collective += other._collective
        self._storage += other._storage
        self._drop()

    @property
    def calls(self) -> int:
        """Number of collective calls."""
        return self._counts[0]

    @property
    def storage_calls(self) -> int:
        """Number of storage calls inside other calls."""
        return self._counts[1]

    @property
    def is_complete(self) -> bool:
        """Whether all calls are held."""
        return max(self._counts) <= MOST_EXACT

    def collective(self) -> dict[str, np.ndarray]:
        """Return ``call``, ``file``, ``rank``, ``thread``, ``start`` and ``end`` of each collective call."""
        return _table(self._collective, _CALL_COLUMNS)

    def storage(self) -> dict[str, np.ndarray]:
        """Return ``rank``, ``thread``, ``start`` and ``end`` of each storage call inside another call."""
        return _table(self._storage, _STORAGE_COLUMNS)

    def to_arrays(self) -> dict[str, np.ndarray]:
        """Return ``calls``: the numbers of collective calls, and of storage calls inside other calls."""
        return {"calls": np.array(self._counts, np.int64)}


def _table(parts: list[np.ndarray], names: tuple[str, ...]) -> dict[str, np.ndarray]:
    joined = np.concatenate(parts, axis=1) if parts else np.empty((len(names), 0), np.int64)
    return dict(zip(names, joined, strict=True))

"""Which phases are mostly syncs: of the time in I/O, how much was spent in syncs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ensembles.model.events import Call, Events, is_io_of_calls, of_calls
from ensembles.passes.summary import ANY_ORDER, Summary
from ensembles.structure.phases.detect import Phases


@of_calls
def _is_sync(calls: Sequence[Call]) -> np.ndarray:
    return np.array([call.op == "sync" for call in calls], bool)


class SyncTime(Summary):
    """A mergeable summary: the time in I/O of each phase, and how much of it was spent in syncs.

    Outermost calls count.

    Examples
    --------
    >>> from ensembles.structure.phases.sync_time import SyncTime
    >>> run = en.open("ensio-ior")
    >>> times = SyncTime(run.phases)
    >>> times.add(run.events)
    >>> times.mostly_syncs()
    frozenset()
    """

    columns = ("rank", "thread", "call", "depth", "start", "duration")
    requires = ANY_ORDER
    results = ("_time_ns",)

    def __init__(self, phases: Phases) -> None:
        self._phases = phases
        self._time_ns = np.zeros((2, phases.count + 1))

    def add(self, chunk: Events) -> None:
        """Add events."""
        phase = self._phases.phase_index(chunk)
        io = is_io_of_calls(chunk.calls)[chunk.call] & (chunk.depth == 0) & (phase > 0)
        sync = io & _is_sync(chunk.calls)[chunk.call]
        for row, chosen in zip(self._time_ns, (io, sync), strict=True):
            row += np.bincount(phase[chosen], chunk.duration[chosen], minlength=len(row))

    def merge(self, other: SyncTime) -> None:
        """Add a summary of the same phases."""
        self._time_ns += other._time_ns

    def to_arrays(self) -> dict[str, np.ndarray]:
        """Return ``io_ns`` and ``sync_ns`` by phase; index 0 is not used."""
        return {"io_ns": self._time_ns[0], "sync_ns": self._time_ns[1]}

    def mostly_syncs(self) -> frozenset[int]:
        """Return the phases of which more than half of the time in I/O was spent in syncs."""
        whole, sync = self._time_ns
        return frozenset(np.flatnonzero(2 * sync > whole).tolist())

"""Writes between samples of the memory of their node."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ensembles.model.events import OPS, Events
from ensembles.passes.summary import ANY_ORDER, Summary
from ensembles.summaries.keyed_sums import KeyedSums

if TYPE_CHECKING:
    from ensembles.run.run import Run


class WritesBySample(Summary):
    """A mergeable summary: writes between consecutive samples of the memory of their node.

    Attributes
    ----------
    table : KeyedSums
        By ``node`` and ``interval`` (number of samples before): ``bytes`` and ``time_ns`` of writes.
    """

    columns = ("rank", "call", "depth", "carried", "moved", "start", "duration")
    requires = ANY_ORDER

    def __init__(self, node: np.ndarray, times: tuple[np.ndarray, ...]) -> None:
        self._node, self._times = node, times
        self.table = KeyedSums(("node", "interval"), ("bytes", "time_ns"))

    @classmethod
    def for_run(cls, run: Run) -> WritesBySample:
        """Make an empty summary for a run."""
        node, memory = memory_of_nodes(run)
        return cls(node, tuple(time for time, _ in memory))

    def add(self, chunk: Events) -> None:
        """Add events."""
        chosen = (chunk.op == OPS.index("write")) & (chunk.moved > 0) & chunk.outermost
        writes = chunk[chosen & (chunk.rank < len(self._node))]
        node = self._node[writes.rank]
        for number in np.unique(node[node >= 0]).tolist():
            mine = writes[node == number]
            interval = np.searchsorted(self._times[number], mine.start)
            keys = {"node": np.full(len(mine), number), "interval": interval}
            self.table.add(keys | {"bytes": mine.moved, "time_ns": mine.duration})

    def merge(self, other: WritesBySample) -> None:
        """Add the writes of other calls."""
        self.table.merge(other.table)

    def to_arrays(self) -> dict[str, np.ndarray]:
        """Return the columns of `table`."""
        return self.table.columns()


def memory_of_nodes(run: Run) -> tuple[np.ndarray, list[tuple[np.ndarray, np.ndarray]]]:
    """Return the node of each rank (-1: none), and of each node the times and dirty shares of its samples."""
    hosts = {process.rank: process.host for process in run.info.processes}
    samples = run.surroundings().known("dirty_bytes").columns
    dirty = samples["dirty_bytes"] + np.maximum(samples["writeback_bytes"], 0)
    share = dirty / np.maximum(dirty + np.maximum(samples["available_bytes"], 0), 1)
    names = sorted({hosts.get(rank, "") for rank in np.unique(samples["rank"]).tolist()})
    of_sample = np.array([names.index(hosts.get(rank, "")) for rank in samples["rank"].tolist()], np.int64)
    memory = []
    for number in range(len(names)):
        mine = np.flatnonzero(of_sample == number)
        mine = mine[np.argsort(samples["time"][mine], kind="stable")]
        memory.append((samples["time"][mine], share[mine]))
    node = np.full(max([rank for rank in hosts if rank >= 0], default=0) + 1, -1)
    for rank, host in hosts.items():
        if rank >= 0 and host in names:
            node[rank] = names.index(host)
    return node, memory

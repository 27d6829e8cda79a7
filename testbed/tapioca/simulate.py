"""Two-phase writes of a program on a machine: rounds, fill, time and rate.

Described writes are scheduled together. Otherwise each collective call is scheduled alone, one after the
other. With two buffers, a buffer is filled while the one before is flushed.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from testbed.tapioca.described import Writes
from testbed.tapioca.placement import Placement, Strategy, place
from testbed.tapioca.rounds import Columns, Domains, Schedule, schedule
from testbed.tapioca.storage import Holes, Storage, Times, flushes
from testbed.tapioca.topology import Nodes, Topology


@dataclass(frozen=True)
class Machine:
    """A network and its storage system."""

    title: str
    topology: Topology
    tasks_per_node: int
    storage: Storage

    def with_storage(self, **values: Any) -> Machine:
        """Return the machine with other values of its storage."""
        return replace(self, storage=replace(self.storage, **values))

    def nodes_of(self, tasks: int) -> Nodes:
        """Return the node of each task, in rank order."""
        node = np.arange(tasks, dtype=np.int64) // self.tasks_per_node
        if int(node[-1]) >= self.topology.nodes:
            raise ValueError(
                f"{tasks} tasks need {int(node[-1]) + 1} nodes of {self.tasks_per_node} tasks; "
                f"the topology has {self.topology.nodes}"
            )
        return node


@dataclass(frozen=True)
class Settings:
    """How writes are gathered."""

    aggregators: int
    buffer_bytes: int
    buffers: int = 2  # Buffers of an aggregator; with 2, a flush overlaps the next fill
    # Whether all writes are known before the first; otherwise collective call by collective call
    described: bool = True
    domains: Domains = "cyclic"  # How the file is distributed over aggregators, see `schedule`
    align: bool = False  # Whether domains begin with a stripe
    strategy: Strategy = "topology"  # Placement of the aggregators
    holes: Holes = "pieces"  # What becomes of holes in a buffer, see `flushes`
    seed: int = 0  # Of random placement


def tapioca(aggregators: int, buffer_bytes: int, **more: Any) -> Settings:
    """Return the settings of TAPIOCA: described writes, two buffers, placement by C1 + C2."""
    return replace(Settings(aggregators, buffer_bytes), **more)


def mpi_io(aggregators: int, buffer_bytes: int, **more: Any) -> Settings:
    """Return those of MPI-IO: call by call, one buffer, a part each, rank order, holes read before."""
    base = Settings(
        aggregators,
        buffer_bytes,
        buffers=1,
        described=False,
        domains="partitions",
        strategy="rank-order",
        holes="sieve",
    )
    return replace(base, **more)


@dataclass(frozen=True)
class Outcome:
    """What a simulated program did."""

    bytes: int  # Bytes of the program
    seconds: float  # From the first fill to the last flush
    # fill_s, flush_s: Of each round, those of the collective calls one after the other
    fill_s: Times
    flush_s: Times
    # Mean share of the buffers that is filled when they are flushed; buffers without a byte do not count
    fill: float
    # written_bytes, read_bytes: Bytes at the storage, holes included
    written_bytes: int
    read_bytes: int
    placements: tuple[Placement, ...]  # One for each schedule

    @property
    def rounds(self) -> int:
        """Number of rounds."""
        return len(self.flush_s)

    @property
    def bytes_per_s(self) -> float:
        """Rate of the program's bytes; 0 without a byte."""
        return self.bytes / self.seconds if self.seconds else 0.0


def simulate(writes: Writes, machine: Machine, settings: Settings) -> Outcome:
    """Write all writes of a program."""
    if settings.buffers < 1:
        raise ValueError("an aggregator has at least one buffer")
    node_of_task = machine.nodes_of(writes.tasks)
    align = machine.storage.stripe_bytes if settings.align else 1
    fence_s = machine.topology.latency_s * int(np.ceil(np.log2(writes.tasks)))
    seconds, written, read, file_bytes = 0.0, 0, 0, 0
    all_fill_s, all_flush_s, placements, full = [], [], [], []
    for part in [writes] if settings.described else writes.each_call():
        made = schedule(part, settings.aggregators, settings.buffer_bytes, settings.domains, align)
        if not made.rounds:
            continue
        chosen = place(machine.topology, made.sent_bytes(node_of_task), settings.strategy, settings.seed)
        fill_s = fills(made, machine.topology, node_of_task, chosen.node) + fence_s
        out = flushes(made, machine.storage, settings.holes, file_bytes)
        seconds += fence_s + pipeline(fill_s, out.seconds, settings.buffers)
        written, read = written + out.written_bytes, read + out.read_bytes
        file_bytes = max(file_bytes, int((part.offset + part.size)[part.size > 0].max()))
        all_fill_s.append(fill_s)
        all_flush_s.append(out.seconds)
        placements.append(chosen)
        shares = made.fill()
        full.append(shares[shares > 0])
    return Outcome(
        writes.bytes,
        seconds,
        _joined(all_fill_s),
        _joined(all_flush_s),
        float(_joined(full).mean()) if full else 0.0,
        written,
        read,
        tuple(placements),
    )


def fills(made: Schedule, topology: Topology, node_of_task: Columns, aggregator_node: Nodes) -> Times:
    """Return how long the buffers of each round take to fill, seconds.

    The cost of an aggregator in a round is C1 of what it receives in this round: a latency for each hop of
    each node that sends, and the bytes at the bandwidth between the nodes, one after the other. Aggregators
    receive at the same time, those of one node in turn. The round takes as long as the slowest node.
    """
    nodes = int(node_of_task.max()) + 1
    key, inverse = np.unique(made.window * nodes + node_of_task[made.task], return_inverse=True)
    sent_bytes = np.bincount(inverse, made.size, len(key))
    source, window = key % nodes, key // nodes
    target = aggregator_node[window % made.aggregators]
    cost_s = topology.latency_s * topology.hops(source, target)
    cost_s = np.where(source == target, 0.0, cost_s + sent_bytes / topology.bytes_per_s(source, target))
    number = window // made.aggregators
    place_key, place_inverse = np.unique(number * topology.nodes + target, return_inverse=True)
    by_node = np.bincount(place_inverse, cost_s, len(place_key))
    longest = np.zeros(made.rounds)
    np.maximum.at(longest, place_key // topology.nodes, by_node)
    return longest


def pipeline(fill_s: Iterable[float], flush_s: Iterable[float], buffers: int) -> float:
    """Return when the last flush ends, if fills and flushes take turns on some buffers.

    A fill begins when the fill before has ended, and its buffer is empty. A flush begins when its fill and
    the flush before have ended.
    """
    filled, flushed = 0.0, [0.0] * buffers
    for fill, flush in zip(fill_s, flush_s, strict=True):
        filled = max(filled, flushed[-buffers]) + float(fill)
        flushed.append(max(filled, flushed[-1]) + float(flush))
    return flushed[-1]


def _joined(parts: list[Times]) -> Times:
    return np.concatenate(parts) if parts else np.zeros(0)

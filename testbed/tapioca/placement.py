"""Where aggregators run: the cost C1 + C2 of each candidate, rank order, or chance.

C1 is the cost of gathering the data of a partition at a candidate A, C2 the cost of the way from A to the
I/O node:

    C1(A) = sum over nodes i != A of (latency x hops(i, A) + bytes(i, A) / bandwidth(i, A))
    C2(A) = latency x hops(A, IO) + bytes(A, IO) / bandwidth(A, IO)

C2 is 0 where the place of the I/O nodes is unknown. Nodes of the partition are those that send bytes to it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from testbed.tapioca.topology import Nodes, Rates, Topology

Strategy = Literal["topology", "rank-order", "random"]
STRATEGIES: tuple[Strategy, ...] = ("topology", "rank-order", "random")


@dataclass(frozen=True)
class Placement:
    """Aggregators of the partitions, with their costs."""

    node: Nodes
    # gather_s, send_s: C1 and C2 of each aggregator
    gather_s: Rates
    send_s: Rates

    @property
    def cost_s(self) -> float:
        """Sum of C1 + C2 over the partitions."""
        return float((self.gather_s + self.send_s).sum())


def costs(
    topology: Topology, senders: Nodes, sent_bytes: NDArray[np.int64], candidates: Nodes
) -> tuple[Rates, Rates]:
    """Return C1 and C2 of each candidate of a partition."""
    source, target = senders[:, None], candidates[None, :]
    there = topology.latency_s * topology.hops(source, target)
    there = there + sent_bytes[:, None] / topology.bytes_per_s(source, target)
    gather_s = np.where(source == target, 0.0, there).sum(axis=0)
    hops = topology.io_hops(candidates)
    if hops is None:
        return gather_s, np.zeros(len(candidates))
    return gather_s, topology.latency_s * hops + sent_bytes.sum() / topology.io_bytes_per_s()


def place(topology: Topology, sent_bytes: NDArray[np.int64], strategy: Strategy, seed: int = 0) -> Placement:
    """Choose an aggregator for each partition among the nodes that send to it."""
    random = np.random.default_rng(seed)
    node = np.zeros(len(sent_bytes), np.int64)
    gather_s, send_s = np.zeros((2, len(sent_bytes)))
    for partition, row in enumerate(sent_bytes):
        senders = np.flatnonzero(row)
        if not len(senders):
            continue
        if strategy == "topology":
            candidates = senders
        elif strategy == "rank-order":
            candidates = senders[:1]
        else:
            candidates = random.choice(senders, 1)
        gather, send = costs(topology, senders, row[senders], candidates)
        best = int(np.argmin(gather + send))
        node[partition], gather_s[partition], send_s[partition] = candidates[best], gather[best], send[best]
    return Placement(node, gather_s, send_s)

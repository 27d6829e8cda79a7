"""Networks between nodes: hops, bandwidth, and the way to the storage system.

The functions are those that the paper asks of a topology: latency, bandwidth between two nodes, hops between
two nodes, and hops from a node to its I/O node. All take arrays of node numbers.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

Nodes = NDArray[np.int64]
Hops = NDArray[np.int64]
Rates = NDArray[np.float64]


class Topology(Protocol):
    """A network of numbered nodes."""

    @property
    def nodes(self) -> int:
        """Number of nodes."""

    @property
    def latency_s(self) -> float:
        """Seconds for each hop."""

    def hops(self, source: Nodes, target: Nodes) -> Hops:
        """Return the hops between nodes, 0 from a node to itself."""

    def bytes_per_s(self, source: Nodes, target: Nodes) -> Rates:
        """Return the bandwidth between nodes."""

    def io_hops(self, node: Nodes) -> Hops | None:
        """Return the hops to the I/O node; None if its place is unknown, as on Theta."""

    def io_bytes_per_s(self) -> float:
        """Return the bandwidth to the I/O node."""


@dataclass(frozen=True)
class Torus:
    """A torus of any number of dimensions; node numbers run along the last dimension first."""

    shape: tuple[int, ...]  # Nodes along each dimension
    latency_s: float  # For a hop
    link_bytes_per_s: float  # Of a link, between any two nodes
    # Nodes with a link to the I/O node. A node reaches it through the nearest of them. Without any, the I/O
    # node's place is unknown.
    bridges: tuple[int, ...] = ()
    bridge_bytes_per_s: float = np.inf  # Of the link from a bridge node to the I/O node

    @property
    def nodes(self) -> int:
        """Number of nodes."""
        return int(np.prod(self.shape))

    def hops(self, source: Nodes, target: Nodes) -> Hops:
        """Return the sum over the dimensions of the shorter way round."""
        total = np.zeros(np.broadcast(source, target).shape, np.int64)
        places = zip(
            np.unravel_index(source, self.shape),
            np.unravel_index(target, self.shape),
            self.shape,
            strict=True,
        )
        for here, there, length in places:
            straight = np.abs(here - there)
            total += np.minimum(straight, length - straight)
        return total

    def bytes_per_s(self, source: Nodes, target: Nodes) -> Rates:
        """Return the rate of a link."""
        return np.full(np.broadcast(source, target).shape, self.link_bytes_per_s)

    def io_hops(self, node: Nodes) -> Hops | None:
        """Return the hops to the nearest bridge node, and one more."""
        if not self.bridges:
            return None
        ways = [self.hops(node, np.full_like(node, bridge)) for bridge in self.bridges]
        return np.min(ways, axis=0) + 1

    def io_bytes_per_s(self) -> float:
        """Return the rate of a bridge's link."""
        return self.bridge_bytes_per_s


@dataclass(frozen=True)
class Dragonfly:
    """Groups of routers, each with some nodes; every router of a group is linked to every other one.

    Between nodes of a router there is 1 hop, of a group 2, else 3: "at most three" as the paper says. The
    place of the I/O nodes is unknown.
    """

    # groups, routers, nodes_per_router: Groups, routers of a group, nodes of a router
    groups: int
    routers: int
    nodes_per_router: int
    latency_s: float  # For a hop
    # group_bytes_per_s, global_bytes_per_s: Of the links within a group, and between groups
    group_bytes_per_s: float
    global_bytes_per_s: float

    @property
    def nodes(self) -> int:
        """Number of nodes."""
        return self.groups * self.routers * self.nodes_per_router

    def hops(self, source: Nodes, target: Nodes) -> Hops:
        """Return 0 to 3 hops."""
        same_router = source // self.nodes_per_router == target // self.nodes_per_router
        far = np.where(self._same_group(source, target), 2, 3)
        return np.where(source == target, 0, np.where(same_router, 1, far)).astype(np.int64)

    def bytes_per_s(self, source: Nodes, target: Nodes) -> Rates:
        """Return the rate of the slowest link between the nodes."""
        same = self._same_group(source, target)
        return np.where(same, self.group_bytes_per_s, min(self.group_bytes_per_s, self.global_bytes_per_s))

    def io_hops(self, node: Nodes) -> Hops | None:
        """Return None: the vendor does not say where the I/O nodes are."""
        return None

    def io_bytes_per_s(self) -> float:
        """Return infinity: nothing is known."""
        return np.inf

    def _same_group(self, source: Nodes, target: Nodes) -> NDArray[np.bool_]:
        of_group = self.routers * self.nodes_per_router
        return np.asarray(source // of_group == target // of_group)


@dataclass(frozen=True)
class Explicit:
    """Hops and rates as matrices, for a network that is neither torus nor dragonfly."""

    hop_matrix: NDArray[np.int64]
    rate_matrix: NDArray[np.float64]  # Bytes per second; shape (nodes, nodes)
    latency_s: float  # For a hop
    to_io: NDArray[np.int64] | None = None  # Hops to the I/O node; shape (nodes,)
    io_rate_bytes_per_s: float = np.inf

    def __post_init__(self) -> None:
        size = len(self.hop_matrix)
        if self.hop_matrix.shape != (size, size) or self.rate_matrix.shape != (size, size):
            raise ValueError("hops and rates are square matrices of the same size")
        if not np.all(self.rate_matrix > 0):
            raise ValueError("rates are above 0, also from a node to itself")
        if self.to_io is not None and self.to_io.shape != (size,):
            raise ValueError("hops to the I/O node: one number for each node")

    @property
    def nodes(self) -> int:
        """Number of nodes."""
        return len(self.hop_matrix)

    def hops(self, source: Nodes, target: Nodes) -> Hops:
        """Return entries of the matrix."""
        return self.hop_matrix[source, target]

    def bytes_per_s(self, source: Nodes, target: Nodes) -> Rates:
        """Return entries of the matrix."""
        return self.rate_matrix[source, target]

    def io_hops(self, node: Nodes) -> Hops | None:
        """Return the given hops, or None."""
        return None if self.to_io is None else self.to_io[node]

    def io_bytes_per_s(self) -> float:
        """Return the given rate."""
        return self.io_rate_bytes_per_s


@dataclass(frozen=True)
class Table:
    """The keys of a table of a TOML file, each of which must be used."""

    name: str
    content: dict[str, Any]
    used: set[str] = field(default_factory=set)

    def number(self, key: str, default: float | None = None, factor: float = 1) -> float:
        """Return a positive number, times a factor for its unit."""
        self.used.add(key)
        value = self.content.get(key)
        if value is None and default is not None:
            return default
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < np.inf:
            raise ValueError(f"[{self.name}] {key}: a number above 0")
        return float(value) * factor

    def whole(self, key: str, default: int | None = None) -> int:
        """Return a whole number from 1."""
        value = self.number(key, default)
        if value != int(value):
            raise ValueError(f"[{self.name}] {key}: a whole number from 1")
        return int(value)

    def array(self, key: str, dimensions: int, optional: bool = False) -> NDArray[np.float64] | None:
        """Return numbers from 0 as an array."""
        self.used.add(key)
        if optional and key not in self.content:
            return None
        try:
            values = np.asarray(self.content.get(key), np.float64)
        except (TypeError, ValueError):
            values = np.empty(())
        if values.ndim != dimensions or not values.size or not np.all(values >= 0):
            raise ValueError(f"[{self.name}] {key}: an array of {dimensions} dimensions of numbers from 0")
        return values

    def finish(self) -> None:
        """Refuse keys that nothing asked for."""
        unknown = set(self.content) - self.used
        if unknown:
            raise ValueError(f"[{self.name}] {min(unknown)}: unknown key")


def topology_of(table: dict[str, Any]) -> Topology:
    """Read a topology from the table ``[topology]`` of a TOML file."""
    keys = Table("topology", table, {"kind"})
    kind = table.get("kind")
    latency_s = keys.number("latency_us", factor=1e-6)
    found: Topology
    if kind == "torus":
        shape = keys.array("shape", 1)
        bridges = keys.array("bridge_nodes", 1, optional=True)
        assert shape is not None
        found = Torus(
            tuple(int(length) for length in shape),
            latency_s,
            keys.number("link_GB_per_s", factor=1e9),
            () if bridges is None else tuple(int(node) for node in bridges),
            keys.number("bridge_GB_per_s", np.inf, 1e9),
        )
        if min(found.shape) < 1 or (found.bridges and max(found.bridges) >= found.nodes):
            raise ValueError("[topology] shape, bridge_nodes: lengths from 1, nodes of the torus")
    elif kind == "dragonfly":
        found = Dragonfly(
            keys.whole("groups"),
            keys.whole("routers_per_group"),
            keys.whole("nodes_per_router"),
            latency_s,
            keys.number("group_GB_per_s", factor=1e9),
            keys.number("global_GB_per_s", factor=1e9),
        )
    elif kind == "explicit":
        hops, rates = keys.array("hops", 2), keys.array("GB_per_s", 2)
        to_io = keys.array("io_hops", 1, optional=True)
        assert hops is not None
        assert rates is not None
        found = Explicit(
            hops.astype(np.int64),
            rates * 1e9,
            latency_s,
            None if to_io is None else to_io.astype(np.int64),
            keys.number("io_GB_per_s", np.inf, 1e9),
        )
    else:
        raise ValueError('[topology] kind: "torus", "dragonfly" or "explicit"')
    keys.finish()
    return found

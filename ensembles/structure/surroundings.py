"""Totals of the samples of the kernel's counters: what happened around the program's I/O."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ensembles.model.levels import LITTLE, MOST_DENSE
from ensembles.model.surroundings import COUNTERS, LEVELS, OF_NODE, SurroundingsTable
from ensembles.model.units import NS_PER_S

if TYPE_CHECKING:
    import numpy.typing as npt


_PROCESS = tuple(name for name in COUNTERS if name not in OF_NODE)
_NETWORK = tuple(name for name in COUNTERS if name.startswith(("nfs_", "lustre_")) and name not in LEVELS)


@dataclass(frozen=True, slots=True)
class SurroundingsTotals:
    """Totals of the samples of a run."""

    samples: int  # Number of samples
    # Increases of the counters of the processes from the first to the last sample of each task, summed over
    # tasks, by column
    process: dict[str, int]
    # dirty_bytes, writeback_bytes: Largest dirty pages, and pages being written, in a sample of a node. None:
    # not in any sample.
    dirty_bytes: int | None
    writeback_bytes: int | None
    # Largest share of dirty pages in the memory that programs could have had (dirty and available)
    dirty_share: float | None
    # io_some_share, io_full_share: Share of the time in which some task, and all tasks, of a node waited for
    # I/O, of the node with the largest share. None: fewer than two samples.
    io_some_share: float | None
    io_full_share: float | None
    # cgroup_some_share, cgroup_full_share: The same for the cgroup of the job
    cgroup_some_share: float | None
    cgroup_full_share: float | None
    network: dict[str, int]  # Increases of the counters of NFS and Lustre, summed over nodes, by column

    @property
    def is_notable(self) -> bool:
        """Whether dirty pages, I/O pressure or retransmissions of NFS were considerable."""
        shares = (self.io_some_share or 0, self.cgroup_some_share or 0)
        return (
            (self.dirty_share or 0) >= LITTLE
            or max(shares) >= LITTLE
            or self.network.get("nfs_retransmissions", 0) > 0
        )


def summarize_surroundings(table: SurroundingsTable) -> SurroundingsTotals | None:
    """Compute the totals of the samples of a run."""
    if not len(table):
        return None
    memory = table.known("dirty_bytes").columns
    usable = memory["dirty_bytes"] + np.maximum(memory["available_bytes"], 0)
    shares = memory["dirty_bytes"] / np.maximum(usable, 1)
    return SurroundingsTotals(
        samples=len(table),
        process={name: int(table.rises(name).rise.sum()) for name in _PROCESS},
        dirty_bytes=_largest(memory["dirty_bytes"]),
        writeback_bytes=_largest(memory["writeback_bytes"]),
        dirty_share=float(shares.max()) if len(shares) else None,
        io_some_share=_largest_share(table, "some_us"),
        io_full_share=_largest_share(table, "full_us"),
        cgroup_some_share=_largest_share(table, "cgroup_some_us"),
        cgroup_full_share=_largest_share(table, "cgroup_full_us"),
        network={name: int(table.rises(name).rise.sum()) for name in _NETWORK if len(table.known(name))},
    )


def _largest(levels: np.ndarray) -> int | None:
    return int(levels.max()) if len(levels) else None


def _largest_share(table: SurroundingsTable, name: str) -> float | None:
    """Return the rise of a counter of microseconds by the time, of the task with the largest share."""
    rises = table.rises(name)
    ranks, group = np.unique(rises.rank, return_inverse=True)
    if not len(ranks):
        return None
    waited_s = np.bincount(group, rises.rise) / 1e6
    span_s = np.bincount(group, rises.end - rises.start) / NS_PER_S
    return float(min((waited_s / np.maximum(span_s, 1e-9)).max(), 1.0))


class Levels(NamedTuple):
    """Sum of an amount over nodes."""

    time_ns: npt.NDArray[np.int64]  # Moments, ns since the origin of the run; shape (n,)
    # Sum of the amounts of all nodes, linear between the samples of each; shape (n,)
    value: npt.NDArray[np.float64]


class Rates(NamedTuple):
    """Sum of the rates at which a counter grew."""

    # int64, shape (n + 1,): Bounds of the intervals, ns since the origin of the run; empty without intervals
    edges_ns: npt.NDArray[np.int64]
    # float64, shape (n,): Growth in the unit of the counter by second, summed over tasks; that between two
    # samples is spread evenly
    per_s: npt.NDArray[np.float64]


def sum_levels(table: SurroundingsTable, name: str) -> Levels:
    """Sum an amount over nodes."""
    ranks, sampled, value = table.series(name)
    times = _thinned(np.unique(sampled))
    total = np.zeros(len(times))
    for rank in np.unique(ranks):
        mine = ranks == rank
        total += np.interp(times, sampled[mine], value[mine])
    return Levels(times, total)


def sum_rates(table: SurroundingsTable, name: str) -> Rates:
    """Sum the rates of a counter over tasks."""
    rises = table.rises(name)
    length = np.maximum(rises.end - rises.start, 1)
    edges = np.unique(np.concatenate([rises.start, rises.start + length]))
    change = np.zeros(len(edges))
    slope = rises.rise / length
    np.add.at(change, np.searchsorted(edges, rises.start), slope)
    np.add.at(change, np.searchsorted(edges, rises.start + length), -slope)
    rate = np.maximum(np.cumsum(change)[:-1], 0.0)
    if len(edges) > MOST_DENSE + 1:
        grown = np.concatenate([[0.0], np.cumsum(rate * np.diff(edges))])
        coarse = np.linspace(edges[0], edges[-1], MOST_DENSE + 1).astype(np.int64)
        rate = np.diff(np.interp(coarse, edges, grown)) / np.diff(coarse)
        edges = coarse
    return Rates(edges, rate * 1e9)


def count_sampled(table: SurroundingsTable, name: str) -> int:
    """Count the tasks with at least one sample of a counter: for those of the node, its nodes."""
    return len(np.unique(table.series(name)[0]))


def _thinned(times: np.ndarray) -> np.ndarray:
    if len(times) <= MOST_DENSE:
        return times
    kept: np.ndarray = times[np.linspace(0, len(times) - 1, MOST_DENSE).astype(int)]
    return kept

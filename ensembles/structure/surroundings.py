"""Totals of the samples of the kernel's counters: what happened around the program's I/O."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ensembles.model.surroundings import COUNTERS, LEVELS, OF_NODE, SurroundingsTable
from ensembles.model.units import NS_PER_S

_US_PER_S = 1e6

NOTABLE_DIRTY_SHARE = 0.05
"""Dirty pages are notable above this share of the memory that programs could have had."""

NOTABLE_PRESSURE = 0.05
"""I/O pressure is notable above this share of the time."""

_PROCESS = tuple(name for name in COUNTERS if name not in OF_NODE)
_NETWORK = tuple(name for name in COUNTERS if name.startswith(("nfs_", "lustre_")) and name not in LEVELS)


@dataclass(frozen=True, slots=True)
class SurroundingsTotals:
    """Totals of the samples of a run.

    Attributes
    ----------
    samples : int
        Number of samples.
    process : dict of str to int
        Increases of the counters of the processes from the first to the last sample of each task, summed over
        tasks, by column.
    dirty_bytes, writeback_bytes : int or None
        Largest dirty pages, and pages being written, in a sample of a node. None: not in any sample.
    dirty_share : float or None
        Largest share of dirty pages in the memory that programs could have had (dirty and available).
    io_some_share, io_full_share : float or None
        Share of the time in which some task, and all tasks, of a node waited for I/O, of the node with the
        largest share. None: fewer than two samples.
    cgroup_some_share, cgroup_full_share : float or None
        The same for the cgroup of the job.
    network : dict of str to int
        Increases of the counters of NFS and Lustre, summed over nodes, by column.
    """

    samples: int
    process: dict[str, int]
    dirty_bytes: int | None
    writeback_bytes: int | None
    dirty_share: float | None
    io_some_share: float | None
    io_full_share: float | None
    cgroup_some_share: float | None
    cgroup_full_share: float | None
    network: dict[str, int]

    @property
    def is_notable(self) -> bool:
        """Whether dirty pages, I/O pressure or retransmissions of NFS were considerable."""
        shares = (self.io_some_share or 0, self.cgroup_some_share or 0)
        return (
            (self.dirty_share or 0) >= NOTABLE_DIRTY_SHARE
            or max(shares) >= NOTABLE_PRESSURE
            or self.network.get("nfs_retransmissions", 0) > 0
        )


def summarize_surroundings(table: SurroundingsTable) -> SurroundingsTotals | None:
    """Compute the totals of the samples of a run.

    Examples
    --------
    >>> import numpy as np
    >>> from ensembles.model.surroundings import COLUMNS, SurroundingsTable
    >>> from ensembles.structure.surroundings import summarize_surroundings
    >>> columns = {name: np.full(2, -1) for name in COLUMNS}
    >>> columns |= {"rank": [0, 0], "time": [0, 2 * 10**9], "some_us": [0, 500_000], "full_us": [0, 0]}
    >>> totals = summarize_surroundings(SurroundingsTable(columns))
    >>> totals.io_some_share, totals.is_notable
    (0.25, True)
    """
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
    waited_s = np.bincount(group, rises.rise) / _US_PER_S
    span_s = np.bincount(group, rises.end - rises.start) / NS_PER_S
    return float(min((waited_s / np.maximum(span_s, 1e-9)).max(), 1.0))

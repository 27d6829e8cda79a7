"""Samples of the kernel's counters around a program's I/O, as NumPy columns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, runtime_checkable

import numpy as np

from ensembles.model.units import count_text

if TYPE_CHECKING:
    import numpy.typing as npt
    import pandas

UNKNOWN = -1
"""Value of a counter that a sample does not include."""

LEVELS = ("available_bytes", "cached_bytes", "dirty_bytes", "writeback_bytes", "lustre_dirty_bytes")
"""Columns that give an amount at a moment. All other counters only grow."""

COUNTERS: dict[str, tuple[str, str]] = {
    "read_by_calls": ("bytes", "returned by read calls of the process, from the page cache too (rchar)"),
    "written_by_calls": ("bytes", "taken by write calls of the process (wchar)"),
    "read_calls": ("", "read system calls of the process (syscr)"),
    "write_calls": ("", "write system calls of the process (syscw)"),
    "read_bytes": ("bytes", "fetched from storage for the process"),
    "write_bytes": ("bytes", "written by the process, to be sent to storage"),
    "cancelled_write_bytes": ("bytes", "of write_bytes: deleted before they were sent"),
    "available_bytes": ("bytes", "memory of the node that programs can still have (MemAvailable)"),
    "cached_bytes": ("bytes", "page cache of the node (Cached)"),
    "dirty_bytes": ("bytes", "cached on the node and still to be written to storage (Dirty)"),
    "writeback_bytes": ("bytes", "being written to storage (Writeback)"),
    "some_us": ("us", "time in which at least one task of the node waited for I/O"),
    "full_us": ("us", "time in which all tasks of the node that were not idle waited for I/O"),
    "cgroup_read_bytes": ("bytes", "read from devices by the cgroup of the process"),
    "cgroup_write_bytes": ("bytes", "written to devices by the cgroup"),
    "cgroup_reads": ("", "reads of devices by the cgroup"),
    "cgroup_writes": ("", "writes to devices by the cgroup"),
    "cgroup_some_us": ("us", "time in which at least one task of the cgroup waited for I/O"),
    "cgroup_full_us": ("us", "time in which all tasks of the cgroup waited for I/O"),
    "nfs_read_bytes": ("bytes", "read from NFS servers"),
    "nfs_write_bytes": ("bytes", "written to NFS servers"),
    "nfs_reads": ("", "READ operations of NFS"),
    "nfs_writes": ("", "WRITE operations of NFS"),
    "nfs_commits": ("", "COMMIT operations of NFS"),
    "nfs_read_ms": ("ms", "sum of the times of READ operations, with their waiting in the client"),
    "nfs_write_ms": ("ms", "sum of the times of WRITE operations, with their waiting in the client"),
    "nfs_retransmissions": ("", "transmissions of NFS operations beyond the first"),
    "lustre_dirty_bytes": ("bytes", "cached by the Lustre client and still to be written to its targets"),
    "lustre_ahead_hits": ("", "pages that Lustre's read-ahead had fetched"),
    "lustre_ahead_misses": ("", "pages that it had not fetched"),
    "lustre_read_rpcs": ("", "read RPCs to Lustre's targets"),
    "lustre_read_pages": ("", "pages in them, at most: RPCs are counted in classes of size"),
    "lustre_write_rpcs": ("", "write RPCs to Lustre's targets"),
    "lustre_write_pages": ("", "pages in them, at most"),
}
"""Unit and meaning of each counter. The names are those of ``struct ensio_surroundings`` in ``event.h``."""

OF_NODE = frozenset(tuple(COUNTERS)[tuple(COUNTERS).index("available_bytes") :])
"""Counters that are equal in all processes of a node."""

COLUMNS: dict[str, np.dtype] = {
    "rank": np.dtype("u4"),
    "time": np.dtype("i8"),
    "cost": np.dtype("i8"),
    **dict.fromkeys(COUNTERS, np.dtype("i8")),
}
"""Name and type of each column."""

COLUMN_MEANINGS: dict[str, tuple[str, str]] = {
    "rank": ("", "task"),
    "time": ("ns", "moment of the sample, since the origin of the run"),
    "cost": ("ns", "processor time that the sample took"),
    **COUNTERS,
}
"""Unit and meaning of each column. Trace files store them as attributes."""

NOT_SAMPLED = "not in this sample"
"""Meaning of `UNKNOWN` in the columns of counters."""


class Rises(NamedTuple):
    """Increases of a counter between consecutive samples of a task."""

    rank: npt.NDArray[np.uint32]  # Task
    # start, end: Moments of the two samples, ns since the origin of the run.
    start: npt.NDArray[np.int64]
    end: npt.NDArray[np.int64]
    rise: npt.NDArray[np.int64]  # Increase, in the unit of the counter


class SurroundingsTable:
    """Samples of the kernel's counters: one NumPy array per column, all of length n.

    Rows are sorted by rank and time. A run returns its table from `Run.surroundings`. The first and last
    sample of a task include all of its counters, the others some of them. Those in `OF_NODE` are in the rows
    of one task of each node, or without MPI of each process: a node's count once. Boolean masks, slices and
    arrays of positions select rows.

    `hosts`: node of each rank. Default: each has its own.
    `ValueError`: the columns have different lengths.

    Examples
    --------
    Three samples of a task, the second of which does not include the dirty pages.

    >>> import numpy as np
    >>> from ensembles.model.surroundings import COLUMNS, SurroundingsTable
    >>> columns = {name: np.full(3, -1) for name in COLUMNS}
    >>> columns |= {"rank": [0, 0, 0], "time": [0, 10**9, 2 * 10**9], "dirty_bytes": [4096, -1, 8192]}
    >>> columns |= {"written_by_calls": [0, 1 << 20, 3 << 20]}
    >>> table = SurroundingsTable(columns)
    >>> table
    SurroundingsTable: 3 samples of 1 task
    >>> table.known("dirty_bytes").dirty_bytes.tolist()
    [4096, 8192]
    >>> table.rises("written_by_calls").rise / 2**20  # MiB
    array([1., 2.])
    """

    __slots__ = ("_hosts", "columns")

    columns: dict[str, np.ndarray]
    """The columns by name. Each is an attribute, too."""

    def __init__(self, columns: Mapping[str, Any], hosts: Mapping[int, str] | None = None) -> None:
        self._hosts = hosts or {}
        order = np.lexsort((columns["time"], columns["rank"]))
        self.columns = {}
        for name, dtype in COLUMNS.items():
            column = np.asarray(columns[name], dtype=dtype)
            if column.shape != order.shape:
                raise ValueError(f"column {name!r} has the shape {column.shape}, not {order.shape}")
            self.columns[name] = column[order]

    def __getattr__(self, name: str) -> npt.NDArray[np.int64]:
        """Return a column."""
        if name not in COLUMNS:
            raise AttributeError(f"the table of samples has no column {name!r}")
        return self.columns[name]

    @classmethod
    def empty(cls) -> SurroundingsTable:
        """Make a table without rows."""
        return cls({name: np.empty(0, dtype) for name, dtype in COLUMNS.items()})

    def __len__(self) -> int:
        return len(self.columns["rank"])

    def __getitem__(self, index: Any) -> SurroundingsTable:
        """Select rows by a mask, a slice or an array of positions."""
        if isinstance(index, (int, np.integer)):
            index = slice(index, index + 1 or None)
        return SurroundingsTable({name: column[index] for name, column in self.columns.items()}, self._hosts)

    def known(self, name: str) -> SurroundingsTable:
        """Select the samples that include a counter.

        `name`: a key of `COUNTERS`.
        """
        return self[self.columns[name] != UNKNOWN]

    def series(self, name: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the task (or the first of the node), time and value of known samples, sorted by these."""
        columns = self.known(name).columns
        rank, time, value = columns["rank"], columns["time"], columns[name]
        if name in OF_NODE and self._hosts:
            ranks, place = np.unique(rank, return_inverse=True)
            first: dict[str, int] = {}
            nodes = [first.setdefault(self._hosts.get(each) or str(each), each) for each in ranks.tolist()]
            rank = np.array(nodes, rank.dtype)[place]
            order = np.lexsort((time, rank))
            rank, time, value = rank[order], time[order], value[order]
        return rank, time, value

    def rises(self, name: str) -> Rises:
        """Compute the increases of a counter between consecutive samples of each task, or node.

        `name`: a key of `COUNTERS` that is not in `LEVELS`.

        A row for each pair of consecutive samples that include the counter. A counter that fell, because a
        device or a mount went away, rises by 0.
        """
        rank, time, value = self.series(name)
        same = rank[1:] == rank[:-1]
        rise = np.maximum(value[1:] - value[:-1], 0)
        return Rises(rank[1:][same], time[:-1][same], time[1:][same], rise[same])

    def to_pandas(self) -> pandas.DataFrame:
        """Convert to a DataFrame with the same columns.

        A row per sample. Counters that a sample does not include are missing values.
        """
        from ensembles.model.pandas_frame import pd

        frame = pd.DataFrame(self.columns)
        counters = list(COUNTERS)
        frame[counters] = frame[counters].astype("Int64").mask(frame[counters] == UNKNOWN)
        return frame

    def __repr__(self) -> str:
        if not len(self):
            return "SurroundingsTable: no samples"
        tasks = count_text(len(np.unique(self.columns["rank"])), "task")
        return f"SurroundingsTable: {count_text(len(self), 'sample')} of {tasks}"


@runtime_checkable
class SampledSource(Protocol):
    """A run with samples of the kernel's counters. Other tools record none, so few readers have this."""

    def surroundings(self) -> SurroundingsTable:
        """Return the samples."""
        ...


def surroundings_of(source: object, hosts: Mapping[int, str] | None = None) -> SurroundingsTable:
    """Return the samples of a source, without rows if it has none."""
    if not isinstance(source, SampledSource):
        return SurroundingsTable.empty()
    return SurroundingsTable(source.surroundings().columns, hosts)

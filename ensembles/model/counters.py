"""Counters that another tool kept by file and rank, instead of events or beside them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

SUMS = (
    "reads",
    "writes",
    "others",
    "bytes_read",
    "bytes_written",
    "read_s",
    "write_s",
    "meta_s",
    "sequential",
    "consecutive",
    "memory_misaligned",
    "file_misaligned",
)
"""Columns of tables by file and by rank that are sums: calls, bytes, seconds, and calls by pattern."""

SizeClass = tuple[int, int, int]
"""Smallest and largest size in bytes, and number of calls."""


@dataclass(slots=True)
class HeatMap:
    """Bytes that a module moved over time."""

    bin_s: float  # Width of a bin, s; the first begins at time 0 of the run
    # read, written: Bytes moved, summed over ranks.
    read: np.ndarray
    written: np.ndarray
    # rank, rank_read, rank_written: Bytes moved by each rank with a record.
    rank: np.ndarray
    rank_read: np.ndarray
    rank_written: np.ndarray
    ranks_per_row: int  # Neighbouring ranks in a row of the grids, a power of two
    # row_read, row_written: Bytes moved by the ranks of each row; at most 512 rows.
    row_read: np.ndarray
    row_written: np.ndarray


@dataclass(slots=True)
class ModuleCounters:
    """Counters of one interface."""

    # module, layer: Darshan's name (``"POSIX"``), and ours (``"posix"``).
    module: str
    layer: str
    version: int  # Version of the records
    is_partial: bool  # Whether the tool had no memory for all files
    # records, shared_records: Number of records, and of those that are sums over all ranks.
    records: int
    shared_records: int
    # Every counter by name without the prefix of the module: the sum over records, the largest of maxima, the
    # first and last of times. None: no record has it.
    totals: dict[str, int | float | None]
    # By operation (``"read"``, ``"write"``): the classes of request sizes with calls.
    size_classes: dict[str, tuple[SizeClass, ...]]
    # common_sizes, common_strides: Value in bytes and number of calls, the most frequent first. Lower bounds:
    # a record keeps four.
    common_sizes: tuple[tuple[int, int], ...]
    common_strides: tuple[tuple[int, int], ...]
    # ``"memory"`` and ``"file"``: the alignments in bytes that misaligned accesses are counted against.
    alignment: dict[str, tuple[int, ...]]
    # Columns `SUMS`, and: ``file`` (number in `RunInfo.files`), ``records``, ``is_shared`` (sums over all
    # ranks are among them), ``max_byte`` (−1: unknown), ``start_s``, ``end_s`` (nan: unknown),
    # ``slowest_rank``, ``slowest_s``, ``fastest_rank``, ``fastest_s`` (time in reads, writes and metadata),
    # ``slowest_bytes`` (of sums over ranks), ``longest_read_s``, ``longest_write_s``; −1, nan: unknown.
    by_file: Mapping[str, np.ndarray]
    # Columns `SUMS` of the records of single ranks, and: ``rank``, ``records`` (files), ``low_s``,
    # ``high_s``: bounds of the rank's time with shared records included.
    by_rank: Mapping[str, np.ndarray]
    # shared_low_s, shared_high_s: Bounds of the time of any rank in shared records.
    shared_low_s: float
    shared_high_s: float
    run_time_s: float  # From start to end of the job, s; 0: under one second

    def total(self, column: str) -> int | float:
        """Return the sum of a column of `SUMS` over all files."""
        sum_over_files: int | float = self.by_file[column].sum().item()
        return sum_over_files

    @property
    def time_s(self) -> float:
        """Time in reads, writes and metadata, summed over ranks, s."""
        return float(self.total("read_s") + self.total("write_s") + self.total("meta_s"))

    @property
    def slowest_rank_s(self) -> float:
        """Time of the slowest rank as Darshan estimates it, s.

        The slowest rank in files of single ranks, plus the slowest rank of each shared file.
        """
        own = self.by_rank["read_s"] + self.by_rank["write_s"] + self.by_rank["meta_s"]
        return float(own.max(initial=0.0)) + self.shared_high_s

    @property
    def slowest_is_bound(self) -> bool:
        """Whether `slowest_rank_s` is an upper bound: the slowest rank of a shared file is unknown."""
        return bool((self.by_file["is_shared"].astype(bool) & np.isnan(self.by_file["slowest_s"])).any())

    @property
    def rate_is_bound(self) -> bool:
        """Whether `rate` is a lower bound: calls of threads overlap, so that their times exceed the job."""
        return 0 < self.run_time_s < self.slowest_rank_s

    @property
    def rate(self) -> float | None:
        """Data rate by the slowest rank, bytes/s; None: no time, no bytes, or unknown."""
        moved = self.total("bytes_read") + self.total("bytes_written")
        known = self.slowest_rank_s > 0 and not self.slowest_is_bound
        time_s = self.run_time_s if self.rate_is_bound else self.slowest_rank_s
        return moved / time_s if moved and known else None


@dataclass(slots=True)
class Counters:
    """The counters of a log."""

    tool: str = ""  # Name and version of the tool; ``""``: the run has no counters, and the rest is empty
    tasks: int = 0  # Number of ranks
    run_time_s: float = 0.0  # From start to end of the job, s
    # By name of the module, the outermost interface first.
    modules: dict[str, ModuleCounters] = field(default_factory=dict)
    heatmaps: dict[str, HeatMap] = field(default_factory=dict)  # By name of the module whose traffic it holds
    unread: tuple[str, ...] = ()  # Names of the log's modules that may hold more I/O, and are not read

    @property
    def main_layer(self) -> list[ModuleCounters]:
        """The modules of the layer with the most time in I/O, and those of streams.

        Calls of a layer contain those of the layers below, so that layers are never added up. What streams do
        below is counted by them only.
        """
        layers: dict[str, list[ModuleCounters]] = {}
        for module in self.modules.values():
            layers.setdefault(module.layer, []).append(module)
        streams = [module for module in layers.pop("stdio", []) if module.time_s]
        most = max(layers.values(), key=lambda each: sum(module.time_s for module in each), default=[])
        return most + streams

    @property
    def slowest_task_s(self) -> float:
        """Time in I/O of the slowest task, s; of the mean task, if that is not known."""
        main = self.main_layer
        if any(module.slowest_is_bound for module in main):
            return sum(module.time_s for module in main) / max(self.tasks, 1)
        return sum(module.slowest_rank_s for module in main)

    @property
    def overlaps(self) -> bool:
        """Whether calls of threads overlap, or a timer was wrong: tasks are longer in I/O than they ran."""
        return self.slowest_task_s > self.run_time_s + 1  # older logs have whole seconds

"""Sums of Darshan's counters by function, over all ranks and, if available, by rank.

Darshan counts by file and rank. For most files that all ranks opened, it keeps only the sum over the ranks.
It keeps no durations of single calls except those of the longest read and write.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ensembles.model.counters import SizeClass
from ensembles.model.distinct import distinct_rows
from ensembles.model.events import Call
from ensembles.model.units import HALF_INT64
from ensembles.readers.foreign.darshan.counter_semantics import CALLS, WAYS, CounterMapping
from ensembles.readers.foreign.darshan.header import DamagedLog
from ensembles.readers.foreign.darshan.record_sums import LAYERS, RecordSums, size_classes
from ensembles.summaries.bins import ALL_SIZES, UNKNOWN_ORDINAL
from ensembles.summaries.cells import CELL_DTYPES, CellSummary
from ensembles.summaries.ranktable import RankTable

_MOVED = {"read": "bytes_read", "write": "bytes_written"}


class CountedSummary(CellSummary):
    """A summary without durations of single calls; ``max_ns`` −1: unknown."""

    durations_known = False

    def __init__(self, calls: Sequence[Call], files: Sequence[str]) -> None:
        super().__init__(calls, files)
        self.told_sizes: dict[tuple[str, str], list[tuple[int, int, int]]] = {}


@dataclass(slots=True)
class _Sum:
    """Sums of calls of one kind; times in ns."""

    count: int
    moved: int
    time_ns: int
    max_ns: int
    start_ns: int | None
    end_ns: int
    sizes: tuple[SizeClass, ...]
    outer_moved: int = 0
    inner_ns: int = 0


@dataclass(slots=True)
class _Outer:
    """Time in calls of MPI-IO by file and rank, and in the calls inside by file, ns."""

    call: Call
    files: np.ndarray
    of: np.ndarray
    rank: np.ndarray
    time_ns: np.ndarray
    inner_ns: np.ndarray


class Counters:
    """Sums over the records of the modules.

    `modules`: their records by name of the module.
    `sums`: sums by kind of call.
    `table`: sums of the records of single ranks.
    `shared_records`: number of records that are sums over all ranks.
    `negative_times`: number of negative timers, which count as 0.
    """

    def __init__(self, modules: Mapping[str, RecordSums]) -> None:
        self.sums: dict[Call, _Sum] = {}
        self.table = RankTable(CALLS)
        self._around: dict[str, _Outer] = {}
        known = [modules[module] for module in WAYS if module in modules]
        self.shared_records = sum(each.shared_records for each in known)
        self.negative_times = sum(each.negative_times for each in known)
        for module in LAYERS:
            if module in modules:
                for way in WAYS.get(module, ()):
                    self._add(module, way, modules[module])

    def _add(self, module: str, way: CounterMapping, records: RecordSums) -> None:
        """Add the calls of one kind of a module."""
        rows, totals, op = records.rows(), records.totals, way.call.op
        count = rows[f"{op}s" if way.moved else "others"]
        if way.moved is None and not count.any():
            return
        moved = rows[_MOVED[op]] if way.moved else np.zeros_like(count)
        time_ns = _ns(rows[f"{op}_s"])
        longest_ns = _ns(rows[f"longest_{op}_s"]) if way.longest else np.full(len(count), -1)
        if max(float(column.astype("f8").sum()) for column in (count, moved, time_ns)) > HALF_INT64:
            raise DamagedLog(f"the sums of the counters of {module} are impossibly large")
        max_ns = np.where(count > 0, longest_ns, -1)
        first, last = (
            [_ns(totals[name]) for name in names if totals.get(name)] for names in (way.first, way.last)
        )
        found = self.sums[way.call] = _Sum(
            int(count.sum()),
            int(moved.sum()),
            int(time_ns.sum()),
            int(max_ns.max()),
            min(first, default=None),
            max(last, default=0),
            size_classes(totals, op) if way.sizes is not None else (),
        )
        table = {"count": count, "moved": moved, "time_ns": time_ns, "inner_ns": 0, "max_ns": max_ns}
        self._add_ranks(way.call, rows["rank"], count > 0, table)
        carried = self._nested(module, way, rows, time_ns, moved)
        found.outer_moved = int(moved[~carried].sum())

    def _add_ranks(
        self, call: Call, rank: np.ndarray, chosen: np.ndarray, table: Mapping[str, np.ndarray | int]
    ) -> None:
        """Add chosen rows of single ranks to the table; sums that are missing are 0."""
        own = chosen & (rank >= 0)
        missing = dict.fromkeys(("count", "errors", "moved", "time_ns"), 0)
        rows = {**missing, **table, "rank": rank, "call": CALLS.index(call)}
        self.table.add_rows(CALLS, {name: np.broadcast_to(rows[name], own.shape)[own] for name in rows})

    def _nested(
        self,
        module: str,
        way: CounterMapping,
        rows: Mapping[str, np.ndarray],
        time_ns: np.ndarray,
        moved: np.ndarray,
    ) -> np.ndarray:
        """Test which records have bytes that MPI-IO calls count too, and collect times inside MPI-IO calls.

        All POSIX and DFS calls on a file that MPI-IO opened are assumed to be inside MPI-IO calls, and all
        calls on objects of DAOS inside those of DFS, if there are any.
        """
        file, rank, op = rows["identity"], rows["rank"], way.call.op
        nothing = np.zeros(len(rank), bool)
        if way.moved is None:
            return nothing
        if module == "MPI-IO":
            used = (moved > 0) | (time_ns > 0)
            files, of = np.unique(file[used], return_inverse=True)
            self._around[op] = _Outer(
                way.call, files, of.reshape(-1), rank[used], time_ns[used], np.zeros(len(files))
            )
        if module == "DAOS":
            outer = next((call for call in self.sums if (call.layer, call.op) == ("dfs", op)), None)
            if outer is None:
                return nothing | any(call.layer == "dfs" for call in self.sums)
            self.sums[outer].inner_ns = min(self.sums[outer].time_ns, int(time_ns.sum()))
            self._add_ranks(outer, rank, time_ns > 0, {"inner_ns": time_ns, "max_ns": -1})
            return ~nothing
        around = self._around.get(op)
        if module not in ("POSIX", "DFS") or around is None:
            return nothing
        inside: np.ndarray = np.isin(file, around.files)
        at = np.searchsorted(around.files, file[inside])
        around.inner_ns += np.bincount(at, time_ns[inside], len(around.files))
        outer_ns = np.bincount(around.of, around.time_ns, len(around.files))
        self.sums[around.call].inner_ns = int(np.minimum(outer_ns, around.inner_ns).sum())
        # A rank's time inside is at most that around it.
        parts = (np.concatenate(each) for each in ((around.of, at), (around.rank, rank[inside])))
        pair = distinct_rows(*parts)[1]
        outer_ns = np.bincount(pair[: len(around.of)], around.time_ns, int(pair.max(initial=-1)) + 1)
        inner_ns = np.minimum(time_ns[inside], outer_ns[pair[len(around.of) :]]).astype(np.int64)
        table = {"inner_ns": inner_ns, "max_ns": -1}
        self._add_ranks(around.call, rank[inside], time_ns[inside] > 0, table)
        return inside

    def summary(self, files: Sequence[str]) -> CountedSummary:
        """Make a summary with one cell per kind of call of a run with these paths."""
        sums = {call: found for call, found in self.sums.items() if found.count}
        starts = [found.start_ns for found in sums.values() if found.start_ns is not None]
        summary = CountedSummary(CALLS, files)
        rows: dict[str, list[int]] = {name: [] for name in CELL_DTYPES}
        for call in CALLS:
            if call not in sums:
                continue
            found = sums[call]
            least, most = _bounds(found)
            start_ns = min(starts, default=0) if found.start_ns is None else found.start_ns
            cell = {
                "call": CALLS.index(call),
                "size_class": ALL_SIZES,
                "ordinal_class": UNKNOWN_ORDINAL,
                "count": found.count,
                "moved": found.moved,
                "outer_count": found.count,
                "outer_moved": found.outer_moved,
                "time_ns": found.time_ns,
                "inner_ns": found.inner_ns,
                "outer_ns": found.time_ns,
                "without_bin": found.count,
                "max_ns": found.max_ns,
                "min_requested": least,
                "max_requested": most,
                "start_ns": start_ns,
                "end_ns": max(found.end_ns, start_ns),
                "mean_ns": found.time_ns // found.count,
            }
            for name, column in rows.items():
                column.append(cell.get(name, 0))
            if found.sizes:
                summary.told_sizes.setdefault((call.layer, call.op), []).extend(found.sizes)
        summary.cells = {name: np.array(rows[name], dtype) for name, dtype in CELL_DTYPES.items()}
        return summary


def counter_columns(records: np.ndarray, whole: int, real: int, before: int = 0) -> tuple[np.ndarray, ...]:
    """Split records into columns."""
    fields = [("id", "u8"), ("rank", "i8"), ("before", "u8", (before,))]
    shape = np.dtype([*fields, ("whole", "i8", (whole,)), ("real", "f8", (real,))])
    table = records.view(shape)
    return table["id"], table["rank"], table["whole"], table["real"]


def _bounds(found: _Sum) -> tuple[int, int]:
    """Return bounds on the sizes of all requests, bytes."""
    if not found.sizes:
        return 0, found.moved
    return found.sizes[0][0], min(found.sizes[-1][1], found.moved)


def _ns(seconds: Any) -> Any:
    """Convert seconds to ns."""
    return np.rint(np.asarray(seconds) * 1e9).astype("i8")

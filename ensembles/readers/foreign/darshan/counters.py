"""Sums of Darshan's counters by function, over all ranks and, if available, by rank.

Darshan counts by file and rank. For most files that all ranks opened, it keeps only the sum over the ranks.
It keeps no durations of single calls except those of the longest read and write.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from ensembles.model.events import Call
from ensembles.readers.foreign.darshan.counter_semantics import BUCKETS, CALLS, PREFIX, WAYS, CounterMapping
from ensembles.readers.foreign.darshan.header import DamagedLog
from ensembles.summaries.bins import ALL_SIZES, UNKNOWN_ORDINAL
from ensembles.summaries.cells import CELL_DTYPES, CellSummary
from ensembles.summaries.ranktable import RankTable

_LONGEST_S = 1e9
_MOST = 1 << 62


class CountedSummary(CellSummary):
    """A summary without durations of single calls; ``max_ns`` −1: unknown."""

    durations_known = False

    def __init__(self, calls: Sequence[Call], files: Sequence[str]) -> None:
        super().__init__(calls, files)
        self.told_sizes: dict[tuple[str, str], list[tuple[int, int, int]]] = {}


@dataclass(slots=True)
class _Sum:
    """Sums of calls of one kind; times in ns."""

    count: int = 0
    moved: int = 0
    outer_moved: int = 0
    time_ns: int = 0
    max_ns: int = -1
    start_ns: int | None = None
    end_ns: int = 0
    sizes: np.ndarray = field(default_factory=lambda: np.zeros(len(BUCKETS), np.int64))


@dataclass(slots=True)
class _File:
    """Time of one kind of operation on a file in MPI-IO, and in the POSIX calls inside, ns."""

    time_ns: int = 0
    inner_ns: int = 0
    of_rank: dict[int, int] = field(default_factory=dict)

    def add(self, rank: int, time_ns: int) -> None:
        """Add time in MPI-IO."""
        self.time_ns += time_ns
        self.of_rank[rank] = self.of_rank.get(rank, 0) + time_ns

    def give(self, rank: int, inner_ns: int) -> int:
        """Add time in POSIX, and return the part of it inside MPI-IO of the same rank."""
        self.inner_ns += inner_ns
        return min(inner_ns, self.of_rank.get(rank, 0))


class Counters:
    """Sums over the records of the modules; records of MPI-IO must be added first.

    `sums`: sums by kind of call.
    `table`: sums of the records of single ranks.
    `shared_records`: number of records that are sums over all ranks.
    `negative_times`: number of negative timers, which count as 0.
    """

    def __init__(self) -> None:
        self.sums: dict[Call, _Sum] = {}
        self.table = RankTable(CALLS)
        self.shared_records = self.negative_times = 0
        self._around: dict[str, dict[int, _File]] = {}
        """By kind of operation and file id: time in MPI-IO."""

    def add(
        self, module: str, names: tuple[Sequence[str], Sequence[str]], columns: Sequence[np.ndarray]
    ) -> None:
        """Add records of a module.

        `names`: names of the k counters, and of the l timers.
        `columns`: file id (uint64, shape (n,)), rank (int64, shape (n,); −1: all ranks), counters (int64,
        shape (n, k)), timers in seconds (float64, shape (n, l)).
        """
        identity, rank, whole, real = columns
        prefix = PREFIX[module]
        counter = {name.removeprefix(prefix): whole[:, i] for i, name in enumerate(names[0])}
        second = {name.removeprefix(prefix): real[:, i] for i, name in enumerate(names[1])}
        self.shared_records += int((rank < 0).sum())
        for way in WAYS[module]:
            # Counters that a version lacks are -1.
            count = sum(np.maximum(counter[name], 0) for name in way.counts)
            if count.sum() == 0 and way.moved is None:
                continue
            moved = np.maximum(counter[way.moved], 0) if way.moved else np.zeros(len(count), np.int64)
            time_ns = _ns(second[way.time])
            self.negative_times += int(((second[way.time] < 0) & (count > 0)).sum())
            if max(_total(count), _total(moved), _total(time_ns)) > _MOST:
                raise DamagedLog(f"the sums of the counters of {module} are impossibly large")
            longest_ns = _ns(second[way.longest]) if way.longest else np.full(len(count), -1)
            carried = self._nested(module, way, identity, rank, time_ns, moved)
            rows = {
                "count": count,
                "moved": moved,
                "time_ns": time_ns,
                "inner_ns": np.zeros(len(count), np.int64),
                "max_ns": np.where(count > 0, longest_ns, -1),
            }
            found = self.sums.setdefault(way.call, _Sum())
            for name in ("count", "moved", "time_ns"):
                setattr(found, name, getattr(found, name) + int(rows[name].sum()))
            found.outer_moved += int(moved[~carried].sum())
            found.max_ns = max(found.max_ns, int(rows["max_ns"].max()))
            self._times(
                found,
                [_ns(second[name]) for name in way.first],
                [_ns(second[name]) for name in way.last],
                count,
            )
            if way.sizes is not None:
                found.sizes += np.array(
                    [_total(np.maximum(counter[way.sizes + end], 0)) for end, _, _ in BUCKETS]
                )
            own = (rank >= 0) & (count > 0)
            number = np.full(len(count), CALLS.index(way.call))
            table = {"rank": rank, "call": number, "errors": np.zeros(len(count), np.int64)} | rows
            self.table.add_rows(CALLS, {name: column[own] for name, column in table.items()})

    def _nested(
        self,
        module: str,
        way: CounterMapping,
        identity: np.ndarray,
        rank: np.ndarray,
        time_ns: np.ndarray,
        moved: np.ndarray,
    ) -> np.ndarray:
        """Test which records have bytes that MPI-IO calls count too, and collect times inside MPI-IO calls.

        All POSIX and DFS calls on a file that MPI-IO opened are assumed to be inside MPI-IO calls, and all
        calls on objects of DAOS inside those of DFS, if there are any.
        """
        nothing = np.zeros(len(rank), np.int64)
        if way.moved is None:
            return nothing > 0
        around = self._around.setdefault(way.call.op, {})
        pairs = zip(identity.tolist(), rank.tolist(), time_ns.tolist(), strict=True)
        if module == "MPI-IO":
            for i, (file, of_rank, time) in enumerate(pairs):
                if moved[i] or time:
                    around.setdefault(file, _File()).add(of_rank, time)
            return nothing > 0
        if module == "DAOS" and any(call.layer == "dfs" for call in self.sums):
            inside: np.ndarray = nothing == 0
            inner = [(of_rank, time) for _, of_rank, time in pairs]
        elif module in ("POSIX", "DFS") and around:
            inside = np.array([file in around for file in identity.tolist()], bool)
            inner = [
                (of_rank, around[file].give(of_rank, time)) for file, of_rank, time in pairs if file in around
            ]
        else:
            return nothing > 0
        own = np.array([pair for pair in inner if pair[0] >= 0 and pair[1]], np.int64).reshape(-1, 2)
        ways = WAYS["DFS" if module == "DAOS" else "MPI-IO"]
        outer = next(way_around.call for way_around in ways if way_around.call.op == way.call.op)
        zeros = np.zeros(len(own), np.int64)
        rows = dict.fromkeys(("count", "errors", "moved", "time_ns"), zeros)
        rows |= {
            "rank": own[:, 0],
            "inner_ns": own[:, 1],
            "max_ns": zeros - 1,
            "call": zeros + CALLS.index(outer),
        }
        self.table.add_rows(CALLS, rows)
        return inside

    def _inner_ns(self, call: Call) -> int:
        """Return the time that MPI-IO calls spent in POSIX calls, and DFS calls in those of DAOS, ns."""
        if call.layer == "dfs":
            inner = (
                found.time_ns for of, found in self.sums.items() if (of.layer, of.op) == ("daos", call.op)
            )
            return min(self.sums[call].time_ns, sum(inner))
        if call.layer != "mpiio":
            return 0
        return sum(min(file.time_ns, file.inner_ns) for file in self._around.get(call.op, {}).values())

    @staticmethod
    def _times(found: _Sum, first: list[np.ndarray], last: list[np.ndarray], count: np.ndarray) -> None:
        """Extend the span of calls; a time of 0 means that it was not recorded."""
        for start_ns, end_ns in zip(first, last, strict=True):
            known = (count > 0) & (end_ns > 0)
            if known.any():
                start = int(start_ns[known].min())
                found.start_ns = start if found.start_ns is None else min(found.start_ns, start)
                found.end_ns = max(found.end_ns, int(end_ns[known].max()))

    def summary(self, files: Sequence[str]) -> CountedSummary:
        """Make a summary with one cell per kind of call.

        `files`: paths of the run.
        """
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
                "inner_ns": self._inner_ns(call),
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
            sizes = [(low, high, int(n)) for (_, low, high), n in zip(BUCKETS, found.sizes, strict=True) if n]
            if sizes:
                summary.told_sizes.setdefault((call.layer, call.op), []).extend(sizes)
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
    used = [bounds for bounds, count in zip(BUCKETS, found.sizes, strict=True) if count]
    if not used:
        return 0, found.moved
    return used[0][1], min(used[-1][2], found.moved)


def _total(values: np.ndarray) -> int:
    """Compute a sum that may exceed 64 bits."""
    total = float(values.astype("f8").sum())
    return int(values.sum()) if total < _MOST else int(total)


def _ns(seconds: np.ndarray) -> np.ndarray:
    """Convert seconds to ns; timers that a version lacks are negative and become 0."""
    if not (np.abs(seconds).max(initial=0.0) < _LONGEST_S):
        raise DamagedLog("a time in it is impossible")
    times_ns: np.ndarray = np.rint(np.maximum(seconds, 0.0) * 1e9).astype("i8")
    return times_ns

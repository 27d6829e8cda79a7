from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np

from ensembles.model.counters import SUMS, ModuleCounters, SizeClass
from ensembles.model.units import HALF_INT64, LONGEST_S
from ensembles.readers.foreign.darshan.counter_semantics import BUCKETS, WAYS
from ensembles.readers.foreign.darshan.header import DamagedLog

LAYERS = {
    "H5D": "hdf5",
    "H5F": "hdf5",
    "PNETCDF_VAR": "pnetcdf",
    "PNETCDF_FILE": "pnetcdf",
    "MPI-IO": "mpiio",
    "DFS": "dfs",
    "DAOS": "daos",
    "POSIX": "posix",
    "STDIO": "stdio",
}
"""Layer of each module, the outermost interface first."""

PREFIXES = {module: module.replace("-", "") + "_" for module in LAYERS}
"""Prefix of the counters' names of each module."""

_CALLS: dict[str, tuple[Sequence[str], ...]] = {
    **{module: tuple(way.counts for way in ways) for module, ways in WAYS.items()},
    "H5F": ([], [], ["OPENS", "FLUSHES"]),
    "H5D": (["READS"], ["WRITES"], ["OPENS", "FLUSHES"]),
    "PNETCDF_FILE": ([], [], ["CREATES", "OPENS", "REDEFS", "SYNCS"]),
    "PNETCDF_VAR": (
        ["INDEP_READS", "COLL_READS", "NB_READS"],
        ["INDEP_WRITES", "COLL_WRITES", "NB_WRITES"],
        ["OPENS"],
    ),
}
"""Counters of reads, writes and other calls."""

_COLUMNS = {
    "bytes_read": ("BYTES_READ",),
    "bytes_written": ("BYTES_WRITTEN",),
    "sequential": ("SEQ_READS", "SEQ_WRITES"),
    "consecutive": ("CONSEC_READS", "CONSEC_WRITES"),
    "memory_misaligned": ("MEM_NOT_ALIGNED",),
    "file_misaligned": ("FILE_NOT_ALIGNED",),
    "read_s": ("F_READ_TIME",),
    "write_s": ("F_WRITE_TIME",),
    "meta_s": ("F_META_TIME",),
}
_NO_SUM = (
    "MODE",
    "RENAMED_FROM",
    "ALIGNMENT",
    "_RANK",
    "_RANK_BYTES",
    "VARIANCE_RANK_TIME",
    "VARIANCE_RANK_BYTES",
)
_FIRST, _LAST = "_START_TIMESTAMP", "_END_TIMESTAMP"
_COMMON = 4096
"""Number of different common sizes that are kept; fewer are rare."""


class RecordSums:
    """Sums of the records of one module."""

    def __init__(self, module: str, version: int, is_partial: bool) -> None:
        self.module, self.version, self.is_partial = module, version, is_partial
        self.records = self.shared_records = self.negative_times = 0
        self.totals: dict[str, int | float | None] = {}
        self._sizes: Counter[int] = Counter()
        self._strides: Counter[int] = Counter()
        self._alignment: dict[str, set[int]] = {"memory": set(), "file": set()}
        self._pending: list[dict[str, np.ndarray]] = []

    def add(
        self,
        names: tuple[Sequence[str], Sequence[str]],
        columns: Sequence[np.ndarray],
        file: np.ndarray,
    ) -> bool:
        """Add records, and return whether they have reads or writes."""
        identity, rank, whole, real = columns
        prefix = PREFIXES[self.module]
        is_time = np.array(["VARIANCE" not in name for name in names[1]])
        if not (np.abs(real[:, is_time]).max(initial=0.0) < LONGEST_S):
            raise DamagedLog("a time in it is impossible")
        value = {name.removeprefix(prefix): whole[:, i] for i, name in enumerate(names[0])}
        value |= {name.removeprefix(prefix): real[:, i] for i, name in enumerate(names[1])}
        self.records += len(rank)
        self.shared_records += int((rank < 0).sum())
        self._add_totals(value)
        self._add_common(value)
        reads, writes, others = (_sum_of(value, counters, len(rank)) for counters in _CALLS[self.module])
        row = {name: _sum_of(value, counters, len(rank)) for name, counters in _COLUMNS.items()}
        row |= {"reads": reads, "writes": writes, "others": others, "file": file, "rank": rank}
        row["identity"] = identity
        for calls, time in ((reads, "F_READ_TIME"), (writes, "F_WRITE_TIME"), (others, "F_META_TIME")):
            if time in value:
                self.negative_times += int(((value[time] < 0) & (calls > 0)).sum())
        self._pending.append(row | _extremes(value, row, rank))
        return bool(reads.any() or writes.any())

    def _add_totals(self, value: Mapping[str, np.ndarray]) -> None:
        for name, column in value.items():
            if name.endswith(_NO_SUM) or name.startswith(("ACCESS", "STRIDE")):
                continue
            known = column[column > 0] if name.startswith("F_") else column[column >= 0]
            before = self.totals.get(name)
            if not len(known):
                self.totals.setdefault(name, 0.0 if name.startswith("F_") and (column == 0).any() else None)
                continue
            if float(known.astype("f8").sum()) + float(before or 0) > HALF_INT64:
                raise DamagedLog(f"the sums of the counters of {self.module} are impossibly large")
            if name.endswith(_FIRST):
                found = min(float(known.min()), before or np.inf)
            elif name.endswith((_LAST, "_RANK_TIME")) or "MAX_" in name:
                found = max(known.max().item(), before or 0)
            else:
                found = known.sum().item() + (before or 0)
            self.totals[name] = found

    def _add_common(self, value: Mapping[str, np.ndarray]) -> None:
        for words, found in (("ACCESS", self._sizes), ("STRIDE", self._strides)):
            for i in range(1, 5):
                what, count = value.get(f"{words}{i}_{words}"), value.get(f"{words}{i}_COUNT")
                if what is None or count is None:
                    continue
                used = (count > 0) & (what >= 0)
                unique, inverse = np.unique(what[used], return_inverse=True)
                sums = np.bincount(inverse.reshape(-1), count[used].astype("f8"), len(unique))
                for size, number in zip(unique.tolist(), sums.tolist(), strict=True):
                    found[size] += int(number)
            if len(found) > 2 * _COMMON:
                kept = dict(found.most_common(_COMMON))
                found.clear()
                found.update(kept)
        for name, counter in (("memory", "MEM_ALIGNMENT"), ("file", "FILE_ALIGNMENT")):
            if counter in value:
                self._alignment[name].update(np.unique(value[counter][value[counter] > 0])[:16].tolist())

    def rows(self) -> Mapping[str, np.ndarray]:
        """Return the sums of each record by name: a module has one for each file and rank."""
        parts = self._pending
        if len(parts) > 1:
            self._pending = [{name: np.concatenate([part[name] for part in parts]) for name in parts[0]}]
        return self._pending[0] if parts else {}

    def finished(self, run_time_s: float) -> ModuleCounters:
        """Make the tables."""
        rows = self.rows()
        by_file = _by_file(rows)
        by_rank, low_s, high_s = _by_rank(rows)
        return ModuleCounters(
            self.module,
            LAYERS[self.module],
            self.version,
            self.is_partial,
            self.records,
            self.shared_records,
            self.totals,
            {op: size_classes(self.totals, op) for op in ("read", "write")},
            tuple(self._sizes.most_common(10)),
            tuple(self._strides.most_common(10)),
            {name: tuple(sorted(found)) for name, found in self._alignment.items()},
            by_file,
            by_rank,
            low_s,
            high_s,
            run_time_s,
        )


_MAXIMA = ("max_byte", "end_s", "longest_read_s", "longest_write_s")
_EXTREMES = (*_MAXIMA, "start_s", "slowest_rank", "slowest_s", "slowest_bytes", "fastest_rank", "fastest_s")


def _sum_of(value: Mapping[str, np.ndarray], counters: Sequence[str], n: int) -> np.ndarray:
    # Counters and timers that a version lacks are negative.
    present = [np.maximum(value[name], 0) for name in counters if name in value]
    found: np.ndarray = sum(present) if present else np.zeros(n, np.int64)
    return found


def _extremes(
    value: Mapping[str, np.ndarray], row: Mapping[str, np.ndarray], rank: np.ndarray
) -> dict[str, np.ndarray]:
    n = len(rank)
    missing = np.full(n, -1)
    starts = [np.where(value[name] > 0, value[name], np.inf) for name in value if name.endswith(_FIRST)]
    ends = [value[name] for name in value if name.endswith(_LAST)]
    total_s = row["read_s"] + row["write_s"] + row["meta_s"]
    shared = rank < 0
    # A record without any time has no slowest rank, and its time is known to be 0.
    known = shared & ((value.get("F_SLOWEST_RANK_TIME", np.zeros(n)) > 0) | (total_s == 0))
    ends_of = {}
    for word in ("slowest", "fastest"):
        time_s = np.maximum(value.get(f"F_{word.upper()}_RANK_TIME", 0.0), 0)
        of_shared = np.where(known, value.get(f"{word.upper()}_RANK", missing), -1)
        ends_of[f"{word}_rank"] = np.where(shared, of_shared, rank)
        ends_of[f"{word}_s"] = np.where(shared, np.where(known, time_s, np.nan), total_s)
    return {
        "max_byte": np.maximum(value.get("MAX_BYTE_READ", missing), value.get("MAX_BYTE_WRITTEN", missing)),
        "longest_read_s": np.maximum(value.get("F_MAX_READ_TIME", np.zeros(n)), 0),
        "longest_write_s": np.maximum(value.get("F_MAX_WRITE_TIME", np.zeros(n)), 0),
        "slowest_bytes": np.where(known, value.get("SLOWEST_RANK_BYTES", missing), -1),
        "start_s": np.minimum.reduce(starts) if starts else np.full(n, np.inf),
        "end_s": np.maximum.reduce(ends) if ends else np.zeros(n),
        **ends_of,
    }


def _by_file(rows: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    if not rows:
        return {name: np.empty(0) for name in ("file", "records", "is_shared", *SUMS, *_EXTREMES)}
    file, group = np.unique(rows["file"], return_inverse=True)
    group = group.reshape(-1)
    found: dict[str, np.ndarray] = {"file": file, "records": np.bincount(group, minlength=len(file))}
    found["is_shared"] = np.bincount(group, rows["rank"] < 0, minlength=len(file)) > 0
    found |= {name: _grouped(rows[name], group, len(file)) for name in SUMS}
    for name in _MAXIMA:
        found[name] = np.full(len(file), -1, rows[name].dtype)
        np.maximum.at(found[name], group, rows[name])
    found["end_s"] = np.where(found["end_s"] > 0, found["end_s"], np.nan)
    found["start_s"] = np.full(len(file), np.inf)
    np.minimum.at(found["start_s"], group, rows["start_s"])
    found["start_s"][~np.isfinite(found["start_s"])] = np.nan
    for word, sign, *more in (("slowest", 1, "slowest_bytes"), ("fastest", -1)):
        order = np.lexsort((np.nan_to_num(sign * rows[f"{word}_s"], nan=-np.inf), group))
        last = order[np.append(np.diff(group[order]) > 0, True)]
        found |= {name: rows[name][last] for name in (f"{word}_rank", f"{word}_s", *more)}
    return found


def _by_rank(rows: Mapping[str, np.ndarray]) -> tuple[dict[str, np.ndarray], float, float]:
    if not rows:
        return {name: np.empty(0) for name in ("rank", "records", *SUMS, "low_s", "high_s")}, 0.0, 0.0
    own, shared = rows["rank"] >= 0, rows["rank"] < 0
    low = np.nan_to_num(rows["fastest_s"][shared])
    high = rows["slowest_s"][shared]
    total_s = (rows["read_s"] + rows["write_s"] + rows["meta_s"])[shared]
    # Without the slowest rank's time, one rank may have spent all of it.
    high = np.where(np.isnan(high), total_s, high)
    slowest, fastest = rows["slowest_rank"][shared], rows["fastest_rank"][shared]
    rank = np.unique(np.concatenate([rows["rank"][own], slowest[slowest >= 0], fastest[fastest >= 0]]))
    group = np.searchsorted(rank, rows["rank"][own])
    found: dict[str, np.ndarray] = {"rank": rank, "records": np.bincount(group, minlength=len(rank))}
    found |= {name: _grouped(rows[name][own], group, len(rank)) for name in SUMS}
    time_s = found["read_s"] + found["write_s"] + found["meta_s"]
    found["low_s"], found["high_s"] = time_s + low.sum(), time_s + high.sum()
    named = slowest >= 0
    np.add.at(found["low_s"], np.searchsorted(rank, slowest[named]), (high - low)[named])
    named = fastest >= 0
    np.add.at(found["high_s"], np.searchsorted(rank, fastest[named]), (low - high)[named])
    return found, float(low.sum()), float(high.sum())


def _grouped(column: np.ndarray, group: np.ndarray, n: int) -> np.ndarray:
    found = np.zeros(n, column.dtype)
    np.add.at(found, group, column)
    return found


def size_classes(totals: Mapping[str, int | float | None], op: str) -> tuple[SizeClass, ...]:
    """Return the classes of request sizes with calls: bounds in bytes, and number of calls."""
    prefixes = (f"SIZE_{op.upper()}_", f"SIZE_{op.upper()}_AGG_")
    found = []
    for ending, low, high in BUCKETS:
        count = next((totals[prefix + ending] for prefix in prefixes if prefix + ending in totals), None)
        if count:
            found.append((low, high, int(count)))
    return tuple(found)

"""What Darshan's counters say of a job: plain values for JSON, texts and pages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ensembles.model.counters import SUMS, Counters, HeatMap, ModuleCounters
from ensembles.model.fields import plain
from ensembles.model.holds import Holds
from ensembles.model.units import MOST_ROWS, count_text

if TYPE_CHECKING:
    from ensembles.model.run_info import RunInfo

MORE_THAN_ALL = (
    "more than all tasks had: calls of several threads overlap, or the clock was set while a timer ran"
)
"""Why the time in I/O can be more than the run time of all tasks."""

_FILE_COLUMNS = (
    "records",
    "is_shared",
    *SUMS,
    "max_byte",
    "start_s",
    "end_s",
    "slowest_rank",
    "slowest_s",
    "fastest_rank",
    "fastest_s",
    "longest_read_s",
    "longest_write_s",
)
_RANK_COLUMNS = ("rank", "records", *SUMS, "low_s", "high_s")


def counters_json(run: RunInfo) -> dict[str, Any]:
    """Return what ``ensio info --json`` shows of the counters, if the run has some: as ``counters``."""
    return {"counters": counted_sums(run)} if run.has(Holds.COUNTERS) else {}


def counted_sums(run: RunInfo) -> dict[str, Any]:
    """Return the totals of each module of the counters, with the files and ranks of most time."""
    counters = run.counters
    modules = {name: _module_json(run, module, counters) for name, module in counters.modules.items()}
    task_time_s = counters.run_time_s * counters.tasks
    sums = _time_in_io(counters)
    return {
        "tool": counters.tool,
        "tasks": counters.tasks,
        "run_time_s": counters.run_time_s,
        "io_time": sums,
        "io_time_share": sums["time_s"] / task_time_s if task_time_s > 0 else None,
        "file_rows": sum(len(module.by_file["file"]) for module in counters.modules.values()),
        "rank_rows": sum(len(module.by_rank["rank"]) for module in counters.modules.values()),
        "modules": modules,
        "heatmaps": {name: _heatmap_json(found) for name, found in counters.heatmaps.items()},
        "targets": target_rows(run),
        "shared": shared_sentence(run),
    }


def _time_in_io(counters: Counters) -> dict[str, Any]:
    """Return the time in I/O, of the layer with the most time and of streams, and its parts."""
    main = counters.main_layer
    found: dict[str, Any] = {
        name: float(sum(module.total(name) for module in main)) for name in ("read_s", "write_s", "meta_s")
    }
    layer = " + ".join(dict.fromkeys(module.layer for module in main))
    found |= {"layer": layer, "time_s": sum(found.values())}
    time_s, parts = found["time_s"] or 1, ("read", "write", "meta")
    return found | {f"{part}_share": found[f"{part}_s"] / time_s for part in parts}


def file_rows(run: RunInfo, most: int | None = None) -> list[dict[str, Any]]:
    """Return the files of the counters, those of most time first.

    ``module``, ``layer``, ``path``, ``time_s`` (read, write and metadata, summed over ranks), and the columns
    of `ModuleCounters.by_file`; None: unknown. ``records`` counts the ranks with a record; if ``is_shared``,
    the numbers are sums over all ranks.
    """
    rows = []
    for module in _modules(run):
        table = module.by_file
        for i in _first(_time_s(table), _moved(table), most):
            path = {"path": run.files[int(table["file"][i])]}
            rows.append(_row(module, path, table, i, _FILE_COLUMNS))
    return rows


def rank_rows(run: RunInfo, most: int | None = None) -> list[dict[str, Any]]:
    """Return the ranks of the counters, those of most time first."""
    return [
        _row(module, {}, module.by_rank, i, _RANK_COLUMNS)
        for module in _modules(run)
        for i in _first(module.by_rank["low_s"], _time_s(module.by_rank), most)
    ]


def _row(
    module: ModuleCounters, of: dict[str, Any], table: Mapping[str, np.ndarray], i: int, names: Sequence[str]
) -> dict[str, Any]:
    """Return a row of a table of counters as plain values."""
    found = {name: column[i] for name, column in table.items()}
    sums = {"time_s": float(_time_s(found)), "bytes": int(_moved(found))}
    values = {name: plain(found[name]) for name in names}
    return {"module": module.module, "layer": module.layer, **of, **sums, **values}


def _time_s(table: Mapping[str, Any]) -> Any:
    return table["read_s"] + table["write_s"] + table["meta_s"]


def _moved(table: Mapping[str, Any]) -> Any:
    return table["bytes_read"] + table["bytes_written"]


def shared_sentence(run: RunInfo) -> str:
    """Return a sentence on the records that are sums over all ranks; ``""``: there are none."""
    shared = sum(module.shared_records for module in _modules(run))
    if not shared:
        return ""
    return (
        f"{count_text(shared, 'file record')} with sums over all ranks: of single ranks only the fastest and "
        "the slowest are known, the others lie between"
    )


def counted_requests(run: RunInfo) -> list[dict[str, Any]]:
    """Return what counters say of the requests of each interface, reads and writes together.

    ``layer``, ``count``, ``misaligned`` (None: not counted), ``misaligned_share``, ``alignment_bytes`` (list:
    what misaligned refers to) and ``common_sizes`` (``bytes`` and ``count``; a record keeps four sizes, so
    that counts are lower bounds). Interfaces of which neither is known are left out.
    """
    found = []
    for module in _modules(run):
        aligned_to = list(module.alignment.get("file", ()))
        sizes = [{"bytes": size, "count": count} for size, count in module.common_sizes]
        count = int(module.total("reads") + module.total("writes"))
        if not count or not (aligned_to or sizes):
            continue
        misaligned = int(module.total("file_misaligned")) if aligned_to else None
        found.append(
            {
                "layer": module.layer,
                "count": count,
                "misaligned": misaligned,
                "misaligned_share": None if misaligned is None else misaligned / count,
                "alignment_bytes": aligned_to,
                "common_sizes": sizes,
            }
        )
    return found


def main_interface(modules: Mapping[str, dict[str, Any]]) -> dict[str, Any] | None:
    """Return the outermost interface through which the data went, whose rate is that of the program.

    None: no rate is known. An interface counts if it moved a tenth of what the busiest one did.
    """
    moved = {name: each["bytes_read"] + each["bytes_written"] for name, each in modules.items()}
    least = max(moved.values(), default=0) / 10
    return next(
        (each for name, each in modules.items() if moved[name] >= least and each["rate"] is not None), None
    )


def _modules(run: RunInfo) -> list[ModuleCounters]:
    return list(run.counters.modules.values())


def _first(time_s: np.ndarray, then: np.ndarray, most: int | None) -> list[int]:
    order = np.lexsort((np.arange(len(time_s)), -then.astype(float), -time_s.astype(float)))
    return list(order[:most].tolist())


def _module_json(run: RunInfo, module: ModuleCounters, counters: Counters) -> dict[str, Any]:
    files = module.by_file
    reads, writes = files["bytes_read"] > 0, files["bytes_written"] > 0
    found: dict[str, Any] = {
        "layer": module.layer,
        "version": module.version,
        "is_partial": module.is_partial,
        "records": module.records,
        "shared_records": module.shared_records,
        **{name: plain(files[name].sum()) for name in SUMS},
        "time_s": module.time_s,
        "mean_task_s": module.time_s / counters.tasks,
        "slowest_rank_s": module.slowest_rank_s,
        "slowest_is_bound": module.slowest_is_bound,
        "rate": module.rate,
        "rate_is_bound": module.rate_is_bound,
        "file_kinds": {
            "all": len(reads),
            "read_only": int((reads & ~writes).sum()),
            "write_only": int((writes & ~reads).sum()),
            "read_and_written": int((reads & writes).sum()),
            "no_data": int((~reads & ~writes).sum()),
            "largest_bytes": int(files["max_byte"][reads | writes].max(initial=-1)) + 1,
        },
        "totals": {name: plain(value) for name, value in module.totals.items()},
        "size_classes": {
            op: [{"low_bytes": low, "high_bytes": high, "count": count} for low, high, count in classes]
            for op, classes in module.size_classes.items()
        },
        "common_sizes": [{"bytes": size, "count": count} for size, count in module.common_sizes],
        "common_strides": [{"bytes": size, "count": count} for size, count in module.common_strides],
        "alignment": {name: list(found) for name, found in module.alignment.items()},
    }
    found |= _shares(found)
    name = module.module
    found["slowest_files"] = [row for row in file_rows(run, MOST_ROWS) if row["module"] == name]
    found["slowest_ranks"] = [row for row in rank_rows(run, MOST_ROWS) if row["module"] == name]
    found["ranks"] = len(module.by_rank["rank"])
    found["rank_times_s"] = _spread(module)
    return found


def _shares(sums: Mapping[str, Any]) -> dict[str, float | None]:
    """Return the parts of the time, and the shares of calls that follow others or are misaligned."""
    calls = sums["reads"] + sums["writes"]
    parts = ("read_s", "write_s", "meta_s")
    patterns = ("sequential", "consecutive", "file_misaligned", "memory_misaligned")
    return {
        name.removesuffix("_s") + "_share": sums[name] / whole if whole > 0 else None
        for names, whole in ((parts, sums["time_s"]), (patterns, calls))
        for name in names
    }


def _spread(module: ModuleCounters) -> dict[str, float] | None:
    """Return quantiles of the time of ranks in their own records."""
    table = module.by_rank
    own = table["records"] > 0
    if not own.any():
        return None
    time_s = _time_s(table)[own]
    return {
        "fastest": float(time_s.min()),
        "median": float(np.median(time_s)),
        "slowest": float(time_s.max()),
        "ranks": int(own.sum()),
    }


def _heatmap_json(found: HeatMap) -> dict[str, Any]:
    both = found.read + found.written
    busy = np.flatnonzero(both)
    return {
        "bin_s": found.bin_s,
        "bytes_read": int(found.read.sum()),
        "bytes_written": int(found.written.sum()),
        "ranks": len(found.rank),
        "busy_share": len(busy) / max(len(both), 1),
        "first_s": float(busy[0] * found.bin_s) if len(busy) else None,
        "last_s": float((busy[-1] + 1) * found.bin_s) if len(busy) else None,
        "highest_rate": float(both.max(initial=0) / found.bin_s),
        "read": found.read.tolist(),
        "written": found.written.tolist(),
    }


def target_rows(run: RunInfo) -> list[dict[str, Any]]:
    """Return the storage targets (OSTs) of files on Lustre, that with the slowest files first.

    ``target`` (number of the OST), ``files`` (with a stripe there), ``bytes`` (of files with one stripe;
    None: some have more), ``median_file_s``, ``slowest_file_s`` (POSIX time of the slowest rank in each
    file).
    """
    posix = run.counters.modules.get("POSIX")
    if posix is None:
        return []
    table = posix.by_file
    moved = _moved(table)
    time_s = np.where(np.isfinite(table["slowest_s"]), table["slowest_s"], 0.0)
    found: dict[int, list[tuple[float, int | None]]] = {}
    for i in np.flatnonzero(moved).tolist():
        striping = run.striping_of(run.files[int(table["file"][i])])
        targets = (
            () if striping is None else {target for part in striping.components for target in part.targets}
        )
        for target in targets:
            found.setdefault(target, []).append(
                (float(time_s[i]), int(moved[i]) if len(targets) == 1 else None)
            )
    rows = []
    for target, files in found.items():
        times = [time for time, _ in files]
        amounts = [amount for _, amount in files if amount is not None]
        rows.append(
            {
                "target": target,
                "files": len(files),
                "bytes": sum(amounts) if len(amounts) == len(files) else None,
                "median_file_s": float(np.median(times)),
                "slowest_file_s": max(times),
            }
        )
    return sorted(rows, key=lambda row: (-float(row["median_file_s"] or 0), row["target"]))

"""The counters of another tool: time, files, ranks, sizes, patterns, targets."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ensembles.faces.answer import MOST_LISTED, MOST_ROWS
from ensembles.model.statement import Facts, Interval, LowerBound, Part, Statement, Table, UpperBound
from ensembles.model.units import share_text, size_text
from ensembles.structure.counters import MORE_THAN_ALL, main_interface

_COUNTS = (
    "OPENS",
    "INDEP_OPENS",
    "COLL_OPENS",
    "CREATES",
    "READS",
    "WRITES",
    *(f"{kind}_{op}" for op in ("READS", "WRITES") for kind in ("INDEP", "COLL", "SPLIT", "NB")),
    "SEEKS",
    "STATS",
    "MMAPS",
    "FSYNCS",
    "FDSYNCS",
    "SYNCS",
    "FLUSHES",
    "DUPS",
    "RENAME_SOURCES",
    "REDEFS",
)
_TIMES = {"read": "s", "write": "s", "metadata": "s"}
_INTERFACES = {"interface (module)": "", "files": "count", **_TIMES, "mean task": "s"}
_INTERFACES |= {"slowest task": "s", "rate": "bytes/s"}
_FILES = {"file": "", "layer": "", "tasks": "count", "moved": "bytes", **_TIMES}
_FILES |= {"slowest task": "s of rank"}
_RANKS = {"rank": "", "layer": "", "own files": "count", "moved": "bytes", **_TIMES}
_RANKS |= {"with shared files": "s"}
_TARGETS = {"OST": "", "files": "count", "moved": "bytes", "median time of a file": "s", "slowest file": "s"}

Rows = Sequence[Mapping[str, Any]]


def counter_facts(information: Mapping[str, Any]) -> Iterator[tuple[str, Statement | str]]:
    """Say how long a run with counters was in I/O, and how much it moved."""
    counters = information["counters"]
    run_time_s, most, part = counters["run_time_s"], counters["io_time"], counters["io_time_share"]
    values = {"tasks": counters["tasks"], "time_s": run_time_s if run_time_s > 0 else "under 1 s"}
    yield "run time", Statement("counters.run_time", values)
    if most["layer"]:
        yield "I/O time", Statement("counters.io_time", {**most, "share": part})
        shares = {key: most[key] or 0.0 for key in ("read_share", "write_share", "meta_share")}
        yield "", Statement("counters.in_data", {**most, **shares})
        yield "", Statement("counters.in_metadata", {**most, **shares})
        if part is not None and part > 1:
            yield "", MORE_THAN_ALL
    # Bytes count in the outermost call of their direction: data sieving reads where programs write.
    known = [each for each in counters["modules"].values() if each["layer"] in information["layers"]]
    keys = ("bytes_read", "bytes_written")
    layers = {key: next((each["layer"] for each in known if each[key]), "") for key in keys}
    differ = len({*layers.values()} - {""}) > 1
    for label, key in (("read", "bytes_read"), ("written", "bytes_written")):
        moved = {"bytes": information[key], "layer": layers[key] if differ else ""}
        yield label, Statement("counters.moved", moved)
    outer = main_interface(counters["modules"])
    if outer is not None:
        yield "data rate", Statement("counters.rate", {**outer, "rate": rate_of(outer)})


def counter_parts(counters: Mapping[str, Any]) -> Iterator[Part]:
    """Tabulate interfaces, files, ranks and targets, and say what each interface did."""
    modules, tasks = counters["modules"], counters["tasks"]
    rows = [
        (
            f"{module['layer']} ({name})",
            module["file_kinds"]["all"],
            *_times(module),
            module["mean_task_s"],
            UpperBound(module["slowest_rank_s"]) if module["slowest_is_bound"] else module["slowest_rank_s"],
            rate_of(module),
        )
        for name, module in modules.items()
    ]
    yield Table.of_rows("interface", _INTERFACES, rows, together=(4,))
    for name, module in modules.items():
        yield Facts(list(_module(module, tasks)), _files_of(name, module), 13, 2)
    yield from _file_parts(counters)
    if tasks > 1:
        yield from _rank_parts(counters)
    yield from _target_parts(counters)
    yield tuple(
        Statement("counters.heat_map", {**found, "of": name, "busy": found["busy_share"] or 0.0})
        for name, found in counters["heatmaps"].items()
        if found["first_s"] is not None
    )


def rate_of(module: Mapping[str, Any]) -> LowerBound | float | None:
    """Return the data rate of a module; None: it is unknown."""
    rate: float | None = module["rate"]
    return LowerBound(rate) if rate is not None and module["rate_is_bound"] else rate


def _file_parts(counters: Mapping[str, Any]) -> Iterator[Part]:
    """Tabulate the files of most time."""
    rows = _by_layer(counters, "slowest_files", "path", "time_s")[:MOST_ROWS]
    shown = [
        (
            _shortened(row["path"]),
            row["layer"],
            "all" if row["is_shared"] else row["records"],
            row["bytes"],
            *_times(row),
            "unknown" if row["slowest_s"] is None else (row["slowest_s"], row["slowest_rank"]),
        )
        for row in rows
    ]
    paths = [Statement("counters.path", {"path": row["path"]}) for row in rows]
    yield Table.of_rows("file", _FILES, shown, together=(3,), hover=paths)
    yield tuple(_about_rows(rows, counters["file_rows"]))


def _rank_parts(counters: Mapping[str, Any]) -> Iterator[Part]:
    """Tabulate the ranks of most time."""
    rows = [row for row in _by_layer(counters, "slowest_ranks", "rank", "low_s") if row["high_s"] > 0]
    rows = rows[:MOST_ROWS]
    shown = [
        (row["rank"], row["layer"], row["records"], row["bytes"], *_times(row), _between(row)) for row in rows
    ]
    yield Table.of_rows("rank", _RANKS, shown, together=(3,))
    yield tuple(_about_rows(rows, counters["rank_rows"]))


def _target_parts(counters: Mapping[str, Any]) -> Iterator[Part]:
    """Tabulate the first storage targets, and the last; nothing if their files took equal times."""
    rows, most = counters["targets"], MOST_LISTED
    keys = ("target", "files", "bytes", "median_file_s", "slowest_file_s")
    chosen = [*rows[:most], *rows[most:][-1:]] if len({row["median_file_s"] for row in rows}) > 1 else []
    yield Table.of_rows("OST", _TARGETS, [[row[key] for key in keys] for row in chosen])
    if len(chosen) > most:
        yield (Statement("counters.targets", {"count": len(rows)}),)


def _by_layer(counters: Mapping[str, Any], kind: str, key: str, time: str) -> list[Mapping[str, Any]]:
    """Return the rows of each file or rank together, calling layers first."""
    modules = list(counters["modules"].values())
    layers = list(dict.fromkeys(module["layer"] for module in modules))  # the outermost first
    rows = [row for module in modules for row in module[kind]]
    longest: dict[Any, float] = {}
    for row in rows:
        longest[row[key]] = max(longest.get(row[key], 0.0), row[time])
    return sorted(rows, key=lambda row: (-longest[row[key]], str(row[key]), layers.index(row["layer"])))


def _times(row: Mapping[str, Any]) -> tuple[float, float, float]:
    return row["read_s"], row["write_s"], row["meta_s"]


def _between(row: Mapping[str, Any]) -> float | Interval:
    """Return the time of a rank, or between which times it is."""
    low_s, high_s = row["low_s"], row["high_s"]
    return low_s if high_s - low_s <= 1e-3 * high_s else Interval(low_s, high_s)


def _about_rows(rows: Rows, of: int) -> Iterator[Statement]:
    """Say how many rows there are, and in which order."""
    if of > len(rows):
        yield Statement("counters.first", {"shown": len(rows), "of": of})
    if len({row["layer"] for row in rows}) > 1:
        yield Statement("counters.order")


def _shortened(path: str) -> str:
    name = os.path.basename(path) or path or "(unknown)"
    return name if len(name) <= 28 else f"{name[:12]}…{name[-15:]}"


def _files_of(name: str, module: Mapping[str, Any]) -> Statement:
    """Count the files of an interface, or what it has in their place, by their use."""
    kinds = dict(module["file_kinds"])
    is_file = name not in ("H5D", "PNETCDF_VAR")
    count, without = kinds["all"], kinds["no_data"]
    values = {key: kinds[key] or None for key in ("read_only", "write_only", "read_and_written")}
    values |= {"files": count if is_file else None, "objects": None if is_file else count}
    values |= {
        "no_data": without if 0 < without < count else None,
        "shared": module["shared_records"] or None,
    }
    largest = kinds["largest_bytes"] if kinds["largest_bytes"] > 0 else None
    return Statement("counters.module", {**values, "name": name, "largest": largest})


def _module(module: Mapping[str, Any], tasks: int) -> Iterator[tuple[str, Statement | str]]:
    """Say which calls of which sizes an interface made."""
    totals = module["totals"]
    counts = (f"{name.lower().replace('_', ' ')} {totals[name]:,}" for name in _COUNTS if totals.get(name))
    texts = {"calls": " · ".join(counts)}
    texts |= {f"{op} sizes": " · ".join(map(_class, module["size_classes"][op])) for op in ("read", "write")}
    texts |= {"common": _common(module["common_sizes"]), "strides": _common(module["common_strides"])}
    texts["pattern"] = _pattern(module)
    yield from ((label, text) for label, text in texts.items() if text)
    times = module["rank_times_s"]
    if times is not None and tasks > 1:
        yield "tasks", Statement("counters.tasks", times)
    if module["is_partial"]:
        yield "partial", Statement("counters.partial")


def _class(entry: Mapping[str, int]) -> str:
    low, high = entry["low_bytes"], entry["high_bytes"]
    text = f"over {size_text(low - 1)}" if high >= 1 << 62 else f"to {size_text(high)}"
    return f"{text} × {entry['count']:,}"


def _common(entries: Rows) -> str:
    return " · ".join(f"{size_text(entry['bytes'])} × {entry['count']:,}" for entry in entries[:6])


def _pattern(module: Mapping[str, Any]) -> str:
    calls = module["reads"] + module["writes"]
    if not calls or module["layer"] != "posix":
        return ""
    parts = [
        f"{share_text(module[f'{how}_share'] or 0.0, None)} {how}" for how in ("sequential", "consecutive")
    ]
    for place in ("file", "memory"):
        if module["alignment"][place]:
            sizes = ", ".join(size_text(size) for size in module["alignment"][place][:3])
            share = share_text(module[f"{place}_misaligned_share"] or 0.0, None)
            parts.append(f"{share} misaligned in {place} (to {sizes})")
    return " · ".join(parts) + f" of {calls:,} reads and writes"

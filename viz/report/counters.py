"""Sections of the report about counters that another tool kept."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ensembles.model.run_info import RunInfo
from ensembles.model.units import bytes_text, count_text, seconds_text, share_text, size_text
from ensembles.structure.counters import MORE_THAN_ALL, counted_sums, main_interface, rate_text
from ensembles.viz.common.nested_calls import LAYERS
from ensembles.viz.report.moments import MomentsTable

_MOST = 15


@dataclass(frozen=True)
class CountersShown:
    """Figures and tables of counters.

    Attributes
    ----------
    facts : list of (str, str, str)
        Key figures at the top of the page: name, value and meaning.
    tables : dict of str to MomentsTable
        By heading.
    """

    facts: list[tuple[str, str, str]]
    tables: dict[str, MomentsTable]


def counters_shown(run: RunInfo, information: dict[str, Any] | None = None) -> CountersShown:
    """Return what the report shows of the counters.

    Parameters
    ----------
    run : RunInfo
    information : dict, optional
        Of `ensembles.run.information.collect_information`, whose bytes count once what several interfaces
        moved.
    """
    counters = counted_sums(run)
    modules = counters["modules"].values()
    tables = {
        "Interfaces": _interfaces(counters),
        "Operations": _operations(counters),
        "Access": _access(counters),
        "Files by use": _files_by_use(run),
        "Data by file system": _by_file_system(run),
        "Files of most time": _files(
            [row for module in modules for row in module["slowest_files"]],
            sum(module["file_kinds"]["all"] for module in modules),
        ),
        "Ranks of most time": _ranks(
            [row for module in modules for row in module["slowest_ranks"]], counters["tasks"]
        ),
        "Storage targets": _targets(counters["targets"]),
    }
    return CountersShown(
        _facts(counters, information), {name: table for name, table in tables.items() if table.rows}
    )


def _facts(counters: dict[str, Any], information: dict[str, Any] | None) -> list[tuple[str, str, str]]:
    tasks, run_time_s = counters["tasks"], counters["run_time_s"]
    found = []
    if tasks:
        run_time = seconds_text(run_time_s) if run_time_s else "under 1 s"
        found.append(("run time", run_time, count_text(tasks, "task")))
    modules = list(counters["modules"].values())
    for label, key in (("written", "bytes_written"), ("read", "bytes_read")):
        if modules:
            most = max(modules, key=lambda each: each[key])
            moved = most[key] if information is None else information[key]
            other = "" if moved == most[key] else f"; {bytes_text(most[key])} in {most['layer']}"
            found.append((label, bytes_text(moved), f"summed over tasks{other}"))
    outer = main_interface(counters["modules"])
    if outer is not None:
        found.append(
            (
                "data rate",
                rate_text(outer),
                f"by the slowest task, metadata included ({outer['layer']})",
            )
        )
    if modules:
        most = counters["io_time"]
        part, of_meta = counters["io_time_share"], most["meta_share"]
        share = "" if part is None else f"{share_text(part, None)} of task time, "
        meta = "" if of_meta is None else f"{share_text(of_meta, None)} of it metadata"
        more = f"; {MORE_THAN_ALL}" if part is not None and part > 1 else ""
        found.append(("I/O time", seconds_text(most["time_s"]), f"{share}{meta} ({most['layer']}){more}"))
    return found


def _interfaces(counters: dict[str, Any]) -> MomentsTable:
    rows = [
        (
            f"{module['layer']} ({name})",
            f"{module['file_kinds']['all']:,}",
            *(seconds_text(module[key]) for key in ("read_s", "write_s", "meta_s", "mean_task_s")),
            ("≤ " if module["slowest_is_bound"] else "") + seconds_text(module["slowest_rank_s"]),
            rate_text(module),
        )
        for name, module in counters["modules"].items()
    ]
    headers = ("interface", "files", "read", "write", "metadata", "mean task", "slowest task", "rate")
    note = (
        "Files: all that the interface has counters of, also those that were only opened or asked for. "
        "Times are summed over tasks. The rate is that by the slowest task, metadata included. Counted by "
        f"{counters['tool']}."
    )
    return MomentsTable(headers, rows, note)


_ORDER = (
    "Those with the longest time in a layer come first; calls of a layer contain those of layers below it."
)

_OPERATIONS = {
    "open": ("OPENS", "INDEP_OPENS", "COLL_OPENS", "CREATES"),
    "seek": ("SEEKS",),
    "stat": ("STATS",),
    "mmap": ("MMAPS",),
    "sync": ("FSYNCS", "FDSYNCS", "SYNCS", "FLUSHES"),
}
"""Counters of each operation besides reads and writes."""


def _operations(counters: dict[str, Any]) -> MomentsTable:
    """Return the number of calls of each interface by operation; empty: the interface does not count it."""
    rows = []
    for name, module in counters["modules"].items():
        row = [f"{module['layer']} ({name})", f"{module['reads']:,}", f"{module['writes']:,}"]
        for counted in _OPERATIONS.values():
            found = [module["totals"].get(each) for each in counted]
            known = [int(each) for each in found if each is not None and each >= 0]
            row.append(f"{sum(known):,}" if known else "")
        rows.append(tuple(row))
    return MomentsTable(("interface", "read", "write", *_OPERATIONS), rows, "Calls, summed over tasks.")


def _files_by_use(run: RunInfo) -> MomentsTable:
    """Return the number and the sizes of the files that each interface only read, only wrote, or both."""
    rows = []
    for module in run.counters.modules.values():
        files = module.by_file
        reads, writes = files["bytes_read"] > 0, files["bytes_written"] > 0
        kinds = {
            "only read": reads & ~writes,
            "only written": writes & ~reads,
            "read and written": reads & writes,
            "neither": ~reads & ~writes,
        }
        for what, chosen in kinds.items():
            sizes = files["max_byte"][chosen & (files["max_byte"] >= 0)] + 1
            if not chosen.any():
                continue
            known = (
                [bytes_text(float(sizes.mean())), bytes_text(int(sizes.max()))] if len(sizes) else ["", ""]
            )
            rows.append((f"{module.layer} ({module.module})", what, f"{int(chosen.sum()):,}", *known))
    headers = ("interface", "files that were", "number", "mean size", "largest")
    return MomentsTable(headers, rows, "A size is the end of the last byte that was read or written.")


def _by_file_system(run: RunInfo) -> MomentsTable:
    """Return files and bytes of each mount point, by the interfaces that reach the storage."""
    sums: dict[str, list[float]] = {}
    for module in run.counters.modules.values():
        if module.layer not in ("posix", "stdio"):
            continue
        table = module.by_file
        time_s = table["read_s"] + table["write_s"] + table["meta_s"]
        columns = (table["bytes_read"], table["bytes_written"], time_s)
        for number, *values in zip(table["file"].tolist(), *(each.tolist() for each in columns), strict=True):
            name = _file_system(run, run.files[number])
            mine = sums.setdefault(name, [0, 0, 0, 0.0])
            sums[name] = [mine[0] + 1, *(old + new for old, new in zip(mine[1:], values, strict=True))]
    rows = [
        (name, f"{count:,.0f}", bytes_text(read), bytes_text(written), seconds_text(spent_s))
        for name, (count, read, written, spent_s) in sorted(sums.items(), key=lambda item: -item[1][3])
    ]
    headers = ("file system", "files", "read", "written", "time")
    return MomentsTable(
        headers,
        rows,
        "By POSIX and STDIO, which reach the storage; files of both count twice. Times are sums over tasks.",
    )


def _file_system(run: RunInfo, path: str) -> str:
    if path in ("<STDIN>", "<STDOUT>", "<STDERR>"):
        return "standard streams"
    mount = run.filesystem_of(path)
    return "unknown" if mount is None else f"{mount.point} ({mount.type})"


def _access(counters: dict[str, Any]) -> MomentsTable:
    rows = []
    for name, module in counters["modules"].items():
        calls = module["reads"] + module["writes"]
        if not calls:
            continue
        posix = module["layer"] == "posix"
        keys = ("file_misaligned", "memory_misaligned")
        rows.append(
            (
                f"{module['layer']} ({name})",
                f"{module['reads']:,}",
                f"{module['writes']:,}",
                *(_by_direction(module, what) for what in ("SEQ", "CONSEC")),
                *(share_text(module[key + "_share"], None) if posix else "" for key in keys),
                ", ".join(
                    f"{size_text(entry['bytes'])} × {entry['count']:,}".replace(" ", "\N{NO-BREAK SPACE}")
                    for entry in module["common_sizes"][:4]
                ),
            )
        )
    headers = ("interface", "reads", "writes", "sequential", "consecutive", "misaligned in file")
    note = (
        "Sequential: at a higher offset than the call before; consecutive: where that ended. Two shares: of "
        "reads / of writes."
    )
    return MomentsTable((*headers, "misaligned in memory", "common sizes"), rows, note)


def _by_direction(module: dict[str, Any], what: str) -> str:
    """Return the share of the reads and that of the writes that continue the call before; "": not counted."""
    shares = []
    for direction in ("reads", "writes"):
        count = module["totals"].get(f"{what}_{direction.upper()}")
        if module[direction] and count is not None:
            shares.append(share_text(min(count / module[direction], 1.0), None))
    return " / ".join(shares)


def _files(rows: Sequence[dict[str, Any]], of: int) -> MomentsTable:
    shown = [
        (
            (os.path.basename(row["path"]) or row["path"] or "(unknown)") if is_first else "",
            row["layer"],
            "all" if row["is_shared"] else f"{row['records']:,}",
            bytes_text(row["bytes"]),
            *(seconds_text(row[key]) for key in ("time_s", "read_s", "write_s", "meta_s")),
            "unknown"
            if row["slowest_s"] is None
            else f"{seconds_text(row['slowest_s'])} (rank {row['slowest_rank']})",
        )
        for row, is_first in _by_layer(rows, "path", "time_s")[:_MOST]
    ]
    headers = ("file", "layer", "tasks", "moved", "time", "read", "write", "metadata", "slowest task")
    return MomentsTable(headers, shown, " ".join(filter(None, (_first_of(len(shown), of), _order_of(rows)))))


def _by_layer(rows: Sequence[dict[str, Any]], key: str, time: str) -> list[tuple[dict[str, Any], bool]]:
    """Return the rows of each file or rank together, calling layers first, with whether a row is its first.

    Those with the longest time in a layer come first: calls of a layer contain those of the layers below.
    """
    longest: dict[Any, float] = {}
    for row in rows:
        longest[row[key]] = max(longest.get(row[key], 0.0), row[time])

    def place(row: dict[str, Any]) -> tuple[float, str, int]:
        depth = LAYERS.index(row["layer"]) if row["layer"] in LAYERS else len(LAYERS)
        return -longest[row[key]], str(row[key]), depth

    ordered = sorted(rows, key=place)
    return [(row, not at or row[key] != ordered[at - 1][key]) for at, row in enumerate(ordered)]


def _ranks(rows: Sequence[dict[str, Any]], of: int) -> MomentsTable:
    shown = [
        (
            f"{row['rank']}" if is_first else "",
            row["layer"],
            f"{row['records']:,}",
            bytes_text(row["bytes"]),
            *(seconds_text(row[key]) for key in ("read_s", "write_s", "meta_s", "low_s", "high_s")),
        )
        for row, is_first in _by_layer([row for row in rows if row["high_s"] > 0], "rank", "low_s")[:_MOST]
    ]
    headers = ("rank", "layer", "own files", "moved", "read", "write", "metadata", "at least", "at most")
    note = "At least and at most: time with files of all ranks, of which fastest and slowest rank are known."
    ranks = sum(1 for row in shown if row[0])
    notes = (_first_of(ranks, of, "ranks"), note, _order_of(rows))
    return MomentsTable(headers, shown, " ".join(filter(None, notes)))


def _order_of(rows: Sequence[dict[str, Any]]) -> str:
    return _ORDER if len({row["layer"] for row in rows}) > 1 else ""


def _first_of(shown: int, of: int, what: str = "rows") -> str:
    return f"The first {shown:,} of {of:,} {what}." if shown < of else ""


def _targets(rows: Sequence[dict[str, Any]]) -> MomentsTable:
    if len({row["median_file_s"] for row in rows}) < 2:
        return MomentsTable((), [])
    shown = [
        (
            f"OST {row['target']}",
            f"{row['files']:,}",
            "" if row["bytes"] is None else bytes_text(row["bytes"]),
            seconds_text(row["median_file_s"]),
            seconds_text(row["slowest_file_s"]),
        )
        for row in rows[:_MOST]
    ]
    headers = ("target", "files", "moved", "median time of a file", "slowest file")
    return MomentsTable(headers, shown, _first_of(len(shown), len(rows)))

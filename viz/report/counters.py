"""Sections of the report about counters that another tool kept."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ensembles.answers.counters import file_parts, interface_table, rank_parts, target_parts
from ensembles.model.run_info import RunInfo
from ensembles.model.statement import Part, Statement, Table
from ensembles.model.units import bytes_text, count_text, seconds_text, share_text, size_text
from ensembles.structure.counters import MORE_THAN_ALL, counted_sums, main_interface, rate_text

_MOST = 15


@dataclass(frozen=True)
class CountersShown:
    """Figures and tables of counters."""

    facts: list[tuple[str, str, str]]  # Key figures at the top of the page: name, value and meaning
    tables: dict[str, tuple[Part, ...]]  # By heading


def counters_shown(run: RunInfo, information: dict[str, Any] | None = None) -> CountersShown:
    """Return what the report shows of the counters."""
    counters = counted_sums(run)
    said = Statement("counters.interfaces", {"tool": counters["tool"]})
    tables: dict[str, tuple[Part, ...]] = {
        "Interfaces": (interface_table(counters["modules"]), (said,)),
        "Operations": (_operations(counters), (Statement("counters.operations"),)),
        "Access": (_access(counters), (Statement("counters.access"),)),
        "Files by use": (_files_by_use(run), (Statement("counters.files_by_use"),)),
        "Data by file system": (_by_file_system(run), (Statement("counters.by_file_system"),)),
        "Files of most time": tuple(file_parts(counters, _MOST)),
        "Ranks of most time": tuple(rank_parts(counters, _MOST)),
        "Storage targets": tuple(target_parts(counters, _MOST)),
    }
    shown = {name: parts for name, parts in tables.items() if isinstance(parts[0], Table) and len(parts[0])}
    return CountersShown(_facts(counters, information), shown)


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


_OPERATIONS = {
    "open": ("OPENS", "INDEP_OPENS", "COLL_OPENS", "CREATES"),
    "seek": ("SEEKS",),
    "stat": ("STATS",),
    "mmap": ("MMAPS",),
    "sync": ("FSYNCS", "FDSYNCS", "SYNCS", "FLUSHES"),
}
"""Counters of each operation besides reads and writes."""


def _operations(counters: dict[str, Any]) -> Table:
    """Return the number of calls of each interface by operation; empty: the interface does not count it."""
    rows = []
    for name, module in counters["modules"].items():
        row: list[Any] = [f"{module['layer']} ({name})", module["reads"], module["writes"]]
        for counted in _OPERATIONS.values():
            found = [module["totals"].get(each) for each in counted]
            known = [int(each) for each in found if each is not None and each >= 0]
            row.append(sum(known) if known else None)
        rows.append(row)
    units = {"interface": "", **dict.fromkeys(("read", "write", *_OPERATIONS), "count")}
    return Table.of_rows("interface", units, rows)


def _files_by_use(run: RunInfo) -> Table:
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
            known = (float(sizes.mean()), int(sizes.max())) if len(sizes) else (None, None)
            rows.append((f"{module.layer} ({module.module})", what, int(chosen.sum()), *known))
    units = {"interface": "", "files that were": "", "number": "count", "mean size": "bytes"}
    return Table.of_rows("row", {**units, "largest": "bytes"}, rows)


def _by_file_system(run: RunInfo) -> Table:
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
    rows = [(name, *values) for name, values in sorted(sums.items(), key=lambda item: -item[1][3])]
    units = {"file system": "", "files": "count", "read": "bytes", "written": "bytes", "time": "s"}
    return Table.of_rows("file system", units, rows)


def _file_system(run: RunInfo, path: str) -> str:
    if path in ("<STDIN>", "<STDOUT>", "<STDERR>"):
        return "standard streams"
    mount = run.filesystem_of(path)
    return "unknown" if mount is None else f"{mount.point} ({mount.type})"


def _access(counters: dict[str, Any]) -> Table:
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
                module["reads"],
                module["writes"],
                *(_by_direction(module, what) for what in ("SEQ", "CONSEC")),
                *(module[f"{key}_share"] if posix else None for key in keys),
                ", ".join(
                    f"{size_text(entry['bytes'])} × {entry['count']:,}"
                    for entry in module["common_sizes"][:4]
                ),
            )
        )
    units = {"interface": "", "reads": "count", "writes": "count", "sequential": "", "consecutive": ""}
    units |= dict.fromkeys(("misaligned in file", "misaligned in memory"), "share to 3 digits")
    return Table.of_rows("interface", {**units, "common sizes": ""}, rows)


def _by_direction(module: dict[str, Any], what: str) -> str:
    """Return the share of the reads and that of the writes that continue the call before; "": not counted."""
    shares = []
    for direction in ("reads", "writes"):
        count = module["totals"].get(f"{what}_{direction.upper()}")
        if module[direction] and count is not None:
            shares.append(share_text(min(count / module[direction], 1.0), None))
    return " / ".join(shares)

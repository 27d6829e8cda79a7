"""Text of ``ensio info`` on the counters of another tool: time, files, ranks, sizes, patterns, targets."""

from __future__ import annotations

import os
import textwrap
from collections.abc import Sequence
from typing import Any

from ensembles.model.table import folded_table_text, table_text
from ensembles.model.units import bytes_text, count_text, seconds_text, share_text, size_text
from ensembles.structure.counters import MORE_THAN_ALL, main_interface, rate_text

_WIDTH = 80
_LABEL = 11
_INNER_LABEL = 13
_MOST_FILES = 8
_MOST_RANKS = 5
_MOST_TARGETS = 5
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


def counter_headline(information: dict[str, Any]) -> str:
    """Return the lines on time and bytes of a run with counters.

    Parameters
    ----------
    information : dict
        Result of `ensembles.cli.info.collect_information`.
    """
    counters = information["counters"]
    tasks, run_time_s = counters["tasks"], counters["run_time_s"]
    run_time = seconds_text(run_time_s) if run_time_s > 0 else "under 1 s"
    lines = [_line("run time", f"{run_time} × {count_text(tasks, 'task')}")]
    most = counters["io_time"]
    if most["layer"]:
        part = counters["io_time_share"]
        share = f", {share_text(part, None)} of task time" if part is not None else ""
        lines.append(
            _line("I/O time", f"{seconds_text(most['time_s'])} in {most['layer']} summed over tasks{share}")
        )
        lines += _packed(_parts_of_time(most))
        if part is not None and part > 1:
            head, more = _line("", ""), " " * _LABEL
            lines += textwrap.wrap(MORE_THAN_ALL, _WIDTH, initial_indent=head, subsequent_indent=more)
    outer = main_interface(counters["modules"])
    rate = ""
    if outer is not None:
        rate = f"{rate_text(outer)} by the slowest task, metadata included ({outer['layer']})"
    # Bytes count in the outermost call of their direction: data sieving reads where programs write.
    known = [each for each in counters["modules"].values() if each["layer"] in information["layers"]]
    keys = ("bytes_read", "bytes_written")
    layers = {key: next((each["layer"] for each in known if each[key]), "") for key in keys}
    for label, key in (("read", "bytes_read"), ("written", "bytes_written")):
        where = f" in {layers[key]}" if layers[key] and len({*layers.values()} - {""}) > 1 else ""
        lines.append(_line(label, bytes_text(information[key]) + where))
    if rate:
        lines.append(_line("data rate", rate))
    return "\n".join(lines)


def counters_text(information: dict[str, Any]) -> str:
    """Return tables and lines on the counters; ``""`` for a run without.

    Parameters
    ----------
    information : dict
        Result of `ensembles.cli.info.collect_information`.
    """
    counters = information.get("counters", {})
    modules, tasks = counters.get("modules", {}), counters.get("tasks", 0)
    parts = [_interface_table(modules)]
    parts += [_module_text(name, module, tasks) for name, module in modules.items()]
    files = [row for module in modules.values() for row in module["slowest_files"]]
    ranks = [row for module in modules.values() for row in module["slowest_ranks"]]
    all_files, all_ranks = counters.get("file_rows", 0), counters.get("rank_rows", 0)
    parts.append(file_table_text(sorted(files, key=lambda row: -row["time_s"])[:_MOST_FILES], all_files))
    if tasks > 1:
        parts.append(rank_table_text(sorted(ranks, key=lambda row: -row["low_s"])[:_MOST_RANKS], all_ranks))
    parts.append(_target_table(counters.get("targets", ())))
    parts += [_heatmap_text(name, found) for name, found in counters.get("heatmaps", {}).items()]
    return "\n\n".join(part for part in parts if part)


def file_table_text(rows: Sequence[dict[str, Any]], of: int = 0) -> str:
    """Tabulate rows of `ensembles.structure.counters.file_rows`.

    Parameters
    ----------
    rows : sequence of dict
    of : int
        Number of rows that there are.
    """
    if not rows:
        return ""
    table = [
        (
            _shortened(row["path"]),
            row["layer"],
            "all" if row["is_shared"] else f"{row['records']:,}",
            bytes_text(row["bytes"]),
            seconds_text(row["read_s"]),
            seconds_text(row["write_s"]),
            seconds_text(row["meta_s"]),
            _of_rank(row["slowest_s"], row["slowest_rank"]),
        )
        for row in rows
    ]
    headers = ("file", "layer", "tasks", "moved", "read", "write", "metadata", "slowest task")
    return folded_table_text(headers, table, together=(3, 4)) + _more(len(rows), of)


def rank_table_text(rows: Sequence[dict[str, Any]], of: int = 0) -> str:
    """Tabulate rows of `ensembles.structure.counters.rank_rows`.

    Parameters
    ----------
    rows : sequence of dict
    of : int
        Number of rows that there are.
    """
    if not rows:
        return ""
    table = [
        (
            f"{row['rank']}",
            row["layer"],
            f"{row['records']:,}",
            bytes_text(row["bytes"]),
            seconds_text(row["read_s"]),
            seconds_text(row["write_s"]),
            seconds_text(row["meta_s"]),
            seconds_text(row["low_s"])
            if row["high_s"] - row["low_s"] <= 1e-3 * row["high_s"]
            else f"{seconds_text(row['low_s'])} … {seconds_text(row['high_s'])}",
        )
        for row in rows
    ]
    headers = ("rank", "layer", "own files", "moved", "read", "write", "metadata", "with shared files")
    return folded_table_text(headers, table, together=(3, 4)) + _more(len(rows), of)


def _line(label: str, text: str) -> str:
    return f"{label:<{_LABEL}}{text}"


def _more(shown: int, of: int) -> str:
    return f"\nThe first of {of:,} rows; all of them: run.counters in Python" if of > shown else ""


def _shortened(path: str) -> str:
    name = os.path.basename(path) or path or "(unknown)"
    return name if len(name) <= 28 else f"{name[:12]}…{name[-15:]}"


def _of_rank(time_s: float | None, rank: int) -> str:
    if time_s is None:
        return "unknown"
    return seconds_text(time_s) + (f" (rank {rank})" if rank >= 0 and time_s > 0 else "")


def _packed(parts: Sequence[str]) -> list[str]:
    """Join parts to lines, which end between two parts."""
    lines = [_line("", parts[0])]
    for part in parts[1:]:
        joined = f"{lines[-1]} · {part}"
        if len(joined) <= _WIDTH:
            lines[-1] = joined
        else:
            lines.append(_line("", part))
    return lines


def _parts_of_time(module: dict[str, Any]) -> list[str]:
    names = (("reads", "read"), ("writes", "write"), ("metadata", "meta"))
    return [
        f"{label} {seconds_text(module[key + '_s'])} ({share_text(module[key + '_share'] or 0.0, None)})"
        for label, key in names
    ]


def _interface_table(modules: dict[str, dict[str, Any]]) -> str:
    rows = [
        (
            f"{module['layer']} ({name})",
            seconds_text(module["read_s"]),
            seconds_text(module["write_s"]),
            seconds_text(module["meta_s"]),
            seconds_text(module["mean_task_s"]),
            ("≤ " if module["slowest_is_bound"] else "") + seconds_text(module["slowest_rank_s"]),
            rate_text(module),
        )
        for name, module in modules.items()
    ]
    headers = ("interface (module)", "read", "write", "metadata", "mean task", "slowest task", "rate")
    return folded_table_text(headers, rows, together=(3, 3)) if rows else ""


def _module_text(name: str, module: dict[str, Any], tasks: int) -> str:
    kinds = module["file_kinds"]
    what = "dataset or variable" if name in ("H5D", "PNETCDF_VAR") else "file"
    files = [count_text(kinds["all"], what)]
    labels = (
        ("read_only", "only read"),
        ("write_only", "only written"),
        ("read_and_written", "read and written"),
    )
    files += [f"{kinds[key]:,} {label}" for key, label in labels if kinds[key]]
    if kinds["no_data"] and kinds["no_data"] < kinds["all"]:
        files.append(f"{kinds['no_data']:,} without data")
    if kinds["largest_bytes"] > 0:
        files.append(f"accessed up to {bytes_text(kinds['largest_bytes'])}")
    if module["shared_records"]:
        files.append(f"{module['shared_records']:,} shared by all tasks")
    texts = [("", f"{name}: " + ", ".join(files))]
    counts = [
        f"{counter.lower().replace('_', ' ')} {module['totals'][counter]:,}"
        for counter in _COUNTS
        if module["totals"].get(counter)
    ]
    texts.append(("calls", " · ".join(counts)))
    texts += [
        (f"{op} sizes", " · ".join(_class_text(entry) for entry in module["size_classes"][op]))
        for op in ("read", "write")
    ]
    texts.append(("common", _common_text(module["common_sizes"])))
    texts.append(("strides", _common_text(module["common_strides"])))
    texts.append(("pattern", _pattern_text(module)))
    times = module["rank_times_s"]
    if times is not None and tasks > 1:
        text = (
            f"in files of single tasks: fastest {seconds_text(times['fastest'])}, median "
            f"{seconds_text(times['median'])}, slowest {seconds_text(times['slowest'])} of "
            f"{count_text(times['ranks'], 'task')}"
        )
        texts.append(("tasks", text))
    if module["is_partial"]:
        texts.append(("partial", "Darshan's memory was full: files and calls are missing"))
    lines = []
    for label, text in texts:
        if text:
            begin = f"  {label:<{_INNER_LABEL}}" if label else ""
            lines += textwrap.wrap(
                text, _WIDTH, initial_indent=begin, subsequent_indent=" " * (_INNER_LABEL + 2)
            )
    return "\n".join(lines)


def _class_text(entry: dict[str, int]) -> str:
    low, high = entry["low_bytes"], entry["high_bytes"]
    text = f"over {size_text(low - 1)}" if high >= 1 << 62 else f"to {size_text(high)}"
    return f"{text} × {entry['count']:,}"


def _common_text(entries: Sequence[dict[str, int]]) -> str:
    return " · ".join(f"{size_text(entry['bytes'])} × {entry['count']:,}" for entry in entries[:6])


def _pattern_text(module: dict[str, Any]) -> str:
    calls = module["reads"] + module["writes"]
    if not calls or module["layer"] != "posix":
        return ""
    parts = [
        f"{share_text(module['sequential_share'] or 0.0, None)} sequential",
        f"{share_text(module['consecutive_share'] or 0.0, None)} consecutive",
    ]
    for place in ("file", "memory"):
        if module["alignment"][place]:
            sizes = ", ".join(size_text(size) for size in module["alignment"][place][:3])
            share = share_text(module[f"{place}_misaligned_share"] or 0.0, None)
            parts.append(f"{share} misaligned in {place} (to {sizes})")
    return " · ".join(parts) + f" of {calls:,} reads and writes"


def _target_table(rows: Sequence[dict[str, Any]]) -> str:
    if len({row["median_file_s"] for row in rows}) < 2:
        return ""
    table = [
        (
            f"{row['target']}",
            f"{row['files']:,}",
            "" if row["bytes"] is None else bytes_text(row["bytes"]),
            seconds_text(row["median_file_s"]),
            seconds_text(row["slowest_file_s"]),
        )
        for row in [*rows[:_MOST_TARGETS], *([rows[-1]] if len(rows) > _MOST_TARGETS else [])]
    ]
    headers = ("OST", "files", "moved", "median time of a file", "slowest file")
    shown = (
        f"\n{count_text(len(rows), 'OST')}, that with the slowest files first; the last row is the fastest"
    )
    return table_text(headers, table) + (shown if len(rows) > _MOST_TARGETS else "")


def _heatmap_text(name: str, found: dict[str, Any]) -> str:
    if found["first_s"] is None:
        return ""
    text = (
        f"heat map of {name}: {bytes_text(found['bytes_read'])} read and "
        f"{bytes_text(found['bytes_written'])} written from {seconds_text(found['first_s'])} to "
        f"{seconds_text(found['last_s'])}, in "
        f"{share_text(found['busy_share'] or 0.0, None)} of the bins of {seconds_text(found['bin_s'])}; "
        f"at most "
        f"{bytes_text(found['highest_rate'])}/s"
    )
    return "\n".join(textwrap.wrap(text, _WIDTH, subsequent_indent="  "))

"""The words and tables of the report: what ran, what its calls add up to, which sizes are frequent."""

from __future__ import annotations

import os
import shlex
from typing import TYPE_CHECKING, Any

from ensembles.model.units import bytes_text, count_text, seconds_text, size_text
from ensembles.viz.moments import MomentsTable
from ensembles.viz.style import CLASS_OF_OP, COLOURS, percent_text

if TYPE_CHECKING:
    from ensembles.summaries.sizes import SizeTable
    from ensembles.viz.report import ReportData

_NS = 1e-9


def headline(run: Any) -> dict[str, str]:
    """Title of the page, the command that ran, and the line below it."""
    program = os.path.basename(run.program) or os.path.basename(os.path.normpath(run.path))
    hosts = run.hosts[0] if len(run.hosts) == 1 else f"{len(run.hosts):,} nodes" if run.hosts else ""
    parts = [
        f"{run.start:%Y-%m-%d %H:%M:%S} UTC",
        count_text(run.tasks, "task"),
        hosts,
        f"job {run.job}" if run.job else "",
    ]
    return {
        "program": program,
        "command": shlex.join(run.command) or run.program,
        "line": " · ".join(part for part in parts if part),
        "path": run.path,
    }


def facts(run: Any, summaries: ReportData) -> list[tuple[str, str, str]]:
    """The numbers at the top of the page: name, value, and what it means."""
    table = summaries.table
    span_s = table.span_ns * _NS
    totals = summaries.totals
    shown = [("time", seconds_text(span_s), "from the first recorded call to the end of the last")]
    for name, total in (("written", totals.bytes_written), ("read", totals.bytes_read)):
        meaning = (
            f"{bytes_text(total / span_s)}/s over that time" if total and span_s else "all tasks together"
        )
        shown.append((name, bytes_text(total), meaning))
    if span_s:
        share = totals.io_time_ns * _NS / (span_s * max(run.threads, 1))
        shown.append(("in I/O calls", percent_text(share), "of that time, averaged over all threads"))
    on = f"{count_text(run.tasks, 'task')}, on {count_text(len(table.files), 'file')}"
    shown.append(("calls", f"{table.events:,}", on))
    if table.slowest is not None:
        slowest = table.slowest
        file = f", {os.path.basename(slowest.file)}" if slowest.file else ""
        where = f"{slowest.call.name} of task {slowest.rank} at {seconds_text(slowest.start_ns * _NS)}{file}"
        shown.append(("slowest call", seconds_text(slowest.duration_ns * _NS), where))
    errors = sum(totals.errors for totals in table.totals.values())
    if errors:
        shown.append(("failed", count_text(errors, "call"), "see the table of calls"))
    if run.lost_calls:
        shown.append(("lost", count_text(run.lost_calls, "call"), "not recorded, and not in the sums"))
    if run.excluded_calls:
        left_out = count_text(run.excluded_calls, "call")
        shown.append(("left out", left_out, "on files of the system (ENSIO_EXCLUDE)"))
    return shown


def call_table(summaries: ReportData) -> MomentsTable:
    """What the calls of each function add up to, those that took the most time first."""
    totals = summaries.table.totals
    all_ns = sum(each.time_ns for each in totals.values()) or 1
    rows = []
    for call, each in sorted(totals.items(), key=lambda item: -item[1].time_ns):
        moves = call.op in ("read", "write")
        per_s = (
            bytes_text(each.bytes / (each.time_ns * _NS)) + "/s"
            if moves and each.bytes and each.time_ns
            else ""
        )
        rows.append(
            (
                call.name,
                call.layer,
                f"{each.count:,}",
                bytes_text(each.bytes) if moves else "",
                seconds_text(each.time_ns * _NS),
                percent_text(each.time_ns / all_ns),
                per_s,
                f"{each.errors:,}" if each.errors else "",
            )
        )
    headers = ("call", "layer", "n", "bytes", "time in it", "share", "rate while in it", "failed")
    note = "Time is that of all tasks together; the rate is that of one task while it is inside the call."
    return MomentsTable(headers, rows, note if rows else "")


def call_colours(summaries: ReportData) -> dict[str, str]:
    """Colour of each call by its name."""
    return {call.name: COLOURS[CLASS_OF_OP[call.op]] for call in summaries.table.totals}


def missing(run: Any, summaries: ReportData) -> str:
    """What the page cannot show, where the run's events are not all calls; or ``""``."""
    if summaries.events is None:
        return ""
    known = "The tables, the histograms and the moments are of all calls"
    if not summaries.durations_known:
        return (
            "The tables are of all calls; how long each took, which task did what when, and the rates over "
            "time, are not known (ensio run --mode trace records them)."
        )
    if not summaries.events:
        why = (
            "This run was recorded in mode profile" if run.mode == "profile" else "No single calls were kept"
        )
        return (
            f"{why}: {known[0].lower()}{known[1:]}; which task did what when, and the rates over time, are "
            "not known (ensio run --mode trace records them)."
        )
    kept = count_text(summaries.events, "call")
    which = "the slowest ones" if run.mode == "tail" else "those for which there was space"
    return f"{known}. The pictures over time show {kept} only: {which}."


def size_tables(sizes: SizeTable, classes: dict[str, list[tuple[int, int, int]]]) -> dict[str, MomentsTable]:
    """The most frequent request sizes of reads and writes, by layer; of the classes only the range is
    known."""
    tables = {}
    for layer in sizes.layers:
        rows = [(size_text(size), f"{count:,}") for size, count in sizes.frequent(layer)]
        ranges = classes.get(layer, [])[:10]
        rows += [(f"{size_text(low)} to {size_text(high)}", f"{count:,}") for low, high, count in ranges]
        lacking = sizes.uncertainty.get(layer, 0)
        note = f"Sizes are many: each count may be too low by up to {lacking:,}." if lacking else ""
        if ranges:
            note = "Where calls of a size class had several sizes, their range is given."
        tables[layer] = MomentsTable(("size of a request", "n"), rows, note)
    return tables

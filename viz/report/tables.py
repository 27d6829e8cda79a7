"""Texts and tables of the report: headline, key figures, calls, access sizes, moments of durations."""

from __future__ import annotations

import math
import os
import shlex
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ensembles.answers.info import share_in_io, time_in_io
from ensembles.answers.sites import site_parts
from ensembles.diagnosis.call_sites import python_hint
from ensembles.faces.html import answer_html
from ensembles.faces.words import sentence
from ensembles.model.events import Call
from ensembles.model.statement import Column, Part, Statement, Table
from ensembles.model.units import S_PER_NS, bytes_text, count_text, seconds_text, share_text, size_text
from ensembles.run.failures import failed_calls_json, failure_sentences, lost_data_sentence
from ensembles.run.information import storage_lines
from ensembles.structure.libraries import bytes_below_text
from ensembles.summaries.bins import RELATIVE_WIDTH
from ensembles.summaries.histogram import LogHistogram
from ensembles.summaries.moments import CallMoments
from ensembles.viz.common.data_for import all_data_for
from ensembles.viz.common.figures import keep_units
from ensembles.viz.common.style import COLOURS, class_of_call

if TYPE_CHECKING:
    from ensembles.summaries.bysite import BySite
    from ensembles.summaries.failed_calls import FailedCalls
    from ensembles.summaries.sizes import Requests, SizeTable
    from ensembles.viz.report.data import ReportData


DATA_LOST = "errors, files may lack data"
"""Name of the key figure of failed writes, syncs and closes, which is marked in the page."""


def headline(run: Any) -> dict[str, str]:
    """Return name, command, description and path of a run for the head of the page."""
    hosts = (
        run.info.hosts[0]
        if len(run.info.hosts) == 1
        else f"{len(run.info.hosts):,} nodes"
        if run.info.hosts
        else ""
    )
    parts = [
        run.info.start_text,
        count_text(run.tasks, "task"),
        hosts,
        f"job {run.info.job}" if run.info.job else "",
    ]
    return {
        "program": run.info.name,
        "command": shlex.join(run.info.command) or run.info.program,
        "line": " · ".join(part for part in parts if part),
        "path": run.path,
    }


def facts(
    run: Any, summaries: ReportData, information: dict[str, Any] | None = None
) -> list[tuple[str, str, str]]:
    """Return the key figures at the top of the page: name, value and meaning of each."""
    table = summaries.table
    totals, span_s = summaries.totals, seconds_text(table.span_ns * S_PER_NS)
    shown = [("span", span_s, "from the first recorded call to the end of the last")]
    if information is not None:
        meaning = f"from the first recorded call to the end of the last {span_s}"
        shown = [("run", seconds_text(run.length_s), meaning)]
    for name, op, total in (("written", "write", totals.bytes_written), ("read", "read", totals.bytes_read)):
        if not total and information is None:  # a selection of writes has no reads
            continue
        rates = _rates(summaries, None if information is None else information["transfers"][op], op)
        below = "" if information is None else bytes_below_text(information["layer_traffic"] or [], op)
        meaning = ", ".join(part for part in (rates or "summed over tasks", below) if part)
        shown.append((name, bytes_text(total), meaning))
    io_s = totals.io_time_ns * S_PER_NS if information is None else information["io_time_s"]
    shown += _time_in_io(io_s, information)
    on = f"of {count_text(run.tasks, 'task')} on {count_text(len(table.files), 'file')}"
    shown.append(("calls", f"{table.events:,}", on))
    if table.slowest is not None:
        slowest = table.slowest
        file = f", {os.path.basename(slowest.file)}" if slowest.file else ""
        where = (
            f"{slowest.call.name} of rank {slowest.rank} at {seconds_text(slowest.start_ns * S_PER_NS)}{file}"
        )
        shown.append(("slowest call", seconds_text(slowest.duration_ns * S_PER_NS), where))
    if run.info.crowded_text:
        shown.append(("processors", "shared", f"{run.info.crowded_text}: calls also wait for a processor"))
    if information is not None and information["recorder"]:
        shown.append(("recorder", "", information["recorder"]))
    failed = _failed_facts(run, summaries)
    lost = [each for each in failed if each[0] == DATA_LOST]  # nothing is more important
    shown = [*lost, *shown, *(each for each in failed if each not in lost)]
    if run.info.lost_calls:
        shown.append(
            ("lost", count_text(run.info.lost_calls, "call"), "not recorded and not included in the totals")
        )
    if run.info.excluded_calls:
        excluded = count_text(run.info.excluded_calls, "call")
        shown.append(("excluded", excluded, "on system files (ENSIO_EXCLUDE), pipes or terminals"))
    return shown


def _failed_facts(run: Any, summaries: ReportData) -> list[tuple[str, str, str]]:
    """Return how many calls failed; those that only found that something is not there are not errors."""
    totals = summaries.table.totals
    failed = {call.name: each.errors for call, each in totals.items() if each.errors}
    if not failed:
        return []
    if summaries.failed is None:
        most = sorted(failed, key=lambda name: -failed[name])
        names = f"{', '.join(most[:3])}{', ...' if len(most) > 3 else ''}"
        return [
            (
                "errors",
                count_text(sum(failed.values()), "call"),
                f"failed, of {names}; see the table of calls",
            )
        ]
    rows = failed_calls_json(summaries.failed, run.files)
    searches = [row for row in rows if row["is_search"]]
    others = [row for row in rows if not row["is_search"]]
    facts = []
    if others:
        name = DATA_LOST if lost_data_sentence(others, run.tasks) else "errors"
        said = f"failed. {failure_sentences(others, run.tasks)[0]}; see Failed calls"
        facts.append((name, count_text(sum(row["count"] for row in others), "call"), said))
    if searches:
        said = f"{'. '.join(failure_sentences(searches, run.tasks))}; see Failed calls"
        facts.append(("not there", count_text(sum(row["count"] for row in searches), "call"), said))
    return facts


def _rates(summaries: ReportData, transfer: dict[str, Any] | None, op: str) -> str:
    """Return the data rates of a direction in words."""
    if transfer is None:
        moved, active_s = summaries.rate.total_bytes(op), summaries.rate.active_s(op)
        return f"{bytes_text(moved / active_s)}/s while data moved" if moved and active_s else ""
    ways: tuple[tuple[str, str], ...] = (
        ("active_bytes_per_s", "while data moved"),
        ("open_bytes_per_s", "while files were open"),
    )
    if transfer["active_s"] is None:
        calls = "writes and syncs" if op == "write" else "reads"
        ways = (("slowest_task_bytes_per_s", f"by the time of the slowest task in {calls}"),)
    known = [f"{bytes_text(transfer[rate])}/s {words}" for rate, words in ways if transfer[rate] is not None]
    return ", ".join(known)


def _time_in_io(io_time_s: float, information: dict[str, Any] | None) -> list[tuple[str, str, str]]:
    """Return the share of the run in I/O, and what ``ensio info`` says of it."""
    share = None if information is None else share_in_io(information)
    if information is None or share is None:
        return [("I/O time", seconds_text(io_time_s), "summed over tasks")]
    said = (each if isinstance(each, str) else sentence(each) for each in time_in_io(information))
    return [("I/O time", sentence(Statement("info.share", {"share": share})), ". ".join(said))]


def storage_of(information: dict[str, Any] | None) -> list[tuple[str, str]]:
    """Return labels and sentences on file systems, striping and hints; of a selection none."""
    if information is None:
        return []
    return storage_lines(information["filesystems"], information["hints"], all_of_them=True)


def _tabulated(units: Mapping[str, str], rows: Sequence[Sequence[Any]], note: str = "") -> tuple[Part, ...]:
    """Return a table with all of its columns, also empty ones, and a sentence below it."""
    columns = [Column(name, unit, values) for (name, unit), *values in zip(units.items(), *rows, strict=True)]
    return (Table("row", tuple(columns)), (Statement("report.note", {"note": note}),) if note else ())


def call_table(summaries: ReportData) -> tuple[Part, ...]:
    """Tabulate the I/O calls by function, those with the most exclusive time first."""
    totals, layers = summaries.table.totals, summaries.totals.layers
    io = {call: layers.exclusive_ns(call) for call in totals if not call.waits_for_tasks}
    all_ns = sum(io.values()) or 1
    rows = []
    for call, exclusive_ns in sorted(io.items(), key=lambda item: (-item[1], item[0])):
        each = totals[call]
        moved = each.bytes if call.op in ("read", "write") else None
        per_s = moved / (each.time_ns * S_PER_NS) if moved and each.time_ns else None
        time_s, share = exclusive_ns * S_PER_NS, exclusive_ns / all_ns
        rows.append((call.name, call.layer, each.count, moved, time_s, share, per_s, each.errors or None))
    units = {"call": "", "layer": "", "calls": "count", "bytes": "bytes", "exclusive time": "s"}
    units |= {"share": "share to 3 digits", "rate inside the call": "bytes/s", "errors": "count"}
    note = "Time is summed over tasks, without calls inside. The rate is that of one task inside the call."
    return _tabulated(units, rows, note if rows else "")


def wait_table(summaries: ReportData) -> tuple[Part, ...]:
    """Tabulate the calls that wait for other tasks by function, those with the most exclusive time first."""
    totals, layers = summaries.table.totals, summaries.totals.layers
    waits = {call: layers.exclusive_ns(call) for call in totals if call.waits_for_tasks}
    rows = [
        (call.name, totals[call].count, exclusive_ns * S_PER_NS)
        for call, exclusive_ns in sorted(waits.items(), key=lambda item: (-item[1], item[0]))
    ]
    note = "Time is summed over tasks, without calls inside. It is not part of the I/O time."
    return _tabulated({"call": "", "calls": "count", "exclusive time": "s"}, rows, note) if rows else ()


def failed_table(run: Any, failed: FailedCalls | None) -> tuple[Part, ...]:
    """Tabulate the failed calls by function and errno; searches of files come last.

    Empty: no call failed, or nothing is known of those that did.
    """
    rows = []
    for row in failed_calls_json(failed, run.files)[:12] if failed is not None else ():
        low, high = row["first_rank"], row["last_rank"]
        names = row["call"], row["error"] or "unknown", row["count"], row["files"] or None
        where = row["file"], row["last_file"], f"{low}" if low == high else f"{low} to {high}"
        rows.append((*names, *where, row["first_s"], row["last_s"]))
    units = {"call": "", "error": "", "calls": "count", "files": "count", "file of most": ""}
    units |= {"file of the last": "", "ranks": "", "first": "s", "last": "s"}
    return _tabulated(units, rows, "The calls: ensio events RUN --where failed.") if rows else ()


def request_table(run: Any, posted: Requests | None) -> tuple[Part, ...]:
    """Tabulate the non-blocking requests by operation: post, flight, wait, and what other work hid."""
    rows = []
    for name, sums in run.info.flights.items():
        post_ns = posted.post_ns[name] if posted is not None and posted.requests[name] else math.nan
        times_ns = (post_ns, sums.flight_ns, sums.wait_ns, sums.hidden_ns)
        mean_s = sums.flight_ns * S_PER_NS / sums.requests
        rows.append((name, sums.requests, *(ns * S_PER_NS for ns in times_ns), sums.hidden_share, mean_s))
    units = {"operation": "", "requests": "count", **dict.fromkeys(("post", "flight", "wait", "hidden"), "s")}
    units |= {"share hidden": "share to 3 digits", "mean flight": "s"}
    note = (
        "Times are summed over requests. A request is in flight from the entry of the call that posts it to "
        "the first moment at which the program could see its completion. Hidden is the part of it in which "
        "the thread was in no call that posts or waits for a request."
    )
    return _tabulated(units, rows, note) if rows else ()


def sites_html(run: Any, by_site: BySite | None) -> str:
    """Tabulate the call sites with the longest exclusive time; ``""``: none is known."""
    if by_site is None or not by_site.rows or len(run.info.sites) < 2:
        return ""
    parts = site_parts(run, by_site.grouped(run.info.label_of_site))
    hints = [hint for hint in (*run.info.notes_on_calls, python_hint(run)) if hint]
    said = (Statement("sites.what"), *(Statement("sites.hint", {"hint": hint}) for hint in hints))
    return keep_units(answer_html((*parts, said), 15, "ensio sites"))


def call_colours(summaries: ReportData) -> dict[str, str]:
    """Return the colour of each function by name."""
    return {call.name: COLOURS[class_of_call(call)] for call in summaries.table.totals}


def missing(run: Any, summaries: ReportData, has_counted: bool) -> str:
    """Explain what the page cannot show, such as calls without events; ``""`` if it shows everything."""
    if not (summaries.table.totals or has_counted):
        return f"There is nothing to draw: {run.reading.doubt or 'no call is chosen'}."
    if summaries.sums is None or not summaries.sums.without_event:
        return ""
    known = "Tables, histograms and moments" if summaries.table.durations_known else "Tables"
    beginning = f"This run {run.info.how_it_was_recorded}. {known} include all calls"
    if summaries.events:
        return f"{beginning}. The figures over time show only {count_text(summaries.events, 'call')}."
    return (
        f"{beginning}. Single durations, the trace diagram, rates over time and phases are not available: "
        f"{run.info.how_to_keep_calls}."
    )


def size_tables(sizes: SizeTable) -> dict[str, tuple[Part, ...]]:
    """Tabulate the most common access sizes of reads and writes, by layer."""
    tables = {}
    for layer in sizes.layers:
        rows = [(size_text(size), count) for size, count in sizes.frequent(layer)]
        ranges = sizes.classes.get(layer, [])[:10]
        rows += [(f"{size_text(low)} to {size_text(high)}", count) for low, high, count in ranges]
        lacking = sizes.uncertainty.get(layer, 0)
        note = f"Each count may be too low by up to {lacking:,}, because there are many sizes."
        if ranges:
            note = "If the sizes in a class differ, the table gives their range."
        units = {"access size": "", "calls": "count"}
        tables[layer] = _tabulated(units, rows, note if lacking or ranges else "")
    return tables


def moments(data: Any) -> tuple[Part, ...]:
    """Tabulate count, moments and quantiles of the call durations by function.

    The functions that took the most time come first. Quantiles are read from a histogram; their relative
    error is at most the width of a bin, 3.1 %.
    """
    if isinstance(data, tuple):
        call_moments, histogram = data
    else:
        call_moments, histogram = all_data_for(data, CallMoments, LogHistogram)
    order = sorted(call_moments.moments.items(), key=lambda item: -item[1].n * item[1].mean_ns)
    units = {"call": "", "n": "count", "mean": "s", "std": "s", "skewness": "to 0.01"}
    units |= {"excess kurtosis": "to 0.01", **dict.fromkeys(("min", "median", "p95", "p99", "max"), "s")}
    return _tabulated(
        units,
        [_row(call, found, histogram) for call, found in order],
        f"Median, p95 and p99 are read from a histogram: their relative error is at most "
        f"{share_text(RELATIVE_WIDTH, 1)}. Skewness and excess kurtosis have no unit; both are 0 for a "
        "normal distribution.",
    )


def _row(call: Call, found: Any, histogram: LogHistogram) -> list[Any]:
    levels, (least_s, most_s) = (0.5, 0.95, 0.99), (found.min_ns * 1e-9, found.max_ns * 1e-9)
    # A quantile interpolated in a bin may lie outside the range of the durations.
    quantiles_s = histogram.quantile_s(call, levels).clip(least_s, most_s)
    if found.n == 2:  # both are known
        quantiles_s = least_s + np.array(levels) * (most_s - least_s)
    shape = (found.std_ns * 1e-9, found.skewness, found.excess_kurtosis)
    known = ("–" if math.isnan(value) else value for value in shape)
    return [call.name, found.n, found.mean_ns * 1e-9, *known, least_s, *quantiles_s, most_s]

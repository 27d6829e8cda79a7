"""Texts and tables of the report: headline, key figures, calls, access sizes.

Moments and quantiles of the call durations by function, as a table.
"""

from __future__ import annotations

import math
import os
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ensembles.answers.sites import site_parts
from ensembles.diagnosis.call_sites import python_hint
from ensembles.faces.html import answer_html
from ensembles.model.events import Call
from ensembles.model.statement import Statement
from ensembles.model.units import S_PER_NS, bytes_text, count_text, seconds_text, share_text, size_text
from ensembles.run.failures import failed_calls_json, failure_sentences, lost_data_sentence
from ensembles.run.information import share_of_tasks, storage_lines
from ensembles.structure.layer_traffic import bytes_below_text
from ensembles.structure.library_time import library_share_text
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


_MOST_FAILED = 3

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
    run: Any,
    summaries: ReportData,
    information: dict[str, Any] | None = None,
    of_failed: str = "; see Failed calls",
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
    shown += _time_in_io(totals.io_time_ns * S_PER_NS, information)
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
        shown.append(("recorder", "slower", information["recorder"]))
    failed = _failed_facts(run, summaries, of_failed)
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


def _failed_facts(run: Any, summaries: ReportData, of_failed: str) -> list[tuple[str, str, str]]:
    """Return how many calls failed; those that only found that something is not there are not errors."""
    totals = summaries.table.totals
    failed = {call.name: each.errors for call, each in totals.items() if each.errors}
    if not failed:
        return []
    if summaries.failed is None:
        most = sorted(failed, key=lambda name: -failed[name])
        names = f"{', '.join(most[:_MOST_FAILED])}{', ...' if len(most) > _MOST_FAILED else ''}"
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
        said = f"failed. {failure_sentences(others, run.tasks)[0]}{of_failed}"
        facts.append((name, count_text(sum(row["count"] for row in others), "call"), said))
    if searches:
        said = f"{'. '.join(failure_sentences(searches, run.tasks))}{of_failed}"
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
    found = None if information is None else information["time_in_io"]
    if information is None or found is None or found["slowest_share"] is None:
        return [("I/O time", seconds_text(io_time_s), "summed over tasks")]
    of = share_of_tasks(information)
    rank = "" if found["slowest_task"] is None else f", rank {found['slowest_task']}"
    parts = [f"of {of}: the slowest task{rank}"]
    if found["tasks"] > 1:
        parts.append(f"mean of {found['tasks']:,} tasks {share_text(found['mean_share'], None)}")
    if found["critical_path_share"] is not None:
        path = f"critical path {share_text(found['critical_path_share'], None)}"
        parts.append(path if of == "the run" else f"{path} of the run")
    elif found.get("some_task_share") is not None:
        who = "task" if found["tasks"] > 1 else "thread"
        parts.append(f"at least one {who} in I/O {share_text(found['some_task_share'], None)} of the run")
    if inside := library_share_text(information["in_libraries"]):
        parts.append(inside)
    return [("I/O time", share_text(found["slowest_share"], None), ", ".join(parts))]


def storage_of(information: dict[str, Any] | None) -> list[tuple[str, str]]:
    """Return labels and sentences on file systems, striping and hints; of a selection none."""
    if information is None:
        return []
    return storage_lines(information["filesystems"], information["hints"], all_of_them=True)


def call_table(summaries: ReportData) -> MomentsTable:
    """Tabulate the I/O calls by function, those with the most exclusive time first."""
    totals, layers = summaries.table.totals, summaries.totals.layers
    io = {call: layers.exclusive_ns(call) for call in totals if not call.waits_for_tasks}
    all_ns = sum(io.values()) or 1
    rows = []
    for call, exclusive_ns in sorted(io.items(), key=lambda item: (-item[1], item[0])):
        each = totals[call]
        moves = call.op in ("read", "write")
        per_s = (
            bytes_text(each.bytes / (each.time_ns * S_PER_NS)) + "/s"
            if moves and each.bytes and each.time_ns
            else ""
        )
        rows.append(
            (
                call.name,
                call.layer,
                f"{each.count:,}",
                bytes_text(each.bytes) if moves else "",
                seconds_text(exclusive_ns * S_PER_NS),
                share_text(exclusive_ns / all_ns, None),
                per_s,
                f"{each.errors:,}" if each.errors else "",
            )
        )
    headers = ("call", "layer", "calls", "bytes", "exclusive time", "share", "rate inside the call", "errors")
    note = "Time is summed over tasks, without calls inside. The rate is that of one task inside the call."
    return MomentsTable(headers, rows, note if rows else "")


def wait_table(summaries: ReportData) -> MomentsTable:
    """Tabulate the calls that wait for other tasks by function, those with the most exclusive time first."""
    totals, layers = summaries.table.totals, summaries.totals.layers
    waits = {call: layers.exclusive_ns(call) for call in totals if call.waits_for_tasks}
    rows = [
        (call.name, f"{totals[call].count:,}", seconds_text(exclusive_ns * S_PER_NS))
        for call, exclusive_ns in sorted(waits.items(), key=lambda item: (-item[1], item[0]))
    ]
    note = "Time is summed over tasks, without calls inside. It is not part of the I/O time."
    return MomentsTable(("call", "calls", "exclusive time"), rows, note if rows else "")


def failed_table(run: Any, failed: FailedCalls | None) -> MomentsTable | None:
    """Tabulate the failed calls by function and errno; searches of files come last.

    None: no call failed, or nothing is known of those that did.
    """
    rows = []
    for row in failed_calls_json(failed, run.files)[:12] if failed is not None else ():
        low, high = row["first_rank"], row["last_rank"]
        rows.append(
            (
                row["call"],
                row["error"] or "unknown",
                f"{row['count']:,}",
                f"{row['files']:,}" if row["files"] else "",
                row["file"] or "",
                row["last_file"] or "",
                f"{low}" if low == high else f"{low} to {high}",
                seconds_text(row["first_s"]),
                seconds_text(row["last_s"]),
            )
        )
    names = ("call", "error", "calls", "files", "file of most", "file of the last")
    headers = (*names, "ranks", "first", "last")
    return MomentsTable(headers, rows, "The calls: ensio events RUN --where failed.") if rows else None


def request_table(run: Any, posted: Requests | None) -> MomentsTable | None:
    """Tabulate the non-blocking requests by operation: post, flight, wait, and what other work hid."""
    rows = []
    for name, sums in run.info.flights.items():
        is_known = posted is not None and posted.requests[name]
        post = seconds_text(posted.post_ns[name] * S_PER_NS) if posted is not None and is_known else ""
        mean = seconds_text(sums.flight_ns * S_PER_NS / sums.requests)
        times = [
            seconds_text(time_ns * S_PER_NS) for time_ns in (sums.flight_ns, sums.wait_ns, sums.hidden_ns)
        ]
        share = "" if sums.hidden_share is None else share_text(sums.hidden_share, None)
        rows.append((name, f"{sums.requests:,}", post, *times, share, mean))
    headers = ("operation", "requests", "post", "flight", "wait", "hidden", "share hidden", "mean flight")
    note = (
        "Times are summed over requests. A request is in flight from the entry of the call that posts it to "
        "the first moment at which the program could see its completion. Hidden is the part of it in which "
        "the thread was in no call that posts or waits for a request."
    )
    return MomentsTable(headers, rows, note) if rows else None


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


def size_tables(sizes: SizeTable) -> dict[str, MomentsTable]:
    """Tabulate the most common access sizes of reads and writes, by layer."""
    tables = {}
    for layer in sizes.layers:
        rows = [(size_text(size), f"{count:,}") for size, count in sizes.frequent(layer)]
        ranges = sizes.classes.get(layer, [])[:10]
        rows += [(f"{size_text(low)} to {size_text(high)}", f"{count:,}") for low, high, count in ranges]
        lacking = sizes.uncertainty.get(layer, 0)
        note = (
            f"Each count may be too low by up to {lacking:,}, because there are many sizes."
            if lacking
            else ""
        )
        if ranges:
            note = "If the sizes in a class differ, the table gives their range."
        tables[layer] = MomentsTable(("access size", "calls"), rows, note)
    return tables


_LEVELS = (0.5, 0.95, 0.99)


@dataclass(frozen=True)
class MomentsTable:
    """A table of texts, which the page shows."""

    headers: Sequence[str]  # Names of the columns
    rows: Sequence[Sequence[str]]  # The first cell of a row is its name; the others are numbers with units
    note: str = ""  # Sentence below the table, or ``""``


def moments(data: Any) -> MomentsTable:
    """Tabulate count, moments and quantiles of the call durations by function.

    The functions that took the most time come first. Quantiles are read from a histogram; their relative
    error is at most the width of a bin, 3.1 %.
    """
    if isinstance(data, tuple):
        call_moments, histogram = data
    else:
        call_moments, histogram = all_data_for(data, CallMoments, LogHistogram)
    order = sorted(call_moments.moments.items(), key=lambda item: -item[1].n * item[1].mean_ns)
    return MomentsTable(
        ("call", "n", "mean", "std", "skewness", "excess kurtosis", "min", "median", "p95", "p99", "max"),
        [_row(call, found, histogram) for call, found in order],
        f"Median, p95 and p99 are read from a histogram: their relative error is at most "
        f"{share_text(RELATIVE_WIDTH, 1)}. Skewness and excess kurtosis have no unit; both are 0 for a "
        "normal distribution.",
    )


def _row(call: Call, found: Any, histogram: LogHistogram) -> list[str]:
    # A quantile interpolated in a bin may lie outside the range of the durations.
    quantiles_s = histogram.quantile_s(call, _LEVELS).clip(found.min_ns * 1e-9, found.max_ns * 1e-9)
    if found.n == 2:  # both are known
        quantiles_s = (found.min_ns + np.array(_LEVELS) * (found.max_ns - found.min_ns)) * 1e-9
    return [
        call.name,
        f"{found.n:,}",
        seconds_text(found.mean_ns * 1e-9),
        _or_dash(found.std_ns, seconds_text(found.std_ns * 1e-9) if found.n > 1 else ""),
        _or_dash(found.skewness, f"{found.skewness:z.2f}"),
        _or_dash(found.excess_kurtosis, f"{found.excess_kurtosis:z.2f}"),
        seconds_text(found.min_ns * 1e-9),
        *(seconds_text(value) for value in quantiles_s),
        seconds_text(found.max_ns * 1e-9),
    ]


def _or_dash(value: float, text: str) -> str:
    return "–" if math.isnan(value) else text

"""``ensio info``: summarize a run."""

from __future__ import annotations

import argparse
import os
import shlex
import sys
import textwrap
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from ensembles.cli.counters_text import counter_headline, counters_text
from ensembles.cli.options import add_json, add_run, add_scale_arguments, open_run
from ensembles.cli.simple_table import simple_table
from ensembles.model.errors import SeveralRuns
from ensembles.model.sanitize_text import sanitize_text
from ensembles.model.units import bytes_text, count_text, seconds_text, size_text
from ensembles.structure.counters import counters_json

if TYPE_CHECKING:
    from ensembles.run.run import Run
    from ensembles.summaries.calltable import CallTable
    from ensembles.summaries.layers import LayerTimes
    from ensembles.summaries.regiontimes import RegionTimes
    from ensembles.summaries.runtotals import RunTotals
    from ensembles.summaries.sizes import SizeTable


_NON_BLOCKING = ("MPI_File_iread", "MPI_File_iwrite", "aio_read", "aio_write")
_WIDTH = 96
_LABEL = 11
_MOST_REGIONS = 30


def information_text(information: dict[str, Any]) -> str:
    """Format the result of `collect_information`, in at most 96 columns if names allow it."""
    information = _harmless(information)
    parts = [_notes(information), _what_ran(information), _transfers(information)]
    parts += [counters_text(information), _call_table(information)]
    if len(information["layers"]) > 1:
        parts.append(_layer_table(information))
    if not information.get("counters") or information["durations_known"]:
        parts.append(_sizes(information))
    parts.append(_region_table(information))
    return "\n\n".join(part for part in parts if part)


def _harmless(value: Any) -> Any:
    """Return a copy with printable texts: names of files, programs, hosts and jobs are untrusted."""
    if isinstance(value, str):
        return sanitize_text(value)
    if isinstance(value, list):
        return [_harmless(entry) for entry in value]
    if isinstance(value, dict):
        return {_harmless(key): _harmless(entry) for key, entry in value.items()}
    return value


def _line(label: str, text: str) -> str:
    return f"{label:<{_LABEL}}{text}"


def _notes(information: dict[str, Any]) -> str:
    if not information["notes"]:
        return ""
    lines = ["Data-quality warnings:"]
    for note in information["notes"]:
        lines.append(textwrap.fill(note, _WIDTH, initial_indent="  ! ", subsequent_indent="    "))
    return "\n".join(lines)


def _what_ran(information: dict[str, Any]) -> str:
    from ensembles.readers.native.losses import WORDS

    command = shlex.join(information["command"]) or information["program"] or "(unknown)"
    lines = [_line("command", textwrap.shorten(command, _WIDTH - _LABEL, placeholder=" ..."))]
    if information["program"] and information["program"] != command:
        lines.append(_line("program", information["program"]))
    if information["simulated"]:
        lines += textwrap.wrap(
            information["simulated"],
            _WIDTH,
            initial_indent=_line("simulated", ""),
            subsequent_indent=" " * _LABEL,
        )
    hosts = information["hosts"]
    on = ", ".join(hosts) if len(hosts) <= 4 else f"{hosts[0]} ... {hosts[-1]} ({len(hosts)} nodes)"
    if hosts:
        lines.append(_line("hosts", on))
    if information["job"]:
        user = f", user {information['user']}" if information["user"] else ""
        lines.append(_line("job", information["job"] + user))
    if information["mpi_version"]:
        version = " ".join(information["mpi_version"].split())
        lines.append(_line("MPI", textwrap.shorten(version, _WIDTH - _LABEL, placeholder=" ...")))
    lines += _filesystem_lines(information["filesystems"])
    start = information["start"].replace("T", " ")[:19]
    lines.append(_line("start", f"{start} UTC"))
    counts = [count_text(information["tasks"], "task"), count_text(information["threads"], "thread")]
    counts += [count_text(information["files"], "file"), count_text(information["recorded_calls"], "call")]
    lines.append(_line("recorded", " · ".join(counts)))
    if information["mode"] == "profile":
        what = "totals and histograms" if information["durations_known"] else "totals"
        lines.append(_line("mode", f"profile: {what} of all calls, no events"))
    elif information["mode"] == "tail":
        slow = count_text(information["events"], "event")
        lines.append(_line("mode", f"tail: totals and histograms of all calls; slowest calls as {slow}"))
    if information["summed_calls"]:
        summed = count_text(information["summed_calls"], "wait") + " for messages"
        lines.append(_line("summed", f"{summed}: in the totals, not events (ENSIO_POINT_TO_POINT=1)"))
    in_sums = information["dropped_events"] - information["lost_calls"]
    if in_sums:
        lines.append(_line("dropped", f"{count_text(in_sums, 'event')}, included in the totals below"))
    if information["lost_calls"]:
        lost = count_text(information["lost_calls"], "call")
        lines.append(_line("lost", f"{lost}, not included in the totals below"))
    lines += [
        _line("", f"{count:>13,}  {WORDS.get(reason, reason)}")
        for reason, count in information["dropped_events_by_reason"].items()
    ]
    lines += _surroundings_lines(information.get("surroundings"))
    if information["excluded_calls"]:
        calls = count_text(information["excluded_calls"], "call")
        lines.append(_line("excluded", f"{calls} on system files (ENSIO_EXCLUDE)"))
    return "\n".join(lines)


def _surroundings_lines(around: dict[str, Any] | None) -> list[str]:
    """Return a line if something around the I/O was notable."""
    if around is None or not around["is_notable"]:
        return []
    parts = []
    if around["dirty_bytes"] is not None:
        share = f"{100 * around['dirty_share']:.0f} % of what programs could have"
        parts.append(f"up to {bytes_text(around['dirty_bytes'])} dirty pages ({share})")
    for where in ("io", "cgroup"):
        some, full = around[f"{where}_some_share"], around[f"{where}_full_share"]
        if some is not None and (where == "io" or some != around["io_some_share"]):
            whose = "on the node" if where == "io" else "in the cgroup"
            parts.append(
                f"some task {whose} waited for I/O {100 * some:.0f} % of the time, all {100 * full:.0f} %"
            )
    if around["network"].get("nfs_retransmissions"):
        parts.append(count_text(around["network"]["nfs_retransmissions"], "NFS retransmission"))
    text = _line("node I/O", " · ".join(parts))
    return textwrap.wrap(text, _WIDTH, subsequent_indent=" " * _LABEL)


def _filesystem_lines(filesystems: list[dict[str, Any]]) -> list[str]:
    shown = []
    for system in filesystems[:3]:
        text = f"{system['type']} at {system['point']} ({count_text(system['files'], 'file')}"
        for striping in system["stripes"][:1]:
            count = "all" if striping["stripe_count"] < 0 else f"{striping['stripe_count']:,}"
            text += f", stripe count {count}, stripe size {size_text(striping['stripe_bytes'])}"
        shown.append(text + ")")
    if len(filesystems) > 3:
        shown.append(f"{len(filesystems) - 3} more")
    return [_line("files on", " · ".join(shown))] if shown else []


def _transfers(information: dict[str, Any]) -> str:
    if not information["recorded_calls"]:
        return "No call was recorded: docs/user/troubleshooting.md lists the causes."
    if information.get("counters"):
        return counter_headline(information)
    span_s, io_time_s = information["span_s"], information["io_time_s"]
    threads = max(information["threads"], 1)
    lines = [_line("span", f"{seconds_text(span_s)} from the first call to the end of the last")]
    if span_s > 0:
        share = io_time_s / (span_s * threads)
        text = f"{seconds_text(io_time_s)} summed over threads, {100 * share:.1f} % of thread time"
        lines.append(_line("I/O time", text))
    lines += _flight_lines(information)
    for label, key in (("read", "bytes_read"), ("written", "bytes_written")):
        rate = f" · {bytes_text(information[key] / span_s)}/s over the span" if span_s > 0 else ""
        lines.append(_line(label, bytes_text(information[key]) + (rate if information[key] else "")))
    slowest = information["slowest_call"]
    if slowest is None:
        return "\n".join(lines)
    where = f"{slowest['call']} of rank {slowest['rank']} at {seconds_text(slowest['start_s'])}"
    file = f" on {os.path.basename(slowest['file'])}" if slowest["file"] else ""
    lines.append(_line("slowest", f"{seconds_text(slowest['duration_s'])}: {where}{file}"))
    return "\n".join(lines)


def _flight_lines(information: dict[str, Any]) -> list[str]:
    if information["hidden_share"] is None:
        return []
    requests = sum(each["requests"] for each in information["non_blocking"].values())
    what = count_text(requests, "non-blocking request")
    hidden = f"{100 * information['hidden_share']:.1f} % of it hidden behind other work"
    return [_line("in flight", f"{seconds_text(information['flight_s'])} of {what}, {hidden}")]


def _call_table(information: dict[str, Any]) -> str:
    all_s = max(_all_time_s(information), 1e-30)
    rows = [
        (
            name,
            f"{call['count']:,}",
            bytes_text(call["bytes"]) if call["op"] in ("read", "write") else "",
            seconds_text(call["time_s"]),
            f"{100 * call['time_s'] / all_s:.1f} %",
            seconds_text(call["time_s"] / call["count"]),
            "" if call["max_s"] is None else seconds_text(call["max_s"]),
            f"{call['errors']:,}" if call["errors"] else "",
        )
        for name, call in sorted(information["calls"].items(), key=lambda item: -item[1]["time_s"])
    ]
    if not rows:
        return ""
    headers = ("call", "count", "bytes", "time", "share", "mean", "longest", "errors")
    return simple_table(headers, rows)


def _all_time_s(information: dict[str, Any]) -> float:
    return sum(float(call["time_s"]) for call in information["calls"].values())


def _layer_table(information: dict[str, Any]) -> str:
    rows = [
        (name, f"{layer['calls']:,}", seconds_text(layer["time_s"]), seconds_text(layer["exclusive_time_s"]))
        for name, layer in information["layers"].items()
    ]
    headers = ("layer", "calls", "time", "exclusive time")
    return simple_table(headers, rows)


def _region_table(information: dict[str, Any]) -> str:
    if not information["regions"]:
        return ""
    rows = [
        (
            f"{region['kind']} {region['name']}",
            f"{region['tasks']:,}",
            f"{region['count']:,}",
            seconds_text(region["time_s"]),
            "unknown" if region["io_time_s"] is None else seconds_text(region["io_time_s"]),
            f"{region['not_ended']:,}" if region["not_ended"] else "",
        )
        for region in information["regions"][:_MOST_REGIONS]
    ]
    headers = ("user-defined region", "tasks", "count", "time", "I/O time", "unclosed")
    more = len(information["regions"]) - len(rows)
    return simple_table(headers, rows) + (f"\n{count_text(more, 'more region')}: see --json" if more else "")


def _sizes(information: dict[str, Any]) -> str:
    blocks = []
    for layer, sizes in information["frequent_sizes"].items():
        repeated = [entry for entry in sizes if entry["count"] > 1]
        shown = [f"{size_text(entry['bytes'])} × {entry['count']:,}" for entry in repeated]
        classes = information["frequent_size_classes"].get(layer, [])
        shown += [
            f"{size_text(entry['low_bytes'])} to {size_text(entry['high_bytes'])} × {entry['count']:,}"
            for entry in classes
        ]
        text = f"common access sizes of {layer} reads and writes: " + (", ".join(shown) or "all distinct")
        if classes:
            text += " (where sizes in a class differ, only their range is known)"
        if information["uncertain_counts"].get(layer):
            text += f" (each count may be too low by up to {information['uncertain_counts'][layer]:,})"
        blocks.append(textwrap.fill(text, _WIDTH, subsequent_indent="  "))
    return "\n".join(blocks)


NAME = "info"
HELP = "summarize a run: time, calls, bytes, access sizes, lost events"

_NS_PER_S = 1e9


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the command."""
    add_run(parser)
    add_json(parser)
    add_scale_arguments(parser)


def execute(args: argparse.Namespace) -> int:
    """Print the summary."""
    try:
        run = open_run(args, args.run)
    except SeveralRuns as several:
        from ensembles.cli.run_list import collect_runs, run_list_text

        runs = collect_runs(several.paths, lambda path: open_run(args, path))
        _print(args, {"runs": runs}, lambda listing: run_list_text(args.run, listing["runs"]))
        return 0
    _print(args, collect_information(run), information_text)
    return 0


def _print(args: argparse.Namespace, result: dict[str, Any], text: Callable[[dict[str, Any]], str]) -> None:
    if args.json:
        import json

        json.dump(result, sys.stdout, indent=2)
        print()
    else:
        print(text(result))


def collect_information(run: Run) -> dict[str, Any]:
    """Collect what ``ensio info --json`` prints.

    The numbers come from one pass over the events or, if these are not all calls, from the summary that the
    recorder kept.

    Parameters
    ----------
    run : Run

    Returns
    -------
    dict
        Plain values for JSON: times in seconds (keys ending in ``_s``), sizes in bytes.

    Raises
    ------
    EnsioError
        A file of the run cannot be read.
    """
    found = _from_events(run) if run.has_all_events else _from_summary(run)
    table, totals, sizes = found.table, found.totals, found.sizes
    unseen = _unseen(run, found)
    notes = run.notes + unseen + _whole_requests(run, table, totals.io_time_ns)
    return {
        "run": run.path,
        "program": run.program,
        "command": list(run.command),
        "hosts": run.hosts,
        "job": run.job,
        "user": run.user,
        "mpi_version": run.mpi_version,
        "libc_version": run.libc_version,
        "environment": run.environment,
        "simulated": run.simulated or None,
        "clock_error_s": run.clock_error_s,
        "filesystems": _filesystems(run, table.files),
        "start": run.start.isoformat(),
        "mode": run.mode,
        "durations_known": found.durations_known,
        "complete": not run.notes and not unseen,
        "notes": notes,
        "tasks": run.tasks,
        "threads": run.threads,
        "processes": len(run.processes),
        "events": found.events,
        "recorded_calls": table.events,
        "summed_calls": found.summed,
        "dropped_events": run.dropped_events,
        "dropped_events_by_reason": run.dropped_by_reason,
        "lost_calls": run.lost_calls,
        "calls_on_other_paths": run.calls_on_other_paths,
        "excluded_calls": run.excluded_calls,
        "files": len(table.files),
        "span_s": table.span_ns / _NS_PER_S,
        "io_time_s": totals.io_time_ns / _NS_PER_S,
        **_flights(run),
        "bytes_read": totals.bytes_read,
        "bytes_written": totals.bytes_written,
        "layers": _layers(totals.layers),
        "calls": _calls(table, totals.layers),
        "frequent_sizes": _frequent_sizes(sizes),
        "frequent_size_classes": _size_classes(found.size_classes),
        "uncertain_counts": sizes.uncertainty,
        "slowest_call": _slowest(table),
        "regions": _regions(found.regions, run.has_all_events),
        "file_facts": run.file_facts,
        **_surroundings(run),
        **counters_json(run),
    }


def _whole_requests(run: Run, table: CallTable, io_time_ns: int) -> list[str]:
    """Say so where the durations of requests are those of their flights, and add up to more than there is."""
    names = sorted({call.name for call in table.totals if call.name.startswith(_NON_BLOCKING)})
    if run.flights or not names or io_time_ns <= table.span_ns * max(run.threads, 1):
        return []
    return [
        f"the durations of non-blocking requests ({', '.join(names[:3])}) last until their completion, as an "
        "older recorder or another tool stored them: times in I/O include what was hidden behind other work"
    ]


def _unseen(run: Run, found: _RunTotals) -> list[str]:
    from ensembles.structure.unseen import unseen_sentence

    if run.environment.get("ENSIO_LAYERS"):
        return []
    sentence = unseen_sentence(
        run.unseen_io,
        calls=sum(totals.count for call, totals in found.table.totals.items() if call.op != "wait"),
        read=found.totals.bytes_read,
        written=found.totals.bytes_written,
        excluded_calls=run.excluded_calls,
        nodes=len(run.hosts),
    )
    return [sentence] if sentence else []


def _flights(run: Run) -> dict[str, Any]:
    from ensembles.model.flights import sum_of_flights

    whole = sum_of_flights(run.flights.values())
    by_operation = {
        name: {
            "requests": sums.requests,
            "flight_s": sums.flight_ns / _NS_PER_S,
            "hidden_s": sums.hidden_ns / _NS_PER_S,
            "hidden_share": sums.hidden_share,
            "wait_s": sums.wait_ns / _NS_PER_S,
        }
        for name, sums in run.flights.items()
    }
    return {
        "flight_s": whole.flight_ns / _NS_PER_S,
        "hidden_share": whole.hidden_share,
        "non_blocking": by_operation,
    }


@dataclass(slots=True)
class _RunTotals:
    """Totals of all calls, and the number of them that are events."""

    table: CallTable
    totals: RunTotals
    sizes: SizeTable
    size_classes: dict[str, list[tuple[int, int, int]]]
    regions: RegionTimes
    events: int
    durations_known: bool = True
    summed: int = 0


def _from_events(run: Run) -> _RunTotals:
    from ensembles.passes.group import SummaryRequest
    from ensembles.passes.summary import ignoring_run
    from ensembles.summaries.calltable import CallTable
    from ensembles.summaries.runtotals import RunTotals
    from ensembles.summaries.sizes import SizeTable

    sums = {
        "table": SummaryRequest(ignoring_run(CallTable)),
        "totals": SummaryRequest(ignoring_run(RunTotals)),
        "sizes": SummaryRequest(ignoring_run(SizeTable)),
        "regions": SummaryRequest(_region_times),
    }
    from ensembles.summaries.from_cells import add_summed_calls

    found = run.summarize(sums).summaries
    events, summed = found["table"].events, 0
    if run.summed_calls:
        summed = add_summed_calls(found["table"], found["totals"], run.summary, run.summed_calls)
    return _RunTotals(size_classes={}, events=events, summed=summed, **found)


def _region_times(run: Run) -> RegionTimes:
    from ensembles.summaries.regiontimes import RegionTimes

    return RegionTimes(run.regions)


def _from_summary(run: Run) -> _RunTotals:
    from ensembles.passes.summary import ignoring_run
    from ensembles.summaries.eventcount import EventCount
    from ensembles.summaries.from_cells import sizes_from_cells, table_from_cells, totals_from_cells

    summary = run.summary
    sizes, classes = sizes_from_cells(summary)
    events = run.summarize(ignoring_run(EventCount)).events
    return _RunTotals(
        table_from_cells(summary, run.files),
        totals_from_cells(summary),
        sizes,
        classes,
        _region_times(run),
        events,
        summary.durations_known,
    )


def _size_classes(classes: dict[str, list[tuple[int, int, int]]]) -> dict[str, Any]:
    return {
        layer: [{"low_bytes": low, "high_bytes": high, "count": count} for low, high, count in entries[:10]]
        for layer, entries in classes.items()
    }


def _filesystems(run: Run, files: set[str]) -> list[dict[str, Any]]:
    """Return the file systems of the accessed files, the one with the most files first."""
    found: dict[Any, list[str]] = {}
    for path in files:
        mount = run.filesystem_of(path)
        if mount is not None:
            found.setdefault(mount, []).append(path)
    return [
        {
            "point": mount.point,
            "type": mount.type,
            "source": mount.source,
            "block_bytes": mount.block_bytes,
            "files": len(paths),
            "stripes": _stripes(run, paths),
        }
        for mount, paths in sorted(found.items(), key=lambda item: (-len(item[1]), item[0].point))
    ]


def _stripes(run: Run, paths: list[str]) -> list[dict[str, int]]:
    """Return the stripings of the files, the most frequent first."""
    stripings = Counter(
        (striping.stripe_count, striping.stripe_bytes)
        for striping in map(run.striping_of, paths)
        if striping is not None
    )
    return [
        {"stripe_count": count, "stripe_bytes": size, "files": files}
        for (count, size), files in stripings.most_common()
    ]


def _layers(layers: LayerTimes) -> dict[str, Any]:
    return {
        name: {
            "time_s": layer.time_ns / _NS_PER_S,
            "exclusive_time_s": layer.exclusive_ns / _NS_PER_S,
            "calls": layer.calls,
        }
        for name, layer in layers.layers.items()
    }


def _calls(table: CallTable, layers: LayerTimes) -> dict[str, Any]:
    calls: dict[str, Any] = {}
    for call, totals in table.totals.items():
        name = call.name if call.name not in calls else f"{call.layer}:{call.name}"
        calls[name] = {
            "layer": call.layer,
            "op": call.op,
            "count": totals.count,
            "bytes": totals.bytes,
            "time_s": totals.time_ns / _NS_PER_S,
            "exclusive_time_s": layers.exclusive_ns(call) / _NS_PER_S,
            "max_s": None if totals.max_ns < 0 else totals.max_ns / _NS_PER_S,
            "errors": totals.errors,
        }
    return calls


def _frequent_sizes(sizes: SizeTable) -> dict[str, Any]:
    return {
        layer: [{"bytes": size, "count": count} for size, count in sizes.frequent(layer)]
        for layer in sizes.layers
    }


def _regions(regions: RegionTimes, io_is_known: bool) -> list[dict[str, Any]]:
    """Return the regions; their I/O time is known only if all calls are events."""
    return [
        {
            "kind": totals.kind,
            "name": totals.name,
            "count": totals.count,
            "tasks": totals.tasks,
            "not_ended": totals.not_ended,
            "time_s": totals.time_ns / _NS_PER_S,
            "io_time_s": totals.io_time_ns / _NS_PER_S if io_is_known else None,
        }
        for totals in regions.totals
    ]


def _surroundings(run: Run) -> dict[str, Any]:
    """Return the totals of the samples of the kernel's counters; nothing if there are none."""
    from ensembles.structure.surroundings import summarize_surroundings

    totals = summarize_surroundings(run.surroundings())
    return {} if totals is None else {"surroundings": {**asdict(totals), "is_notable": totals.is_notable}}


def _slowest(table: CallTable) -> dict[str, Any] | None:
    slowest = table.slowest
    if slowest is None:
        return None
    return {
        "call": slowest.call.name,
        "rank": slowest.rank,
        "start_s": slowest.start_ns / _NS_PER_S,
        "duration_s": slowest.duration_ns / _NS_PER_S,
        "bytes": slowest.bytes,
        "file": slowest.file,
    }

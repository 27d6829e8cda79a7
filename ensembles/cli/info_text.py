"""The text of ``ensio info``."""

from __future__ import annotations

import os
import shlex
import textwrap
from collections.abc import Sequence
from typing import Any

from tabulate import tabulate

from ensembles.model.sanitize_text import sanitize_text
from ensembles.model.units import bytes_text, count_text, seconds_text, size_text

_WIDTH = 96
_LABEL = 11
_MOST_REGIONS = 30


def information_text(information: dict[str, Any]) -> str:
    """Format the result of `collect_information`, in at most 96 columns if names allow it."""
    information = _harmless(information)
    parts = [_notes(information), _what_ran(information), _transfers(information), _call_table(information)]
    if len(information["layers"]) > 1:
        parts.append(_layer_table(information))
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
    return _table(headers, rows)


def _table(headers: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    align = ("left", *["right"] * (len(headers) - 1))
    text: str = tabulate(rows, headers, "simple", disable_numparse=True, colalign=align)
    return text


def _all_time_s(information: dict[str, Any]) -> float:
    return sum(float(call["time_s"]) for call in information["calls"].values())


def _layer_table(information: dict[str, Any]) -> str:
    rows = [
        (name, f"{layer['calls']:,}", seconds_text(layer["time_s"]), seconds_text(layer["exclusive_time_s"]))
        for name, layer in information["layers"].items()
    ]
    headers = ("layer", "calls", "time", "exclusive time")
    return _table(headers, rows)


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
    return _table(headers, rows) + (f"\n{count_text(more, 'more region')}: see --json" if more else "")


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

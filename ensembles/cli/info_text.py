"""The text of ``ensio info``."""

from __future__ import annotations

import os
import shlex
import textwrap
from typing import Any

from ensembles.cli.counters_text import counter_headline, counters_text
from ensembles.model.run_info import crowded_text
from ensembles.model.sanitize_text import sanitize_text
from ensembles.model.table import folded_table_text, table_text
from ensembles.model.units import bytes_text, count_text, seconds_text, share_text, size_text
from ensembles.model.wrapped import wrapped
from ensembles.run.failures import failure_sentences
from ensembles.run.information import share_of_tasks
from ensembles.run.storage import storage_lines

_WIDTH = 80
_LABEL = 11
_MOST_REGIONS = 30
_LEAST_INSIDE = 0.01
_MOST_INSIDE = 3
"""Share of the bytes read from which on those read inside writes are named."""
_WHOLE_CALLS = "exclusive time: without recorded inner calls; mean and longest: of whole calls"


def information_text(information: dict[str, Any]) -> str:
    """Format the result of `collect_information`, in at most 80 columns if names allow it."""
    information = _harmless(information)
    parts = [_notes(information), _what_ran(information), _transfers(information)]
    parts += [counters_text(information), _call_table(information), _failed_calls(information)]
    parts.append(_waiting_table(information))
    if len(information["layers"]) > 1:
        parts += [_layer_table(information), _between_layers(information)]
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


def _wrapped(label: str, text: str) -> list[str]:
    return wrapped(text, _line(label, ""), " " * _LABEL).splitlines()


def _notes(information: dict[str, Any]) -> str:
    if not information["notes"]:
        return ""
    lines = ["Data-quality warnings:"]
    for note in information["notes"]:
        lines.append(wrapped(note, "  ! ", "    "))
    return "\n".join(lines)


def _what_ran(information: dict[str, Any]) -> str:
    from ensembles.readers.native.losses import WORDS

    command = shlex.join(information["command"]) or information["program"] or "(unknown)"
    lines = [_line("command", textwrap.shorten(command, _WIDTH - _LABEL, placeholder=" ..."))]
    if len(information["programs"]) > 1:
        lines += _wrapped("programs", ", ".join(map(_program_text, information["programs"])))
    elif information["program"] and information["program"] != command:
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
    crowded = crowded_text(information["oversubscribed"], information["processors"])
    if crowded:
        lines += _wrapped("processors", f"{crowded}: calls also wait for a processor")
    if information["job"]:
        user = f", user {information['user']}" if information["user"] else ""
        lines.append(_line("job", information["job"] + user))
    if information["mpi_version"]:
        version = " ".join(information["mpi_version"].split())
        lines.append(_line("MPI", textwrap.shorten(version, _WIDTH - _LABEL, placeholder=" ...")))
    for label, text in storage_lines(information["filesystems"], information["hints"]):
        lines += _wrapped(label, text)
    start = information["start"]
    lines.append(_line("start", f"{start.replace('T', ' ')[:19]} UTC" if start else "unknown"))
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
        lines += _wrapped("summed", f"{summed}: in the totals, not events (ENSIO_POINT_TO_POINT=1)")
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
    if information["python_lines"]:
        lines += _wrapped("recorder", information["python_lines"])
    if information["excluded_calls"]:
        calls = count_text(information["excluded_calls"], "call")
        lines.append(_line("excluded", f"{calls} on system files (ENSIO_EXCLUDE), pipes or terminals"))
    return "\n".join(lines)


def _program_text(entry: dict[str, Any]) -> str:
    """Return the name of one of several programs, and which tasks ran it."""
    who = f"rank {entry['first_rank']}" if entry["tasks"] == 1 else count_text(entry["tasks"], "task")
    return f"{os.path.basename(entry['program'])} ({who})"


def _surroundings_lines(around: dict[str, Any] | None) -> list[str]:
    """Return a line if something around the I/O was notable."""
    if around is None or not around["is_notable"]:
        return []
    parts = []
    if around["dirty_bytes"] is not None:
        share = f"{share_text(around['dirty_share'])} of what programs could have"
        parts.append(f"up to {bytes_text(around['dirty_bytes'])} dirty pages ({share})")
    for where in ("io", "cgroup"):
        some, full = around[f"{where}_some_share"], around[f"{where}_full_share"]
        if some is not None and (where == "io" or some != around["io_some_share"]):
            whose = "on the node" if where == "io" else "in the cgroup"
            parts.append(
                f"some task {whose} waited for I/O {share_text(some)} of the time, all {share_text(full)}"
            )
    if around["network"].get("nfs_retransmissions"):
        parts.append(count_text(around["network"]["nfs_retransmissions"], "NFS retransmission"))
    return _wrapped("node I/O", " · ".join(parts))


def _transfers(information: dict[str, Any]) -> str:
    if not information["recorded_calls"]:
        if os.path.basename(information["program"]) == "conftest":
            return "No call was recorded: set ENSIO_DISABLE=1 while configure runs its test programs."
        return "No call was recorded: docs/user/troubleshooting.md lists the causes."
    if information.get("counters"):
        return counter_headline(information)
    run_s, span_s = (seconds_text(information[key]) for key in ("run_s", "span_s"))
    lines = [_line("run", f"{run_s}; from the first call to the end of the last {span_s}")]
    lines += _time_in_io(information)
    lines += _flight_lines(information)
    slowest = information["slowest_call"]
    if slowest is not None:
        where = f"{slowest['call']} of rank {slowest['rank']} at {seconds_text(slowest['start_s'])}"
        file = f" on {os.path.basename(slowest['file'])}" if slowest["file"] else ""
        lines += _wrapped("slowest", f"{seconds_text(slowest['duration_s'])}: {where}{file}")
    table = _transfer_table(information["transfers"])
    return "\n".join(lines) + "\n\n" + table + _reads_in_writes(information)


def _time_in_io(information: dict[str, Any]) -> list[str]:
    from ensembles.run.headline import MOST_EVENTS
    from ensembles.structure.library_time import library_share_text

    found = information["time_in_io"]
    if not found["tasks"]:
        text = f"{seconds_text(information['io_time_s'])} summed over tasks"
        if "unseen" in information:
            text += ", without the I/O that was not seen"
        return [_line("I/O time", text)] if information["io_time_s"] else []

    def time_text(time_s: float, share: float | None, *more: str, of: str = "the run") -> str:
        notes = [*more, *([] if share is None else [f"{share_text(share, 1)} of {of}"])]
        return seconds_text(time_s) + (f" ({', '.join(notes)})" if notes else "")

    parts = []
    of = share_of_tasks(information)
    if found["critical_path_s"] is not None:
        parts.append(f"critical path {time_text(found['critical_path_s'], found['critical_path_share'])}")
    elif found.get("some_task_s") is not None:
        whole = time_text(found["some_task_s"], found["some_task_share"])
        who = "task" if found["tasks"] > 1 else "thread"
        parts.append(f"at least one {who} in I/O for {whole}; nothing shows which of them waited for others")
    elif found["tasks"] > 1 and information["mode"] == "trace" and information["events"] > MOST_EVENTS:
        parts.append(f"no critical path for more than {MOST_EVENTS:,} calls: ensio phases shows who waited")
    slowest = time_text(found["slowest_s"], found["slowest_share"], f"rank {found['slowest_task']}", of=of)
    if found["tasks"] > 1:
        mean = time_text(found["mean_s"], found["mean_share"], of=of.replace("its", "their"))
        parts.append(f"mean of {found['tasks']:,} tasks {mean}")
        parts.append(f"slowest task {slowest}")
    else:
        parts.insert(0, slowest)
    if inside := library_share_text(information["in_libraries"]):
        parts.append(inside)
    return [
        line for number, part in enumerate(parts) for line in _wrapped("" if number else "I/O time", part)
    ]


def _reads_in_writes(information: dict[str, Any]) -> str:
    """Say which of the bytes read a program did not ask for."""
    from ensembles.structure.layer_traffic import bytes_read_in_writes

    inside = bytes_read_in_writes(information["layer_traffic"] or [])
    text, least = "", max(_LEAST_INSIDE * information["transfers"]["read"]["bytes"], 1)
    if inside >= least:
        text = f"\n{bytes_text(inside)} of the bytes read are read by libraries inside writes"
    asked_for_none = information.get("read_inside") or {}
    if (more := sum(asked_for_none.values())) >= max(least, inside):
        names = sorted(asked_for_none, key=lambda name: -asked_for_none[name])
        most = ", ".join(f"{bytes_text(asked_for_none[name])} in {name}" for name in names[:_MOST_INSIDE])
        text += f"\n{bytes_text(more)} are read inside calls that ask for no bytes: {most}"
    return text


def _transfer_table(transfers: dict[str, Any]) -> str:
    """Format the bytes and rates, by direction."""
    by_time = any(each["active_s"] is not None for each in transfers.values())
    rows = []
    for label, op in (("read", "read"), ("written", "write")):
        each = transfers[op]
        rank = "" if each["slowest_task"] is None else f" (rank {each['slowest_task']})"
        ways = [("active_bytes_per_s", "active_s", ""), ("open_bytes_per_s", "open_s", "")]
        if not by_time:
            ways = [("slowest_task_bytes_per_s", "slowest_task_s", rank)]
        rates = [
            "" if each[rate] is None else f"{bytes_text(each[rate])}/s in {seconds_text(each[time])}{more}"
            for rate, time, more in ways
        ]
        rows.append((label, bytes_text(each["bytes"]), *rates))
    headers = ["while data moved", "while files were open"] if by_time else ["by the slowest task's time "]
    table = table_text(["transfers", "bytes", *headers], rows)
    has_time = not by_time and transfers["write"]["slowest_task_s"] is not None
    return f"{table}\n\nwritten: time in writes and syncs" if has_time else table


def _flight_lines(information: dict[str, Any]) -> list[str]:
    if information["hidden_share"] is None:
        return []
    requests = sum(each["requests"] for each in information["non_blocking"].values())
    what = count_text(requests, "non-blocking request")
    mean = f"mean {seconds_text(information['mean_flight_s'])}"
    hidden = f"{share_text(information['hidden_share'], 1)} hidden behind other work"
    text = f"{seconds_text(information['flight_s'])} summed over {what} ({mean}), {hidden}"
    return _wrapped("in flight", text)


def _call_table(information: dict[str, Any]) -> str:
    """Format the calls that are I/O, those with the longest exclusive time first."""
    calls = [item for item in information["calls"].items() if item[1]["is_io"]]
    rows = [
        (
            name,
            f"{call['count']:,}",
            bytes_text(call["bytes"]) if call["op"] in ("read", "write") else "",
            seconds_text(call["exclusive_time_s"]),
            "" if call["io_share"] is None else share_text(call["io_share"], 1),
            seconds_text(call["mean_s"]),
            "" if call["max_s"] is None else seconds_text(call["max_s"]),
        )
        for name, call in sorted(calls, key=lambda item: (-item[1]["exclusive_time_s"], item[0]))
    ]
    if not rows:
        return ""
    is_nested = any(call["exclusive_time_s"] != call["time_s"] for _, call in calls)
    time = "exclusive time" if is_nested else "time"
    headers = ("I/O call", "count", "bytes", time, "share", "mean", "longest")
    text = folded_table_text(headers, rows, together=(4, 2))
    return f"{text}\n{_WHOLE_CALLS}" if is_nested else text


def _failed_calls(information: dict[str, Any]) -> str:
    """Say which calls failed, with which errors and where."""
    failed = [f"{name} {call['errors']:,}" for name, call in information["calls"].items() if call["errors"]]
    if not failed:
        return ""
    rows = information.get("failed_calls")
    if not rows:
        known = "known of events only (ensio events RUN --failed)" if information["events"] else "unknown"
        return wrapped(f"failed calls: {', '.join(failed)}; errors and files are {known}", indent="  ")
    lines = [wrapped(each, "  ", "    ") for each in failure_sentences(rows, information["tasks"])]
    return "\n".join(["failed calls (ensio events RUN --failed):", *lines])


def _waiting_table(information: dict[str, Any]) -> str:
    """Format the calls that wait for other tasks, those with the longest time first."""
    calls = [item for item in information["calls"].items() if not item[1]["is_io"]]
    rows = [
        (
            name,
            f"{call['count']:,}",
            seconds_text(call["exclusive_time_s"]),
            "" if call["wait_share"] is None else share_text(call["wait_share"], 1),
            seconds_text(call["mean_s"]),
            "" if call["max_s"] is None else seconds_text(call["max_s"]),
        )
        for name, call in sorted(calls, key=lambda item: (-item[1]["exclusive_time_s"], item[0]))
    ]
    headers = ("waiting in MPI", "count", "exclusive time", "of thread time", "mean", "longest")
    if not rows:
        return ""
    is_nested = any(call["exclusive_time_s"] != call["time_s"] for _, call in calls)
    return table_text(headers, rows) + (f"\n{_WHOLE_CALLS}" if is_nested else "")


def _layer_table(information: dict[str, Any]) -> str:
    rows = [
        (name, f"{layer['calls']:,}", seconds_text(layer["time_s"]), seconds_text(layer["exclusive_time_s"]))
        for name, layer in information["layers"].items()
    ]
    headers = ("layer", "calls", "time", "exclusive time")
    return table_text(headers, rows)


def _between_layers(information: dict[str, Any]) -> str:
    from ensembles.run.between_layers import layer_sentences

    return "\n".join(wrapped(text, indent="  ") for text in layer_sentences(information))


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
    return table_text(headers, rows) + (f"\n{count_text(more, 'more region')}: see --json" if more else "")


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
        text = f"common sizes requested by {layer} reads and writes: " + (", ".join(shown) or "all distinct")
        if classes:
            text += " (where sizes in a class differ, only their range is known)"
        if information["uncertain_counts"].get(layer):
            text += f" (each count may be too low by up to {information['uncertain_counts'][layer]:,})"
        blocks.append(wrapped(text, indent="  "))
    return "\n".join(blocks)

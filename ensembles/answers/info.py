"""What a run is, and its totals: what ran, how long, how fast, and each function."""

from __future__ import annotations

import os
import shlex
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ensembles.answers.counters import counter_facts, counter_parts
from ensembles.faces.answer import SMALL_PART, PlainAnswer
from ensembles.model.errors import EnsioError
from ensembles.model.run_info import WHY_DROPPED, crowded_text
from ensembles.model.sanitize_text import sanitize_text
from ensembles.model.statement import Facts, Interval, Part, Statement, Table
from ensembles.model.units import MOST_NAMED, bytes_text, count_text, size_text
from ensembles.run.failures import failure_sentences
from ensembles.run.information import collect_information, layer_sentences, storage_lines
from ensembles.structure.libraries import bytes_read_in_writes, library_share_text
from ensembles.structure.phases.detect import MOST_EVENTS

if TYPE_CHECKING:
    from ensembles.run.run import Run

Information = Mapping[str, Any]
"""From `ensembles.run.information.collect_information`."""

_LINE = 69
_MOST_REGIONS = 30
_CALLS = {"count": "count", "bytes": "bytes", "time": "s", "share": "share to 0.1 %"}
_CALLS |= {"of thread time": "share to 0.1 %", "mean": "s", "longest": "s"}
_LAYERS = {"layer": "", "calls": "count", "time": "s", "exclusive time": "s"}
_REGIONS = {"user-defined region": "", "tasks": "count", "count": "count", "time": "s", "I/O time": "s"}
_REGIONS |= {"unclosed": "count"}


def answer_info(run: Run) -> PlainAnswer:
    """Summarize a run; see `ensembles.run.information.collect_information`."""
    information = collect_information(run)
    return PlainAnswer("info", tuple(info_parts(information)), information)


def info_parts(information: Information) -> Iterator[Part]:
    """Say what `collect_information` collected."""
    if information["notes"]:
        yield Facts([("!", note) for note in information["notes"]], Statement("info.warnings"), 2, 2)
    yield Facts(list(_what_ran(information)))
    if information["recorded_calls"]:
        yield from _transfers(information)
    else:
        is_conftest = os.path.basename(information["program"]) == "conftest"
        yield (Statement("info.no_call_of_configure" if is_conftest else "info.no_call"),)
    if information.get("counters"):
        yield from counter_parts(information["counters"])
    yield from _call_table(information, "I/O call")
    yield from _failed_calls(information)
    yield from _call_table(information, "waiting in MPI")
    if len(information["layers"]) > 1:
        rows = [
            (name, layer["calls"], layer["time_s"], layer["exclusive_time_s"])
            for name, layer in information["layers"].items()
        ]
        yield Table.of_rows("layer", _LAYERS, rows)
        yield tuple(Statement("info.between", {"how": how}) for how in layer_sentences(information))
    if not information.get("counters") or information["durations_known"]:
        yield tuple(_sizes(information))
    yield from _regions(information)


def _shortened(text: str) -> str:
    return textwrap.shorten(sanitize_text(text), _LINE, placeholder=" ...")


def _what_ran(information: Information) -> Iterator[tuple[str, Statement | str]]:
    """Say what ran where, and what was recorded of it."""
    command = shlex.join(information["command"]) or information["program"] or "(unknown)"
    yield "command", _shortened(command)
    if len(information["programs"]) > 1:
        yield "programs", ", ".join(map(_program_text, information["programs"]))
    elif information["program"] and information["program"] != command:
        yield "program", information["program"]
    if information["simulated"]:
        yield "simulated", information["simulated"]
    hosts = information["hosts"]
    if hosts:
        few = len(hosts) <= 4
        yield "hosts", ", ".join(hosts) if few else f"{hosts[0]} ... {hosts[-1]} ({len(hosts)} nodes)"
    crowded = crowded_text(information["oversubscribed"], information["processors"])
    if crowded:
        yield "processors", Statement("info.crowded", {"tasks": crowded})
    if information["job"]:
        yield "job", Statement("info.job", information)
    if information["mpi_version"]:
        yield "MPI", _shortened(" ".join(information["mpi_version"].split()))
    yield from storage_lines(information["filesystems"], information["hints"])
    start = information["start"]
    yield "start", f"{start.replace('T', ' ')[:19]} UTC" if start else "unknown"
    yield "recorded", Statement("info.recorded", information)
    modes = {"profile": "info.mode_profile", "tail": "info.mode_tail"}
    if information["mode"] in modes:
        yield "mode", Statement(modes[information["mode"]], information)
    if information["summed_calls"]:
        yield "summed", Statement("info.summed", information)
    in_sums = information["dropped_events"] - information["lost_calls"]
    if in_sums:
        yield "dropped", Statement("info.dropped", {"count": in_sums})
    if information["lost_calls"]:
        yield "lost", Statement("info.lost", information)
    for reason, count in information["dropped_events_by_reason"].items():
        yield "", Statement("info.reason", {"count": count, "reason": WHY_DROPPED.get(reason, reason)})
    for number, said in enumerate(_surroundings(information.get("surroundings"))):
        yield "" if number else "node I/O", said
    if information["recorder"]:
        yield "recorder", information["recorder"]
    if information["excluded_calls"]:
        yield "excluded", Statement("info.excluded", information)


def _program_text(entry: dict[str, Any]) -> str:
    """Return the name of one of several programs, and which tasks ran it."""
    who = f"rank {entry['first_rank']}" if entry["tasks"] == 1 else count_text(entry["tasks"], "task")
    return f"{os.path.basename(entry['program'])} ({who})"


def _surroundings(around: dict[str, Any] | None) -> Iterator[Statement]:
    """Say whether something around the I/O was notable."""
    if around is None or not around["is_notable"]:
        return
    if around["dirty_bytes"] is not None:
        yield Statement("info.dirty", around)
    for where, whose in (("io", "on the node"), ("cgroup", "in the cgroup")):
        some, full = around[f"{where}_some_share"], around[f"{where}_full_share"]
        if some is not None and (where == "io" or some != around["io_some_share"]):
            yield Statement("info.pressure", {"whose": whose, "some": some, "full": full})
    if around["network"].get("nfs_retransmissions"):
        yield Statement("info.retransmissions", around["network"])


def _transfers(information: Information) -> Iterator[Part]:
    """Say how long tasks were in I/O, and how fast bytes moved."""
    label = "of tasks" if information.get("counters") else "I/O time"
    in_io = [("" if number else label, said) for number, said in enumerate(time_in_io(information))]
    if information.get("counters"):
        yield Facts([*counter_facts(information), *in_io * (information["time_in_io"]["tasks"] > 1)])
        return
    wrong = information.get("implausible", {})
    run = Statement("info.run", {**information, "is_wrong": "span_s" in wrong})
    facts: list[tuple[str, Statement | str]] = [("run", run), *in_io]
    if information["hidden_share"] is not None:
        requests = sum(each["requests"] for each in information["non_blocking"].values())
        facts.append(("in flight", Statement("info.flights", {**information, "requests": requests})))
    if information["slowest_call"] is not None:
        facts.append(("slowest", Statement("info.slowest", information["slowest_call"])))
    yield Facts(facts)
    transfers = information["transfers"]
    by_time = any(each["active_s"] is not None for each in transfers.values())
    units = {"transfers": "", "bytes": "bytes"}
    ways = {"while data moved": "active", "while files were open": "open"}
    ways = ways if by_time else {"by the slowest task's time": "slowest_task"}
    units |= dict.fromkeys(ways, "rate in time")
    rows = []
    for label, op in (("read", "read"), ("written", "write")):
        each = transfers[op]
        rates = (
            (each[f"{way}_bytes_per_s"], each[f"{way}_s"], None if by_time else each["slowest_task"])
            for way in ways.values()
        )
        moved = f"{bytes_text(each['bytes'])}: implausible" if "bytes" in wrong else each["bytes"]
        rows.append((label, moved, *(None if rate[0] is None else rate for rate in rates)))
    yield Table.of_rows("row", units, rows)
    yield tuple(_about_transfers(information, by_time))


def _about_transfers(information: Information, by_time: bool) -> Iterator[Statement]:
    """Say which time is meant, and which of the bytes read a program did not ask for."""
    if not by_time and information["transfers"]["write"]["slowest_task_s"] is not None:
        yield Statement("info.time_of_writes")
    inside = bytes_read_in_writes(information["layer_traffic"] or [])
    least = max(SMALL_PART * information["transfers"]["read"]["bytes"], 1)
    if inside >= least:
        yield Statement("info.read_in_writes", {"bytes": inside})
    asked_for_none = information.get("read_inside") or {}
    if (more := sum(asked_for_none.values())) >= max(least, inside):
        names = sorted(asked_for_none, key=lambda name: -asked_for_none[name])
        most = ", ".join(f"{bytes_text(asked_for_none[name])} in {name}" for name in names[:MOST_NAMED])
        yield Statement("info.read_inside", {"bytes": more, "names": most})


def share_in_io(information: Information) -> float | Interval | None:
    """Return the share of the run in I/O, as the account has it; None: it is not known."""
    found, run_s = information["time_in_io"], information["run_s"]
    if "io_s" not in found or not run_s:
        return None
    low, high = found.get("io_low_s", found["io_s"]) / run_s, found["io_s"] / run_s
    return high if low == high else Interval(low, high)


def time_in_io(information: Information) -> Iterator[Statement | str]:
    """Say how long the critical path, the tasks, and the slowest of them were in I/O."""
    found = information["time_in_io"]
    if not found["tasks"]:
        if information["io_time_s"]:
            is_partial = information.get("unseen", {}).get("hides_time", False)
            is_wrong = "io_time_s" in information.get("implausible", {})
            values = {**information, "is_partial": is_partial, "is_wrong": is_wrong}
            yield Statement("info.io_time", values)
        return
    several = found["tasks"] > 1
    of, their = (
        f"the time of {who} threads" if "threads" in found else "the run" for who in ("its", "their")
    )
    words = "info.any_task" if found["slowest_task"] is None else "info.slowest_task"
    slowest = Statement(words, {**found, "is_of_several": several, "of": of})
    if not several and ("threads" in found or found["critical_path_s"] is None):
        yield slowest
    if found["critical_path_s"] is not None:
        yield Statement("info.critical_path", {**found, "is_of_several": several or "threads" in found})
    elif found.get("some_task_s") is not None:
        yield Statement("info.some_task", {"io_low_s": None, **found, "who": "task" if several else "thread"})
    elif "io_low_s" in found:
        yield Statement("info.in_io", {**found, "share": share_in_io(information)})
    elif several and information["mode"] == "trace" and information["events"] > MOST_EVENTS:
        yield Statement("info.no_path", {"events": MOST_EVENTS})
    if several:
        yield Statement("info.mean", {**found, "of": their})
        yield slowest
    if inside := library_share_text(information["in_libraries"]):
        yield inside


def _call_table(information: Information, kind: str) -> Iterator[Part]:
    """Tabulate the calls that are I/O, or wait, those with the longest exclusive time first."""
    is_io = kind == "I/O call"
    calls = [item for item in information["calls"].items() if item[1]["is_io"] == is_io]
    rows = [
        (
            name,
            call["count"],
            call["bytes"] if call["op"] in ("read", "write") and "scanf" not in name else None,
            call["exclusive_time_s"],
            call["io_share"],
            call["wait_share"],
            call["mean_s"],
            call["max_s"],
        )
        for name, call in sorted(calls, key=lambda item: (-item[1]["exclusive_time_s"], item[0]))
    ]
    if not rows:
        return
    table = Table.of_rows("function", {kind: "", **_CALLS}, rows)
    is_nested = any(call["exclusive_time_s"] != call["time_s"] for _, call in calls)
    if is_nested or not is_io:
        columns = (
            replace(each, header=f"exclusive {each.header}") if each.header == "time" else each
            for each in table.columns
        )
        table = replace(table, columns=tuple(columns))
    before = [column.header for column in table.columns].index("mean") - 1
    yield replace(table, together=(before,))
    if is_nested:
        yield (Statement("info.whole_calls"),)


def _failed_calls(information: Information) -> Iterator[Part]:
    """Say which calls failed, with which errors and where."""
    failed = [f"{name} {call['errors']:,}" for name, call in information["calls"].items() if call["errors"]]
    rows = information.get("failed_calls")
    if failed and rows:
        said = failure_sentences(rows, information["tasks"])
        yield Facts([("", each) for each in said], Statement("info.failed"), 0, 2)
    elif failed:
        known = "known of events (ensio events RUN --where failed)" if information["events"] else "unknown"
        yield (Statement("info.only_failed", {"calls": ", ".join(failed), "known": known}),)


def _sizes(information: Information) -> Iterator[Statement]:
    """Name the most common sizes of each layer."""
    for layer, sizes in information["frequent_sizes"].items():
        classes = information["frequent_size_classes"].get(layer, [])
        shown = [f"{size_text(each['bytes'])} × {each['count']:,}" for each in sizes if each["count"] > 1]
        shown += [
            f"{size_text(each['low_bytes'])} to {size_text(each['high_bytes'])} × {each['count']:,}"
            for each in classes
        ]
        values = {"layer": layer, "sizes": ", ".join(shown) or "all distinct", "has_classes": bool(classes)}
        uncertain = information["uncertain_counts"].get(layer) or None
        yield Statement("info.sizes", {**values, "uncertain": uncertain})


def _regions(information: Information) -> Iterator[Part]:
    """Tabulate the regions that the program named."""
    rows = [
        (
            f"{region['kind']} {region['name']}",
            region["tasks"],
            region["count"],
            region["time_s"],
            "unknown" if region["io_time_s"] is None else region["io_time_s"],
            region["not_ended"] or None,
        )
        for region in information["regions"]
    ]
    if rows:
        yield Table.of_rows("region", _REGIONS, rows[:_MOST_REGIONS])
    if len(rows) > _MOST_REGIONS:
        yield (Statement("info.more_regions", {"count": len(rows) - _MOST_REGIONS}),)


_UNITS = {"run": "", "program": "", "tasks": "count", "start (UTC)": "", "": ""}


def answer_run_list(path: str, paths: Iterable[str], open_run: Callable[[str], Run]) -> PlainAnswer:
    """List the runs of a folder; of one that cannot be read, the JSON has ``error``."""
    runs = [_described(each, open_run) for each in paths]
    rows = [
        (entry["run"], entry["error"], None, None, None)
        if "error" in entry
        else (
            entry["run"],
            entry["name"],
            entry["tasks"],
            (entry["start"] or "unknown").replace("T", " ")[:19],
            None if entry["complete"] else "warnings",
        )
        for entry in runs
    ]
    head = Statement("runs.what", {"path": path, "count": len(runs)})
    return PlainAnswer("info", ((head,), Table.of_rows("run", _UNITS, rows)), {"runs": runs})


def _described(path: str, open_run: Callable[[str], Run]) -> dict[str, Any]:
    try:
        run = open_run(path)
    except EnsioError as error:
        return {"run": path, "error": str(error)}
    return {
        "run": path,
        "name": run.info.name,
        "program": run.info.program,
        "programs": list(run.info.programs),
        "command": list(run.info.command),
        "tasks": run.tasks,
        "job": run.info.job,
        "start": run.info.start and run.info.start.isoformat(),
        "mode": run.mode,
        "complete": not run.notes,
    }

"""What must hold between the answers of several commands on one run: a function each."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from .answers import Answer

Answers = Mapping[str, Any]
"""What the commands of a run printed that ended with 0 or 1, by command lines without its name."""
Agreement = Callable[[Answers], Iterator[str]]
DIRECTIONS = ("read", "write")
AGREEMENTS: list[Agreement] = []


def agreement(function: Agreement) -> Agreement:
    """Register a function of the answers on one run."""
    AGREEMENTS.append(function)
    return function


def printed(name: str, answers: Mapping[str, Answer]) -> Answers:
    """What the commands of the run `name` printed, by command lines without that name."""
    return {
        " ".join(word for word in line.split() if word not in (name, "--json")): answer.out
        for line, answer in answers.items()
        if answer.exit in (0, 1)
    }


def _is_whole(info: Mapping[str, Any]) -> bool:
    return info["mode"] == "trace" and info["complete"] and not info["dropped_events"]


@agreement
def info_and_events_count_the_same_calls(answers: Answers) -> Iterator[str]:
    """Calls, errors and longest calls of each function are those of its events."""
    info, rows = answers.get("info"), answers.get("events --format jsonl")
    if info is None or not rows or not _is_whole(info):
        return
    counted = Counter(row["call"] for row in rows)
    failed = Counter(row["call"] for row in rows if row["moved"] < 0)
    longest: dict[str, float] = {}
    for row in rows:
        longest[row["call"]] = max(longest.get(row["call"], 0), row["duration"] * 1e-9)
    for call, told in info["calls"].items():
        if counted[call] != told["count"]:
            yield f"{call}: {told['count']} calls in info, {counted[call]} events"
        if failed[call] != told["errors"]:
            yield f"{call}: {told['errors']} errors in info, {failed[call]} among the events"
        if told["max_s"] is not None and not math.isclose(told["max_s"], longest.get(call, 0), abs_tol=2e-9):
            yield f"{call}: the longest takes {told['max_s']} s in info, {longest.get(call)} s in events"


@agreement
def times_of_info_are_possible(answers: Answers) -> Iterator[str]:
    """No time is negative, no part exceeds its whole, and no thread is longer in calls than the run lasts.

    Before version 4 of spools, the duration of a request lasted until its completion; a note says so.
    """
    info = answers.get("info")
    if info is not None and any(
        "last until their" in note or "implausible" in note for note in info["notes"]
    ):
        return
    if info is None or not info["durations_known"]:
        return
    most_s = (info["span_s"] or 0) * max(info["threads"], 1) * (1 + 1e-6) + 1e-6
    for name, told in [*info["calls"].items(), *info["layers"].items()]:
        exclusive_s, time_s = told["exclusive_time_s"], told["time_s"]
        if exclusive_s is None or time_s is None:
            continue
        if not 0 <= exclusive_s <= time_s * (1 + 1e-9) + 1e-9:
            yield f"{name}: {exclusive_s} s exclusive of {time_s} s"
        if exclusive_s > most_s:
            yield f"{name}: {exclusive_s} s exclusive in {info['threads']} threads of {info['span_s']} s"
    of_calls = not info.get("counters")  # threads behind counted times are not known
    if of_calls and info["io_time_s"] is not None and info["io_time_s"] > most_s:
        yield f"{info['io_time_s']} s in I/O in {info['threads']} threads of {info['span_s']} s"


@agreement
def bytes_of_rates_are_those_of_info(answers: Answers) -> Iterator[str]:
    """The bytes behind the curve of a rate are those that were read or written."""
    info, rates = answers.get("info"), answers.get("rate")
    if info is None or rates is None or not info["complete"] or info["dropped_events"]:
        return
    for rate in rates["rates"]:
        told = info["bytes_read" if rate["op"] == "read" else "bytes_written"]
        if told is not None and not math.isclose(rate["bytes"], told, rel_tol=1e-9, abs_tol=0.5):
            yield f"{rate['op']}: {rate['bytes']} bytes in rate, {told} in info"


@agreement
def active_time_of_rates_is_that_of_events(answers: Answers) -> Iterator[str]:
    """Bytes move from the entry of a call to its return, those of a request until its completion."""
    info, rates, rows = (answers.get(line) for line in ("info", "rate", "events --format jsonl"))
    if info is None or rates is None or not rows or not _is_whole(info):
        return
    for rate in rates["rates"]:
        bit, active_ns, until = 1 + DIRECTIONS.index(rate["op"]), 0, -math.inf
        spans = [
            (row["start"], row["start"] + max(row["duration"], row["flight"]))
            for row in rows
            if row["op"] == rate["op"] and row["moved"] > 0 and not row["carried"] & bit
        ]
        for start, end in sorted(spans):
            active_ns += max(end - max(start, until), 0)
            until = max(until, end)
        if not math.isclose(rate["active_s"], active_ns * 1e-9, rel_tol=1e-9, abs_tol=1e-9):
            yield f"{rate['op']}: active for {rate['active_s']} s in rate, {active_ns * 1e-9} s in events"


@agreement
def rates_are_possible(answers: Answers) -> Iterator[str]:
    """The mean is not above the peak, and a plateau's rate lies in its interval."""
    for line, rates in answers.items():
        if not line.startswith("rate"):
            continue
        for rate in rates["rates"]:
            mean, peak = rate["mean_bytes_per_s"], rate["peak_bytes_per_s"]
            if mean is not None and peak is not None and mean > peak * (1 + 1e-6):
                yield f"{line}: mean {mean} above peak {peak}"
            for plateau in rate["plateaus"]:
                low, value, high = (
                    plateau[key] for key in ("low_bytes_per_s", "bytes_per_s", "high_bytes_per_s")
                )
                if not low <= value * (1 + 1e-9) or not value <= high * (1 + 1e-9):
                    yield f"{line}: a plateau of {value}, its interval is {low} to {high}"


@agreement
def phases_lie_in_the_run(answers: Answers) -> Iterator[str]:
    """Phases lose no more than they take, and have at most the bytes of the run."""
    info = answers.get("info")
    for line, told in answers.items():
        if not line.startswith("phases"):
            continue
        for phase in told["phases"]:
            # None: the run does not show that its tasks wait for each other.
            if phase["lost_share"] is not None and not 0 <= phase["lost_share"] <= 1:
                yield f"{line}: phase {phase['phase']} loses {phase['lost_share']} of itself"
            if phase["end_s"] < phase["start_s"]:
                yield f"{line}: phase {phase['phase']} ends before it starts"
        if line == "phases" and info is not None and _is_whole(info):
            for key in ("bytes_read", "bytes_written"):
                whole = sum(phase[key] for phase in told["phases"])
                if info[key] is not None and whole > info[key]:
                    yield f"{line}: {whole} {key}, in info {info[key]}"


@agreement
def modes_and_tail_are_of_the_same_calls(answers: Answers) -> Iterator[str]:
    """The same filters choose the same calls."""
    numbers: dict[str, dict[str, int]] = {}
    for line, told in answers.items():
        command, *words = line.split()
        if command in ("modes", "tail", "split") and isinstance(told, dict) and told.get("n"):
            filters = [word for word in words if word != "--backtest"]
            for option in ("--tasks", "--level", "--calls", "--limit"):
                while option in filters:
                    place = filters.index(option)
                    del filters[place : place + 2]
            numbers.setdefault(" ".join(filters), {})[line] = told["n"]
    for told_of in numbers.values():
        if len(set(told_of.values())) > 1:
            yield f"numbers of calls differ: {told_of}"


@agreement
def the_slowest_call_is_the_longest(answers: Answers) -> Iterator[str]:
    """Apart from waits, no function has a longer call than the slowest call of the run."""
    info = answers.get("info")
    if info is None or not info.get("slowest_call"):
        return
    slowest_s = info["slowest_call"]["duration_s"]
    for name, told in info["calls"].items():
        if told["op"] != "wait" and told["max_s"] is not None and told["max_s"] > slowest_s * (1 + 1e-9):
            yield f"{name} took {told['max_s']} s, and the slowest call {slowest_s}"


@agreement
def ordinals_number_the_calls_of_the_run(answers: Answers) -> Iterator[str]:
    """There are at most as many calls with ordinals as calls of that operation."""
    info, told = answers.get("info"), answers.get("ordinals")
    if info is None or told is None or not _is_whole(info) or not isinstance(told.get("ordinals"), list):
        return
    counted = sum(row["n"] for row in told["ordinals"])
    of_op = sum(call["count"] for call in info["calls"].values() if call["op"] == told["op"])
    if counted > of_op:
        yield f"{counted} calls have ordinals, {of_op} are of the operation {told['op']}"


@agreement
def tables_add_up_to_the_run(answers: Answers) -> Iterator[str]:
    """The rows of files and of ranks add up to what the whole run has."""
    info = answers.get("info")
    if info is None or not _is_whole(info):
        return
    for noun in ("files", "ranks"):
        told = answers.get(noun)
        if told is None:
            continue
        rows, total = told[noun], told["total"]
        calls = info["recorded_calls"] - info["summed_calls"]
        for key, whole in (
            ("calls", calls),
            ("bytes_read", info["bytes_read"]),
            ("bytes_written", info["bytes_written"]),
            ("errors", sum(call["errors"] for call in info["calls"].values())),
        ):
            if sum(row[key] for row in rows) != total[key] or total[key] != whole:
                yield f"{noun}: {key} are {total[key]} in all, {whole} in info"
        if not math.isclose(total["io_time_s"], info["io_time_s"], rel_tol=1e-9, abs_tol=1e-8):
            yield f"{noun}: {total['io_time_s']} s in I/O, {info['io_time_s']} in info"
        shares = sum(row["share"] for row in rows)
        if total["io_time_s"] and not math.isclose(shares, 1, rel_tol=1e-9):
            yield f"{noun}: shares add up to {shares}"


@agreement
def rates_of_the_headline_are_those_of_rate(answers: Answers) -> Iterator[str]:
    """``info`` and ``rate`` say the same rate; a file is open while its bytes move."""
    info, rates = answers.get("info"), answers.get("rate")
    if info is None:
        return
    for op, told in info["transfers"].items():
        if told["bytes"] != info["bytes_read" if op == "read" else "bytes_written"]:
            yield f"{op}: {told['bytes']} bytes in the headline"
        if told["open_s"] is not None and told["open_s"] > info["span_s"] * (1 + 1e-9):
            yield f"{op}: files are open for {told['open_s']} s of {info['span_s']}"
        # Requests move their bytes in their flight, which may end after their file is closed.
        is_all = told["open_bytes"] == told["bytes"] and not info["non_blocking"]
        if is_all and told["open_s"] < told["active_s"] * (1 - 1e-9):
            yield f"{op}: bytes moved for {told['active_s']} s, files were open for {told['open_s']} s"
        for rate in rates["rates"] if rates is not None and _is_whole(info) else ():
            mean, here = rate["mean_bytes_per_s"], told["active_bytes_per_s"]
            if rate["op"] == op and here is not None and not math.isclose(mean, here, rel_tol=1e-9):
                yield f"{op}: {mean} bytes/s in rate, {here} in info"


@agreement
def shares_are_parts_of_a_whole(answers: Answers) -> Iterator[str]:
    """Shares of I/O time add up to 1, unless a tool counted untraced calls; none of the span exceeds 1."""
    info = answers.get("info")
    if info is None or any("last until their completion" in note for note in info["notes"]):
        return
    shares = [call["io_share"] for call in info["calls"].values() if call["io_share"] is not None]
    if shares and not (
        math.isclose(sum(shares), 1, rel_tol=1e-9) or ("counters" in info and sum(shares) < 1)
    ):
        yield f"the shares of the I/O calls add up to {sum(shares)}"
    waits = [call["wait_share"] or 0 for call in info["calls"].values()]
    found = info["time_in_io"]
    if not info["durations_known"]:
        return
    for name in ("mean_share", "slowest_share", "critical_path_share"):
        if found[name] is not None and not 0 <= found[name] <= 1 + 1e-6:
            yield f"{name} is {found[name]}"
    if sum(waits) > 1 + 1e-6:
        yield f"waiting takes {sum(waits)} of the time of all threads"
    if found["mean_s"] is not None and found["mean_s"] > found["slowest_s"] * (1 + 1e-9):
        yield f"the mean task is {found['mean_s']} s in I/O, the slowest {found['slowest_s']}"


@agreement
def layers_move_what_their_calls_say(answers: Answers) -> Iterator[str]:
    """Bytes inside other calls are part of the bytes of their layer, and ratios are those of the bytes."""
    info = answers.get("info")
    if info is None or not info["layer_traffic"]:
        return
    moved: Counter[tuple[str, str]] = Counter()
    for call in info["calls"].values():
        moved[call["layer"], call["op"]] += call["bytes"]
    for row in info["layer_traffic"]:
        what = f"{row['layer']} {row['op']}s by {row['by']}"
        if row["inner_bytes"] > moved[row["by"], row["op"]] or row["bytes"] > moved[row["layer"], row["op"]]:
            yield f"{what}: {row['inner_bytes']} of {row['bytes']} bytes are more than info has of the layers"
        if row["bytes"] and not math.isclose(row["amplification"], row["inner_bytes"] / row["bytes"]):
            yield f"{what}: {row['amplification']} bytes for each byte"
        if row["layer"] == row["by"]:
            yield f"{what}: a layer inside itself"


@agreement
def collective_time_is_part_of_the_span(answers: Answers) -> Iterator[str]:
    """Time in collective calls is storage and the rest, within the run; info and phases say the same."""
    info, phases = answers.get("info"), answers.get("phases")
    if info is None or info["collective"] is None:
        return
    found = info["collective"]
    if not 0 < found["time_s"] <= info["span_s"] * (1 + 1e-9):
        yield f"{found['time_s']} s in collective calls of a span of {info['span_s']} s"
    if not math.isclose(found["storage_s"] + found["above_storage_s"], found["time_s"], rel_tol=1e-9):
        yield f"storage and the rest of collective calls are not their time: {found}"
    if not 0 <= found["above_storage_share"] < 1:
        yield f"a share of {found['above_storage_share']} above storage"
    if phases is not None and phases["collective"] != found:
        yield f"phases say {phases['collective']} of collective calls, info {found}"


@agreement
def steps_of_collective_calls_are_all_of_their_time(answers: Answers) -> Iterator[str]:
    """The steps of collective calls are disjoint parts of the time that info has for these functions."""
    info, phases = answers.get("info"), answers.get("phases")
    steps = None if phases is None else phases["collective_steps"]
    for row in [] if steps is None or info is None else steps["rows"]:
        parts = [row[key] for key in ("communication_s", "storage_s", "entry_s", "others_storage_s")]
        if min(parts) < 0 or not math.isclose(sum(parts), row["time_s"], rel_tol=1e-9):
            yield f"steps of {row['call']} are {parts}, and not {row['time_s']} s"
        if row["time_s"] > info["calls"][row["call"]]["time_s"] * (1 + 1e-9):
            yield f"steps of {row['call']} take {row['time_s']} s, more than all of its calls"


@agreement
def folded_phases_are_phases_without_bytes(answers: Answers) -> Iterator[str]:
    """Stretches without data have the calls and times of their phases, none of which moved bytes."""
    phases = answers.get("phases")
    for stretch in [] if phases is None else phases["without_data"]:
        mine = [row for row in phases["phases"] if stretch["from"] <= row["phase"] <= stretch["to"]]
        if any(row["bytes_read"] or row["bytes_written"] for row in mine) or len(mine) != stretch["phases"]:
            yield f"phases {stretch['from']} to {stretch['to']} are {len(mine)}, with data"
        if stretch["calls"] != sum(row["calls"] for row in mine):
            yield f"phases {stretch['from']} to {stretch['to']} have other calls than {stretch['calls']}"

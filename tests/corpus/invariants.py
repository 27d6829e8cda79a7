"""What must hold of every answer on every run: a function each, which yields its violations."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

from ensembles.diagnosis.principles import cause_of

from .answers import ANSWERS, Answer
from .declared import Declared, Several
from .schemas import misfits

Invariant = Callable[[Declared | Several, str, Answer], Iterator[str]]
INVARIANTS: list[Invariant] = []


def invariant(function: Invariant) -> Invariant:
    """Register a function of a run, a command line and its answer."""
    INVARIANTS.append(function)
    return function


def within(value: Any) -> Iterator[Any]:
    """A value of JSON and all that it holds."""
    waiting = [value]
    while waiting:
        value = waiting.pop()
        yield value
        if isinstance(value, dict):
            waiting += value.values()
        elif isinstance(value, list):
            waiting += value


@invariant
def numbers_are_finite(run: Declared | Several, line: str, answer: Answer) -> Iterator[str]:
    """JSON knows neither NaN nor infinity."""
    for value in within(answer.out):
        if isinstance(value, float) and not math.isfinite(value):
            yield f"there is {value}"


@invariant
def refusals_are_one_sentence(run: Declared | Several, line: str, answer: Answer) -> Iterator[str]:
    """Exit code 2 comes with one line on standard error, and nothing on standard output."""
    if answer.exit == 2:
        told = [message for message in answer.messages if not message.startswith("ensio: note: ")]
        if len(told) != 1 or not told[0].startswith("ensio: "):
            yield f"exit 2 with {told}"
        if answer.out not in ("", []):
            yield "exit 2, and something on standard output"


@invariant
def json_fits_its_published_schema(run: Declared | Several, line: str, answer: Answer) -> Iterator[str]:
    """Keys and types that are published stay; a new key needs nothing."""
    yield from misfits(line, answer.exit, answer.out)


_INTERNAL = re.compile(
    r"\b(?:None|nan|NaN|inf|dtype|np\.\w+|<\w+ object|phases? -1|ranks? -1|tasks? -1)(?!\w)|<class|<enum"
)


@invariant
def sentences_have_no_internal_values(run: Declared | Several, line: str, answer: Answer) -> Iterator[str]:
    """A reader never meets the values by which the program says "none" or "unknown"."""
    texts = [value for value in within(answer.out) if isinstance(value, str) and " " in value]
    for text in (*texts, *answer.messages):
        found = _INTERNAL.search(text)
        if found:
            yield f"{found[0]!r} in {text[:200]!r}"


@invariant
def intervals_hold_their_places(run: Declared | Several, line: str, answer: Answer) -> Iterator[str]:
    """Where something has a place and an interval, the place lies in it."""
    for entry in _objects(answer.out):
        for name in ("t_s", "median_s"):
            values = [entry.get(key) for key in ("low_s", name, "high_s")]
            if all(isinstance(value, int | float) for value in values) and sorted(values) != values:
                yield f"{name} is {values[1]}, and its interval {values[0]} to {values[2]}"


def _objects(value: Any) -> Iterator[dict[str, Any]]:
    return (each for each in within(value) if isinstance(each, dict))


@invariant
def calls_add_up(run: Declared | Several, line: str, answer: Answer) -> Iterator[str]:
    """In ``info``, the calls of functions and of layers are those of the run."""
    if line.startswith("info ") and isinstance(answer.out, dict):
        of_functions = sum(call["count"] for call in answer.out["calls"].values())
        of_layers = sum(layer["calls"] for layer in answer.out["layers"].values())
        if not of_functions == of_layers == answer.out["recorded_calls"]:
            yield f"{of_functions} by functions, {of_layers} by layers, {answer.out['recorded_calls']} in all"


@invariant
def the_account_adds_up_and_nothing_is_longer_than_the_run(
    run: Declared | Several, line: str, answer: Answer
) -> Iterator[str]:
    """Each second of a run is in one entry, in every record; gains and bounds are in the run, too."""
    if not line.startswith("diagnose ") or not isinstance(answer.out, dict) or not answer.out["run_s"]:
        return
    run_s, account = answer.out["run_s"], answer.out["account"]
    if account is None:
        yield "no account"
        return
    times = [entry["time_s"] for entry in account["entries"]]
    if min(times) < 0 or not math.isclose(sum(times), run_s, rel_tol=1e-6):
        yield f"the entries {times} add up to {sum(times)}, and the run lasts {run_s}"
    outside = ("outside", "communication", "late-task", "turns")
    io_s = sum(entry["time_s"] for entry in account["entries"] if entry["id"] not in outside)
    if not math.isclose(io_s, account["io_s"], rel_tol=1e-6, abs_tol=1e-9):
        yield f"entries of I/O add up to {io_s}, not to {account['io_s']}"
    bounds = [(each["id"], each["at_most_s"] or 0.0) for each in answer.out["not_examined"]]
    bounds += [(each["id"], (each["gain_s"] or (0.0, 0.0))[1]) for each in answer.out["findings"]]
    for name, most_s in bounds:
        if most_s > run_s * (1 + 1e-9):
            yield f"{name} is {most_s} s of a run of {run_s} s"
    in_io = [each for each in answer.out["findings"] if cause_of(each["id"]).in_io]
    certain_s = sum((each["gain_s"] or (0.0,))[0] for each in in_io)
    shared_s = sum(each["share_s"] or 0.0 for each in in_io)
    most_s = max(
        [io_s, *((each["gain_s"] or (0.0, 0.0))[1] for each in in_io if "waiting_s" not in each["evidence"])]
    )
    if max(certain_s, shared_s, most_s) > io_s * (1 + 1e-9):
        yield f"gains are {certain_s} s at least, {shared_s} s in all, {most_s} s at most; I/O is {io_s} s"
    for each in answer.out["findings"]:
        times_s = [each["evidence"][name] for name in ("time_s", "waiting_s") if name in each["evidence"]]
        if each["gain_s"] and times_s and each["gain_s"][1] > max(times_s):
            yield f"{each['id']} gains {each['gain_s'][1]} s of calls that take {max(times_s)} s in all"


def _modes(line: str, answer: Answer) -> dict[str, Any] | None:
    """The answer of a command ``modes`` that was not refused."""
    told = line.startswith("modes ") and isinstance(answer.out, dict)
    return answer.out if told and "modes" in answer.out and not answer.out["refused"] else None


@invariant
def weights_of_modes_are_of_the_whole(run: Declared | Several, line: str, answer: Answer) -> Iterator[str]:
    """The weights of modes, and the shares of clusters that are none, add up to 1."""
    if found := _modes(line, answer):
        whole = sum(mode["weight"] for mode in found["modes"])
        whole += sum(part["share"] for part in (*found["bumps"], *found["spread"]))
        if not math.isclose(whole, 1, rel_tol=1e-6):
            yield f"the weights and shares add up to {whole}"


@invariant
def intervals_of_modes_have_a_width(run: Declared | Several, line: str, answer: Answer) -> Iterator[str]:
    """An interval of width zero means that all its calls took the same time."""
    for mode in (_modes(line, answer) or {"modes": []})["modes"]:
        if mode["low_s"] == mode["high_s"] and mode["from_s"] < mode["to_s"]:
            yield f"the mode at {mode['t_s']} s has an interval of width zero"


@invariant
def modes_are_not_narrower_than_the_clock(
    run: Declared | Several, line: str, answer: Answer
) -> Iterator[str]:
    """Ticks are not modes: two of them are more than one step of the clock apart."""
    if found := _modes(line, answer):
        places = [mode["t_s"] for mode in found["modes"]]
        for near, far in pairwise(places):
            if far - near < 1.5 * found["resolution_s"]:
                yield f"modes at {near} and {far} s, by a clock of {found['resolution_s']} s"


TASKS = (1, 4, 16, 64, 256, 1024, 10_240)
MOST_WIDTH = 30.0


@invariant
def the_slowest_of_n_is_an_answer_or_a_refusal(
    run: Declared | Several, line: str, answer: Answer
) -> Iterator[str]:
    """A refusal has no numbers, and that of dependent calls is no wider than a factor of 30."""
    if not line.startswith("tail ") or "--backtest" in line or not isinstance(answer.out, dict):
        return
    for place, one in (("$", answer.out), ("$.next_phase", answer.out["next_phase"])):
        ends = [one[name] for name in ("low_s", "median_s", "high_s")] if one else []
        if one and one["refused"] is not None and ends != [None] * 3:
            yield f"{place} is refused, and has {ends}"
        depends = bool(one) and one["refused"] is None and one.get("exchangeable", False) is False
        if depends and not ends[2] <= 1.001 * MOST_WIDTH * max(ends[0], 1e-9):
            yield f"{place} is from {ends[0]} to {ends[2]}"


@invariant
def the_slowest_of_n_never_falls_as_n_grows(
    run: Declared | Several, line: str, answer: Answer
) -> Iterator[str]:
    """Nor is it faster than the fastest call; a refusal beyond the reach holds for all larger N."""
    if not isinstance(run, Declared) or line != f"tail {run.name} --op {run.op} --tasks 1024 --json":
        return
    from ensembles.statistics.extremes.slowest_of_n import SlowestOfN

    ensemble = ANSWERS.opened(run.name).select(op=run.op).ensemble()
    model = SlowestOfN.fit(ensemble.sample, calls=ensemble.calls)
    least_s = float(ensemble.sample.min_s.min()) - ensemble.sample.resolution_s if ensemble.n else 0.0
    before, refused_from = (least_s,) * 3, None
    for tasks in TASKS:
        found = model.tail(tasks)
        if found.refused is not None:
            refused_from = refused_from or (tasks if tasks >= found.reach else None)
            continue
        if refused_from is not None:
            yield f"{tasks} calls are answered, {refused_from} are not"
        numbers = (found.low_s, found.median_s, found.high_s)
        if any(now < then * (1 - 1e-9) for now, then in zip(numbers, before, strict=True)):
            yield f"{tasks} calls take {numbers}, fewer {before}"
        before = numbers


@invariant
def one_call_of_split_is_the_answer_of_tail(
    run: Declared | Several, line: str, answer: Answer
) -> Iterator[str]:
    """The same model answers both, and no speedup exceeds its upper bound.

    Only a split is refused where smaller calls would take as long: calls as they are have a slowest one.
    """
    if not line.startswith("split ") or not isinstance(answer.out, dict):
        return
    words = [word for word in line.replace("--calls 1,3 ", "").split() if word != "--tasks"]
    words = [word for word in words[1:] if not word.isdigit()]
    tail = ANSWERS.answer(f"tail {' '.join(words)} --tasks {answer.out['tasks']}").out
    if "may take k times as long" in (answer.out["refused"] or ""):
        return
    if answer.out["refused"] != tail["refused"]:
        yield f"split says {answer.out['refused']!r}, tail {tail['refused']!r}"
    for split in answer.out["splits"]:
        names = ("low_s", "median_s", "high_s", "mean_s")
        if split["calls"] == 1 and [split[name] for name in names] != [tail[name] for name in names]:
            yield f"one call of split is {split}, and tail {[tail[name] for name in names]}"
        if split["speedup"] is not None and split["speedup"] > split["most_speedup"] * (1 + 1e-9):
            yield f"{split['calls']} calls: {split['speedup']} exceeds {split['most_speedup']}"


@invariant
def a_run_has_one_length(run: Declared | Several, line: str, answer: Answer) -> Iterator[str]:
    """All commands have the length of ``info``, of which its shares are, and no call is outside of it."""
    if isinstance(run, Several) or answer.exit != 0 or not isinstance(answer.out, dict):
        return
    info = ANSWERS.answer(f"info {run.name} --json")
    if info.exit != 0:
        return
    length_s = info.out["run_s"]
    if answer is info:
        if length_s < (1 - 1e-6) * answer.out["span_s"]:
            yield f"the run takes {length_s} s, and its calls {answer.out['span_s']} s"
        for name in ("critical_path", "some_task"):
            time_s, share = (answer.out["time_in_io"].get(f"{name}_{what}") for what in ("s", "share"))
            if time_s and not math.isclose(share, time_s / length_s, rel_tol=1e-9):
                yield f"{name}: {time_s} s of {length_s} s is not {share}"
    for entry in _objects(answer.out):
        other_s = entry.get("run_s")
        if isinstance(other_s, float) and not math.isclose(other_s, length_s, rel_tol=1e-9):
            yield f"run_s is {other_s}, and in info {length_s}"


@invariant
def info_and_the_account_have_one_share_of_io(
    run: Declared | Several, line: str, answer: Answer
) -> Iterator[str]:
    """The headline and the account are of one critical path, in every record, or both have none."""
    if isinstance(run, Several) or not line.startswith("diagnose ") or not isinstance(answer.out, dict):
        return
    info, account = ANSWERS.answer(f"info {run.name} --json"), answer.out["account"]
    said = info.out["time_in_io"] if info.exit == 0 else {}
    if account is None or any(entry["id"] == "unseen" for entry in account["entries"]):
        account = {}
    for name in ("io_s", "io_low_s"):
        mine, other = (each.get(name, each.get("io_s", -1.0)) for each in (account, said))
        if not math.isclose(mine, other, rel_tol=1e-9):
            yield f"{name} is {mine} in the account, and {other} in info"
    for each in answer.out["most_time"] if info.exit == 0 else ():
        share = info.out["calls"][each["call"]]["io_share"]
        if share is not None and not math.isclose(each["share"], share, abs_tol=1e-6):
            yield f"{each['call']} has {each['share']} of the time in I/O, and {share} in info"


@invariant
def json_is_an_object(run: Declared | Several, line: str, answer: Answer) -> Iterator[str]:
    """``--json`` prints one object."""
    if "--json" in line.split() and answer.exit in (0, 1) and not isinstance(answer.out, dict):
        yield f"prints {str(answer.out)[:60]!r}"

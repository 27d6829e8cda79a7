"""Comparisons of runs and of ensembles: verdicts, what moved and by how much, and totals."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ensembles.comparison import compare as comparison
from ensembles.comparison.difference import OF_ALL_TASKS, RUN_LABELS
from ensembles.comparison.report import Comparison, Effect, Gate, Move
from ensembles.comparison.times import LEAST_SHARE
from ensembles.faces.answer import PlainAnswer, shown_as
from ensembles.faces.html import answer_html
from ensembles.faces.text import answer_text
from ensembles.faces.words import cell
from ensembles.model.sanitize_text import sanitize_text
from ensembles.model.statement import Column, Part, Statement, Table
from ensembles.model.units import bytes_text, number_text, ratio_text, seconds_text

_LABELS = {
    "tasks": "tasks",
    "tasks_at_once": "tasks at one time",
    "io_tasks": "tasks with I/O",
    "calls": "calls",
    "opens": "opens",
    "bytes_read": "bytes read",
    "bytes_written": "bytes written",
    "files": "files",
    "phases": "phases",
    "unended": "processes that did not end",
    **{what: label + ", all tasks" * (what in OF_ALL_TASKS) for what, label in RUN_LABELS.items()},
}


_MOVED = {
    "all": "compare.all",
    "mode place": "compare.mode_place",
    "mode width": "compare.mode_width",
    "mode weight": "compare.mode_weight",
    "mode ratio": "compare.mode_ratio",
    "tail": "compare.tail",
    "tail place": "compare.tail_place",
}
"""What is said of a part that moved, by `Move.what`."""


class ShownComparison(Comparison):
    """The comparison of one kind of calls, which shows itself as text, and in notebooks."""

    def __str__(self) -> str:
        return answer_text(_parts_of_kind(self))

    def _repr_html_(self) -> str:
        return answer_html(_parts_of_kind(self), 20, "str()")


compare = shown_as(comparison.compare, lambda: ShownComparison)


def answer_comparisons(
    found: Sequence[Comparison], judged: Gate | None = None, asked: str = ""
) -> PlainAnswer:
    """Answer by the comparisons of several kinds of calls, of which those that differ come first."""
    first, head = found[0], [] if judged is None else [_judged(judged, asked)]
    head += _of_whole_runs(first)
    if first.blocked is not None or not any(one.shown() for one in first.differences):
        head.append(verdict_of_kind(first))
    parts: list[Part] = [tuple(head), *_totals(first)]
    minor = minor_kinds(found)
    if len(found) > 1:
        shown = [one for one in found if one not in minor]
        said = [Statement("compare.minor", _minor_values(minor))] if minor else []
        said += [Statement("compare.p")] * any(_p(one) is not None for one in shown)
        parts += [_verdicts(shown), tuple(said)]
    if len(found) == 1 or first.verdict == "different":
        parts += [(Statement("compare.detail"),)] * (len(found) > 1)
        parts += _parts_of_kind(first)
    else:
        parts.append(tuple(_notes(first)))
    values = _json(found, minor) | ({} if judged is None else {"gate": _gate_json(judged)})
    return PlainAnswer("compare", tuple(parts), values)


def _judged(gate: Gate, asked: str) -> Statement:
    """Say what the gate found, with the reason if whole runs are not certainly longer."""
    values: dict[str, Any] = {"asked": asked, "what": "fails" if gate.failed else "passes"}
    values["why"] = gate.failed[0] if gate.failed and not gate.whole_runs_fail else None
    return Statement("compare.judged", values | {"is_open": bool(gate.undecided and not gate.failed)})


def _gate_json(gate: Gate) -> dict[str, Any]:
    """Return the names of the attributes with the sentences of the reasons."""
    said = {name: [cell(why, "") for why in getattr(gate, name)] for name in ("failed", "undecided")}
    return {**said, "whole_runs_fail": gate.whole_runs_fail}


def _json(found: Sequence[Comparison], minor: Sequence[Comparison]) -> dict[str, Any]:
    """Return the keys of the command: those of the first comparison, and of all and of whole runs."""
    kinds = {"kinds": [_kind(one) for one in minor], "time_s": _times_s(minor)} if minor else None
    ops = [each.to_json() for each in found]
    of_runs, *_ = [each.pop("differences") for each in ops]
    bytes_ratio = [1.0, *(one.bytes_ratio for one in found[0].differences)]
    return ops[0] | {"ops": ops, "differences": of_runs, "minor_kinds": kinds, "bytes_ratio": bytes_ratio}


def _of_whole_runs(found: Comparison) -> Iterator[Statement]:
    """Say what whole runs show before their kinds of calls."""
    several = len(found.groups) > 2
    names = _without_common_folder([one.name for one in found.groups])[1:]
    for name, one in zip(names, found.differences, strict=bool(found.differences)):
        values = {"group": name if several else None, "verdict": one.verdict, "how": one.sentence()}
        yield Statement("compare.runs", values)


def verdict_of_kind(found: Comparison, *, is_named: bool = True) -> Statement:
    """Say what durations show of a kind of calls whose time does not hold the difference of the runs.

    A median that goes the other way than what moved is left out: "slower (median × 0.94)" would be misread.
    """
    shift, several = found.shift, len(found.groups) > 2
    values: dict[str, Any] = {"verdict": found.verdict, "direction": found.direction}
    values["what"] = _what(found) if is_named else ""
    if found.blocked is not None:
        values["why"] = found.reason
    elif shift is not None and shift.median_ratio is not None:
        is_against = {"slower": shift.median_ratio < 1, "faster": shift.median_ratio > 1}
        if found.moved and not shift.is_certain:
            values["moved"] = _move(found.moved[0], several)
        elif not is_against.get(found.direction or "", False):
            values["median_of" if several else "median"] = shift.median_ratio
            values["group"] = shift.group
    return Statement("compare.kind", values)


def _totals(found: Comparison) -> Iterator[Table]:
    """Tabulate the totals of the runs."""
    totals = found.run_totals
    if not totals:
        return
    names = _without_common_folder([group.name for group in found.groups])
    what = "a run, mean" if any(group.runs > 1 for group in found.groups) else "a run"
    values = zip(*([_total(each.what, value) for value in each.typical] for each in totals), strict=True)
    ratios = zip(*([_ratio(ratio) for ratio in each.ratios] for each in totals), strict=True)
    columns = [Column(what, "", [_LABELS[total.what] for total in totals])]
    columns += [Column(head, "count", column) for head, column in zip(names, values, strict=True)]
    columns += [Column("ratio", "ratio", column) for column in ratios]
    yield Table("total", tuple(columns), together=(len(names),))


def _ratio(ratio: float | None) -> str:
    """Format a ratio of totals; one that rounds to 1 as the share by which it is not."""
    if ratio is None or ratio == 1:
        return "" if ratio is None else "equal"
    text = ratio_text(ratio)
    return f"{(ratio - 1) * 100:+.1g} %" if text == "× 1" else text


def _total(what: str, value: float) -> str:
    if what.endswith("_s"):
        return seconds_text(value)
    return bytes_text(value) if what.startswith("bytes") else number_text(value, 6)


def _verdicts(found: Sequence[Comparison]) -> Table:
    """Tabulate numbers of calls, times a run and verdicts of the kinds of calls, in the order of groups."""
    rows = []
    for one in found:
        totals = {total.what: total for total in one.totals}
        calls = [number_text(value, 6) for value in totals["calls"].typical] if totals else []
        times = [seconds_text(value) for value in (one.blocked or totals["time_s"]).typical] if totals else []
        said = calls[0] if totals and totals["calls"].differs is False else " → ".join(calls)
        verdict = f"{one.verdict}, {one.direction}" if one.direction else one.verdict
        rows.append((_kind(one), said, " → ".join(times), verdict, _p(one)))
    time = "mean time a run" if any(group.runs > 1 for group in found[0].groups) else "time a run"
    units = {"calls": "", "calls a run": "count", time: "s", "verdict": "", "p": "p"}
    return Table.of_rows("kind of calls", units, rows, together=(2,))


def _p(one: Comparison) -> float | None:
    """Return the p-value of the time a run if that is certain, else that of the part that moved most."""
    certain = [each.adjusted_p for each in one.times if each.is_certain(one.level)]
    if certain:
        return min(p for p in certain if p is not None)
    is_by_count = one.counts_differ and one.tests and one.tests["p"] > one.level
    return None if not one.tests or is_by_count else one.tests["p"]


def minor_kinds(found: Sequence[Comparison]) -> list[Comparison]:
    """Return inconclusive kinds after the first that are single calls or take hardly any time."""
    means_s = [one.totals[1].typical for one in found if one.totals]
    least_s = LEAST_SHARE * min(map(sum, zip(*means_s, strict=True)), default=0.0)
    return [
        one
        for one in found[1:]
        if one.verdict == "inconclusive"
        and one.totals
        and (max(one.totals[0].high) <= 1 or max(one.totals[1].typical) < least_s)
    ]


def _times_s(minor: Sequence[Comparison]) -> list[float]:
    return [sum(at) for at in zip(*(one.totals[1].typical for one in minor), strict=True)]


def _minor_values(minor: Sequence[Comparison]) -> dict[str, str]:
    times = " → ".join(map(seconds_text, _times_s(minor)))
    return {"kinds": ", ".join(map(_kind, minor)), "times": times}


def _parts_of_kind(found: Comparison) -> Iterator[Part]:
    """Say verdict and reason, then what moved, the groups, and the tests."""
    tested = {(part.what, part.t_s) for part in found.parts}
    # Modes of each group, matched in order, stand in place of the tested ones of all groups.
    is_matched = any(move.t_s is not None and (move.what, move.t_s) not in tested for move in found.moved)
    values = {"what": _what(found), "verdict": found.verdict.upper(), "direction": found.direction}
    said = [Statement("compare.verdict", values)]
    said += [Statement("compare.reason", {"reason": found.reason})] if found.reason else []
    said += [_move(move, len(found.groups) > 2) for move in found.moved]
    yield (*said, Statement("compare.matched")) if is_matched else tuple(said)
    yield _groups(found)
    if found.parts:
        # One decomposition into modes: where those of each group are matched, only the tail is the same part.
        if not is_matched:
            yield from _tested(found)
        yield tuple(_tests(found))
    yield tuple(_notes(found))


def _notes(found: Comparison) -> Iterator[Statement]:
    return (Statement("compare.note", {"note": note}) for note in found.notes)


def _move(move: Move, name_group: bool) -> Statement:
    values = {
        "group": move.effect.group if name_group else None,
        "t_s": move.t_s,
        "how": _effect(move.effect),
    }
    return Statement(_MOVED[move.what], values)


def _effect(effect: Effect, with_ends: bool = True) -> Statement | str:
    """Say by how much a part moved: a ratio of durations, or a difference of shares of the calls."""
    if effect.value is None:
        return "?"
    ends = (effect.value, effect.low, effect.high)
    if effect.is_ratio:
        return Statement("compare.by_ratio", {"ratio": ends})
    values = {"change": ends, "is_alone": with_ends}
    between = {"before": effect.before, "after": effect.after} if with_ends else {}
    return Statement("compare.by_share", values | between)


def _groups(found: Comparison) -> Table:
    shifts = {shift.group: shift for shift in found.shifts}
    names = _without_common_folder([group.name for group in found.groups])
    rows = []
    for name, group in zip(names, found.groups, strict=True):
        shift = shifts.get(group.name)
        known = shift is not None and shift.median_ratio is not None
        ratio = (shift.median_ratio, shift.low, shift.high) if shift is not None and known else None
        rows.append((name, group.runs, group.calls, group.median_s, ratio))
    units = {"group": "", "runs": "count", "calls": "count", "median": "s"}
    return Table.of_rows("group", units | {"relative to the first": "ratio and interval"}, rows)


def _tested(found: Comparison) -> Iterator[Part]:
    """Tabulate the parts; of more than two groups, in a table for each group but the first."""
    units = {"part": "", "at": "s", "moved by": "", "p": "p", "rank p": "p", "verdict": ""}
    for number, group in enumerate(found.groups[1:]):
        rows = [
            (
                part.name,
                part.t_s,
                _effect(part.effects[number], False),
                part.effects[number].adjusted_p,
                found.tests["parts"][part.name]["rank_holm_p"],
                part.verdict,
            )
            for part in found.parts
            if number < len(part.effects)
        ]
        if len(found.groups) > 2:
            yield (Statement("compare.group", {"group": group.name}),)
        yield Table.of_rows("part", units, rows, together=(2, 2))


def _tests(found: Comparison) -> Iterator[Statement]:
    """Say what the p-values are of, and how far the distributions are from each other."""
    tests = found.tests
    sizes = " + ".join(map(str, tests["sizes"]))
    yield Statement(
        "compare.tests",
        {name: tests[name] for name in ("units", "adjusted_for", "rank_test", "smallest_p")}
        | {"sizes": sizes},
    )
    for between in found.distances["between"]:
        group = between["group"] if len(found.groups) > 2 else None
        yield Statement("compare.distance", between | {"group": group})
    if within := found.distances["largest_within_a_group"]:
        yield Statement("compare.within", within)


def _kind(found: Comparison) -> str:
    return " ".join(name for name in (found.layer, found.op) if name)


def _what(found: Comparison) -> str:
    """Name the calls before a verdict; ensembles have no name."""
    return f"{_kind(found)}: " if found.op or found.layer else ""


def _without_common_folder(names: Sequence[str]) -> list[str]:
    """Return the names of groups, without the folder that all of them are in."""
    first, *others = (name.split("/")[:-1] for name in names)
    common = 0
    while common < len(first) and all(folders[common : common + 1] == [first[common]] for folders in others):
        common += 1
    return [sanitize_text("/".join(name.split("/")[common:])) for name in names]

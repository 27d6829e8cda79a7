"""The result of a comparison as text."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ensembles.comparison.difference import RUN_LABELS
from ensembles.comparison.report import Comparison, ratios_svg
from ensembles.comparison.times import LEAST_SHARE
from ensembles.comparison.whole_runs import fewer_tasks_headline
from ensembles.model.notebook_html import escaped_lines
from ensembles.model.sanitize_text import sanitize_text
from ensembles.model.table import folded_table_text
from ensembles.model.units import bytes_text, count_text, number_text, ratio_text, seconds_text, share_text
from ensembles.model.wrapped import wrapped

if TYPE_CHECKING:
    from ensembles.comparison.report import Effect, Move


def without_common_folder(names: Sequence[str]) -> list[str]:
    """Return the names of groups, without the folder that all of them are in."""
    first, *others = (name.split("/")[:-1] for name in names)
    common = 0
    while common < len(first) and all(folders[common : common + 1] == [first[common]] for folders in others):
        common += 1
    return [sanitize_text("/".join(name.split("/")[common:])) for name in names]


WIDEST = 30.0
"""Intervals of ratios that are wider are not printed, as those of moments and predictions."""


class ShownComparison(Comparison):
    """A comparison that shows itself as text, and in notebooks."""

    def __str__(self) -> str:
        return comparison_text(self)

    def _repr_html_(self) -> str:
        style = "font-family:monospace;white-space:pre-wrap;word-break:normal"
        return f'{ratios_svg(self)}<pre style="{style}">{escaped_lines(str(self))}</pre>'


def comparison_text(found: Comparison) -> str:
    """Return verdict, moves, groups, parts and tests as text, if possible within 80 columns."""
    what = " ".join(name for name in (found.layer, found.op) if name)
    what = f"{what}: " if what else ""
    direction = f", {found.direction}" if found.direction else ""
    parts = ["\n".join([f"{what}{found.verdict.upper()}{direction}", *_filled(found.reason)])]
    if found.moved:
        moves = (_move(move, len(found.groups) > 2) for move in found.moved)
        parts.append("\n".join(wrapped(move, "  ", "    ") for move in moves))
    is_matched = _has_matched_modes(found)
    if is_matched:
        parts[-1] += "\n" + "\n".join(_filled(_MATCHED))
    parts.append(_groups(found))
    if found.parts:
        # One decomposition into modes: where those of each group are matched, only the tail is the same part.
        parts += [] if is_matched else [_parts(found)]
        parts.append(_tests(found))
    parts += ["\n".join(_filled(f"note: {note}")) for note in found.notes]
    return "\n\n".join(parts)


_MATCHED = (
    "These modes are those of each group, matched in order, as a group lacks modes of the other. The verdict "
    "is by the modes of all groups together: parts in --json"
)


def _has_matched_modes(found: Comparison) -> bool:
    """Whether the modes that moved are those of each group, and not the tested ones of all groups."""
    tested = {(part.what, part.t_s) for part in found.parts}
    return any(move.t_s is not None and (move.what, move.t_s) not in tested for move in found.moved)


def _filled(text: str) -> list[str]:
    return wrapped(sanitize_text(text), "  ", "  ").split("\n")


def _move(move: Move, name_group: bool) -> str:
    effect = move.effect
    where = f" at {seconds_text(move.t_s)}" if move.t_s is not None else ""
    subject = {
        "all": "everything moved",
        "mode place": f"the mode{where} moved",
        "mode width": f"the width of the mode{where} changed",
        "mode weight": f"the weight of the mode{where} moved",
        "mode ratio": f"the mode{where} moved relative to the heaviest mode",
        "tail": f"the share of calls beyond{where.removeprefix(' at')} changed",
        "tail place": f"calls beyond{where.removeprefix(' at')} moved",
    }[move.what]
    group = f"{sanitize_text(effect.group)}: " if name_group else ""
    return f"{group}{subject} by {_effect_text(effect)}"


def _effect_text(effect: Effect) -> str:
    if effect.value is None:
        return "?"
    if effect.is_ratio:
        text = ratio_text(effect.value)
        ends = _interval_text(effect.low, effect.high)
    else:
        text = f"{effect.value * 100:+.1f} % of the calls"
        ends = (
            ""
            if effect.low is None or effect.high is None
            else (f" ({effect.low * 100:+.1f} to {effect.high * 100:+.1f})")
        )
        if effect.before is not None and effect.after is not None:
            ends += f", from {share_text(effect.before, 1)} to {share_text(effect.after, 1)}"
    return text + ends


def _interval_text(low: float | None, high: float | None) -> str:
    """Return the interval of a ratio in brackets; "" if it is not known."""
    if low is None or high is None:
        return ""
    if not high <= WIDEST * low:
        return f" (uncertain by more than a factor of {WIDEST:.0f})"
    ends = [ratio_text(end).removeprefix("× ") for end in (low, high)]
    return f" ({ends[0]} to {ends[1]})"


def _groups(found: Comparison) -> str:
    ratio = {shift.group: shift for shift in found.shifts}
    rows = []
    names = without_common_folder([group.name for group in found.groups])
    for name, group in zip(names, found.groups, strict=True):
        shift = ratio.get(group.name)
        text = ""
        if shift is not None and shift.median_ratio is not None:
            text = ratio_text(shift.median_ratio)
            text += _interval_text(shift.low, shift.high)
        median = seconds_text(group.median_s) if group.median_s is not None else ""
        rows.append((name, f"{group.runs:,}", f"{group.calls:,}", median, text))
    headers = ("", "runs", "calls", "median", "relative to the first")
    return folded_table_text(headers, rows, (0, 4))


def _parts(found: Comparison) -> str:
    """Tabulate the parts; of more than two groups, in a table for each group but the first."""
    tables = []
    several = len(found.groups) > 2
    for number in range(len(found.groups) - 1):
        rows = []
        for part in found.parts:
            if number >= len(part.effects):
                continue
            effect = part.effects[number]
            moved = _effect_text(effect).split(", from")[0].replace(" % of the calls", " %")
            p = "" if effect.adjusted_p is None else f"{effect.adjusted_p:.2g}"
            rank = found.tests["parts"][part.name]["rank_holm_p"]
            rank_p = "" if rank is None or not math.isfinite(rank) else f"{rank:.2g}"
            rows.append((part.name, seconds_text(part.t_s), moved, p, rank_p, part.verdict))
        headers = ("part", "at", "moved by", "p", "rank p", "")
        title = f"{sanitize_text(found.groups[number + 1].name)}:\n" if several else ""
        tables.append(title + folded_table_text(headers, rows, (0, 1, 2, 3, 4, 5), (2, 2, 1)))
    return "\n\n".join(tables)


def _tests(found: Comparison) -> str:
    tests = found.tests
    sizes = " + ".join(map(str, tests["sizes"]))
    lines = [
        f"p: t test with {sizes} {tests['units']} as units, adjusted for "
        f"{count_text(tests['adjusted_for'], 'tested part')}; rank p: "
        f"{tests['rank_test']} on these units, adjusted alike, at least "
        f"{tests['smallest_p']:.2g} for one part",
    ]
    for between in found.distances["between"]:
        name = f" of {sanitize_text(between['group'])}" if len(found.groups) > 2 else ""
        lines.append(
            f"distance{name}: Kolmogorov-Smirnov {between['kolmogorov_smirnov']:.3f}, Wasserstein "
            f"{between['wasserstein_octaves']:.3f} octaves"
        )
    within = found.distances["largest_within_a_group"]
    if within:
        lines.append(
            f"largest between runs of one group: {within['kolmogorov_smirnov']:.3f}, "
            f"{within['wasserstein_octaves']:.3f} octaves"
        )
    return "\n".join(wrapped(line, "  ", "  ") for line in lines)


_LABELS = {
    "tasks": "tasks",
    "io_tasks": "tasks with I/O",
    "calls": "calls",
    "opens": "opens",
    "bytes_read": "bytes read",
    "bytes_written": "bytes written",
    "files": "files",
    "phases": "phases",
    **RUN_LABELS,
}


def totals_text(found: Sequence[Comparison]) -> str:
    """Return the totals of the runs as a table; "" if there are none."""
    totals = found[0].run_totals
    if not totals:
        return ""
    rows = []
    for total in totals:
        ratios = ["" if ratio is None else _total_ratio(ratio) for ratio in total.ratios]
        values = [_total(total.what, value) for value in total.typical]
        rows.append((_LABELS[total.what], *values, *ratios))
    names = without_common_folder([group.name for group in found[0].groups])
    what = "a run, mean" if any(group.runs > 1 for group in found[0].groups) else "a run"
    heads = (re.sub(r" (?=and [\d,]+ more$)", "\n", name) for name in names)  # run-1 above "and 4 more"
    headers = (what, *heads, *("ratio" for _ in totals[0].ratios))
    return folded_table_text(headers, rows, together=(len(names), len(totals[0].ratios)))


def _total_ratio(ratio: float) -> str:
    """Format a ratio of totals; one that rounds to 1 as the share by which it is not."""
    if ratio == 1:
        return "equal"
    text = ratio_text(ratio)
    return f"{(ratio - 1) * 100:+.1g} %" if text == "× 1" else text


def _total(what: str, value: float) -> str:
    if what.endswith("_s"):
        return seconds_text(value)
    return bytes_text(value) if what.startswith("bytes") else f"{number_text(value, 6)}"


def comparisons_text(found: Sequence[Comparison], judged: str = "") -> str:
    """Return the comparisons of several kinds of calls: the answer, totals, verdicts, then what moved most.

    Parameters
    ----------
    judged : str
        What the gate of the command says, for the first line; empty: it was not asked.
    """
    first = found[0]
    lines = [judged] if judged else []
    lines += _headlines(found).split("\n")
    headlines = "\n".join(wrapped(line, indent="  ") for line in lines)
    parts = [headlines, totals_text(found)]
    parts += [_verdicts(found)] if len(found) > 1 else []
    if len(found) == 1 or first.verdict == "different":
        parts += ["In detail (other kinds of calls: --op, --layer):"] * (len(found) > 1)
        parts.append(comparison_text(first))
    return "\n\n".join(part for part in parts if part)


def _headlines(found: Sequence[Comparison]) -> str:
    """Return what whole runs say, and the strongest finding of calls if no entry holds a difference."""
    named = found[0].blocked is None and any(one.shown() for one in found[0].differences)
    return "\n".join([*sentences_of_runs(found[0]), *([] if named else [_headline(found[0])])])


def sentences_of_runs(found: Comparison) -> list[str]:
    """Return what is said of whole runs before their kinds of calls: of commands and reports the same."""
    several = len(found.groups) > 2
    names = without_common_folder([one.name for one in found.groups])[1:]
    said = [
        f"whole runs{f' of {name}' if several else ''} {one.verdict}: {one.sentence()}"
        for name, one in zip(names, found.differences, strict=bool(found.differences))
    ]
    return [*filter(None, fewer_tasks_headline(found).splitlines()), *said]


def _headline(found: Comparison) -> str:
    """Return what durations show of a kind of calls whose time does not hold the difference of the runs."""
    direction = f", {found.direction}" if found.direction else ""
    why = f": {found.reason}" if found.blocked is not None else ""
    told = f" ({of})" if not why and (of := _of_durations(found)) else ""
    return f"{_kind(found)}: {found.verdict}{direction}{told}{why}"


def _of_durations(found: Comparison) -> str:
    """Return what durations show of a kind whose time a run is not certainly another one.

    A median that goes the other way than what moved is left out: "slower (median × 0.94)" would be misread.
    """
    shift = found.shift
    if shift is None or shift.median_ratio is None:
        return ""
    several = len(found.groups) > 2
    if found.moved and not shift.is_certain:
        return _move(found.moved[0], several)
    if {"slower": shift.median_ratio < 1, "faster": shift.median_ratio > 1}.get(found.direction or "", False):
        return ""
    of = f" of {sanitize_text(shift.group)}" if several else ""
    return f"median{of} {ratio_text(shift.median_ratio)}"


def _verdicts(found: Sequence[Comparison]) -> str:
    """Tabulate numbers of calls, times a run and verdicts of the kinds of calls, in the order of groups."""
    minor = minor_kinds(found)
    rows = []
    for one in found:
        if one in minor:
            continue
        totals = {total.what: total for total in one.totals}
        calls = [number_text(value, 6) for value in totals["calls"].typical] if totals else []
        times = [seconds_text(value) for value in (one.blocked or totals["time_s"]).typical] if totals else []
        told = calls[0] if totals and totals["calls"].differs is False else " → ".join(calls)
        rows.append((_kind(one), told, " → ".join(times), *_verdict_and_p(one)))
    time = "mean time a run" if any(group.runs > 1 for group in found[0].groups) else "time a run"
    headers = ("calls", "calls a run", time, "", "p")
    table = folded_table_text(headers, rows, (0, 3, 4), (2, 2))
    about = (
        "p: of the time a run if it is certainly another one, else of the part that moved most; adjusted for "
        "all kinds of calls"
    )
    return "\n".join([table, *([wrapped(minor_line(minor), "", "  ")] if minor else []), "", *_filled(about)])


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


def comparisons_json(found: Sequence[Comparison]) -> dict[str, Any]:
    """Return the comparisons of all kinds of calls as ``ensio compare --json`` and reports have them.

    Parameters
    ----------
    found : sequence of Comparison
        At least one; the first one's keys are on the first level.

    Returns
    -------
    dict
        With ``ops``, ``differences`` (of whole runs), ``bytes_ratio`` (how many times the bytes of the first
        group the runs of each group move; null: none) and ``minor_kinds``: those that share a line of the
        text, and their ``time_s`` a run by group; null: there are none.
    """
    minor = minor_kinds(found)
    kinds = {"kinds": [_kind(one) for one in minor], "time_s": _times_s(minor)} if minor else None
    ops = [each.to_json() for each in found]
    of_runs, *_ = [each.pop("differences") for each in ops]
    bytes_ratio = [1.0, *(one.bytes_ratio for one in found[0].differences)]
    return ops[0] | {
        "ops": ops,
        "differences": of_runs,
        "minor_kinds": kinds,
        "bytes_ratio": bytes_ratio,
    }


def _times_s(minor: Sequence[Comparison]) -> list[float]:
    return [sum(at) for at in zip(*(one.totals[1].typical for one in minor), strict=True)]


def minor_line(minor: Sequence[Comparison]) -> str:
    """Return the kinds of calls that say little in one sentence."""
    times = " → ".join(map(seconds_text, _times_s(minor)))
    names = ", ".join(_kind(one) for one in minor)
    return f"{names}: single calls or little time, {times} in all; inconclusive"


def _kind(one: Comparison) -> str:
    return " ".join(name for name in (one.layer, one.op) if name)


def _verdict_and_p(one: Comparison) -> tuple[str, str]:
    verdict = f"{one.verdict}, {one.direction}" if one.direction else one.verdict
    certain = [each.adjusted_p for each in one.times if each.is_certain(one.level)]
    if certain:
        return verdict, f"{min(p for p in certain if p is not None):.2g}"
    if not one.tests or _is_by_count(one):
        return verdict, ""
    return verdict, f"{one.tests['p']:.2g}"


def _is_by_count(one: Comparison) -> bool:
    """Whether only the number of calls makes the kind different: its durations have no part in that."""
    return bool(one.counts_differ and one.tests and one.tests["p"] > one.level)

"""The result of a comparison as text."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ensembles.comparison.model import ASSUMED_SPREAD
from ensembles.comparison.report import Comparison, ratios_svg
from ensembles.comparison.run_tests_text import run_tests_text, two_lines, without_common_folder
from ensembles.comparison.times import LEAST_SHARE
from ensembles.comparison.totals import counts_text
from ensembles.comparison.whole_runs import (
    RUN_LABELS,
    bytes_ratios,
    fewer_tasks_headline,
    groups_of_fewer_tasks,
    pair_headline,
    whole_runs_headline,
)
from ensembles.model.notebook_html import escaped_lines
from ensembles.model.sanitize_text import sanitize_text
from ensembles.model.table import folded_table_text, table_text
from ensembles.model.units import bytes_text, count_text, number_text, ratio_text, seconds_text, share_text
from ensembles.model.wrapped import wrapped

if TYPE_CHECKING:
    from ensembles.comparison.report import Effect, Move, Shift

_MOST_HEADLINES = 4

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
    if not is_matched and any(mode.place_spread is not None for mode in found.modes):
        parts.append(_modes(found))
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
        "mode weight": f"the weight of the mode{where} moved",
        "mode ratio": f"the mode{where} moved relative to the heaviest mode",
        "tail": f"the tail, beyond{where.removeprefix(' at')}, moved relative to its mode",
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
    lines += _dunn(found)
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


def _modes(found: Comparison) -> str:
    rows = [
        (
            seconds_text(mode.t_s),
            share_text(mode.weight, 1),
            "" if mode.place_spread is None else f"± {share_text(mode.place_spread, 1)}",
            "" if mode.weight_spread is None else f"± {mode.weight_spread * 100:.1f}",
            f"{mode.seen_in} of {mode.runs}",
        )
        for mode in found.modes
    ]
    headers = ("mode at", "share", "place, run to run", "share, run to run", "seen in runs")
    return table_text(headers, rows, left=0)


def _dunn(found: Comparison) -> list[str]:
    """Return Dunn's pairs of the part that moved most, of more than two groups."""
    pairs = {
        name: part["dunn_holm_p"] for name, part in found.tests["parts"].items() if "dunn_holm_p" in part
    }
    if not pairs:
        return []
    most = min(found.parts, key=lambda part: part.adjusted_p if part.adjusted_p is not None else 1.0)
    told = [
        f"{sanitize_text(' and '.join(pair['groups']))} {pair['p']:.2g}"
        for pair in pairs[most.name]
        if math.isfinite(pair["p"])
    ]
    return [f"Dunn's test of {most.name}: {'; '.join(told)}"] if told else []


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
    headers = (what, *map(two_lines, names), *("ratio" for _ in totals[0].ratios))
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
    """Return the comparisons of several kinds of calls: the answer, totals, verdicts, then the first in full.

    Parameters
    ----------
    found : sequence of Comparison
        All kinds of calls.
    judged : str
        What the gate of the command says, for the first line; empty: it was not asked.
    """
    first = found[0]
    lines = [judged] if judged else []
    lines += _headlines(found).split("\n")
    headlines = "\n".join(wrapped(line, indent="  ") for line in lines)
    parts = [headlines, totals_text(found)]
    parts += [_verdicts(found)] if len(found) > 1 else []
    parts.append(run_tests_text(first))
    if len(found) > 1:
        parts.append("In detail (other kinds of calls: --op, --layer):")
    parts.append(comparison_text(first))
    return "\n\n".join(part for part in parts if part)


def _headlines(found: Sequence[Comparison]) -> str:
    """Return what whole runs say, and the strongest finding or all kinds of which there are other numbers."""
    return "\n".join([*sentences_of_runs(found[0]), _of_calls(found)])


def sentences_of_runs(found: Comparison) -> list[str]:
    """Return what is said of whole runs before their kinds of calls: of commands and reports the same."""
    sentences = (fewer_tasks_headline(found), whole_runs_headline(found), pair_headline(found))
    return "\n".join(filter(None, sentences)).splitlines()


def _of_calls(found: Sequence[Comparison]) -> str:
    """Return the strongest finding, or all kinds of calls of which there is another number."""
    if not _is_of_other_calls(found[0]):
        return _headline(found[0])
    counted = [_headline(one) for one in found if _is_of_other_calls(one)]
    more = f"\n{len(counted) - _MOST_HEADLINES:,} more below" if len(counted) > _MOST_HEADLINES else ""
    return "\n".join(counted[:_MOST_HEADLINES]) + more


def _is_of_other_calls(found: Comparison) -> bool:
    """Whether the number or size of calls is another one, and they do not post requests in some group."""
    return (found.counts_differ or found.sizes_differ) and found.blocked is None


def _headline(found: Comparison) -> str:
    """Return the strongest finding in one line."""
    what = " ".join(name for name in (found.layer, found.op) if name)
    if found.blocked is not None:
        return f"{what}: {found.verdict}{f', {found.direction}' if found.direction else ''}: {found.reason}"
    several = len(found.groups) > 2
    told = [
        f"{each.text} a run{f' ({sanitize_text(each.group)})' if several else ''}"
        for each in found.times
        if each.is_certain(found.level)
    ]
    if _is_of_other_calls(found):
        names = without_common_folder([one.name for one in found.groups])
        return "; ".join([f"{what}: {counts_text(found.totals, names)}", *told])
    direction = f", {found.direction}" if found.direction else ""
    if found.direction == "faster" and groups_of_fewer_tasks(found):
        direction = ", each call faster"
    told = told or [_of_durations(found)]
    ratio = f" ({'; '.join(filter(None, told))})" if any(told) else ""
    return f"{what}: {found.verdict}{direction}{ratio}"


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
    several = len(found[0].groups) > 2
    minor = _minor_kinds(found)
    shown = [one for one in found if one not in minor]
    parts = [_rows_of_groups(shown) if several else _rows_of_kinds(shown)]
    if minor:
        parts[-1] += "\n" + _minor_line(minor)
    said = [line for one in shown if (line := _what_moved(one, several))]
    if said:
        parts.append("\n".join(said))
    tested = next((one.tests["adjusted_for"] for one in shown if one.tests), 0)
    if tested:
        of_times, of_durations = _assumptions(shown)
        about = (
            f"p: of the time a run if it is certainly another one{of_times}, adjusted for the kinds of "
            f"calls, else of the part that moved most{of_durations}, adjusted for "
            f"{count_text(tested, 'tested part')} of all kinds of calls. An interval is for its ratio alone, "
            "so it may exclude 1 where p is large. To ask about one kind only, name it beforehand: --op"
        )
        if any(_is_by_count(one) or one.sizes_differ for one in shown):
            about += ". Without p: another number or size of calls makes them different, which needs no test"
        parts.append("\n".join(_filled(about)))
    return "\n\n".join(parts)


def _minor_kinds(found: Sequence[Comparison]) -> list[Comparison]:
    """Return inconclusive kinds after the first that are single calls or take hardly any time; or none."""
    means_s = [one.totals[1].typical for one in found if one.totals]
    least_s = LEAST_SHARE * min(map(sum, zip(*means_s, strict=True)), default=0.0)
    minor = [
        one
        for one in found[1:]
        if one.verdict == "inconclusive"
        and one.totals
        and (max(one.totals[0].high) <= 1 or max(one.totals[1].typical) < least_s)
    ]
    return minor if len(minor) > 1 else []


def comparisons_json(found: Sequence[Comparison]) -> dict[str, Any]:
    """Return the comparisons of all kinds of calls as ``ensio compare --json`` and reports have them.

    Parameters
    ----------
    found : sequence of Comparison
        At least one; the first one's keys are on the first level.

    Returns
    -------
    dict
        With ``ops``, ``bytes_ratio`` (how many times the bytes of the first group the runs of each group
        move; null: none) and ``minor_kinds``: those that share a line of the text, and their ``time_s`` a run
        by group; null: there are none.
    """
    minor = _minor_kinds(found)
    kinds = {"kinds": [_kind(one) for one in minor], "time_s": _times_s(minor)} if minor else None
    ops = [each.to_json() for each in found]
    return ops[0] | {"ops": ops, "minor_kinds": kinds, "bytes_ratio": bytes_ratios(found[0])}


def _times_s(minor: Sequence[Comparison]) -> list[float]:
    return [sum(at) for at in zip(*(one.totals[1].typical for one in minor), strict=True)]


def _minor_line(minor: Sequence[Comparison]) -> str:
    times = " → ".join(map(seconds_text, _times_s(minor)))
    names = ", ".join(_kind(one) for one in minor)
    return wrapped(f"{names}: single calls or little time, {times} in all; inconclusive", "", "  ")


def _assumptions(found: Sequence[Comparison]) -> tuple[str, str]:
    """Return what is assumed of times a run, and of durations, as far as a p in the table assumes it."""
    certain = [[each for each in one.times if each.is_certain(one.level)] for one in found]
    spreads = {each.assumed_spread for one in certain for each in one if each.assumed_spread}
    of_times = f" (if it varies by {share_text(max(spreads))} from run to run)" if spreads else ""
    is_assumed = any(
        one.tests and not mine and not _is_by_count(one) and one.tests["units"] != "runs"
        for one, mine in zip(found, certain, strict=True)
    )
    return of_times, f" (if durations vary by {share_text(ASSUMED_SPREAD)})" if is_assumed else ""


def _values_of_groups(one: Comparison) -> tuple[list[str], list[str]]:
    """Return numbers of calls and times a run; empty if there are no totals."""
    totals = {total.what: total for total in one.totals}
    if not totals:
        return [], []
    calls = [f"{number_text(value, 6)}" for value in totals["calls"].typical]
    return calls, [seconds_text(value) for value in (one.blocked or totals["time_s"]).typical]


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


def _rows_of_kinds(found: Sequence[Comparison]) -> str:
    """Tabulate two groups: a row for each kind of calls."""
    rows = []
    for one in found:
        calls, times = _values_of_groups(one)
        same = one.totals and next(t for t in one.totals if t.what == "calls").differs is False
        told = calls[0] if same else " → ".join(calls)
        rows.append((_kind(one), told, " → ".join(times), *_verdict_and_p(one)))
    headers = ("calls", "calls a run", _time_a_run(found), "", "p")
    return folded_table_text(headers, rows, (0, 3, 4), (2, 2))


def _rows_of_groups(found: Sequence[Comparison]) -> str:
    """Tabulate more than two groups: for each kind of calls a row for each group."""
    names = without_common_folder([group.name for group in found[0].groups])
    rows = []
    for one in found:
        calls, times = _values_of_groups(one)
        ratios = {shift.group: _ratio_text(shift) for shift in one.shifts}
        rows.append((_kind(one), "", "", ""))
        for at, (name, group) in enumerate(zip(names, one.groups, strict=True)):
            cells = (calls[at], times[at]) if calls else ("", "")
            rows.append((f"· {name}", *cells, ratios.get(group.name, "")))
    headers = ("calls, group", "calls a run", _time_a_run(found), "median, to the first")
    return table_text(headers, rows, (0, 3))


def _time_a_run(found: Sequence[Comparison]) -> str:
    """Name the time of a kind of calls: of several runs it is the mean, and other tables have medians."""
    return "mean time a run" if any(group.runs > 1 for group in found[0].groups) else "time a run"


def _ratio_text(shift: Shift) -> str:
    if shift.median_ratio is None:
        return ""
    return f"{ratio_text(shift.median_ratio)}{_interval_text(shift.low, shift.high)}"


def _what_moved(one: Comparison, several: bool) -> str:
    """Return a line on the ratio of medians and on what moved; of several groups, on the verdict too."""
    told = []
    if several:
        verdict, p = _verdict_and_p(one)
        told.append(f"{verdict} (p {p})" if p else verdict)
    elif one.shift is not None and (ratio := _ratio_text(one.shift)):
        told.append(f"median {ratio}")
    moves = list(dict.fromkeys(_move(move, several) for move in one.moved))
    if moves:
        told.append(moves[0] + (f" and {len(moves) - 1} more" if len(moves) > 1 else ""))
    return wrapped(f"{_kind(one)}: {'; '.join(told)}", "  ", "    ") if told else ""

"""A comparison as text for people."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from tabulate import tabulate

from ensembles.printable import printable
from ensembles.statistics.comparison.result import ALL, Comparison, Effect, Move
from ensembles.units import count_text, seconds_text

_WIDTH = 96


def comparison_text(found: Comparison) -> str:
    """Verdict, what moved, the groups, the parts and the tests, in at most 96 columns where names allow
    it."""
    what = " ".join(name for name in (found.layer, found.op) if name)
    what = f"{what}: " if what else ""
    parts = ["\n".join([f"{what}{found.verdict.upper()}", *_filled(found.reason)])]
    if found.moved:
        parts.append("\n".join(f"  {_move(move, len(found.groups) > 2)}" for move in found.moved))
    parts.append(_groups(found))
    if found.parts:
        parts.append(_parts(found))
        parts.append(_tests(found))
    if any(mode.place_spread is not None for mode in found.modes):
        parts.append(_modes(found))
    parts += ["\n".join(_filled(f"note: {note}")) for note in found.notes]
    return "\n\n".join(parts)


def _filled(text: str) -> list[str]:
    return textwrap.wrap(printable(text), _WIDTH, initial_indent="  ", subsequent_indent="  ")


def _move(move: Move, name_group: bool) -> str:
    effect = move.effect
    where = f" at {seconds_text(move.t_s)}" if move.t_s is not None else ""
    subject = {
        ALL: "everything moved",
        "mode place": f"mode {move.mode}{where} moved",
        "mode weight": f"the weight of mode {move.mode}{where} moved",
        "tail": f"the tail, beyond{where.removeprefix(' at')} moved against its mode",
    }[move.what]
    group = f"{printable(effect.group)}: " if name_group else ""
    return f"{group}{subject} by {_effect_text(effect)}"


def _effect_text(effect: Effect) -> str:
    if effect.value is None:
        return "?"
    if effect.is_ratio:
        text = f"× {effect.value:.3g}"
        ends = "" if effect.low is None else f" ({effect.low:.3g} to {effect.high:.3g})"
    else:
        text = f"{effect.value * 100:+.1f} % of the calls"
        ends = (
            ""
            if effect.low is None or effect.high is None
            else (f" ({effect.low * 100:+.1f} to {effect.high * 100:+.1f})")
        )
        if effect.before is not None and effect.after is not None:
            ends += f", from {effect.before:.1%} to {effect.after:.1%}"
    return text + ends


def _groups(found: Comparison) -> str:
    ratio = {shift.group: shift for shift in found.shifts}
    rows = []
    for group in found.groups:
        shift = ratio.get(group.name)
        text = ""
        if shift is not None and shift.median_ratio is not None:
            text = f"× {shift.median_ratio:.3g}"
            text += "" if shift.low is None else f" ({shift.low:.3g} to {shift.high:.3g})"
        median = seconds_text(group.median_s) if group.median_s is not None else ""
        rows.append((printable(group.name), f"{group.runs:,}", f"{group.calls:,}", median, text))
    headers = ("", "runs", "calls", "median", "against the first")
    return tabulate(rows, headers, "simple", disable_numparse=True, colalign=("left", *["right"] * 3, "left"))


def _parts(found: Comparison) -> str:
    rows = []
    for part in found.parts:
        for effect in part.effects:
            moved = _effect_text(effect).split(", from")[0]
            group = [printable(effect.group)] if len(found.groups) > 2 else []
            p = "" if part.adjusted_p is None else f"{part.adjusted_p:.2g}"
            rows.append((part.name, seconds_text(part.t_s), *group, moved, p, part.verdict))
    group = ["group"] if len(found.groups) > 2 else []
    headers = ("part", "at", *group, "moved by", "p", "")
    return tabulate(rows, headers, "simple", disable_numparse=True)


def _tests(found: Comparison) -> str:
    tests = found.tests
    sizes = " + ".join(map(str, tests["sizes"]))
    kind = "all" if tests["exact"] else "a random choice of"
    lines = [
        f"p: {sizes} {tests['units']} permuted, {kind} "
        f"{count_text(tests['arrangements'], 'arrangement')}; smallest "
        f"possible p {tests['smallest_p']:.2g}"
    ]
    for between in found.distances["between"]:
        name = f" of {printable(between['group'])}" if len(found.groups) > 2 else ""
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
    return "\n".join("  " + line for line in lines)


def _modes(found: Comparison) -> str:
    rows = [
        (
            seconds_text(mode.t_s),
            f"{mode.weight:.1%}",
            "" if mode.place_spread is None else f"± {mode.place_spread:.1%}",
            "" if mode.weight_spread is None else f"± {mode.weight_spread * 100:.1f}",
            f"{mode.seen_in} of {mode.runs}",
        )
        for mode in found.modes
    ]
    headers = ("mode at", "share", "place, run to run", "share, run to run", "seen in runs")
    return tabulate(rows, headers, "simple", disable_numparse=True, colalign=["right"] * 5)


def comparisons_text(found: Sequence[Comparison]) -> str:
    """The comparisons of several kinds of calls: a table of their verdicts, then the first one whole."""
    if len(found) == 1:
        return comparison_text(found[0])
    rows = []
    for one in found:
        shift = one.shift
        ratio = "" if shift is None or shift.median_ratio is None else f"× {shift.median_ratio:.3g}"
        if shift is not None and shift.low is not None:
            ratio += f" ({shift.low:.3g} to {shift.high:.3g})"
        calls = sum(group.calls for group in one.groups)
        moved = "; ".join(dict.fromkeys(_move(move, len(one.groups) > 2) for move in one.moved))
        rows.append((one.layer, one.op, f"{calls:,}", one.verdict, ratio, moved))
    headers = ("layer", "op", "calls", "", "median", "what moved")
    table = tabulate(rows, headers, "simple", disable_numparse=True, colalign=("left", "left", "right"))
    others = "The kind of call that takes the most time (the others: --op, --layer):"
    return "\n\n".join([table, others, comparison_text(found[0])])

"""The result of a comparison: groups, shifts, effects and the verdict, as objects and as text."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any

from tabulate import tabulate

from ensembles.model.sanitize_text import sanitize_text
from ensembles.model.units import count_text, seconds_text

SAME, DIFFERENT, INCONCLUSIVE = "same", "different", "inconclusive"

ALL = "all"
"""Value of `Move.what` if all modes moved by one factor."""


@dataclass(frozen=True)
class Group:
    """One group of a comparison.

    Attributes
    ----------
    name : str
    runs, calls : int
        Number of runs and of calls.
    median_s : float or None
        Median duration in seconds, in which each run has the same weight; None: there are no calls.
    """

    name: str
    runs: int
    calls: int
    median_s: float | None


@dataclass(frozen=True)
class Shift:
    """Ratio of a group's median to that of the first group.

    Attributes
    ----------
    group : str
        Name of the group.
    median_ratio, low, high : float or None
        Ratio and its confidence interval; None: unknown.
    """

    group: str
    median_ratio: float | None
    low: float | None
    high: float | None


@dataclass(frozen=True)
class Effect:
    """How far a part of the distribution moved in a group relative to the first group.

    Attributes
    ----------
    group : str
        Name of the group.
    is_ratio : bool
        True: a ratio of durations; False: a difference of shares of the calls.
    value, low, high : float or None
        Estimate and confidence interval; None: unknown.
    before, after : float or None
        Share of the calls, or duration in seconds, in the first group and in this group.
    """

    group: str
    is_ratio: bool
    value: float | None
    low: float | None
    high: float | None
    before: float | None
    after: float | None

    @property
    def is_certain(self) -> bool:
        """Whether the interval excludes that nothing moved."""
        unmoved = 1.0 if self.is_ratio else 0.0
        return self.low is not None and self.high is not None and not self.low <= unmoved <= self.high

    def is_within(self, margin: float) -> bool:
        """Whether the interval lies within the margin.

        Parameters
        ----------
        margin : float
            A ratio must lie between 1 / (1 + margin) and 1 + margin, a difference between −margin and margin.

        Returns
        -------
        bool

        Examples
        --------
        >>> Effect("b", True, 1.02, 0.98, 1.06, 1.0, 1.02).is_within(0.1)
        True
        """
        if self.low is None or self.high is None:
            return False
        if self.is_ratio:
            return self.low >= 1 / (1 + margin) and self.high <= 1 + margin
        return -margin <= self.low and self.high <= margin


@dataclass(frozen=True)
class PartResult:
    """Result for one part of the distribution.

    Attributes
    ----------
    name : str
        ``mode 1 place``, ``mode 2 weight``, ``tail``.
    what : str
        ``mode place``, ``mode weight`` or ``tail`` (relative to its mode).
    mode : int or None
        Number of the mode, from 1, the fastest.
    t_s : float
        Location in all groups together, in seconds.
    verdict : str
        Verdict of this part alone.
    margin : float
        Largest change that counts as no change: a factor of 1 + `margin`, or a share of the calls.
    adjusted_p : float or None
        p-value adjusted for the number of parts: the larger of the permutation test's and of Welch's t test.
    effects : list of Effect
        One for each group but the first.
    """

    name: str
    what: str
    mode: int | None
    t_s: float
    verdict: str
    margin: float
    adjusted_p: float | None
    effects: list[Effect]


@dataclass(frozen=True)
class Move:
    """A part that moved.

    Attributes
    ----------
    what : str
        ``mode place``, ``mode weight``, ``tail`` or ``all``.
    mode : int or None
        Number of the mode among the modes of all groups together.
    t_s : float or None
        Location in seconds: in the first group or, if the mode is absent there, in the other group.
    effect : Effect
    """

    what: str
    mode: int | None
    t_s: float | None
    effect: Effect


@dataclass(frozen=True)
class ModeSpread:
    """Reproducibility of a mode from run to run.

    Attributes
    ----------
    t_s, weight : float
        Location in seconds and share of the calls, in all groups together.
    place_spread : float or None
        Relative standard deviation of the location between runs of a group (0.03: 3 %); None: too few runs.
    weight_spread : float or None
        Standard deviation of the share between runs of a group.
    seen_in, runs : int
        Number of runs in which the mode has at least a tenth of its mean share, and of all runs.
    """

    t_s: float
    weight: float
    place_spread: float | None
    weight_spread: float | None
    seen_in: int
    runs: int


@dataclass(frozen=True)
class Comparison:
    """Whether groups of runs are the same, what moved, and by how much.

    Attributes
    ----------
    op, layer : str or None
        Operation and layer of the calls.
    verdict : str
        ``same``: every part certainly lies within the margin; ``different``: a part moved; ``inconclusive``:
        neither is certain.
    reason : str
        Reason of the verdict in one sentence.
    groups : list of Group
    margin, level : float
        As given to `ensembles.compare`.
    shift : Shift or None
        That of the group whose median differs most from the first.
    shifts : list of Shift
        One for each group but the first.
    moved : list of Move
        Empty unless the verdict is ``different``.
    parts : list of PartResult
    tests : dict
        Tests on which the verdict is based, and rank tests for comparison.
    distances : dict
        Kolmogorov-Smirnov and Wasserstein distances (the latter in octaves) between and within groups.
    modes : list of ModeSpread
    notes : list of str
        Caveats, one sentence each.
    """

    verdict: str
    reason: str
    op: str | None
    layer: str | None
    groups: list[Group]
    margin: float
    level: float
    shifts: list[Shift] = field(default_factory=list)
    moved: list[Move] = field(default_factory=list)
    parts: list[PartResult] = field(default_factory=list)
    tests: dict[str, Any] = field(default_factory=dict)
    distances: dict[str, Any] = field(default_factory=dict)
    modes: list[ModeSpread] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def shift(self) -> Shift | None:
        """The largest of the shifts; None: no median is known."""
        known = [shift for shift in self.shifts if shift.median_ratio is not None]
        return max(known, key=lambda shift: abs(math.log(shift.median_ratio or 1.0)), default=None)

    def to_json(self) -> dict[str, Any]:
        """Return the object that ``ensio compare --json`` prints; unknown values are None."""
        shift = self.shift
        found = {"op": self.op, "verdict": self.verdict, "shift": shift and _plain(shift)}
        if shift is None:
            found["shift"] = {"median_ratio": None, "low": None, "high": None}
        return found | {
            one.name: _plain(getattr(self, one.name)) for one in fields(self) if one.name not in found
        }

    def __str__(self) -> str:

        return comparison_text(self)


def _plain(value: Any) -> Any:
    if is_dataclass(value):
        return {one.name: _plain(getattr(value, one.name)) for one in fields(value)}
    if isinstance(value, dict):
        return {str(key): _plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(entry) for entry in value]
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    return value


_WIDTH = 96


def comparison_text(found: Comparison) -> str:
    """Return verdict, moves, groups, parts and tests as text, if possible within 96 columns."""
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
    return textwrap.wrap(sanitize_text(text), _WIDTH, initial_indent="  ", subsequent_indent="  ")


def _move(move: Move, name_group: bool) -> str:
    effect = move.effect
    where = f" at {seconds_text(move.t_s)}" if move.t_s is not None else ""
    subject = {
        ALL: "everything moved",
        "mode place": f"mode {move.mode}{where} moved",
        "mode weight": f"the weight of mode {move.mode}{where} moved",
        "tail": f"the tail, beyond{where.removeprefix(' at')}, moved relative to its mode",
    }[move.what]
    group = f"{sanitize_text(effect.group)}: " if name_group else ""
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
        rows.append((sanitize_text(group.name), f"{group.runs:,}", f"{group.calls:,}", median, text))
    headers = ("", "runs", "calls", "median", "relative to the first")
    table: str = tabulate(
        rows, headers, "simple", disable_numparse=True, colalign=("left", *["right"] * 3, "left")
    )
    return table


def _parts(found: Comparison) -> str:
    rows = []
    for part in found.parts:
        for effect in part.effects:
            moved = _effect_text(effect).split(", from")[0]
            group = [sanitize_text(effect.group)] if len(found.groups) > 2 else []
            p = "" if part.adjusted_p is None else f"{part.adjusted_p:.2g}"
            rows.append((part.name, seconds_text(part.t_s), *group, moved, p, part.verdict))
    group = ["group"] if len(found.groups) > 2 else []
    headers = ("part", "at", *group, "moved by", "p", "")
    table: str = tabulate(rows, headers, "simple", disable_numparse=True)
    return table


def _tests(found: Comparison) -> str:
    tests = found.tests
    sizes = " + ".join(map(str, tests["sizes"]))
    kind = "all" if tests["exact"] else "a random sample of"
    lines = [
        f"p-values: {sizes} {tests['units']} permuted, {kind} "
        f"{count_text(tests['arrangements'], 'arrangement')}; smallest "
        f"possible p-value {tests['smallest_p']:.2g}"
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
    table: str = tabulate(rows, headers, "simple", disable_numparse=True, colalign=["right"] * 5)
    return table


def comparisons_text(found: Sequence[Comparison]) -> str:
    """Return the comparisons of several kinds of calls: a table of verdicts, then the first one in full."""
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

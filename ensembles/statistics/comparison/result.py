"""What a comparison says."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any

SAME, DIFFERENT, INCONCLUSIVE = "same", "different", "inconclusive"

ALL = "all"
"""What moved, when all modes moved by one factor."""


@dataclass(frozen=True)
class Group:
    """One side of a comparison.

    Attributes
    ----------
    name : str
    runs, calls : int
    median_s : float or None
        Of its runs, each of which counts the same; None: no call.
    """

    name: str
    runs: int
    calls: int
    median_s: float | None


@dataclass(frozen=True)
class Shift:
    """By which factor the median of a group differs from that of the first.

    Attributes
    ----------
    group : str
        Name of the group.
    median_ratio, low, high : float or None
        Ratio and its interval; None: the data cannot say.
    """

    group: str
    median_ratio: float | None
    low: float | None
    high: float | None


@dataclass(frozen=True)
class Effect:
    """How far a part is in a group from where it is in the first.

    Attributes
    ----------
    group : str
    is_ratio : bool
        True: a factor of a time; False: a difference of shares of the calls.
    value, low, high : float or None
        Estimate and interval; None: the data cannot say.
    before, after : float or None
        The share of the calls in the first group and in this one, or the place in seconds.
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
        """Whether the interval leaves out that nothing moved."""
        unmoved = 1.0 if self.is_ratio else 0.0
        return self.low is not None and self.high is not None and not self.low <= unmoved <= self.high

    def is_within(self, margin: float) -> bool:
        """Whether the interval lies within the margin: a factor from 1 / (1 + margin) to 1 + margin, or a
        difference of less than margin."""
        if self.low is None or self.high is None:
            return False
        if self.is_ratio:
            return self.low >= 1 / (1 + margin) and self.high <= 1 + margin
        return -margin <= self.low and self.high <= margin


@dataclass(frozen=True)
class PartResult:
    """What is known of one part.

    Attributes
    ----------
    name : str
        ``mode 1 place``, ``mode 2 weight``, ``tail``.
    what : str
        ``mode place``, ``mode weight`` or ``tail`` (beyond where the mode itself moved).
    mode : int or None
        Number of the mode, the fastest is 1.
    t_s : float
        Where it is, in all groups together, seconds.
    verdict : str
        Of this part alone.
    margin : float
        How far it may move and be called the same: a factor of 1 + `margin`, or a share of the calls.
    adjusted_p : float or None
        p-value in view of the other parts: the larger of those by permutation and by Welch's t test.
    effects : list of Effect
        Of each group against the first.
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
    """Something that moved.

    Attributes
    ----------
    what : str
        ``mode place``, ``mode weight``, ``tail`` or ``all``.
    mode : int or None
        Number of the mode among the parts, whose modes are those of all groups together.
    t_s : float or None
        Where it is, seconds: in the first group or, if it has it not, in the other.
    effect : Effect
    """

    what: str
    mode: int | None
    t_s: float | None
    effect: Effect


@dataclass(frozen=True)
class ModeSpread:
    """How well a mode comes back from run to run.

    Attributes
    ----------
    t_s, weight : float
        Where it is, and its share of the calls, in all groups together.
    place_spread : float or None
        Standard deviation of its place between runs of one group, as a part of it (0.03: 3 %); None: too
        few runs.
    weight_spread : float or None
        Standard deviation of its share between runs of one group.
    seen_in, runs : int
        Runs in which it holds at least a tenth of its usual share, of how many.
    """

    t_s: float
    weight: float
    place_spread: float | None
    weight_spread: float | None
    seen_in: int
    runs: int


@dataclass(frozen=True)
class Comparison:
    """Whether groups of runs are the same, what moved and by how much.

    Attributes
    ----------
    op, layer : str or None
        Kind of the calls.
    verdict : str
        ``same``: everything is certain to lie within the margin; ``different``: a part moved;
        ``inconclusive``: neither can be said.
    reason : str
        Why, in one sentence.
    groups : list of Group
    margin, level : float
    shift : Shift or None
        Of the group whose median is farthest from that of the first.
    shifts : list of Shift
        Of each group but the first.
    moved : list of Move
        Empty unless the verdict is ``different``.
    parts : list of PartResult
    tests : dict
        The tests behind the verdict, and rank tests beside them.
    distances : dict
        Kolmogorov-Smirnov and Wasserstein (octaves of time), between the groups and within them.
    modes : list of ModeSpread
    notes : list of str
        What to bear in mind.
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
        """The largest of the shifts, or None where no median is known."""
        known = [shift for shift in self.shifts if shift.median_ratio is not None]
        return max(known, key=lambda shift: abs(math.log(shift.median_ratio or 1.0)), default=None)

    def to_json(self) -> dict[str, Any]:
        """Plain numbers, texts, lists and dictionaries; None for what is not known."""
        shift = self.shift
        found = {"op": self.op, "verdict": self.verdict, "shift": shift and _plain(shift)}
        if shift is None:
            found["shift"] = {"median_ratio": None, "low": None, "high": None}
        return found | {
            one.name: _plain(getattr(self, one.name)) for one in fields(self) if one.name not in found
        }

    def __str__(self) -> str:
        from ensembles.statistics.comparison.text import comparison_text

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

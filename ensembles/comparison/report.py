"""The result of a comparison, and the gate of ``ensio compare --fail-on``, which judges it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from typing import Any

from ensembles.comparison.difference import Difference
from ensembles.comparison.hypothesis_tests import RunTest
from ensembles.comparison.model import ASSUMED_SPREAD, is_alike
from ensembles.comparison.times import TimeChange, Total, runs_that_decide
from ensembles.model.fields import plain
from ensembles.model.sanitize_text import sanitize_text
from ensembles.model.statement import Statement

SAME, DIFFERENT, INCONCLUSIVE = "same", "different", "inconclusive"

PARTS_OF_TIME = ("all", "mode place", "mode weight")
"""Values of `Move.what` that say that calls take longer; the others are relative to a mode."""

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
        Median duration in seconds, in which each run has the same weight; None: there are no calls, or
        their durations are not in the record.
    """

    name: str
    runs: int
    calls: int
    median_s: float | None


@dataclass(frozen=True)
class QuantileRatio:
    """A quantile of the durations of two runs. It has no test.

    Attributes
    ----------
    level : float
        Probability.
    before_s, after_s : float
        The quantile in the first run and in the second, in seconds.
    ratio : float or None
        Second over first; None: the first is 0.
    """

    level: float
    before_s: float
    after_s: float
    ratio: float | None


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

    @property
    def is_certain(self) -> bool:
        """Whether the interval excludes that the median is the same."""
        return self.low is not None and self.high is not None and not self.low <= 1 <= self.high


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
    adjusted_p : float or None
        p-value of the t test, adjusted for all parts, groups and kinds of calls; None: not tested.
    """

    group: str
    is_ratio: bool
    value: float | None
    low: float | None
    high: float | None
    before: float | None
    after: float | None
    adjusted_p: float | None = None

    @property
    def is_certain(self) -> bool:
        """Whether the interval excludes that nothing moved."""
        unmoved = 1.0 if self.is_ratio else 0.0
        return self.low is not None and self.high is not None and not self.low <= unmoved <= self.high


@dataclass(frozen=True)
class PartResult:
    """Result for one part of the distribution.

    Attributes
    ----------
    name : str
        ``mode 1 place``, ``mode 1 width``, ``mode 2 weight``, ``mode 2 ratio``, ``tail``.
    what : str
        ``mode place``, ``mode width``, ``mode weight``, ``mode ratio`` (location relative to that of the
        heaviest mode), ``tail`` (share of the calls beyond `t_s`, which moves with the last mode) or ``tail
        place`` (mean of their log durations).
    mode : int or None
        Number of the mode, from 1, the fastest.
    t_s : float
        Location in seconds: in the runs of the first group that have calls of its mode, else in those of all
        groups.
    verdict : str
        Verdict of this part alone.
    margin : float
        Largest change that counts as no change: a factor between 1 − `margin` and its inverse, or, of weights
        and the tail, a share of the calls.
    adjusted_p : float or None
        Least adjusted p-value of its effects.
    effects : list of Effect
        One for each group but the first.
    weight : float
        Share of the calls in the mode or the tail, in all groups together.
    """

    name: str
    what: str
    mode: int | None
    t_s: float
    verdict: str
    margin: float
    adjusted_p: float | None
    effects: list[Effect]
    weight: float = 0.0


@dataclass(frozen=True)
class Move:
    """A part that moved.

    Attributes
    ----------
    what : str
        ``mode place``, ``mode width``, ``mode weight``, ``mode ratio``, ``tail``, ``tail place`` or
        ``all``.
    mode : int or None
        Number of the mode among the modes of all groups together.
    t_s : float or None
        Location in seconds: in the first group or, if the mode is absent there, in the other group.
    effect : Effect
    slowdown : float or None
        Factor by which the part became longer (below 1: shorter); for a weight or the tail, the mean of all
        calls; None: not known, as of a width.
    """

    what: str
    mode: int | None
    t_s: float | None
    effect: Effect
    slowdown: float | None = None


@dataclass(frozen=True)
class ModeSpread:
    """Reproducibility of a mode from run to run.

    Attributes
    ----------
    t_s : float
        Location in seconds, as in `PartResult`.
    weight : float
        Share of the calls, in all groups together.
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
        ``same``: every part certainly lies within the margin; ``different``: a part moved, or calls have
        another number or size; ``inconclusive``: neither is certain.
    reason : str
        Reason of the verdict in one sentence.
    direction : str or None
        ``slower`` or ``faster`` if the time of these calls a run is certainly longer or shorter, else that of
        the parts that moved: ``slower``, ``faster`` or ``mixed``. None: nothing certainly moved.
    enough_runs : int or None
        Number of runs per group that would find or exclude a move beyond the margin, at the variation from
        run to run that these runs show; None: unknown, or more than 1,000.
    totals : list of Total
        Number and time of these calls by group, without a test.
    run_totals : list of Total
        Totals of the whole runs, whatever the filters; empty if ensembles were compared.
    times : list of TimeChange
        Time of these calls a run of each group but the first, with a t test: of the verdict, its direction
        and the gate ``--fail-on``. Empty if ensembles were compared, or times per MiB.
    run_times : list of TimeChange
        The same of whole runs, whatever the filters: first I/O of the critical path, if it is known.
    differences : list of Difference
        By how much the runs of each group but the first are longer, and in which entries of their account.
    run_tests : list of RunTest
        Rank tests on the times of whole runs, of kinds of calls and of steps; empty unless each group has two
        runs or more. The verdict does not depend on them.
    posts : list of float
        If the calls only post requests in some groups and block in others: mean number of posts of the runs
        of each group. Durations of posts are not compared with those of blocking calls. Else empty.
    blocked : Total or None
        Of such calls: ``blocked_time_s``, the time in them and in the waits of their layer.
    quantiles : list of QuantileRatio
        Of two groups of one run each: ratios of the quantiles of the durations, without a test. Else empty,
        and not in JSON.
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
    direction: str | None = None
    enough_runs: int | None = None
    totals: list[Total] = field(default_factory=list)
    run_totals: list[Total] = field(default_factory=list)
    times: list[TimeChange] = field(default_factory=list)
    run_times: list[TimeChange] = field(default_factory=list)
    differences: list[Difference] = field(default_factory=list)
    run_tests: list[RunTest] = field(default_factory=list)
    posts: list[float] = field(default_factory=list)
    blocked: Total | None = None
    quantiles: list[QuantileRatio] = field(default_factory=list)

    @property
    def slowdown(self) -> float:
        """Largest factor by which these calls certainly take longer a run; 1: they do not.

        Without times of runs, as of ensembles: by which durations certainly became longer. What moved only
        relative to another mode does not count.
        """
        return max([1.0, *(self.slowdown_of(group.name) for group in self.groups[1:])])

    def slowdown_of(self, group: str) -> float:
        """Return the factor by which these calls certainly take longer a run in a group; 1: they do not."""
        moved = [
            move.slowdown
            for move in self.moved
            if move.effect.group == group and move.what in PARTS_OF_TIME and move.slowdown is not None
        ]
        is_moved = self.direction == "slower" and max(moved, default=1.0) > 1
        change = next((each for each in self.times if each.group == group), None)
        if change is None:
            return max(moved) if is_moved else 1.0
        is_longer = change.is_longer(self.level) or (is_moved and self.blocked is None)
        return max(change.ratio or 1.0, 1.0) if is_longer else 1.0

    @property
    def knows_durations(self) -> bool:
        """Whether the durations of these calls are in the record of every run."""
        return all(group.median_s is not None for group in self.groups if group.calls)

    @property
    def counts_differ(self) -> bool:
        """Whether the number of these calls is another one."""
        return any(total.what == "calls" and total.is_finding for total in self.totals)

    @property
    def sizes_differ(self) -> bool:
        """Whether these calls move other numbers of bytes, by more than the margin in the mean.

        Their durations are not compared then: longer calls that move more bytes are not slower.
        """
        return any(
            total.what == "mean_size_bytes"
            and bool(total.differs)
            and all(total.typical)
            and any(ratio is not None and not is_alike(ratio, self.margin) for ratio in total.ratios)
            for total in self.totals
        )

    @property
    def shift(self) -> Shift | None:
        """The largest of the shifts; None: no median is known."""
        known = [shift for shift in self.shifts if shift.median_ratio is not None]
        return max(known, key=lambda shift: abs(math.log(shift.median_ratio or 1.0)), default=None)

    def to_json(self) -> dict[str, Any]:
        """Return the object that ``ensio compare --json`` prints; unknown values are None."""
        shift = self.shift
        found = {"op": self.op, "verdict": self.verdict, "shift": shift and plain(shift)}
        if shift is None:
            found["shift"] = {"median_ratio": None, "low": None, "high": None}
        return found | {
            one.name: plain(getattr(self, one.name))
            for one in fields(self)
            if one.name not in found and (one.name != "quantiles" or self.quantiles)
        }


@dataclass(frozen=True)
class Gate:
    """What a gate found.

    Attributes
    ----------
    failed : list of Statement
        Why the comparison fails; empty: it passes.
    undecided : list of Statement
        What is longer by as much in these runs, but not certainly.
    whole_runs_fail : bool
        Whether it fails because whole runs take longer, and not only some kind of calls.
    """

    failed: list[Statement] = field(default_factory=list)
    undecided: list[Statement] = field(default_factory=list)
    whole_runs_fail: bool = False


def gate(found: Sequence[Comparison], fail_on: float, of_whole_runs: bool = True) -> Gate:
    """Judge whether comparisons fail.

    Notes
    -----
    A group fails if its runs did less of everything; if they certainly take longer in I/O: on the critical
    path, or summed over tasks where the critical path is not certainly shorter; or if a kind of calls
    certainly takes longer a run, by at least `LITTLE` of the time in I/O, and the whole runs take longer
    in I/O too, by `LEAST_OF_WHOLE` of that. Of one new run against several, the time of the kind decides, and
    not where its durations lie: baselines may be alike by accident.
    """
    if not fail_on:
        return Gate(
            [_reason("gate.different", "", kind=_kind(each)) for each in found if each.verdict == DIFFERENT]
        )
    several = len(found[0].groups) > 2
    failed: list[Statement] = []
    undecided: list[Statement] = []
    whole_runs_fail = False
    for one in _differences(found[0]):
        of = one.group * several
        if of_whole_runs and (one.did_less or one.longer_runs(fail_on)):
            failed.append(_reason("gate.runs", of, how=one.sentence()))
            whole_runs_fail = True
        elif kinds := [why for each in found if (why := _of_kind(each, one, of, fail_on, of_whole_runs))]:
            failed += kinds
        else:
            undecided += _undecided(found, one, of, fail_on, of_whole_runs)
    if failed and any(each.is_of_single_runs for each in (*found[0].run_times, *found[0].times)):
        failed.append(_reason("gate.single_runs", ""))
    return Gate(failed, undecided, whole_runs_fail)


def _reason(name: str, group: str, **values: Any) -> Statement:
    """Make the statement of a reason; of several groups, it names the one."""
    return Statement(name, {"group": group or None, **values})


def _differences(found: Comparison) -> list[Difference]:
    """Return the differences of runs; those of ensembles have no times."""
    if found.differences:
        return found.differences
    return [
        Difference(each.name, 1.0, [], [], [], None, found.level, found.margin, [])
        for each in found.groups[1:]
    ]


def _of_kind(
    found: Comparison, one: Difference, of: str, fail_on: float, of_whole_runs: bool
) -> Statement | None:
    """Return that a kind of calls takes longer a run, by enough of the time in I/O; else None."""
    slowdown = found.slowdown_of(one.group)
    change = next((each for each in found.times if each.group == one.group), None)
    is_slower = slowdown > 1 and slowdown >= fail_on
    if change is None:  # times per MiB, or ensembles
        return _reason("gate.slower", of, kind=_kind(found), ratio=slowdown) if is_slower else None
    loss = next((each for each in one.added(of_whole_runs) if each.id == _kind(found)), None)
    if loss is None:
        return None
    is_certain = change.is_certain(found.level)
    if is_slower and (is_certain or not change.is_of_one_new_run):
        evidence = change.evidence if is_certain else _evidence_of_durations(found, change)
        how = one.sentence() if of_whole_runs else None
        return _reason("gate.kind", of, loss=loss.text, evidence=evidence, how=how)
    is_new = not of_whole_runs and change.ratio is None and found.counts_differ
    return _reason("gate.kind", of, loss=loss.text, evidence=None, how=None) if is_new else None


def _evidence_of_durations(found: Comparison, change: TimeChange) -> Statement:
    """Say that durations moved although the time a run is not certain, with p and what it assumes."""
    spread = ASSUMED_SPREAD if change.is_of_single_runs else None
    return _reason("gate.durations", "", p=found.tests["p"] if found.tests else None, spread=spread)


def _undecided(
    found: Sequence[Comparison], one: Difference, of: str, fail_on: float, of_whole_runs: bool
) -> list[Statement]:
    """Return what is longer by as much, and by more than the margin, but not certainly."""
    least = max(fail_on, 1 / (1 - one.margin))
    said = [(one.label(each.what), each) for each in one.times[:1] if of_whole_runs]
    if not said:
        said = [(_kind(each), time) for each in found[:1] for time in each.times if time.group == one.group]
    open_ = []
    for what, each in said:
        is_open = each.ratio is not None and each.ratio >= least and each.p is not None
        if is_open and not each.is_certain(one.level):
            runs = runs_that_decide(each, one.level) or 0
            values: dict[str, Any] = {"what": what, "how": each.text, "evidence": each.evidence}
            is_unknown = runs <= min(each.runs)
            values |= {"is_unknown": is_unknown, "runs": None if is_unknown else runs}
            open_.append(_reason("gate.open", of, **values))
    return open_


def _kind(found: Comparison) -> str:
    return sanitize_text(" ".join(name for name in (found.layer, found.op) if name)) or "I/O"

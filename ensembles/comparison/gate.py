"""The gate of ``ensio compare --fail-on``: what fails, and what these runs do not decide."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from ensembles.comparison.model import ASSUMED_SPREAD
from ensembles.comparison.report import DIFFERENT, Comparison
from ensembles.comparison.run_tests import FIRST_TESTED
from ensembles.comparison.run_tests_text import without_common_folder
from ensembles.comparison.times import (
    LEAST_ADDED,
    LEAST_OF_WHOLE,
    OF_IO,
    TimeChange,
    runs_that_decide,
)
from ensembles.comparison.whole_runs import (
    groups_of_fewer_tasks,
    has_several_tasks,
    more_bytes_text,
    run_label,
)
from ensembles.model.sanitize_text import sanitize_text
from ensembles.model.units import ratio_text, share_text


@dataclass(frozen=True)
class Reason:
    """Why a comparison fails, and layer and operation of the calls that do; no kind: whole runs do."""

    text: str
    kind: tuple[str, str] | None = None


@dataclass(frozen=True)
class Gate:
    """What a gate found.

    Attributes
    ----------
    reasons : list of Reason
        Why the comparison fails; empty: it passes.
    undecided : list of str
        What is longer by as much in these runs, but not certainly.
    whole_runs_fail : bool
        Whether it fails because whole runs take longer, and not only some kind of calls.
    """

    reasons: list[Reason] = field(default_factory=list)
    undecided: list[str] = field(default_factory=list)
    whole_runs_fail: bool = False

    @property
    def failed(self) -> list[str]:
        """The texts of the reasons."""
        return [each.text for each in self.reasons]

    def answer(self, asked: str) -> str:
        """Return the answer in one line, with the reason if whole runs are not certainly longer."""
        if self.failed:
            return f"fails --fail-on {asked}" + ("" if self.whole_runs_fail else f": {self.failed[0]}")
        return f"passes --fail-on {asked}" + (", which these runs do not decide" if self.undecided else "")


def gate(found: Sequence[Comparison], fail_on: float, of_whole_runs: bool = True) -> Gate:
    """Judge whether comparisons fail.

    Parameters
    ----------
    found : sequence of Comparison
        All kinds of calls.
    fail_on : float
        0: any difference fails; else the factor from which on what takes longer fails.
    of_whole_runs : bool
        Whether whole runs count; with filters, only the chosen calls do.

    Notes
    -----
    A group fails if its runs certainly take longer in I/O: on the critical path, or summed over tasks where
    the critical path is not certainly shorter; if fewer tasks do the I/O and its critical path is longer; or
    if a kind of calls certainly takes longer a run, by at least `LEAST_ADDED` of the time in I/O, and the
    whole runs take longer in I/O too, by `LEAST_OF_WHOLE` of that. Of one new run against several, the time
    of the kind decides, and not where its durations lie: baselines may be alike by accident.
    """
    if not fail_on:
        return Gate([_reason(each, " is different") for each in found if each.verdict == DIFFERENT])
    several = len(found[0].groups) > 2
    short = dict(
        zip(
            (each.name for each in found[0].groups),
            without_common_folder([each.name for each in found[0].groups]),
            strict=True,
        )
    )
    failed: list[Reason] = []
    undecided: list[str] = []
    whole_runs_fail = False
    for group in found[0].groups[1:]:
        of = f" of {short[group.name]}" if several else ""
        runs = [each for each in found[0].run_times if each.group == group.name and each.what in OF_IO]
        runs = runs if of_whole_runs else []
        reasons = _of_whole_runs(found[0], runs, fail_on, of)
        if of_whole_runs:
            reasons += [
                Reason(f"fewer tasks do the I/O{of}, and it is longer on the critical path")
                for one in groups_of_fewer_tasks(found[0])
                if one.group == group.name and one.is_slower(fail_on)
            ]
        whole_runs_fail |= bool(reasons)
        if not runs or (runs[0].ratio or 0.0) > 1:
            reasons += _of_kinds(found, group.name, fail_on, of, of_whole_runs)
        failed += reasons
        if not reasons:
            undecided += _undecided(found, runs[:1], group.name, fail_on, of)
    if failed and any(each.is_of_single_runs for each in (*found[0].run_times, *found[0].times)):
        why = "these are single runs, which do not show how much they vary: compare several per group"
        failed.append(Reason(why))
    return Gate(failed, undecided, whole_runs_fail)


def _of_whole_runs(found: Comparison, runs: Sequence[TimeChange], fail_on: float, of: str) -> list[Reason]:
    is_shorter = any(each.what in FIRST_TESTED and each.is_shorter(found.level) for each in runs)
    return [
        Reason(
            f"{_label(found, each)}{of}: {each.text} ({each.evidence}){more_bytes_text(found, each.group)}"
        )
        for each in runs
        if each.is_longer(found.level, fail_on) and not (is_shorter and each.what not in FIRST_TESTED)
    ]


def _of_kinds(
    found: Sequence[Comparison], group: str, fail_on: float, of: str, of_whole_runs: bool
) -> list[Reason]:
    """Return which kinds of calls take longer a run, by enough of the time in I/O."""
    io_s = sum(each.totals[1].typical[0] for each in found if len(each.totals) > 1)
    whole = next((one for one in found[0].run_times if (one.what, one.group) == ("io_time_s", group)), None)
    whole = whole if of_whole_runs else None
    longer_s = math.inf if whole is None else whole.after_s - whole.before_s
    reasons = []
    for each in found:
        change = next((one for one in each.times if one.group == group), None)
        if change is None:  # times per MiB, or ensembles
            slowdown = each.slowdown_of(group)
            if slowdown > 1 and slowdown >= fail_on:
                reasons.append(_reason(each, f"{of} is slower, {ratio_text(slowdown)}"))
            continue
        added_s = change.after_s - change.before_s
        if added_s < LEAST_ADDED * io_s or longer_s < LEAST_OF_WHOLE * added_s:
            continue
        slowdown = each.slowdown_of(group)
        is_certain = change.is_certain(each.level)
        if slowdown > 1 and slowdown >= fail_on and (is_certain or not change.is_of_one_new_run):
            p = change.evidence if is_certain else _evidence_of_durations(each, change)
            reasons.append(_reason(each, f"{of}: {change.text} a run ({p}){_of_all(change, whole)}"))
        elif not of_whole_runs and change.ratio is None and each.counts_differ:
            new = f"{of}: {change.text} a run, in calls that the first group does not make"
            reasons.append(_reason(each, new))
    return reasons


def _evidence_of_durations(found: Comparison, change: TimeChange) -> str:
    """Say that durations moved although the time a run is not certain, with p and what it assumes."""
    p = f"by its durations, p {found.tests['p']:.2g}" if found.tests else "by its durations"
    return p + (f" if they vary by {share_text(ASSUMED_SPREAD)}" if change.is_of_single_runs else "")


def _of_all(change: TimeChange, whole: TimeChange | None) -> str:
    """Return the share of the kind in the time in I/O, and what all calls together do."""
    if whole is None or not whole.after_s or whole.ratio is None:
        return ""
    share = share_text(change.after_s / whole.after_s)
    return f"; these calls are {share} of the time in I/O, which is {ratio_text(whole.ratio)} in all"


def _undecided(
    found: Sequence[Comparison], runs: Sequence[TimeChange], group: str, fail_on: float, of: str
) -> list[str]:
    """Return what is longer by as much, and by more than the margin, but not certainly."""
    least = max(fail_on, 1 / (1 - found[0].margin))
    said = [(_label(found[0], each), each) for each in runs]
    if not said:
        said = [(_kind(one), each) for one in found[:1] for each in one.times if each.group == group]
    return [
        f"{label}{of}: {each.text}, which variation from run to run may explain ({each.evidence}): compare "
        + _more_runs(each, found[0].level)
        for label, each in said
        if each.ratio is not None
        and each.ratio >= least
        and each.p is not None
        and not each.is_certain(found[0].level)
    ]


def _more_runs(change: TimeChange, level: float) -> str:
    enough = runs_that_decide(change, level)
    if enough is None or enough <= min(change.runs):
        return "more runs per group"
    return f"{enough} runs per group to know"


def _label(found: Comparison, change: TimeChange) -> str:
    return run_label(change.what, has_several_tasks(found))


def _reason(found: Comparison, what: str) -> Reason:
    """Return a reason of the kind of calls that a comparison is about."""
    return Reason(f"{_kind(found)}{what}", (found.layer or "", found.op or ""))


def _kind(found: Comparison) -> str:
    return sanitize_text(" ".join(name for name in (found.layer, found.op) if name)) or "I/O"

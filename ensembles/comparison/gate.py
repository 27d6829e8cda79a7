"""The gate of ``ensio compare --fail-on``: what fails, and what these runs do not decide."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from ensembles.comparison.difference import Difference
from ensembles.comparison.model import ASSUMED_SPREAD
from ensembles.comparison.report import DIFFERENT, Comparison
from ensembles.comparison.times import TimeChange, runs_that_decide
from ensembles.comparison.whole_runs import groups_of_fewer_tasks
from ensembles.model.sanitize_text import sanitize_text
from ensembles.model.units import ratio_text, share_text


@dataclass(frozen=True)
class Gate:
    """What a gate found.

    Attributes
    ----------
    failed : list of str
        Why the comparison fails; empty: it passes.
    undecided : list of str
        What is longer by as much in these runs, but not certainly.
    whole_runs_fail : bool
        Whether it fails because whole runs take longer, and not only some kind of calls.
    """

    failed: list[str] = field(default_factory=list)
    undecided: list[str] = field(default_factory=list)
    whole_runs_fail: bool = False


def gate(found: Sequence[Comparison], fail_on: float, of_whole_runs: bool = True) -> Gate:
    """Judge whether comparisons fail.

    Notes
    -----
    A group fails if its runs did less of everything; if they certainly take longer in I/O: on the critical
    path, or summed over tasks where the critical path is not certainly shorter; if fewer tasks do the I/O and
    its critical path is longer; or if a kind of calls certainly takes longer a run, by at least `LEAST_ADDED`
    of the time in I/O, and the whole runs take longer in I/O too, by `LEAST_OF_WHOLE` of that. Of one new run
    against several, the time of the kind decides, and not where its durations lie: baselines may be alike by
    accident.
    """
    if not fail_on:
        return Gate([f"{_kind(each)} is different" for each in found if each.verdict == DIFFERENT])
    several = len(found[0].groups) > 2
    failed: list[str] = []
    undecided: list[str] = []
    whole_runs_fail = False
    fewer = {one.group for one in groups_of_fewer_tasks(found[0]) if one.is_slower(fail_on)}
    for one in _differences(found[0]):
        of = f"{sanitize_text(one.group)}: " if several else ""
        if of_whole_runs and (one.did_less or one.group in fewer or one.longer_runs(fail_on)):
            why = "fewer tasks do the I/O, and it is longer on the critical path; " * (one.group in fewer)
            failed.append(f"{of}{why}{one.sentence()}")
            whole_runs_fail = True
        elif kinds := [text for each in found if (text := _of_kind(each, one, fail_on, of_whole_runs))]:
            failed += [of + text for text in kinds]
        else:
            undecided += [of + text for text in _undecided(found, one, fail_on, of_whole_runs)]
    if failed and any(each.is_of_single_runs for each in (*found[0].run_times, *found[0].times)):
        failed.append(
            "these are single runs, which do not show how much they vary: compare several per group"
        )
    return Gate(failed, undecided, whole_runs_fail)


def _differences(found: Comparison) -> list[Difference]:
    """Return the differences of runs; those of ensembles have no times."""
    if found.differences:
        return found.differences
    return [
        Difference(each.name, 1.0, [], [], [], None, found.level, found.margin, [])
        for each in found.groups[1:]
    ]


def _of_kind(found: Comparison, one: Difference, fail_on: float, of_whole_runs: bool) -> str:
    """Return that a kind of calls takes longer a run, by enough of the time in I/O; else ""."""
    slowdown = found.slowdown_of(one.group)
    change = next((each for each in found.times if each.group == one.group), None)
    if change is None:  # times per MiB, or ensembles
        return f"{_kind(found)} is slower, {ratio_text(slowdown)}" * (slowdown > 1 and slowdown >= fail_on)
    loss = next((each for each in one.added(of_whole_runs) if each.id == _kind(found)), None)
    if loss is None:
        return ""
    is_certain = change.is_certain(found.level)
    if slowdown > 1 and slowdown >= fail_on and (is_certain or not change.is_of_one_new_run):
        evidence = change.evidence if is_certain else _evidence_of_durations(found, change)
        return f"{loss.text}; {evidence}" + (f"; {one.sentence()}" if of_whole_runs else "")
    return loss.text if not of_whole_runs and change.ratio is None and found.counts_differ else ""


def _evidence_of_durations(found: Comparison, change: TimeChange) -> str:
    """Say that durations moved although the time a run is not certain, with p and what it assumes."""
    p = f"by its durations, p {found.tests['p']:.2g}" if found.tests else "by its durations"
    return p + (f" if they vary by {share_text(ASSUMED_SPREAD)}" if change.is_of_single_runs else "")


def _undecided(
    found: Sequence[Comparison], one: Difference, fail_on: float, of_whole_runs: bool
) -> list[str]:
    """Return what is longer by as much, and by more than the margin, but not certainly."""
    least = max(fail_on, 1 / (1 - one.margin))
    said = [(one.label(each.what), each) for each in one.times[:1] if of_whole_runs]
    if not said:
        said = [(_kind(each), time) for each in found[:1] for time in each.times if time.group == one.group]
    return [
        f"{label}: {each.text}, which variation from run to run may explain ({each.evidence}): compare "
        + _more_runs(each, one.level)
        for label, each in said
        if each.ratio is not None
        and each.ratio >= least
        and each.p is not None
        and not each.is_certain(one.level)
    ]


def _more_runs(change: TimeChange, level: float) -> str:
    enough = runs_that_decide(change, level)
    if enough is None or enough <= min(change.runs):
        return "more runs per group"
    return f"{enough} runs per group to know"


def _kind(found: Comparison) -> str:
    return sanitize_text(" ".join(name for name in (found.layer, found.op) if name)) or "I/O"

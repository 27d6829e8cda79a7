"""The gate of ``ensio compare --fail-on``: what fails, and what these runs do not decide."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from ensembles.comparison.difference import Difference
from ensembles.comparison.model import ASSUMED_SPREAD
from ensembles.comparison.report import DIFFERENT, Comparison
from ensembles.comparison.times import TimeChange, runs_that_decide
from ensembles.model.sanitize_text import sanitize_text
from ensembles.model.statement import Statement


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

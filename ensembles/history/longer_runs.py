"""Whether the latest runs take longer, as the gate of ``ensio compare`` judges the same runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ensembles.comparison.compare import WAITS_FOR_TASKS, compare_read_runs
from ensembles.comparison.gate import gate
from ensembles.comparison.hypothesis_tests import LEVEL
from ensembles.comparison.run_tests import FIRST_TESTED
from ensembles.comparison.times import (
    LEAST_ADDED,
    LEAST_OF_WHOLE,
    TimeChange,
    kinds_to_test,
    time_changes,
)
from ensembles.comparison.whole_runs import run_label
from ensembles.history.record import RunRecord

IO_TIME = "io_time_s"


@dataclass(frozen=True)
class Longer:
    """A reason for which the gate fails.

    Attributes
    ----------
    kind : (str, str) or None
        Layer and operation of the calls; None: the whole run.
    sentence : str
    p : float
        Of the time a run; of durations that moved the level, if that is not certain.
    """

    kind: tuple[str, str] | None
    sentence: str
    p: float


def what_takes_longer(
    before: Sequence[RunRecord], latest: Sequence[RunRecord], margin: float
) -> list[Longer]:
    """Return why the gate fails for the latest runs against those before; empty: it passes.

    Parameters
    ----------
    before, latest : sequence of RunRecord
    margin : float
        As for `ensembles.compare`.

    Returns
    -------
    list of Longer
        Whole runs first. Of records of sums only, whose durations are not known, whole runs alone.
    """
    if any(kind.calls and not kind.counts for record in (*before, *latest) for kind in record.kinds):
        change = change_of_runs(before, latest)
        return [_of_run(change, before)] if change is not None and change.is_longer(LEVEL) else []
    groups = [[record.as_read() for record in records] for records in (before, latest)]
    found = compare_read_runs(groups, names=["before", "latest"], margin=margin)
    judged = gate(found, 1.0)
    of_kinds = {(one.layer, one.op): one.times for one in found}
    told = []
    for reason in judged.reasons:
        times = of_kinds[reason.kind] if reason.kind else found[0].run_times
        certain = [each.adjusted_p for each in times if each.is_longer(LEVEL)]
        p = min((p for p in certain if p is not None), default=LEVEL)
        told.append(Longer(reason.kind, reason.text, p))
    return told


def change_of_runs(before: Sequence[RunRecord], latest: Sequence[RunRecord]) -> TimeChange | None:
    """Test the time of whole runs that the gate tests first; None: it is not known, or 0."""
    what = time_of_runs([*before, *latest])
    if what is None or not before or not latest:
        return None
    times_s = [[record.totals[what] for record in records] for records in (before, latest)]
    (change,) = time_changes({what: times_s}, ["before", "latest"], [what], of_whole_runs=True)[what]
    return change


def longer_times(before: Sequence[RunRecord], latest: Sequence[RunRecord]) -> str:
    """Return which time a run the gate fails for, of whole runs else of kinds of calls; empty: for none.

    Durations do not count, so that this is quick.
    """
    change = change_of_runs(before, latest)
    if change is None:
        return ""
    if change.is_longer(LEVEL):
        return sentence_of_runs(change, before)
    groups = before, latest
    times_s: dict[str, list[list[float]]] = {}
    calls: dict[str, list[list[float]]] = {}
    for layer, op in {(kind.layer, kind.op) for record in (*before, *latest) for kind in record.kinds}:
        if (layer, op) not in WAITS_FOR_TASKS:
            of_kind = [[_of_kind(record, layer, op) for record in records] for records in groups]
            times_s[f"{layer} {op}"] = [[time_s for time_s, _ in group] for group in of_kind]
            calls[f"{layer} {op}"] = [[number for _, number in group] for group in of_kind]
    io_s = [float(np.mean([record.totals.get(IO_TIME, 0.0) for record in records])) for records in groups]
    found = time_changes(times_s, ["before", "latest"], kinds_to_test(times_s, calls))
    told = [
        f"{kind} {one.text} ({one.evidence})"
        for kind, (one,) in sorted(found.items())
        if one.is_longer(LEVEL)
        and one.after_s - one.before_s >= LEAST_ADDED * io_s[0]
        and io_s[1] - io_s[0] >= LEAST_OF_WHOLE * (one.after_s - one.before_s)
        and (change.ratio or 0.0) > 1
    ]
    return "; ".join(told)


def _of_kind(record: RunRecord, layer: str, op: str) -> tuple[float, float]:
    kind = next((one for one in record.kinds if (one.layer, one.op) == (layer, op)), None)
    return (0.0, 0.0) if kind is None else (kind.time_s, float(kind.calls))


def time_of_runs(records: Sequence[RunRecord]) -> str | None:
    """Return the time of whole runs that decides: I/O of the critical path, if all runs have it."""
    both = *FIRST_TESTED, IO_TIME
    known = (what for what in both if all(one.totals.get(what, 0.0) > 0 for one in records))
    return next(known, None)


def sentence_of_runs(change: TimeChange, records: Sequence[RunRecord]) -> str:
    """Return both times of whole runs, with the evidence."""
    return f"{label_of(change.what, records)} {change.text} ({change.evidence})"


def label_of(what: str, records: Sequence[RunRecord]) -> str:
    """Name a time of whole runs."""
    return run_label(what, any(record.tasks > 1 for record in records))


def _of_run(change: TimeChange, records: Sequence[RunRecord]) -> Longer:
    return Longer(None, sentence_of_runs(change, records), change.adjusted_p or 0.0)

"""Findings of one habit of a program: one mend removes all of them, and their gain is stated once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ensembles.diagnosis.evidence import ROW
from ensembles.diagnosis.finding import LEAST_LOW, SEVERITIES
from ensembles.diagnosis.limits import NEARLY_ALL
from ensembles.diagnosis.path_calls import REMOVING
from ensembles.diagnosis.remedy import severity_of
from ensembles.model.distinct import numbered_together
from ensembles.model.units import seconds_text

if TYPE_CHECKING:
    from ensembles.diagnosis.case import Case
    from ensembles.diagnosis.finding import Finding

LEAST_EACH, MOST_EACH = 0.5, 8.0
"""Calls for each open, or syncs for each removed file: the two belong to one line, or to one change."""


@dataclass(frozen=True)
class Habit:
    """Findings that one mend removes.

    Attributes
    ----------
    ids : tuple of str
        Their ids, the strongest first.
    mend : str
        What to do, in plain words.
    gain_s : (float, float)
        Interval of what the mend gains, all findings together, s.
    share_s : float
        The same by the best estimate, s.
    """

    ids: tuple[str, ...]
    mend: str
    gain_s: tuple[float, float]
    share_s: float

    def to_json(self) -> dict[str, Any]:
        """Return a dict with the names of the attributes."""
        return {**vars(self), "ids": list(self.ids), "gain_s": list(self.gain_s)}

    def advice_for(self, cause: str) -> str:
        """Return what to do about one of the findings."""
        if cause != self.ids[0]:
            return f"part of the same habit as {self.ids[0]}, whose mend removes both: {self.mend}"
        low, high = (seconds_text(value) for value in self.gain_s)
        between = f"up to {high}" if self.gain_s[0] < LEAST_LOW * self.gain_s[1] else f"{low} to {high}"
        return (
            f"{self.mend}; this removes {' and '.join(self.ids[1:])} too, which is the same habit: both "
            f"together, the run would be {between} shorter, {seconds_text(self.share_s)} by the best "
            "estimate"
        )


_KEPT_OPEN = (
    "open the file once and keep it open, collect what goes to it in a buffer, and move it in a few large "
    "pieces, such as one a step"
)
_ONE_CHANGE = (
    "make many changes before a sync, so that the file beside the data is made, synced and removed once for "
    "all of them (SQLite: one transaction for many changes, or journal_mode=WAL with synchronous=NORMAL)"
)


def with_habits(findings: Sequence[Finding], case: Case) -> list[Finding]:
    """Join findings that are one habit: files opened for each line, or a journal for each change."""
    by_id = {finding.id: finding for finding in findings}
    storm = by_id.get("metadata-storm")
    if storm is None or storm.rows is None:
        return list(findings)
    checks = {check.name for check in storm.checks}
    paths, time_ns = _rows_of(case, storm), case.rows["time_ns"]
    opens = case.op == "open"
    opens &= 2 * time_ns[paths & opens].sum() > time_ns[paths].sum()  # a scan is not kept open
    ways = (
        ("made-and-removed", "sync-per-write", np.isin(case.name, list(REMOVING)), _ONE_CHANGE),
        ("same-path-again", "small-requests", opens, _KEPT_OPEN),
        ("paths-asked-before", "small-requests", opens, _KEPT_OPEN),
    )
    for check, cause, of_paths, mend in ways:
        other = by_id.get(cause)
        if check not in checks or other is None or other.rows is None:
            continue
        explained = storm.id in other.symptoms or other.id in storm.symptoms
        if not explained and _go_together(case, paths & of_paths, _rows_of(case, other)):
            first, second = sorted((storm, other), key=lambda each: each.weight, reverse=True)
            joined = _joined(first, second, mend, case)
            return [joined.get(finding.id, finding) for finding in findings]
    return list(findings)


def _rows_of(case: Case, finding: Finding) -> np.ndarray:
    """Find the rows of the shared evidence that a finding concerns."""
    theirs, mine, _ = numbered_together(ROW, dict(zip(ROW, finding.rows, strict=True)), case.rows)
    rows: np.ndarray = np.isin(mine, theirs)
    return rows


def _go_together(case: Case, paths: np.ndarray, others: np.ndarray) -> bool:
    """Check whether the same tasks make both kinds of calls in the same phases, about as often."""
    of_paths, of_others = (case.by_cell(np.where(rows, case.rows["n"], 0)) for rows in (paths, others))
    there = of_others[of_paths > 0].sum()
    if not there or there < NEARLY_ALL * of_others.sum():
        return False
    return bool(LEAST_EACH * of_paths.sum() <= there <= MOST_EACH * of_paths.sum())


def _joined(first: Finding, second: Finding, mend: str, case: Case) -> dict[str, Finding]:
    both = (first, second)
    low_s, high_s = (sum(each.gain_s[end] for each in both if each.gain_s is not None) for end in (0, 1))
    share_s = sum(each.share_s or 0.0 for each in both)
    gain_s = (low_s, min(high_s, max(case.run_s, share_s)))
    habit = Habit((first.id, second.id), mend, gain_s, share_s)
    found = {each.id: replace(each, habit=habit, advice=habit.advice_for(each.id)) for each in both}
    together = severity_of(gain_s, share_s, case.run_s)
    if SEVERITIES.index(together) > SEVERITIES.index(first.severity):
        found[first.id] = replace(found[first.id], severity=together)
    return found

"""Causes and symptoms: lost time is given to findings one after the other, the largest first."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from ensembles.diagnosis.account import Account, Entry
from ensembles.diagnosis.case import Case
from ensembles.diagnosis.evidence import ROW
from ensembles.diagnosis.finding import FROM_SHARE, LIKELY_COUNTS, Check, Finding
from ensembles.diagnosis.limits import LEAST_CALLS
from ensembles.diagnosis.path_calls import REMOVING
from ensembles.diagnosis.principles import CALLS, OTHERS, OUTSIDE, cause_of
from ensembles.model.distinct import numbered_together
from ensembles.model.levels import MOST, NEARLY_ALL
from ensembles.structure.phases.critical_path import CriticalPath

_SLOW_UNITS = ("straggler-task", "straggler-node")


def share_out(findings: Sequence[Finding], case: Case) -> tuple[list[Finding], float | None, Mended]:
    """Give the lost time to findings, and find symptoms."""
    known = [_beside_main(finding, case) for finding in findings]
    findings = _without_time_of_clients(known, case)
    rest = [finding for finding in findings if finding.saved_ns is not None]
    done: list[Finding] = [finding for finding in findings if finding.saved_ns is None]
    mended, explained_s = Mended(case), 0.0
    surely = Mended(case)
    least_s = FROM_SHARE["warning"] * case.run_s
    symptoms: list[Finding] = []
    while rest:
        gains = [mended.gain_s(each.saved_ns, each.kind.of_each_call) - explained_s for each in rest]
        # Of findings that gain nearly the same, the first is the most specific.
        best = int(np.argmax(np.array(gains) >= NEARLY_ALL * max(gains))) if max(gains) > 0 else 0
        best = _habit_of_unit(rest, best)
        finding, share_s = rest.pop(best), max(gains[best], 0.0)
        if finding.id in _SLOW_UNITS and any(_is_habit_of(cause, finding) for cause in done):
            symptoms.append(finding)
            continue
        # Where tasks do not meet, the task that saves most hides what the others save.
        if done and case.model.shows_waiting and share_s < least_s <= case.gain_s(finding.saved_ns):
            left_s = surely.gain_s(finding.saved_ns, finding.kind.of_each_call) - surely.gain_s()
            if left_s < least_s or _explained(finding, done):
                symptoms.append(finding)
                continue
        mended.add(finding.saved_ns, finding.kind.of_each_call)
        surely.add(_surely_saved(finding, case), finding.kind.of_each_call)
        explained_s += share_s
        done.append(replace(finding, share_s=share_s))
    for symptom in symptoms:
        cause = _cause_of(symptom, done, case)
        done[cause] = replace(done[cause], symptoms=(*done[cause].symptoms, symptom.id))
        done.append(replace(symptom, share_s=0.0, is_symptom=True))
    waiting_s = case.model.waiting_s
    return done, None if waiting_s is None else max(waiting_s - explained_s, 0.0), mended


def _beside_main(finding: Finding, case: Case) -> Finding:
    """Take all certainty from a gain in tasks whose main thread makes no call: it may compute meanwhile."""
    if finding.saved_ns is None or finding.gain_s is None or not case.run.info.beside_main.any():
        return finding
    hidden = case.run.info.beside_main[case.rows["rank"]]
    if float(finding.saved_ns[hidden].sum()) < NEARLY_ALL * float(finding.saved_ns.sum()):
        return finding
    check = Check("main-thread-waits", "the main thread makes no call, and may compute meanwhile", None)
    checks = (*finding.checks, check)
    gain_s = 0.0, finding.gain_s[1]
    return replace(finding, gain_s=gain_s, likely_s=0.0, checks=checks, saved_ns=None)


class Mended:
    """What remedies save together.

    What one leaves of a row is saved at the share of the next. Remedies for what single calls cost save the
    same time: the most that one of them does.
    """

    def __init__(self, case: Case) -> None:
        self._case = case
        self._others, self._of_calls = np.zeros((2, len(case)))

    def add(self, saved_ns: np.ndarray, of_each_call: bool = False) -> None:
        """Apply one more remedy; `of_each_call` as `Cause.of_each_call`."""
        self._others, self._of_calls = self._with(saved_ns, of_each_call)

    def gain_s(self, saved_ns: np.ndarray | None = None, of_each_call: bool = False) -> float:
        """Compute by how much the run is shorter, perhaps with one more remedy."""
        both = (self._others, self._of_calls) if saved_ns is None else self._with(saved_ns, of_each_call)
        return self._case.gain_s(_both(self._case, *both))

    def left_share(self) -> np.ndarray:
        """Compute which share of the time of each row is left: shape (n,)."""
        saved = _both(self._case, self._others, self._of_calls)
        left: np.ndarray = np.maximum(1 - saved / np.maximum(self._case.rows["time_ns"], 1), 0.0)
        return left

    def _with(self, saved_ns: np.ndarray, of_each_call: bool) -> tuple[np.ndarray, np.ndarray]:
        if of_each_call:
            return self._others, np.maximum(self._of_calls, saved_ns)
        return _both(self._case, self._others, saved_ns), self._of_calls


def _habit_of_unit(rest: Sequence[Finding], best: int) -> int:
    """Return the number of the habit that makes a task or node slow, if `best` is a slow one; else `best`."""
    if rest[best].id not in _SLOW_UNITS:
        return best
    return next((at for at, each in enumerate(rest) if _is_habit_of(each, rest[best])), best)


def _is_habit_of(cause: Finding, slow: Finding) -> bool:
    """Check whether a cause is in calls of a slow task or node alone, and explains much of what it loses."""
    if cause.saved_ns is None or cause.id in _SLOW_UNITS or not cause.kind.of_each_call:
        return False
    in_unit = float(cause.saved_ns[slow.saved_ns > 0].sum())
    whole = max(float(cause.saved_ns.sum()), 1.0)
    return in_unit >= max(NEARLY_ALL * whole, MOST * float(slow.saved_ns.sum()))


def _explained(finding: Finding, causes: Sequence[Finding]) -> bool:
    """Check whether another cause explains what each of the same calls costs."""
    whole = max(float(finding.saved_ns.sum()), 1.0)
    return finding.kind.of_each_call and any(
        cause.kind.of_each_call
        and cause.saved_ns is not None
        and float(finding.saved_ns[cause.saved_ns > 0].sum()) >= NEARLY_ALL * whole
        for cause in causes
    )


def _surely_saved(finding: Finding, case: Case) -> np.ndarray:
    """Take part of the way to the lower end off what a finding saves."""
    gain_s = case.gain_s(finding.saved_ns)
    low_s = gain_s if finding.gain_s is None else min(finding.gain_s[0], gain_s)
    part = 1 - (1 - LIKELY_COUNTS) * (1 - low_s / gain_s) if gain_s > 0 else 1.0
    saved: np.ndarray = finding.saved_ns * part
    return saved


def _both(case: Case, mended: np.ndarray, saved: np.ndarray) -> np.ndarray:
    """Combine savings: what the first leaves of a row is saved at the second's share."""
    time_ns = np.maximum(case.rows["time_ns"], 1)
    both: np.ndarray = mended + saved * np.maximum(1 - mended / time_ns, 0)
    return both


def _cause_of(symptom: Finding, causes: Sequence[Finding], case: Case) -> int:
    """Return the number of the cause after whose remedy least is left of a symptom."""
    left = []
    for cause in causes:
        if cause.saved_ns is None or cause.share_s is None:
            left.append(np.inf)
            continue
        left.append(case.gain_s(_both(case, cause.saved_ns, symptom.saved_ns)) - case.gain_s(cause.saved_ns))
    return int(np.argmin(left))


def _without_time_of_clients(findings: list[Finding], case: Case) -> list[Finding]:
    """Take time that calls lose in the client off the gains of remedies at the targets."""
    mended = np.zeros(len(case))
    for finding in findings:
        if finding.kind.in_client and finding.saved_ns is not None:
            mended = _both(case, mended, finding.saved_ns)
    if not mended.any():
        return findings
    left = 1 - mended / np.maximum(case.rows["time_ns"], 1)
    return [_less(each, left, case) if each.kind.at_targets else each for each in findings]


def _less(finding: Finding, left: np.ndarray, case: Case) -> Finding:
    """Return a finding whose remedy saves a part of each row."""
    if finding.saved_ns is None or finding.gain_s is None:
        return finding
    saved = finding.saved_ns * left
    part = case.gain_s(saved) / max(case.gain_s(finding.saved_ns), 1e-9)
    gain_s = part * finding.gain_s[0], part * finding.gain_s[1]
    return replace(finding, saved_ns=saved, gain_s=gain_s, likely_s=part * finding.likely_s)


def divide(
    path: CriticalPath, findings: Sequence[Finding], inside: Sequence[Entry], outside: Iterable[Entry] = ()
) -> Account:
    """Divide the time of a run, of any kind of record."""
    left_s, found = path.io_s, []
    for each in findings:
        middle_s = sum(each.gain_s or (0.0, 0.0)) / 2 if cause_of(each.id).in_io else 0
        time_s = min(middle_s if each.share_s is None else each.share_s, left_s)
        left_s -= time_s
        found.append(Entry(each.id, time_s))
    inside = [*inside, Entry(OTHERS, path.io_s - path.low_s)]
    # Of a task whose I/O findings remove, another one may be as late for something else: its calls are left.
    inside = inside if any(each.time_s for each in inside) else [Entry(CALLS, 1.0)]
    whole_s = sum(each.time_s for each in inside)
    rest = [replace(each, time_s=left_s * each.time_s / whole_s) for each in inside]
    left_s = path.run_s - path.io_s
    for entry in outside:
        rest.append(replace(entry, time_s=min(max(entry.time_s, 0.0), left_s)))
        left_s -= rest[-1].time_s
    entries = [each for each in sorted(found, key=lambda each: -each.time_s) if each.time_s > 0]
    entries += [each for each in rest if each.time_s > 0]
    return Account(path.run_s, path.io_s, (*entries, Entry(OUTSIDE, max(left_s, 0.0))), path.is_of_run)


_KEPT_OPEN = (
    "open the file once and keep it open, collect what goes to it in a buffer, and move it in a few large "
    "pieces, such as one a step"
)
_ONE_CHANGE = (
    "make many changes before a sync, so that the file beside the data is made, synced and removed once for "
    "all of them (SQLite: one transaction for many changes, or journal_mode=WAL with synchronous=NORMAL)"
)


def with_habits(findings: Sequence[Finding], case: Case) -> list[Finding]:
    """Advise one mend for findings of one habit: files opened for each line, or a journal for each change."""
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
            advice = {
                first.id: f"{mend}; this removes {second.id} too, which is the same habit",
                second.id: f"part of the same habit as {first.id}, whose mend removes both: {mend}",
            }
            return [replace(each, advice=advice.get(each.id, each.advice)) for each in findings]
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
    # Calls for each open, or syncs for each removed file: the two belong to one line, or to one change.
    return bool(MOST * of_paths.sum() <= there <= LEAST_CALLS * of_paths.sum())

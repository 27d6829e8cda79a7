"""Rule ``slow-target``: whatever lies on one storage target is slow, whichever task asks for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ensembles.diagnosis.case import Case, p_of_chance
from ensembles.diagnosis.counted_case import counted_case, counted_finding
from ensembles.diagnosis.evidence_rule import FILE_USES, EvidenceRule
from ensembles.diagnosis.file_uses import FileUses, share_of_rows
from ensembles.diagnosis.finding import Check, Finding, NotApplicable
from ensembles.diagnosis.limits import FEW, LEAST_UNITS, LEVEL
from ensembles.diagnosis.remedy import Remedy
from ensembles.diagnosis.slow_files import SlowFiles, find_slow_files
from ensembles.diagnosis.target_residuals import (
    LEAST_FACTOR,
    OUTLIER,
    find_slow_target,
    share_on_target,
)
from ensembles.model.units import number_text, share_text

if TYPE_CHECKING:
    from ensembles.run.run import Run


_PARTS = (0.7, 1.0, 1.1)
_FASTEST = 0.05


def find_counted(run: Run) -> Finding | None:
    """Compare the times of files of one target each, by permutation of targets over files."""
    case = counted_case(run)
    files, time_s = case.files, case.time_s
    moved = files["bytes_read"] + files["bytes_written"]
    target = np.array([_only_target(run, run.files[number]) for number in files["file"].tolist()])
    known = (target >= 0) & (moved > 0) & (time_s > 0)
    targets, of, count = np.unique(target[known], return_inverse=True, return_counts=True)
    if len(targets) < LEAST_UNITS:
        raise NotApplicable(
            f"the log shows files on {len(targets)} targets alone, and {LEAST_UNITS} are needed: "
            "record a run with a file for each task on Lustre, with Darshan's module LUSTRE"
        )
    value, size = np.log(time_s[known]), np.frexp(moved[known].astype(float))[1]
    for each in np.unique(size):  # files of about the same size are compared
        value[size == each] -= np.median(value[size == each])
    load = np.bincount(of, moved[known])
    value -= 2 * np.maximum(np.log(load / np.median(load)), 0)[of]
    score = np.bincount(of, value) / np.sqrt(count)
    worst = int(np.argmax(score))
    p = p_of_chance(
        score[worst], lambda rng: (np.bincount(rng.permutation(of), value) / np.sqrt(count)).max()
    )
    medians = np.array([np.median(value[of == number]) for number in range(len(targets))])
    factor, next_worst = float(np.exp(medians[worst])), float(np.max(np.delete(medians, worst)))
    if p > LEVEL or count[worst] < FEW or factor < LEAST_FACTOR:
        return None
    if np.log(factor) < OUTLIER * next_worst:
        return None
    number = int(targets[worst])
    chosen = known & (target == number)
    lost_s = np.where(chosen, time_s * (1 - 1 / factor), 0.0)
    # Elsewhere a file takes at least as long as the fastest ones of its size do.
    others = known & ~chosen
    least_s = moved * np.quantile(time_s[others] / moved[others], _FASTEST)
    room_s = np.where(chosen, np.maximum(time_s - least_s, 0.0), 0.0)
    low_s, likely_s, high_s = (case.gain_s(np.minimum(part * lost_s, room_s)) for part in _PARTS)
    checks = (
        Check("not-by-chance", True, f"permutation of targets among {known.sum():,} files: p = {p:.2g}"),
        Check(
            "as-many-bytes",
            True,
            f"{count[worst]:,} files of about the same size lie on it, with "
            f"{load[worst] / np.median(load):.2f} times as many bytes as on the other targets (median)",
        ),
    )
    return counted_finding(
        case,
        "slow-target",
        f"files on target {number} take {number_text(factor)} times as long as those on the other "
        f"{len(targets) - 1} targets",
        checks,
        {"target": number, "slowdown": factor, "p": p, "targets": len(targets), "files": int(count[worst])},
        (low_s, likely_s, high_s),
        chosen,
        most_s=case.gain_s(room_s),
    )


def _only_target(run: Run, path: str) -> int:
    """Return the target of a file that lies on one; -1: it has several, or they are not known."""
    striping = run.info.striping_of(path)
    if striping is None or striping.stripe_count != 1 or len(striping.components) != 1:
        return -1
    targets = striping.components[0].targets
    return int(targets[0]) if len(targets) == 1 else -1


def _find(case: Case, uses: FileUses) -> Remedy | None:
    by_files = find_slow_files(case, uses)
    return _of_calls(case) if by_files is None else _of_files(case, uses, by_files)


def _of_files(case: Case, uses: FileUses, found: SlowFiles) -> Remedy:
    share = share_of_rows(case, uses.table.columns(), found.rows)
    saved = case.rows["time_ns"] * share * (1 - 1 / found.factor)
    text = (
        f"{len(found.files)} of {found.compared} files lie on it: permutation of files, p = {found.p:.2g}; "
        "files of about the same size are compared in each phase"
    )
    return Remedy(
        share > 0,
        saved,
        f"files on target {found.target} take {number_text(found.factor)} times as long as files on "
        f"the other {found.targets - 1} targets",
        (Check("not-by-chance", True, text),),
        {"target": found.target, "slowdown": found.factor, "p": found.p, "targets": found.targets},
        0.7 * saved,
        1.1 * saved,
        tuple(case.run.files[number] for number in found.files.tolist()),
    )


def _of_calls(case: Case) -> Remedy | None:
    found = find_slow_target(case)
    if found is None:
        return None
    share = share_on_target(case, found.target)
    rows = share > 0
    saved = np.where(rows, case.rows["time_ns"] * share * (1 - 1 / found.factor), 0.0)
    checks = (
        Check(
            "not-by-chance",
            True,
            f"permutation of targets among {found.pairs} pairs of task and target: p = {found.p:.2g}",
        ),
        Check(
            "whoever-asks",
            True,
            f"{share_text(found.slow_users)} of the {found.users} tasks that use it alone in a call "
            "are slow there",
        ),
        Check(
            "not-the-queue",
            True,
            f"also the shortest call of a task takes {number_text(found.shortest)} times as long there",
        ),
    )
    return Remedy(
        rows,
        saved,
        f"calls on target {found.target} take {number_text(found.factor)} times as long as the same calls on "
        f"the other {found.targets - 1} targets",
        checks,
        {"target": found.target, "slowdown": found.factor, "p": found.p, "targets": found.targets},
        0.7 * saved,
        1.1 * saved,
    )


rule = EvidenceRule("slow-target", _find, FILE_USES, counted=find_counted)

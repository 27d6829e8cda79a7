"""Rule ``slow-target``: whatever lies on one storage target is slow, whichever task asks for it."""

from __future__ import annotations

import numpy as np

from ensembles.diagnosis.case import Case
from ensembles.diagnosis.counted.slow_target import find_counted
from ensembles.diagnosis.evidence_rule import FILE_USES, EvidenceRule
from ensembles.diagnosis.file_uses import FileUses, share_of_rows
from ensembles.diagnosis.finding import Check
from ensembles.diagnosis.remedy import Remedy
from ensembles.diagnosis.slow_files import SlowFiles, find_slow_files
from ensembles.diagnosis.target_residuals import find_slow_target, share_on_target
from ensembles.model.units import number_text, share_text


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

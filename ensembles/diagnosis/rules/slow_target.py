"""Rule ``slow-target``: whatever lies on one storage target is slow, whichever task asks for it."""

from __future__ import annotations

import numpy as np

from ensembles.diagnosis.case import Case
from ensembles.diagnosis.counted.slow_target import find_counted
from ensembles.diagnosis.evidence_rule import EvidenceRule
from ensembles.diagnosis.finding import Check
from ensembles.diagnosis.remedy import Remedy
from ensembles.diagnosis.target_residuals import find_slow_target, share_on_target

ADVICE = (
    "tell the administrator which target it is (its disks rebuild, or it is nearly full); "
    "until then create the files "
    "anew on other targets (lfs setstripe -o, or a pool), or stripe wide, so that no file lies on it alone"
)


def _find(case: Case) -> Remedy | None:
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
            f"{found.slow_users:.0%} of the {found.users} tasks that use it alone in a call are slow there",
        ),
        Check(
            "not-the-queue",
            True,
            f"also the shortest call of a task takes {found.shortest:.3g} times as long there",
        ),
    )
    return Remedy(
        rows,
        saved,
        f"calls on target {found.target} take {found.factor:.3g} times as long as the same calls on "
        f"the other {found.targets - 1} targets",
        ADVICE,
        checks,
        {"target": found.target, "slowdown": found.factor, "p": found.p, "targets": found.targets},
        0.7 * saved,
        1.1 * saved,
    )


rule = EvidenceRule("slow-target", _find, counted=lambda run: find_counted(run, ADVICE))

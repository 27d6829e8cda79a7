"""Rule ``single-large-call``: the slowest of few large calls decides how long a phase lasts."""

from __future__ import annotations

import numpy as np

from ensembles.diagnosis.cannot_tell import CannotTell, transfers
from ensembles.diagnosis.case import Case
from ensembles.diagnosis.evidence_rule import EvidenceRule

FEW_CALLS = 2
"""Calls of a task in a phase with so few of which the slowest call of all tasks decides."""

ADVICE = "ensio split predicts what more and smaller calls between barriers would gain"


def _concerned(case: Case) -> np.ndarray:
    """Find transfers of tasks that make one or two of them before they wait for the others."""
    rows = transfers(case)
    count = case.by_cell(np.where(rows, case.rows["n"], 0))
    rows &= case.of_cells(count <= FEW_CALLS) & (len(case.windows) > 1)
    return rows


rule = EvidenceRule("single-large-call", CannotTell(_concerned, ADVICE, "more and smaller calls"))

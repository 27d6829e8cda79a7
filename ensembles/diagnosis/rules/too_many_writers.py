"""Rule ``too-many-writers``: a file has more writers than its targets serve well."""

from __future__ import annotations

import numpy as np

from ensembles.diagnosis.cannot_tell import CannotTell, transfers_of_shared_files
from ensembles.diagnosis.case import Case
from ensembles.diagnosis.evidence_rule import EvidenceRule

MANY_WRITERS = 64
"""Tasks with one file from which their number may matter."""

ADVICE = "every phase has the same writers; record runs with half and a quarter of them"


def _concerned(case: Case) -> np.ndarray:
    """Find what writes to files of many tasks, and what makes their bytes leave the cache."""
    writes = transfers_of_shared_files(case, MANY_WRITERS) & (case.op == "write")
    flushes = np.isin(case.op, ("close", "sync")) & np.isin(case.rows["rank"], case.rows["rank"][writes])
    rows: np.ndarray = writes | flushes
    return rows


rule = EvidenceRule("too-many-writers", CannotTell(_concerned, ADVICE, "half the writers"))

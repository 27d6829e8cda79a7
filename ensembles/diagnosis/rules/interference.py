"""Rule ``interference``: other jobs load the storage."""

from __future__ import annotations

import numpy as np

from ensembles.diagnosis.cannot_tell import CannotTell, transfers
from ensembles.diagnosis.case import Case
from ensembles.diagnosis.evidence_rule import EvidenceRule

ADVICE = (
    "the load of other jobs is not in a trace; record the same run again, or add it to a history "
    "(ensio history)"
)


def _concerned(case: Case) -> np.ndarray:
    """Find what waits for a device or a server: load of others delays syncs, opens and closes too."""
    rows: np.ndarray = transfers(case) | np.isin(case.op, ("sync", "open", "close", "meta"))
    return rows


rule = EvidenceRule("interference", CannotTell(_concerned, ADVICE, "the same run again"))

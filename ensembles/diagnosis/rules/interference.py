"""Rule ``interference``: other jobs load the storage."""

from __future__ import annotations

import numpy as np

from ensembles.diagnosis.cannot_tell import CannotTell, transfers
from ensembles.diagnosis.case import Case
from ensembles.diagnosis.evidence_rule import EvidenceRule
from ensembles.diagnosis.file_uses import STORAGE

ADVICE = (
    "the load of other jobs is not in a trace; record the same run again, or add it to a history "
    "(ensio history)"
)


def _concerned(case: Case) -> np.ndarray:
    """Find what waits for a device or a server: load of others delays syncs, opens and closes too.

    Where storage calls were recorded, the rest of the time of a library is not in the storage.
    """
    rows: np.ndarray = transfers(case) | np.isin(case.op, ("sync", "open", "close", "meta"))
    storage = np.isin(case.layer, STORAGE)
    return rows & storage if (rows & storage).any() else rows


rule = EvidenceRule("interference", CannotTell(_concerned, ADVICE, "the same run again"))

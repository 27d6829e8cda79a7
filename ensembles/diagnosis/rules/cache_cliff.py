"""Rule ``cache-cliff``: writes that find the cache of their node full are slowed down."""

from __future__ import annotations

import numpy as np

from ensembles.diagnosis.cannot_tell import CannotTell, transfers
from ensembles.diagnosis.case import Case
from ensembles.diagnosis.evidence_rule import EvidenceRule

ADVICE = "a full cache and slow targets look alike; record a run with half the bytes for each node"


def _concerned(case: Case) -> np.ndarray:
    """Find writes that a cache can take."""
    rows: np.ndarray = transfers(case) & (case.op == "write") & (case.layer != "stdio")
    return rows


rule = EvidenceRule("cache-cliff", CannotTell(_concerned, ADVICE, "half the bytes for each node"))

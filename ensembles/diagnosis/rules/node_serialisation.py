"""Rule ``node-serialisation``: a node serves the calls of its tasks one after the other."""

from __future__ import annotations

import numpy as np

from ensembles.diagnosis.cannot_tell import CannotTell, transfers
from ensembles.diagnosis.case import Case
from ensembles.diagnosis.evidence_rule import EvidenceRule

ADVICE = "it moves the same bytes in the same time; ensio modes shows its harmonics"


def _concerned(case: Case) -> np.ndarray:
    """Find transfers of tasks that share their node with others."""
    node = case.nodes_of_tasks()
    rows = transfers(case)
    rows &= len(case.ranks) > 1 if node is None else (np.bincount(node)[node] > 1)[case.task]
    return rows


rule = EvidenceRule("node-serialisation", CannotTell(_concerned, ADVICE))

"""Rule ``serialised-metadata``: one or two tasks make small calls, and the others wait."""

from __future__ import annotations

import numpy as np

from ensembles.diagnosis.case import Case
from ensembles.diagnosis.evidence_rule import EvidenceRule
from ensembles.diagnosis.remedy import Remedy
from ensembles.diagnosis.small_calls import join_calls, small_calls


def _find(case: Case) -> Remedy | None:
    makers = len(np.unique(case.rows["rank"][small_calls(case)["serialised-metadata"]]))
    verb = "makes" if makers == 1 else "make"
    what = f"{makers:,} of {len(case.ranks):,} tasks {verb} small calls one by one, and the others wait"
    return join_calls(case, "serialised-metadata", what)


rule = EvidenceRule("serialised-metadata", _find)

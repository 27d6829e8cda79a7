"""Rule ``seek-heavy``: small reads jump through a file."""

from __future__ import annotations

from ensembles.diagnosis.case import Case
from ensembles.diagnosis.evidence_rule import EvidenceRule
from ensembles.diagnosis.remedy import Remedy
from ensembles.diagnosis.small_calls import join_calls

ADVICE = (
    "read the file in the order of its bytes and sort in memory, or read one large range and pick from it"
)


def _find(case: Case) -> Remedy | None:
    return join_calls(case, "seek-heavy", "reads jump through the file", ADVICE)


rule = EvidenceRule("seek-heavy", _find, of_each_call=True)

"""Rule ``seek-heavy``: small reads jump through a file."""

from __future__ import annotations

from ensembles.diagnosis.case import Case
from ensembles.diagnosis.evidence_rule import EvidenceRule
from ensembles.diagnosis.remedy import Remedy
from ensembles.diagnosis.small_calls import join_calls


def _find(case: Case) -> Remedy | None:
    return join_calls(case, "seek-heavy", "reads jump through the file")


rule = EvidenceRule("seek-heavy", _find)

"""Rule ``straggler-task``: one task is slower than the others in every phase."""

from __future__ import annotations

from ensembles.diagnosis.evidence_rule import FILE_USES, EvidenceRule
from ensembles.diagnosis.slow_calls import find_slow
from ensembles.diagnosis.summed.case import check_straggler

rule = EvidenceRule(
    "straggler-task",
    lambda case, uses: find_slow(case, uses, by_node=False),
    FILE_USES,
    summed=check_straggler,
)

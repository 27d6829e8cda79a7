"""Rule ``straggler-node``: the tasks of one node are slower than the others in every phase."""

from __future__ import annotations

from ensembles.diagnosis.evidence_rule import FILE_USES, EvidenceRule
from ensembles.diagnosis.slow_calls import find_slow
from ensembles.diagnosis.summed.case import check_straggler

rule = EvidenceRule(
    "straggler-node",
    lambda case, uses: find_slow(case, uses, by_node=True),
    FILE_USES,
    summed=check_straggler,
)

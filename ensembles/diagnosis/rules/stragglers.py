"""Rules ``straggler-task`` and ``straggler-node``: a task, or those of a node, are slow in every phase."""

from __future__ import annotations

from functools import partial

from ensembles.diagnosis.evidence_rule import FILE_USES, EvidenceRule
from ensembles.diagnosis.slow_calls import find_slow
from ensembles.diagnosis.summed.case import check_straggler

task, node = (
    EvidenceRule(name, partial(find_slow, by_node=by_node), FILE_USES, summed=check_straggler)
    for name, by_node in (("straggler-task", False), ("straggler-node", True))
)

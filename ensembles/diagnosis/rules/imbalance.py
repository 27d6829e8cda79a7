"""Rule ``imbalance``: some tasks, or one alone, move more bytes than the others, which wait for them."""

from __future__ import annotations

from ensembles.diagnosis.case import Case
from ensembles.diagnosis.counted.imbalance import find_counted
from ensembles.diagnosis.evidence_rule import EvidenceRule
from ensembles.diagnosis.remedy import Remedy
from ensembles.diagnosis.rule import NotApplicable
from ensembles.diagnosis.summed.imbalance import NO_OTHERS, NOBODY_WAITS, find_summed
from ensembles.diagnosis.uneven_tasks import find_heavy_tasks, find_one_task
from ensembles.passes.group import SummaryRequest
from ensembles.passes.summary import ignoring_run
from ensembles.summaries.collective_entries import CollectiveEntries

ENTRIES = "collective-entries"
"""Name of the summary that shows who waits for whom; the diagnosis reads it, too."""


def _find(case: Case, entries: CollectiveEntries) -> Remedy | None:
    if case.run.tasks < 2:
        raise NotApplicable(NO_OTHERS)
    if not case.model.shows_waiting:
        raise NotApplicable(NOBODY_WAITS)
    alone = find_one_task(case, entries)
    return alone if alone is not None or len(case.ranks) < 2 else find_heavy_tasks(case)


rule = EvidenceRule(
    "imbalance",
    _find,
    {ENTRIES: SummaryRequest(ignoring_run(CollectiveEntries), CollectiveEntries.columns)},
    counted=find_counted,
    summed=find_summed,
)

"""Rule ``small-requests``: many small transfers, each with its fixed cost."""

from __future__ import annotations

from ensembles.diagnosis.case import Case
from ensembles.diagnosis.counted.small_requests import find_counted
from ensembles.diagnosis.evidence_rule import FILE_USES, EvidenceRule
from ensembles.diagnosis.file_uses import FileUses
from ensembles.diagnosis.finding import FROM_SHARE
from ensembles.diagnosis.remedy import Remedy
from ensembles.diagnosis.rule import NotApplicable
from ensembles.diagnosis.small_calls import between_others, join_calls
from ensembles.diagnosis.small_library_calls import join_library_calls
from ensembles.diagnosis.summed.small_requests import find_summed


def _find(case: Case, uses: FileUses) -> Remedy | None:
    of_library = join_library_calls(case)
    try:
        found = join_calls(case, "small-requests", "small requests", between_others(case, uses))
    except NotApplicable:
        if of_library is None or case.gain_s(of_library.saved_ns) < FROM_SHARE["warning"] * case.run_s:
            raise
        return of_library
    if of_library is None or (
        found is not None and case.gain_s(found.saved_ns) > case.gain_s(of_library.saved_ns)
    ):
        return found
    return of_library


rule = EvidenceRule(
    "small-requests",
    _find,
    FILE_USES,
    counted=find_counted,
    summed=find_summed,
)

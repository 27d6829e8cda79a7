"""Rule ``metadata-storm``: tasks ask the metadata server for the same paths again and again.

A task asks for the path of its call before, makes and removes the same file, or opens a file by a library in
each step; or all tasks open all files.
"""

from __future__ import annotations

import numpy as np

from ensembles.diagnosis.avoidable_calls import leave_out_calls
from ensembles.diagnosis.case import Case
from ensembles.diagnosis.counted.metadata import find_counted
from ensembles.diagnosis.evidence_rule import FILE_USES, EvidenceRule
from ensembles.diagnosis.file_uses import FileUses
from ensembles.diagnosis.library_opens import KEEP_OPEN, opened_again
from ensembles.diagnosis.path_calls import refuse_merged_paths
from ensembles.diagnosis.remedy import SHORTER_QUEUES, Remedy
from ensembles.diagnosis.summed.metadata import find_summed


def _find(case: Case, uses: FileUses) -> Remedy | None:
    refuse_merged_paths(case.run)
    paths, opened = leave_out_calls(case, uses), opened_again(case, uses)
    if opened is None:
        return paths
    low, saved, high = (case.rows["time_ns"] * each for each in (opened.low, opened.share, opened.high))
    if paths is not None:
        if paths.saved_ns.sum() > saved.sum():
            return paths
        assert paths.low_ns is not None
        assert paths.high_ns is not None
        bounds = zip((low, saved, high), (paths.low_ns, paths.saved_ns, paths.high_ns), strict=True)
        low, saved, high = (np.maximum(*each) for each in bounds)
    return Remedy(
        opened.opens,
        saved,
        opened.title,
        (opened.check,),
        opened.evidence,
        low,
        high,
        opened.files,
        fewer=case.rows["n"] * opened.share * (case.rows["depth"] == 0),
        parts=SHORTER_QUEUES,
        advice=KEEP_OPEN,
    )


rule = EvidenceRule(
    "metadata-storm",
    _find,
    FILE_USES,
    counted=find_counted,
    summed=find_summed,
    counts_more=True,
)

"""Rule ``single-stripe``: many tasks write a shared file that lies on one storage target."""

from __future__ import annotations

import numpy as np

from ensembles.diagnosis.case import SMALL_CLASS, Case
from ensembles.diagnosis.counted.single_stripe import find_counted
from ensembles.diagnosis.crowded_files import WIDER, find_crowded
from ensembles.diagnosis.evidence_rule import FILE_USES, EvidenceRule
from ensembles.diagnosis.file_uses import FileUses, share_of_rows
from ensembles.diagnosis.finding import Check
from ensembles.diagnosis.remedy import Remedy
from ensembles.model.units import count_text, number_text, share_text

_MOST_SMALL = 0.5
_UNSURE = 0.5  # of the gain, where it is between nothing and all
_LEAST_WIDER = 4
"""Targets that serve the same work at the lower end of the gain: client and network may limit it then."""
_LEAST_SPREAD = 1.25
"""Targets with work at once below which no gain is certain."""


def _find(case: Case, summary: FileUses) -> Remedy | None:
    table = summary.table.columns()
    found = find_crowded(case, table)
    if found is None:
        return None
    chosen, useful = found.rows, found.at_once
    moved = np.bincount(table["file"][found.writes], table["bytes"][found.writes], len(case.run.files))
    # A target that always has work serves the same bytes, whatever the number of tasks that wait for it: with
    # more stripes each target has its part of them. No more targets help than there is work at once.
    least = min(max(useful * _LEAST_WIDER / WIDER, 1.5), found.least_at_once)
    share = share_of_rows(case, table, chosen)
    time_ns = case.rows["time_ns"] * share
    files = np.unique(table["file"][chosen])
    names = tuple(case.run.files[each] for each in files[np.argsort(-moved[files])].tolist())
    tasks = len(np.unique(table["rank"][chosen]))
    files_text = count_text(len(files), "shared file")
    small = (case.rows["size"] <= SMALL_CLASS) & (case.rows["bytes"] > 0)
    of_small = float(time_ns[small].sum() / max(time_ns.sum(), 1))
    checks = [
        Check("one-target", True, f"{files_text} with a stripe count of 1"),
        Check(
            "many-writers",
            True,
            f"{tasks} tasks use them, with work for {number_text(useful)} targets at once",
        ),
    ]
    if of_small > _MOST_SMALL:
        text = (
            f"{share_text(of_small)} of the time is in requests below 256 KiB, which may wait "
            "for themselves only"
        )
        checks.append(Check("for-the-target", None, text))
    if not found.sure:
        text = f"{found.makers} of {tasks} tasks make the writes of all: they may be slow themselves"
        checks.append(Check("not-the-aggregators", None, text))
    saved = time_ns * (1 - 1 / useful)
    most = saved if found.sure else time_ns * (1 - 1 / WIDER)
    return Remedy(
        share > 0,
        saved if found.sure else _UNSURE * saved,
        f"{tasks} tasks write {files_text} on one storage target{' each' * (len(files) != 1)}",
        tuple(checks),
        {
            "tasks": tasks,
            "tasks_at_once": useful,
            "files": len(files),
            "gain_assumes": f"a stripe count of {WIDER} on targets that are as fast as this one",
        },
        np.where(small | (not found.sure or least < _LEAST_SPREAD), 0.0, time_ns * (1 - 1 / least)),
        most,
        names,
    )


rule = EvidenceRule("single-stripe", _find, FILE_USES, counted=find_counted)

"""Rule ``imbalance``: some tasks move many more bytes than the others, which wait for them."""

from __future__ import annotations

import numpy as np

from ensembles.diagnosis.case import Case
from ensembles.diagnosis.evidence_rule import EvidenceRule
from ensembles.diagnosis.finding import Check, find_spans, spans_text
from ensembles.diagnosis.remedy import Remedy
from ensembles.diagnosis.rule import NotApplicable

LEAST_RATIO = 1.25
_MOVING = 0.5

ADVICE = (
    "give every task the same number of bytes (divide the domain by cost, not by index), or write collectively, so that "
    "aggregators even the bytes out (MPI_File_write_at_all, H5FD_MPIO_COLLECTIVE)"
)


def _find(case: Case) -> Remedy | None:
    if len(case.ranks) < 2:
        raise NotApplicable("one task has no others to be compared with")
    data = np.isin(case.op, ("read", "write")) & (case.rows["bytes"] > 0)
    inside_collective = np.char.endswith(case.name, "_all").any()
    if inside_collective:
        return None
    data &= case.rows["depth"] == 0
    moved = case.by_cell(np.where(data, case.rows["bytes"], 0))
    moving = (moved > 0).mean(axis=1) >= _MOVING
    mean = moved.mean(axis=1)
    ratio = np.divide(moved, mean[:, None], out=np.ones_like(moved), where=moving[:, None] & (mean[:, None] > 0))
    heavy = ratio >= LEAST_RATIO
    rows = data & case.of_cells(heavy)
    if not rows.any():
        return None
    saved = np.where(rows, case.rows["time_ns"] * (1 - 1 / case.of_cells(np.maximum(ratio, 1))), 0.0)
    tasks = np.unique(case.rows["rank"][rows])
    most = float(ratio[heavy].max())
    time_ns = case.by_cell(np.where(data, case.rows["time_ns"], 0))
    per_byte = np.divide(time_ns, moved, out=np.zeros_like(moved), where=moved > 0)
    others = np.median(per_byte[moving[:, None] & ~heavy & (moved > 0)]) if (~heavy & (moved > 0)).any() else 0.0
    alike = float(np.median(per_byte[heavy]) / others) if others > 0 else np.nan
    checks = (
        Check("more-bytes", True, f"{len(tasks)} tasks ({spans_text(find_spans(tasks))}) move up to {most:.3g} times the "
              "mean of all tasks in a phase"),  # fmt: skip
        Check("same-time-per-byte", None if np.isnan(alike) or alike > 3 else True,
              f"their time per byte is {alike:.2g} times that of the others"),  # fmt: skip
    )
    return Remedy(rows, saved, f"{len(tasks)} of {len(case.ranks)} tasks move up to {most:.3g} times the mean, and the "
                  "others wait for them", ADVICE, checks, {"most_to_mean": most, "tasks_heavy": len(tasks)})  # fmt: skip


rule = EvidenceRule("imbalance", _find)

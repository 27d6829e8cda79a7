"""Rule ``imbalance``: some tasks move many more bytes than the others, which wait for them."""

from __future__ import annotations

import numpy as np

from ensembles.diagnosis.cannot_tell import refuse_bytes_of_few, transfers
from ensembles.diagnosis.case import Case
from ensembles.diagnosis.counted.imbalance import find_counted
from ensembles.diagnosis.evidence_rule import EvidenceRule
from ensembles.diagnosis.finding import Check, find_spans, spans_text
from ensembles.diagnosis.flushes import later_flushes_ns
from ensembles.diagnosis.remedy import Remedy
from ensembles.diagnosis.rule import NotApplicable
from ensembles.diagnosis.summed.imbalance import NOBODY_WAITS, find_summed
from ensembles.model.units import count_text

LEAST_RATIO = 1.25
_MOVING, _MOST_PER_BYTE = 0.5, 3.0
_PARTS = (0.4, 2.0)
"""Parts of the best estimate: tasks that take over bytes are slower, or targets and caches even out."""

ADVICE = (
    "give every task the same number of bytes (divide the domain by cost, not by index), or write "
    "collectively, so that aggregators even the bytes out (MPI_File_write_at_all, H5FD_MPIO_COLLECTIVE)"
)


def _find(case: Case) -> Remedy | None:
    if len(case.ranks) < 2:
        raise NotApplicable("one task has no others to be compared with")
    if not case.model.shows_waiting:
        raise NotApplicable(NOBODY_WAITS)
    data = transfers(case) & (case.rows["depth"] == 0)
    if np.char.endswith(case.name, "_all").any():
        return None
    moved = case.by_cell(np.where(data, case.rows["bytes"], 0))
    moving = (moved > 0).mean(axis=1) >= _MOVING
    mean = moved.mean(axis=1)
    ratio = np.divide(
        moved, mean[:, None], out=np.ones_like(moved), where=moving[:, None] & (mean[:, None] > 0)
    )
    heavy = ratio >= LEAST_RATIO
    rows = data & case.of_cells(heavy)
    if not rows.any():
        refuse_bytes_of_few(case, moved, _MOVING)
        return None
    tasks = np.unique(case.rows["rank"][rows])
    most = float(ratio[heavy].max())
    time_ns = case.by_cell(np.where(data, case.rows["time_ns"], 0))
    per_byte = np.divide(time_ns, moved, out=np.zeros_like(moved), where=moved > 0)
    # Evened bytes move at the rate of the others, which share the file system with all tasks.
    light = ~heavy & (moved > 0)
    pairs = zip(per_byte, light, strict=True)
    usual = np.array([np.median(row[mine]) if mine.any() else np.nan for row, mine in pairs])
    faster = np.divide(per_byte, usual[:, None], out=np.ones_like(moved), where=heavy & (usual[:, None] > 0))
    alike = float(np.median(faster[heavy]))
    if alike > _MOST_PER_BYTE:
        return None  # something else than the bytes makes these tasks slow
    left = 1 / np.maximum(ratio, 1)
    bounds = [left / np.minimum(faster, 1)] * 2 + [left]
    low, saved, high = (
        np.where(rows, case.rows["time_ns"] * np.maximum(1 - case.of_cells(bound), 0), 0.0)
        for bound in bounds
    )
    late = later_flushes_ns(case, heavy)
    move = "moves" if len(tasks) == 1 else "move"
    checks = (
        Check(
            "more-bytes",
            True,
            f"{count_text(len(tasks), 'task')} ({spans_text(find_spans(tasks))}) {move} up to "
            f"{most:.3g} times the mean of all tasks in a phase",
        ),
        Check(
            "same-time-per-byte",
            True,
            f"their time per byte is {alike:.2g} times that of the others",
        ),
    )
    return Remedy(
        rows,
        saved + late,
        f"{len(tasks)} of {len(case.ranks)} tasks {move} up to {most:.3g} times the mean, and the "
        "others wait for them",
        ADVICE,
        checks,
        {"most_to_mean": most, "tasks_heavy": len(tasks)},
        0.5 * (low + late),
        high + late,
        parts=_PARTS,
    )


rule = EvidenceRule(
    "imbalance",
    _find,
    counted=lambda run: find_counted(run, ADVICE),
    summed=lambda run: find_summed(run, ADVICE),
)

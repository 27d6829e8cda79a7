"""A shared file on one storage target, in counters."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ensembles.diagnosis.counted.case import counted_case, counted_finding
from ensembles.diagnosis.finding import Check, Finding
from ensembles.diagnosis.rule import NotApplicable

if TYPE_CHECKING:
    from ensembles.run.run import Run

LEAST_TASKS = 4
LEAST_AT_ONCE = 2.0
LEAST_BYTES = 16 << 20
USUAL_TARGETS = 8
_LIKELY = 0.35


def find_counted(run: Run, advice: str) -> Finding | None:
    """Find shared files with a stripe count of 1 that several tasks write at the same time."""
    case = counted_case(run)
    files = case.files
    layouts = [run.striping_of(run.files[number]) for number in files["file"].tolist()]
    counts = np.array([0 if layout is None else layout.stripe_count for layout in layouts])
    if not counts.any():
        raise NotApplicable("the layout of the files is not known: record on Lustre, with the module LUSTRE")
    lasts_s = np.nan_to_num(files["end_s"] - files["start_s"])
    at_once = (files["read_s"] + files["write_s"]) / np.maximum(lasts_s, 1e-9)
    chosen = (counts == 1) & (files["is_shared"] > 0) & (files["bytes_written"] >= LEAST_BYTES)
    chosen &= (at_once >= LEAST_AT_ONCE) & (run.tasks >= LEAST_TASKS)
    if not chosen.any():
        return None
    useful = np.clip(at_once, LEAST_AT_ONCE, USUAL_TARGETS)
    saved = np.where(chosen, case.time_s * (1 - 1 / useful), 0.0)
    most = float(at_once[chosen].max())
    number = int(chosen.sum())
    files_text = f"{number} shared file{'s' * (number != 1)}"
    checks = (
        Check("one-target", True, f"{files_text} with a stripe count of 1"),
        Check("many-writers", True, f"up to {most:.3g} tasks use them at the same time"),
        Check(
            "others-are-faster",
            None,
            "how fast more stripes are is not in this run: record one with a stripe count of 8",
        ),
    )
    return counted_finding(
        case,
        "single-stripe",
        f"{run.tasks} tasks write {files_text} on one storage target each",
        advice,
        checks,
        {"tasks": run.tasks, "tasks_at_once": most, "files": number},
        (0.0, _LIKELY * case.gain_s(saved), case.gain_s(saved)),
        chosen,
        "write",
    )

"""Metadata calls in counters: files that tasks open and look up again and again."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ensembles.diagnosis.case import LEAST_CALLS
from ensembles.diagnosis.counted.case import counted_case, counted_finding
from ensembles.diagnosis.finding import Check, Finding
from ensembles.model.units import number_text, seconds_text

if TYPE_CHECKING:
    from ensembles.run.run import Run


def find_counted(run: Run) -> Finding | None:
    """Take off the opens and stats of a task and file beyond the first."""
    case = counted_case(run)
    files, totals = case.files, case.module.totals
    count = sum(int(totals.get(name) or 0) for name in ("OPENS", "STATS"))
    pairs = int(np.where(files["is_shared"] > 0, run.tasks, files["records"]).sum())
    if count < LEAST_CALLS * pairs:
        return None
    whole = np.maximum(files["read_s"] + files["write_s"] + files["meta_s"], 1e-12)
    saved = case.time_s * files["meta_s"] / whole * (1 - pairs / count)
    most_s = case.gain_s(saved)
    each_s = float(files["meta_s"].sum() / count)
    checks = (
        Check(
            "again-and-again",
            True,
            f"{count:,} opens and stats are {number_text(count / pairs)} for each task and file",
        ),
        Check(
            "which-files", None, "counters of several files do not show which of these calls takes the time"
        ),
    )
    return counted_finding(
        case,
        "metadata-storm",
        f"{count:,} opens and stats, {number_text(count / pairs)} for each task and file, up to "
        f"{seconds_text(each_s)} each",
        checks,
        {"calls": count, "mean_s": each_s},
        (0.0, 0.6 * most_s, most_s),
        files["meta_s"] > 0,
    )

"""Repeated calls on paths, in sums: a task that opens more often than there are files opens some again."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ensembles.diagnosis.finding import Check, Finding
from ensembles.diagnosis.path_calls import CHANGING, ON_DESCRIPTORS, refuse_merged_paths
from ensembles.diagnosis.summed.case import SummedCase, summed_finding
from ensembles.model.units import count_text, seconds_text

if TYPE_CHECKING:
    from ensembles.run.run import Run

LEAST_CALLS = 16
_SHARE, _LOW = 0.5, 0.6
NO_LOOKUPS = ON_DESCRIPTORS | CHANGING


def find_summed(run: Run) -> Finding | None:
    """Count what must be repetitions: calls of a task beyond the number of files that the run knows."""
    case = SummedCase(run)
    files = len(run.files) - 1
    refuse_merged_paths(run)
    saved, again, count, spent = np.zeros(len(case.ranks)), 0, 0, 0.0
    for op in ("open", "meta"):
        calls = case.of_tasks("n", (op,), "posix", but=NO_LOOKUPS)
        repeated = np.maximum(calls - files, 0.0)
        often = (calls >= LEAST_CALLS) & (repeated >= _SHARE * calls)
        time_s = case.of_tasks("own_ns", (op,), "posix", but=NO_LOOKUPS) * 1e-9
        saved += np.where(often, time_s * repeated / np.maximum(calls, 1), 0.0)
        again += int(repeated[often].sum())
        count += int(calls[often].sum())
        spent += float(time_s[often].sum())
    if not count:
        return None
    check = Check(
        "more-calls-than-files",
        True,
        f"tasks make {count:,} calls on paths, and the run knows {count_text(files, 'file')}: {again:,} "
        "calls or more ask again",
    )
    closes_s = case.of_tasks("own_ns", ("close",), "posix") * 1e-9
    return summed_finding(
        case,
        "metadata-storm",
        f"{count:,} calls on paths, {again:,} of them or more for the same path again, take "
        f"{seconds_text(spent / count)} each",
        (check,),
        {"repeated": again, "mean_s": spent / count},
        (_LOW * saved, saved, saved + np.where(saved > 0, closes_s, 0.0)),
    )

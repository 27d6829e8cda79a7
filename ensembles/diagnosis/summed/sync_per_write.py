"""Syncs after every few writes, in sums by task."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ensembles.diagnosis.finding import Check, Finding
from ensembles.diagnosis.summed.case import SummedCase, summed_finding
from ensembles.model.units import seconds_text

if TYPE_CHECKING:
    from ensembles.run.run import Run

LEAST_SYNCS, MOST_WRITES = 12, 4
_LOW = 0.5


def find_summed(run: Run, advice: str) -> Finding | None:
    """Find tasks that sync after at most four writes on average."""
    case = SummedCase(run)
    syncs, writes = case.of_tasks("n", ("sync",), "posix"), case.of_tasks("n", ("write",), "posix")
    often = (syncs >= LEAST_SYNCS) & (writes > 0) & (writes <= MOST_WRITES * syncs)
    if not often.any():
        return None
    time_s = case.of_tasks("own_ns", ("sync",), "posix") * 1e-9
    saved = np.where(often, time_s * (1 - 1 / np.maximum(syncs, 1)), 0.0)
    total, ratio = int(syncs[often].sum()), float(writes[often].sum() / syncs[often].sum())
    each_s = float(time_s[often].sum()) / total
    checks = (
        Check("after-few-writes", True, f"one sync for every {ratio:.3g} writes of a task, {total:,} in all"),
        Check("bytes-stay", None, "the bytes still have to be written by the last sync"),
    )
    return summed_finding(
        case,
        "sync-per-write",
        f"a sync after every {ratio:.3g} writes: {total:,} syncs, {seconds_text(each_s)} each",
        advice,
        checks,
        {"syncs": total, "writes_per_sync": ratio},
        (_LOW * saved, saved, saved),
        op="sync",
    )

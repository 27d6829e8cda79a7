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
MOST_BYTES = 1 << 20
"""As in `ensembles.diagnosis.rules.sync_per_write`."""

_LOW = 0.5


def find_summed(run: Run, advice: str) -> Finding | None:
    """Find tasks that sync after at most four writes, or at most 1 MiB, on average."""
    case = SummedCase(run)
    syncs, writes = case.of_tasks("n", ("sync",), "posix"), case.of_tasks("n", ("write",), "posix")
    moved = case.of_tasks("bytes", ("write",), "posix")
    few = (writes <= MOST_WRITES * syncs) | (moved <= MOST_BYTES * syncs)
    often = (syncs >= LEAST_SYNCS) & (writes > 0) & few
    if not often.any():
        return None
    time_s = case.of_tasks("own_ns", ("sync",), "posix") * 1e-9
    saved = np.where(often, time_s * (1 - 1 / np.maximum(syncs, 1)), 0.0)
    total, ratio = int(syncs[often].sum()), float(writes[often].sum() / syncs[often].sum())
    each_s = float(time_s[often].sum()) / total
    writes_text = "write" if ratio == 1 else f"{ratio:.3g} writes"
    checks = (
        Check("after-few-writes", True, f"one sync for every {writes_text} of a task, {total:,} in all"),
        Check("bytes-stay", None, "the bytes still have to be written by the last sync"),
    )
    return summed_finding(
        case,
        "sync-per-write",
        f"a sync after every {writes_text}: {total:,} syncs, {seconds_text(each_s)} each",
        advice,
        checks,
        {"syncs": total, "writes_per_sync": ratio},
        (_LOW * saved, saved, saved),
        op="sync",
    )

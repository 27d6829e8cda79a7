"""Syncs after every few writes, in sums by task."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ensembles.diagnosis.finding import Check, Finding
from ensembles.diagnosis.summed.case import SummedCase, summed_finding
from ensembles.model.units import bytes_text, number_text, seconds_text

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
    often_text = how_often(ratio)
    checks = (
        Check("after-few-writes", True, often_text),  # the title says it, and how many
        Check("bytes-stay", None, "the bytes still have to be written by the last sync"),
    )
    return summed_finding(
        case,
        "sync-per-write",
        f"{often_text}: {total:,} syncs, {seconds_text(each_s)} each",
        checks,
        {"syncs": total, "writes_per_sync": ratio},
        (_LOW * saved, saved, saved),
        op="sync",
        advice=advice,
    )


def how_often(writes_per_sync: float, bytes_per_sync: float | None = None) -> str:
    """Say how many writes there are for a sync, or syncs for a write.

    Examples
    --------
    >>> from ensembles.diagnosis.summed.sync_per_write import how_often
    >>> how_often(3.0), how_often(0.5, 131072)
    ('a sync after every 3 writes', '2 syncs after every write of 256 KiB')
    """
    if writes_per_sync >= 1:
        after = "write" if writes_per_sync == 1 else f"{number_text(writes_per_sync)} writes"
        size = "" if bytes_per_sync is None else f" ({bytes_text(round(bytes_per_sync))})"
        return f"a sync after every {after}{size}"
    size = "" if bytes_per_sync is None else f" of {bytes_text(round(bytes_per_sync / writes_per_sync))}"
    return f"{number_text(1 / writes_per_sync)} syncs after every write{size}"

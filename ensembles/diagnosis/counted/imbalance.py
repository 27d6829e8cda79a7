"""Imbalance in counters: ranks that move more bytes than the others, which probably wait for them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ensembles.diagnosis.counted.case import counted_case, counted_finding
from ensembles.diagnosis.finding import Check, Finding, find_spans, spans_text
from ensembles.diagnosis.rule import NotApplicable
from ensembles.model.units import count_text, digits_text

if TYPE_CHECKING:
    from ensembles.run.run import Run

LEAST_RATIO = 1.25
_MOST_PER_BYTE = 3.0
_MOST_IN_SHARED = 0.1


def find_counted(run: Run, advice: str) -> Finding | None:
    """Even the bytes of the ranks out, in files that single ranks use."""
    case = counted_case(run)
    ranks, posix = case.module.by_rank, case.module
    if run.tasks < 2:
        raise NotApplicable("one task has no others to be compared with")
    own = float((ranks["bytes_read"] + ranks["bytes_written"]).sum())
    whole = float(posix.total("bytes_read") + posix.total("bytes_written"))
    if whole - own > _MOST_IN_SHARED * whole:
        raise NotApplicable(
            "most bytes are in files whose counters are sums over all ranks, so that the bytes of a rank are "
            "not known: record with DARSHAN_DISABLE_SHARED_REDUCTION=1, or with DXT"
        )
    rank = ranks["rank"].astype(np.int64)
    moved = np.bincount(rank, ranks["bytes_read"] + ranks["bytes_written"], run.tasks)
    time_s = np.bincount(rank, ranks["read_s"] + ranks["write_s"] + ranks["meta_s"], run.tasks)
    mean = moved.mean()
    heavy = moved >= LEAST_RATIO * max(mean, 1.0)
    light = (moved > 0) & ~heavy
    if not heavy.any() or not light.any() or (moved > 0).mean() < 0.5:
        return None
    per_byte = np.divide(time_s, moved, out=np.zeros(run.tasks), where=moved > 0)
    alike = float(np.median(per_byte[heavy]) / max(float(np.median(per_byte[light])), 1e-30))
    if alike > _MOST_PER_BYTE:
        return None  # something else than the bytes makes these tasks slow
    evened = np.where(heavy, time_s * mean / np.maximum(moved, 1), time_s)
    gain = min(max(float(time_s.max() - evened.max()), 0.0), case.run_s)
    number, most = int(heavy.sum()), float(moved.max() / mean)
    spans = find_spans(np.flatnonzero(heavy))
    move = "moves" if number == 1 else "move"
    checks = (
        Check(
            "more-bytes",
            True,
            f"{count_text(number, 'task')} ({spans_text(spans)}) {move} up to {digits_text(most)} times "
            "the mean",
        ),
        Check("same-time-per-byte", True, f"their time per byte is {alike:.2g} times that of the others"),
        Check("others-wait", None, "counters do not show whether the others wait for them"),
    )
    chosen = np.isin(case.files["slowest_rank"], np.flatnonzero(heavy)) & (case.files["is_shared"] == 0)
    return counted_finding(
        case,
        "imbalance",
        f"{number:,} of {run.tasks:,} tasks {move} up to {digits_text(most)} times the mean",
        advice,
        checks,
        {"most_to_mean": most, "tasks_heavy": number},
        (0.0, gain, gain),
        chosen,
    )

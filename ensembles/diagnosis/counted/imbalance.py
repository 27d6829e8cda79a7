"""Imbalance in counters: ranks that move more bytes than the others, which probably wait for them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ensembles.diagnosis.counted.case import counted_case, counted_finding
from ensembles.diagnosis.finding import Check, Finding
from ensembles.diagnosis.rule import NotApplicable
from ensembles.diagnosis.uneven_tasks import find_uneven

if TYPE_CHECKING:
    from ensembles.run.run import Run

_MOST_IN_SHARED = 0.1


def find_counted(run: Run) -> Finding | None:
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
    unknown = Check("others-wait", None, "counters do not show whether the others wait for them")
    uneven = find_uneven(np.arange(run.tasks), moved, time_s)
    if uneven is None:
        return None
    gain = min(max(float(time_s.max() - (time_s * uneven.left[0]).max()), 0.0), case.run_s)
    chosen = np.isin(case.files["slowest_rank"], uneven.tasks)
    chosen &= case.files["is_shared"] == 0
    parts = (uneven.title, (*uneven.checks, unknown), uneven.evidence)
    return counted_finding(case, "imbalance", *parts, (0.0, gain, gain), chosen)

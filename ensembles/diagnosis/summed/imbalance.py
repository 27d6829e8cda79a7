"""Tasks that move more bytes than others, in sums by task."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ensembles.diagnosis.finding import Finding
from ensembles.diagnosis.rule import NotApplicable
from ensembles.diagnosis.summed.case import SummedCase, summed_finding, without_order
from ensembles.diagnosis.uneven_tasks import find_uneven
from ensembles.structure.phases.waiting import tasks_meet

if TYPE_CHECKING:
    from ensembles.run.run import Run

NO_OTHERS = "one task has no others to be compared with"
NOBODY_WAITS = (
    "the tasks are processes without MPI and without barriers: nothing recorded shows that they wait for "
    "each other"
)


def find_summed(run: Run) -> Finding | None:
    """Even the bytes of the tasks out, at the time per byte that each has."""
    case = SummedCase(run)
    if run.tasks < 2:
        raise NotApplicable(NO_OTHERS)
    if not tasks_meet(run.info, None):
        raise NotApplicable(NOBODY_WAITS)
    if np.char.endswith(case.name, "_all").any():
        return None  # aggregators move the bytes of others
    moved = case.of_tasks("bytes", ("read", "write"), "posix")
    time_s = case.of_tasks("own_ns", ("read", "write"), "posix") * 1e-9
    uneven = find_uneven(case.ranks, moved, time_s)
    if uneven is None:
        return None
    saved = time_s * (1 - uneven.left[0])
    bounds = (np.zeros(len(saved)), saved, saved)
    checks = (*uneven.checks, without_order("whether the others wait for them"))
    return summed_finding(case, "imbalance", uneven.title, checks, uneven.evidence, bounds)

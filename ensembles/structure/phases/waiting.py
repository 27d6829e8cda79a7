"""Whether a run shows that its tasks wait for each other at the ends of its phases."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ensembles.model.run_info import RunInfo
    from ensembles.structure.phases.result import Phases
    from ensembles.structure.phases.table import PhaseTotals
    from ensembles.structure.recorded_run import RecordedRun

MEETINGS = ("named", "barriers")
"""Rules whose phases all tasks end together, whatever started the tasks."""


def tasks_meet(info: RunInfo, phases: Phases | None) -> bool:
    """Tell whether the slowest task of a phase is the one for which the others wait.

    Ranks of MPI do, and so do those of simulations and of imported logs, as far as is known. Processes
    without MPI, and threads, may run one after the other, side by side, or in the background. That they pause
    at the same time does not show that they wait for each other: only recorded barriers do, and phases that
    several tasks named.

    Returns
    -------
    bool
        True also for a single task of one thread, which waits for no other.

    Examples
    --------
    >>> from ensembles.structure.phases.waiting import tasks_meet
    >>> run = en.open("ensio-ior")
    >>> tasks_meet(run.info, run.phases)
    True
    """
    if not info.has_plain_processes or (info.tasks == 1 and info.threads <= 1):
        return True
    return info.tasks > 1 and phases is not None and phases.rule in MEETINGS


def with_known_idle(run: RecordedRun, phases: Phases, totals: Sequence[PhaseTotals]) -> list[PhaseTotals]:
    """Replace idle times by NaN if the run does not show that its tasks wait for each other (`tasks_meet`).

    A single task is never idle.
    """
    if run.tasks <= 1 or tasks_meet(run.info, phases):
        return list(totals)
    return without_idle(totals)


def without_idle(totals: Sequence[PhaseTotals]) -> list[PhaseTotals]:
    """Replace idle times by NaN, as where only failed calls are known: others may have gone on meanwhile."""
    return [replace(entry, lost_s=math.nan, lost_share=math.nan) for entry in totals]

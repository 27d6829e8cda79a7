"""Idle time of the tasks of a run in its phases."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from ensembles.model.statement import LowerBound
from ensembles.structure.phases.table import PhaseTotals


@dataclass(frozen=True)
class IdleTime:
    """Idle time of the tasks of a run, summed over tasks and phases of I/O.

    Attributes
    ----------
    tasks : int
        Tasks of the run.
    run_s : float
        Length of the run, s.
    lost_s : float
        Sum of `PhaseTotals.lost_s`; NaN: not known.
    lost_share : float or None
        The same as a share of the time of all tasks in the run, ``tasks * run_s``. None: of no time.
    phases_without_all_tasks : int
        Phases in which some task of the run made no call.
    lost_without_calls_s : float or None
        By how much these tasks could add to `lost_s`, at most; None: not known.
    """

    tasks: int
    run_s: float
    lost_s: float
    lost_share: float | None
    phases_without_all_tasks: int
    lost_without_calls_s: float | None

    def to_json(self) -> dict[str, Any]:
        """A dict with the names of the attributes, without those of the run."""
        return {key: value for key, value in asdict(self).items() if key not in ("tasks", "run_s")}


def idle_time(totals: Sequence[PhaseTotals], tasks: int, run_s: float) -> IdleTime:
    """Add up the idle time of tasks in phases of I/O."""
    with_io = [entry for entry in totals if entry.calls]
    lost_s = float(sum(entry.lost_s for entry in with_io))
    absent = [(tasks - entry.tasks) * entry.time_s for entry in with_io if entry.tasks < tasks]
    whole_s = tasks * run_s
    return IdleTime(
        tasks,
        run_s,
        lost_s,
        lost_s / whole_s if whole_s > 0 else None,
        len(absent),
        float(sum(absent)) if not math.isnan(lost_s) else None,
    )


def idle_cells(entries: Sequence[PhaseTotals], tasks: int) -> tuple[float | LowerBound | None, float | None]:
    """Return the idle time of successive phases, and the share of one; None: not known.

    Where a task of the run made no call in a phase, the time is a lower bound, and its share is not known.
    """
    lost_s = sum(entry.lost_s for entry in entries)
    if math.isnan(lost_s):
        return None, None
    if any(entry.calls and entry.tasks < tasks for entry in entries):
        return LowerBound(lost_s), None
    return lost_s, entries[0].lost_share if len(entries) == 1 else None

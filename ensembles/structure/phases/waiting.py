"""Whether a run shows that its tasks wait for each other at the ends of its phases."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ensembles.model.events import Call, Events, is_io_of_calls, of_calls
from ensembles.model.statement import LowerBound
from ensembles.passes.summary import ANY_ORDER, Summary
from ensembles.structure.phases.detect import Phases
from ensembles.structure.phases.table import PhaseTotals

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


@dataclass(frozen=True)
class IdleTime:
    """Idle time of the tasks of a run, summed over tasks and phases of I/O."""

    tasks: int  # Tasks of the run
    run_s: float  # Length of the run, s
    lost_s: float  # Sum of `PhaseTotals.lost_s`; NaN: not known
    # The same as a share of the time of all tasks in the run, ``tasks * run_s``. None: of no time.
    lost_share: float | None
    phases_without_all_tasks: int  # Phases in which some task of the run made no call
    # By how much these tasks could add to `lost_s`, at most; None: not known
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


@of_calls
def _is_sync(calls: Sequence[Call]) -> np.ndarray:
    return np.array([call.op == "sync" for call in calls], bool)


class SyncTime(Summary):
    """A mergeable summary: the time in I/O of each phase, and how much of it was spent in syncs.

    Outermost calls count.

    Examples
    --------
    >>> from ensembles.structure.phases.waiting import SyncTime
    >>> run = en.open("ensio-ior")
    >>> times = SyncTime(run.phases)
    >>> times.add(run.events)
    >>> times.mostly_syncs()
    frozenset()
    """

    columns = ("rank", "thread", "call", "depth", "start", "duration")
    requires = ANY_ORDER
    results = ("_time_ns",)

    def __init__(self, phases: Phases) -> None:
        self._phases = phases
        self._time_ns = np.zeros((2, phases.count + 1))

    def add(self, chunk: Events) -> None:
        """Add events."""
        phase = self._phases.phase_index(chunk)
        io = is_io_of_calls(chunk.calls)[chunk.call] & (chunk.depth == 0) & (phase > 0)
        sync = io & _is_sync(chunk.calls)[chunk.call]
        for row, chosen in zip(self._time_ns, (io, sync), strict=True):
            row += np.bincount(phase[chosen], chunk.duration[chosen], minlength=len(row))

    def merge(self, other: SyncTime) -> None:
        """Add a summary of the same phases."""
        self._time_ns += other._time_ns

    def to_arrays(self) -> dict[str, np.ndarray]:
        """Return ``io_ns`` and ``sync_ns`` by phase; index 0 is not used."""
        return {"io_ns": self._time_ns[0], "sync_ns": self._time_ns[1]}

    def mostly_syncs(self) -> frozenset[int]:
        """Return the phases of which more than half of the time in I/O was spent in syncs."""
        whole, sync = self._time_ns
        return frozenset(np.flatnonzero(2 * sync > whole).tolist())

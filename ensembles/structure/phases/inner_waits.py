"""Waiting inside phases: in collective calls of MPI, before the last I/O call of a task in the phase."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ensembles.model.distinct import distinct_rows
from ensembles.model.events import Call, Events, is_io_of_calls, of_calls
from ensembles.model.fields import Fields
from ensembles.model.statement import LowerBound
from ensembles.model.units import NS_PER_S
from ensembles.passes.summary import ANY_ORDER, Summary
from ensembles.structure.late_entry import LEAST_SHARE
from ensembles.structure.phases.critical_path import CriticalIo
from ensembles.structure.phases.result import Phases, tasks_meet
from ensembles.structure.phases.table import CriticalCall, PhaseTable, PhaseTotals

if TYPE_CHECKING:
    from ensembles.structure.recorded_run import RecordedRun


@dataclass(frozen=True)
class Meeting(Fields):
    """The collective call inside a phase in which tasks waited longest in all."""

    phase: int
    name: str | None  # Name that the program gave the phase
    call: str  # Function of MPI
    time_s: float  # Time that tasks waited in it, summed over tasks
    start_s: float  # Entry of the last task since the origin of the run
    last_task: int  # That task
    last_call: CriticalCall | None  # Its last I/O call of the phase before; None: there is none


@dataclass(frozen=True)
class WaitingInside(Fields):
    """Time that tasks waited inside phases."""

    # Time in collective calls of MPI before the last I/O call of a task in a phase, summed over tasks; none
    # of it is in `PhaseTotals.lost_s`. None: there are too many such calls.
    time_s: float | None
    share: float | None  # The same as a share of the time of all tasks in the run
    most: Meeting | None  # Where most of it was; None: no such call was met by several tasks


def waiting_inside(
    run: RecordedRun,
    phases: Phases,
    totals: Sequence[PhaseTotals],
    waits: CriticalIo,
) -> WaitingInside | None:
    """Tell how long tasks waited inside phases, and for which task most.

    None: less than `LEAST_SHARE` of the time of the tasks in the phases, or nothing shows that they wait.
    """
    if not tasks_meet(run.info, phases):
        return None
    if not waits.is_complete:
        return WaitingInside(None, None, None)
    rows, waited_ns = waits.inside()
    whole_s = sum(entry.time_s * entry.tasks for entry in totals if entry.calls)
    time_s = float(waited_ns.sum()) / NS_PER_S
    if not whole_s or time_s < LEAST_SHARE * whole_s:
        return None
    share = time_s / (run.tasks * run.length_s) if run.length_s > 0 else None
    return WaitingInside(time_s, share, _most(run, phases, waits, rows, waited_ns))


def _most(
    run: RecordedRun, phases: Phases, waits: CriticalIo, rows: dict[str, np.ndarray], waited_ns: np.ndarray
) -> Meeting | None:
    """Find the meeting in which tasks waited longest in all.

    The n-th calls of a function by the tasks of a phase belong together if the task that leaves last is still
    in its call when the last one enters. Of calls of several communicators they may not.
    """
    order = np.lexsort((rows["start_ns"], rows["rank"], rows["call"], rows["phase"]))
    phase, rank, call, start, end = (
        rows[name][order] for name in ("phase", "rank", "call", "start_ns", "end_ns")
    )
    waited_ns = waited_ns[order]
    keys = np.stack([phase, call, rank])
    first = np.flatnonzero(np.append(True, (np.diff(keys, axis=1) != 0).any(axis=0)))
    ordinal = np.arange(len(order)) - np.repeat(first, np.diff(np.append(first, len(order))))
    _, group = distinct_rows(phase, call, ordinal)
    size = int(group.max()) + 1
    entered, left = np.full(size, np.iinfo(np.int64).min), np.full(size, np.iinfo(np.int64).min)
    np.maximum.at(entered, group, start)
    np.maximum.at(left, group, end)
    members = np.bincount(group, minlength=size)
    # Only the time until the last one enters is waiting for it.
    waiting_ns = np.minimum(waited_ns, np.maximum(entered[group] - start, 0)).astype(np.float64)
    of_group = np.bincount(group, waiting_ns, minlength=size)
    of_group[(members < 2) | (left + run.info.clock_error_ns < entered)] = 0.0
    best = int(np.argmax(of_group))
    if not of_group[best] > 0:
        return None
    mine = np.flatnonzero(group == best)
    last = mine[np.argmax(start[mine])]
    number, task, moment_s = int(phase[last]), int(rank[last]), int(start[last]) / NS_PER_S
    names = phases.names
    return Meeting(
        number,
        None if names is None else names[number - 1],
        waits.name_of(int(call[last])),
        float(of_group[best]) / NS_PER_S,
        moment_s,
        task,
        _call_before(run, phases, number, task, moment_s),
    )


def _call_before(
    run: RecordedRun, phases: Phases, number: int, task: int, moment_s: float
) -> CriticalCall | None:
    """Return the I/O call of a task in a phase that returned last before a moment."""
    table = PhaseTable(phases)
    table.add(run.select(rank=task, time=f"0..{moment_s!r}"))
    return next((entry.last_call for entry in table.totals() if entry.phase == number), None)


def without_idle(totals: Sequence[PhaseTotals]) -> list[PhaseTotals]:
    """Replace idle times by NaN, where tasks do not meet (`tasks_meet`) or only failed calls are known."""
    return [replace(entry, lost_s=math.nan, lost_share=math.nan) for entry in totals]


@dataclass(frozen=True)
class IdleTime(Fields):
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
        return {key: value for key, value in super().to_json().items() if key not in ("tasks", "run_s")}


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
    >>> from ensembles.structure.phases.inner_waits import SyncTime
    >>> run = en.open("ensio-ior")
    >>> times = SyncTime(run.phases)
    >>> times.add(run.events)
    >>> times.mostly_syncs()
    frozenset()
    """

    columns = ("rank", "thread", "call", "depth", "start", "duration")
    requires = ANY_ORDER
    results = ("_time_ns",)
    added_up = ("_time_ns",)

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

    def mostly_syncs(self) -> frozenset[int]:
        """Return the phases of which more than half of the time in I/O was spent in syncs."""
        whole, sync = self._time_ns
        return frozenset(np.flatnonzero(2 * sync > whole).tolist())

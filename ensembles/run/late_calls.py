"""Of each phase of a run, the calls that made its last task late."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from ensembles.run.selection import Selection
from ensembles.structure.phases.late_calls import TimeInCalls

if TYPE_CHECKING:
    from ensembles.run.run import Run
    from ensembles.structure.phases.result import Phases
    from ensembles.structure.phases.table import PhaseTotals


def with_late_calls(
    run: Run, phases: Phases, totals: Sequence[PhaseTotals], selection: Selection | None = None
) -> list[PhaseTotals]:
    """Add to the totals of phases the calls in which their last task spent the time by which it is late.

    Only the calls of two tasks of each phase are read: the last one, and the one in the middle of the others.

    Parameters
    ----------
    run : Run
    phases : Phases
    totals : sequence of PhaseTotals
    selection : Selection, optional
        Of the calls that were added to `totals`, for this run. Default: all.

    Returns
    -------
    list of PhaseTotals
        With `PhaseTotals.late_calls` or, if these are None, `PhaseTotals.late_outside`.
    """
    tasks = [
        (entry.phase, entry.slowest_task, entry.middle_task)
        for entry in totals
        if entry.calls and entry.middle_task is not None and entry.later_s > 0
    ]
    if not tasks:
        return list(totals)
    wanted = selection or Selection()
    ranks = sorted({rank for _, *both in tasks for rank in both})
    mine = replace(wanted, ranks=tuple((rank, rank) for rank in ranks)).for_run(run)
    make = partial(_made, phases, tasks, wanted.layers is None and wanted.calls is None)
    found = run.summarize(make, TimeInCalls.columns, mine)
    return [_with_reason(entry, found) for entry in totals]


def _with_reason(entry: PhaseTotals, found: TimeInCalls) -> PhaseTotals:
    if entry.middle_task is None or not entry.calls or entry.later_s <= 0:
        return entry
    late = found.late(entry.phase, entry.later_s)
    outside = found.outside(entry.phase, entry.later_s) if late is None else None
    return replace(entry, late_calls=late, late_outside=outside)


def _made(phases: Phases, tasks: Sequence[tuple[int, int, int]], outermost: bool, _: Any) -> TimeInCalls:
    return TimeInCalls(phases, tasks, outermost)

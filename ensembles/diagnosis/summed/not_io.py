"""A program that spends its time elsewhere, in sums by task."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ensembles.diagnosis.finding import Finding, Where
from ensembles.diagnosis.remedy import little_io
from ensembles.diagnosis.summed.case import SummedCase
from ensembles.model.spans import MOST_SPANS, find_spans
from ensembles.model.units import seconds_text, share_text
from ensembles.structure.phases.waiting import tasks_meet

if TYPE_CHECKING:
    from ensembles.run.run import Run


def find_summed(run: Run, most_share: float) -> Finding | None:
    """Compare the I/O time of the busiest task with the length of the run.

    Parameters
    ----------
    run : Run
    most_share : float
        Share of the run below which I/O is not the cause.
    """
    case = SummedCase(run)
    if not len(case) or case.run_s <= 0:
        return None
    # Tasks that do not meet may do their I/O one after the other, and the run waits for all of it.
    is_summed = not tasks_meet(run.info, None)
    io_s = float(case.busy_s.sum() if is_summed else case.busy_s.max())
    if io_s >= most_share * case.run_s:
        return None
    return little_io(
        io_s,
        case.run_s,
        Where(tasks=len(case.ranks), ranks=find_spans(case.ranks, MOST_SPANS)),
        f"{'all tasks together are' if is_summed else 'no task is'} in I/O for "
        f"{'' if is_summed else 'more than '}{seconds_text(io_s)} of {seconds_text(case.run_s)}",
        f"I/O takes at most {share_text(io_s / case.run_s, 1)} of this run in "
        f"{'all tasks together' if is_summed else 'any task'}",
    )

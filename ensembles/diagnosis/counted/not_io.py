"""A job whose slowest rank spends little of it in I/O, by counters."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ensembles.diagnosis.finding import Finding, Where
from ensembles.diagnosis.remedy import little_io
from ensembles.diagnosis.rule import NotApplicable
from ensembles.model.units import seconds_text, share_text

if TYPE_CHECKING:
    from ensembles.run.run import Run


def counted_bound_s(run: Run) -> float:
    """Bound the time of any rank in counted calls, s; 0: nothing was counted.

    Raises
    ------
    NotApplicable
        The log has modules of I/O that are not read.
    """
    if run.counters.unread:
        raise NotApplicable(
            f"Darshan's module {' or '.join(run.counters.unread)} may hold more I/O, and is not read: record "
            "the run with ensio run"
        )
    # Interfaces lie inside one another, and files of one are not always files of the other.
    return sum(module.slowest_rank_s for module in run.counters.modules.values())


def find_counted(run: Run, most_share: float) -> Finding | None:
    """Compare the time of the slowest rank in all interfaces with the length of the job."""
    counters = run.counters
    if counters.run_time_s <= 0:
        raise NotApplicable("the log has no counters of I/O: switch the module POSIX on when you record")
    io_s = counted_bound_s(run)
    share = io_s / counters.run_time_s
    if share >= most_share:
        return None
    return little_io(
        io_s,
        counters.run_time_s,
        Where(tasks=run.tasks, ranks=((0, run.tasks - 1),)),
        f"no rank spends more than {seconds_text(io_s)} of {seconds_text(counters.run_time_s)} in calls of "
        f"{', '.join(counters.modules)}",
        f"I/O takes at most {share_text(share, 1)} of this job in any rank",
    )

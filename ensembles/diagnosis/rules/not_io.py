"""Rule ``not-io``: the program spends its time elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ensembles.diagnosis.case import Case
from ensembles.diagnosis.evidence_rule import EvidenceRule
from ensembles.diagnosis.finding import FROM_SHARE, SURE, Check, Finding, NotApplicable, Where
from ensembles.diagnosis.principles import TURNS
from ensembles.model.levels import LITTLE
from ensembles.model.spans import MOST_SPANS, find_spans
from ensembles.model.units import seconds_text, share_text

if TYPE_CHECKING:
    from ensembles.run.run import Run


def counted_bound_s(run: Run) -> float:
    """Bound the time of any rank in counted calls, s; 0: nothing was counted."""
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
    _refuse_unseen(run)
    return little_io(
        io_s,
        counters.run_time_s,
        Where(tasks=run.tasks, ranks=((0, run.tasks - 1),)),
        f"no rank spends more than {seconds_text(io_s)} of {seconds_text(counters.run_time_s)} in calls of "
        f"{', '.join(counters.modules)}",
        f"I/O takes at most {share_text(share, 1)} of this job in any rank",
    )


def little_io(io_s: float, run_s: float, where: Where, observed: str, title: str) -> Finding:
    """Make the finding ``not-io``: I/O takes `io_s` of the run at most."""
    return Finding(
        "not-io",
        SURE,
        where,
        {"io_share": io_s / run_s, "io_s": io_s, "run_s": run_s},
        (Check("little-io", observed),),
        "look at computation and communication first",
        (0.0, io_s),
        title,
    )


class NotIo(EvidenceRule):
    """I/O blocks the tasks that arrive last for less than `LITTLE` of the run.

    Where a run does not show who waits for whom, the time counts in which at least one task is in I/O; if the
    tasks that the account is of are in I/O for less, the run does not decide it.
    """

    def evaluate_calls(self, case: Case) -> list[Finding]:
        """Evaluate the rule on single calls."""
        lasts_s, path = case.run_s, case.critical
        if not len(case) or lasts_s <= 0 or path.low_s >= LITTLE * lasts_s:
            return []
        io_s = path.io_s
        if io_s >= LITTLE * lasts_s:
            between = f"from {seconds_text(path.low_s)} to {seconds_text(io_s)} of {seconds_text(lasts_s)}"
            raise NotApplicable(f"I/O takes {between}: nothing recorded shows which tasks wait for which")
        _refuse_unseen(case.run)
        # DXT traces reads and writes only; the counters hold all calls.
        counted_s = counted_bound_s(case.run)
        if counted_s >= LITTLE * lasts_s:
            raise NotApplicable(
                f"the counters hold {seconds_text(counted_s)} of I/O of one rank, most of it in calls that "
                "were not traced (ensio info): record the run with ensio run, which traces all calls"
            )
        if counted_s > io_s and (found := find_counted(case.run, LITTLE)) is not None:
            return [found]
        share = io_s / lasts_s
        blocks = "I/O blocks the critical path for"
        title = f"I/O is {share_text(share, 1)} of the critical path of this run"
        if case.model.waiting_s is None:
            who = "task" if len(case.ranks) > 1 else "thread"
            blocks = f"some {who} is in I/O for at most"
            title = f"some {who} is in I/O for at most {share_text(share, 1)} of this run"
        where = Where(tasks=len(case.ranks), ranks=find_spans(case.ranks, MOST_SPANS))
        observed = f"{blocks} {seconds_text(io_s)} of {seconds_text(lasts_s)}"
        return [little_io(io_s, lasts_s, where, observed, title)]


def beside_others(findings: Sequence[Finding], run_s: float | None) -> list[Finding]:
    """Take ``not-io`` off where another finding of I/O may gain a tenth of the run."""
    of_io = (each for each in findings if each.kind.in_io or each.id in ("not-io", TURNS))
    most_s = max((each.gain_s[1] for each in of_io if each.gain_s is not None), default=0.0)
    if run_s is not None and most_s >= FROM_SHARE["critical"] * run_s:
        return [each for each in findings if each.id != "not-io"]
    return list(findings)


def _refuse_unseen(run: Run) -> None:
    """Refuse a run with I/O that was not recorded or is lost, whose time is unknown."""
    if lacks := run.reading.lacking():
        raise NotApplicable(lacks)


rule = NotIo(
    "not-io",
    lambda case: None,
    counted=lambda run: find_counted(run, LITTLE),
    summed=lambda case: None,
)

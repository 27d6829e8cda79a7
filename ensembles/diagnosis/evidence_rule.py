"""A rule that reads the shared evidence: only its statistic is its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ensembles.diagnosis.case import Case
from ensembles.diagnosis.evidence import Evidence
from ensembles.diagnosis.finding import Finding
from ensembles.diagnosis.remedy import Remedy, make_finding
from ensembles.diagnosis.rule import every_call_needed
from ensembles.diagnosis.summed.case import has_sums_only
from ensembles.passes.group import SummaryRequest

if TYPE_CHECKING:
    from ensembles.run.run import Run

SUMMARY = "evidence"


@dataclass(frozen=True)
class EvidenceRule:
    """A rule whose decision is a function of a `Case`.

    Attributes
    ----------
    ID : str
        Id of its findings.
    find : callable
        Returns a `Remedy`, or None; raises `NotApplicable` if the run cannot show the cause.
    what : str
        What needs all calls, for the refusal of runs that keep only sums.
    counted : callable, optional
        Finds the cause in the counters of a run that has no calls (`Run.counters`): a `Finding`, or None.
    summed : callable, optional
        The same in the recorded summary of a run that keeps not every call (`SummedCase`).
    of_each_call : bool
        It explains what single calls cost, whatever else there is (`Finding.of_each_call`).
    """

    ID: str
    find: Callable[[Case], Remedy | None]
    what: str = "the calls of each phase and task"
    counted: Callable[[Run], Finding | None] | None = None
    summed: Callable[[Run], Finding | None] | None = None
    of_each_call: bool = False

    @property
    def NEEDS(self) -> Mapping[str, SummaryRequest]:
        """The shared evidence."""
        return {SUMMARY: SummaryRequest(Evidence.for_run, Evidence.columns)}

    def preconditions(self, run: Run) -> None:
        """Check the metadata of a run (`ensembles.diagnosis.rule.Rule.preconditions`)."""
        if way_without_calls(run, self.counted, self.summed) is None:
            every_call_needed(run, self.what)

    def evaluate(self, run: Run, summaries: Mapping[str, Any]) -> list[Finding]:
        """Evaluate the rule (`ensembles.diagnosis.rule.Rule.evaluate`)."""
        find = way_without_calls(run, self.counted, self.summed)
        if find is not None:
            found = find(run)
            return [] if found is None else [found]
        return self.evaluate_calls(case_of(run, summaries[SUMMARY]))

    def evaluate_calls(self, case: Case) -> list[Finding]:
        """Evaluate the rule on single calls."""
        remedy = self.find(case) if len(case) else None
        return [] if remedy is None else make_finding(case, self.ID, remedy, self.of_each_call)


def has_counters_only(run: Run) -> bool:
    """Whether a run has counters by file and rank instead of calls."""
    return run.counters is not None and not run.info.has_all_events


def way_without_calls(
    run: Run,
    counted: Callable[[Run], Finding | None] | None,
    summed: Callable[[Run], Finding | None] | None,
) -> Callable[[Run], Finding | None] | None:
    """Return how a rule finds its cause in a run that keeps not every call; None: it needs the calls."""
    if counted is not None and has_counters_only(run):
        return counted
    return summed if summed is not None and has_sums_only(run) else None


def case_of(run: Run, evidence: Evidence) -> Case:
    """Return the case of filled evidence, which rules share."""
    if evidence.case is None:
        evidence.case = Case(run, evidence)
    return evidence.case

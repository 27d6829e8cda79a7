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
    """

    ID: str
    find: Callable[[Case], Remedy | None]
    what: str = "the calls of each phase and task"

    @property
    def NEEDS(self) -> Mapping[str, SummaryRequest]:
        """The shared evidence."""
        return {SUMMARY: SummaryRequest(Evidence.for_run, Evidence.columns)}

    def preconditions(self, run: Run) -> None:
        """Check the metadata of a run (`ensembles.diagnosis.rule.Rule.preconditions`)."""
        every_call_needed(run, self.what)

    def evaluate(self, run: Run, summaries: Mapping[str, Any]) -> list[Finding]:
        """Evaluate the rule (`ensembles.diagnosis.rule.Rule.evaluate`)."""
        case = case_of(run, summaries[SUMMARY])
        remedy = self.find(case) if len(case) else None
        return [] if remedy is None else make_finding(case, self.ID, remedy)


def case_of(run: Run, evidence: Evidence) -> Case:
    """Return the case of filled evidence, which rules share."""
    if evidence.case is None:
        evidence.case = Case(run, evidence)
    return evidence.case

"""A rule that reads a summary besides the shared evidence."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ensembles.diagnosis.case import Case
from ensembles.diagnosis.evidence import Evidence
from ensembles.diagnosis.evidence_rule import SUMMARY, case_of, way_without_calls
from ensembles.diagnosis.file_uses import FileUses
from ensembles.diagnosis.finding import Finding
from ensembles.diagnosis.remedy import Remedy, make_finding
from ensembles.diagnosis.rule import every_call_needed
from ensembles.passes.group import SummaryRequest

if TYPE_CHECKING:
    from ensembles.run.run import Run

FILE_USES = SummaryRequest(FileUses.for_run, FileUses.columns)


@dataclass(frozen=True)
class RuleWithSummary:
    """A rule whose decision is a function of a `Case` and of another filled summary.

    Attributes
    ----------
    ID : str
        Id of its findings.
    find : callable
        Returns a `Remedy`, or None; raises `NotApplicable` if the run cannot show the cause.
    what : str
        What needs all calls, for the refusal of runs that keep only sums.
    name : str
        Name of the summary. Rules with the same name share it.
    request : SummaryRequest
    check : callable, optional
        Raises `NotApplicable` if the metadata of the run show that the summary would be of no use.
    counted : callable, optional
        Finds the cause in the counters of a run that has no calls (`Run.counters`): a `Finding`, or None.
    summed : callable, optional
        The same in the recorded summary of a run that keeps not every call (`SummedCase`).
    counts_more : bool
        The counters of a log know calls that its events lack: Darshan's DXT traces reads and writes only.
    of_each_call : bool
        It explains what single calls cost, whatever else there is (`Finding.of_each_call`).
    """

    ID: str
    find: Callable[[Case, Any], Remedy | None]
    what: str = "the files of each phase and task"
    name: str = "file-uses"
    request: SummaryRequest = FILE_USES
    check: Callable[[Run], None] | None = None
    counted: Callable[[Run], Finding | None] | None = None
    summed: Callable[[Run], Finding | None] | None = None
    counts_more: bool = False
    of_each_call: bool = False

    @property
    def NEEDS(self) -> Mapping[str, SummaryRequest]:
        """The shared evidence and the summary."""
        return {SUMMARY: SummaryRequest(Evidence.for_run, Evidence.columns), self.name: self.request}

    def preconditions(self, run: Run) -> None:
        """Check the metadata of a run (`ensembles.diagnosis.rule.Rule.preconditions`)."""
        if self._way(run) is not None:
            return
        if self.check is not None:
            self.check(run)
        every_call_needed(run, self.what)

    def evaluate(self, run: Run, summaries: Mapping[str, Any]) -> list[Finding]:
        """Evaluate the rule (`ensembles.diagnosis.rule.Rule.evaluate`)."""
        find = self._way(run)
        if find is not None:
            found = find(run)
            return [] if found is None else [found]
        case = case_of(run, summaries[SUMMARY])
        remedy = self.find(case, summaries[self.name]) if len(case) else None
        return [] if remedy is None else make_finding(case, self.ID, remedy, self.of_each_call)

    def _way(self, run: Run) -> Callable[[Run], Finding | None] | None:
        if self.counts_more and run.counters is not None:
            return self.counted
        return way_without_calls(run, self.counted, self.summed)

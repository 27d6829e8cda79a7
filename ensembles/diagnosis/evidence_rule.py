"""Rules, each of which recognises one cause of slow I/O, mostly in evidence that they share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from ensembles.diagnosis.case import Case
from ensembles.diagnosis.evidence import Evidence
from ensembles.diagnosis.file_uses import FileUses
from ensembles.diagnosis.finding import Finding, NotApplicable
from ensembles.diagnosis.remedy import Remedy, make_finding
from ensembles.diagnosis.without_calls import EvidenceOfSums
from ensembles.model.errors import EnsioError
from ensembles.model.holds import Holds
from ensembles.passes.group import SummaryRequest

if TYPE_CHECKING:
    from ensembles.run.run import Run

SUMMARY = "evidence"

FILE_USES = {"file-uses": SummaryRequest(FileUses.for_run, FileUses.columns)}


def every_call_needed(run: Run) -> None:
    """Refuse runs that do not keep every call as an event."""
    try:
        run.reading.need(Holds.CALL_ORDER, "this cause shows in single calls")
    except EnsioError as error:
        raise NotApplicable(str(error)) from None


@dataclass(frozen=True)
class EvidenceRule:
    """A rule whose decision is a function of a `Case`, and perhaps of another filled summary."""

    ID: str  # Id of its findings
    # Takes the case and the filled `summary`, if there is one. Returns a `Remedy`, or None; raises
    # `NotApplicable` if the run cannot show the cause.
    find: Callable[..., Remedy | None]
    # One summary besides the evidence, by its name. Rules with the same name share it.
    summary: Mapping[str, SummaryRequest] | None = None
    # Raises `NotApplicable` if the metadata of the run show that the summary would be of no use
    check: Callable[[Run], None] | None = None
    # Finds the cause in the counters of a log (`Run.counters`) that lacks calls
    counted: Callable[[Run], Finding | None] | None = None
    # As `find`, of a case whose evidence was recorded as sums; None: sums cannot show the cause
    summed: Callable[..., Remedy | None] | None = None
    # The counters of a log know calls that its events lack: Darshan's DXT traces reads and writes only
    counts_more: bool = False

    # It is made for a run that has counters, or sums, in place of calls, and needs no pass
    is_of_counters: bool = False
    is_of_sums: bool = False

    @property
    def NEEDS(self) -> Mapping[str, SummaryRequest]:
        """The shared evidence, and the summary."""
        evidence = {SUMMARY: SummaryRequest(Evidence.for_run, Evidence.columns)}
        return {} if self.is_of_sums or self.is_of_counters else {**evidence, **(self.summary or {})}

    def preconditions(self, run: Run) -> EvidenceRule | None:
        """Check the metadata of a run, before its events are read; return the rule for others than calls."""
        is_whole = run.info.has(Holds.ALL_CALLS)
        if run.counters.modules:
            if self.counted is not None and (self.counts_more or not is_whole):
                return replace(self, is_of_counters=True)
        elif self.summed is not None and not is_whole and has_sums(run):
            return self.of_sums()
        if self.check is not None:
            self.check(run)
        every_call_needed(run)
        return None

    def of_sums(self) -> EvidenceRule:
        """Return the rule for runs that have sums in place of calls."""
        assert self.summed is not None
        return replace(self, find=self.summed, is_of_sums=True)

    def evaluate(self, run: Run, summaries: Mapping[str, Any]) -> list[Finding]:
        """Evaluate the rule on filled summaries, by their names in `NEEDS`."""
        if self.is_of_counters and self.counted is not None:
            found = self.counted(run)
            return [] if found is None else [found]
        return self.evaluate_calls(
            case_of(run, summaries[SUMMARY]), *(summaries[name] for name in self.summary or ())
        )

    def evaluate_calls(self, case: Case, *summary: Any) -> list[Finding]:
        """Evaluate the rule on a case."""
        remedy = self.find(case, *summary) if len(case) else None
        return [] if remedy is None else make_finding(case, self.ID, remedy)


def has_sums(run: Run) -> bool:
    """Whether there are sums by function, size class and task."""
    return bool(run.summary.durations_known and run.reading.known_ranks)


def summaries_of_sums(run: Run, rules: Iterable[EvidenceRule]) -> dict[str, Any]:
    """Return what rules need of a run that has sums in place of calls: other summaries are empty."""
    mine = [rule for rule in rules if rule.is_of_sums]
    empty = {name: need.make(run) for rule in mine for name, need in (rule.summary or {}).items()}
    return {SUMMARY: EvidenceOfSums.for_run(run), **empty} if mine else {}


def case_of(run: Run, evidence: Evidence) -> Case:
    """Return the case of filled evidence, which rules share."""
    return evidence.shared(partial(Case, run))

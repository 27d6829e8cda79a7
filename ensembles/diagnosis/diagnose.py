"""Puts all rules to a run: which summaries they need, one pass that fills these, and what they say."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ensembles.diagnosis.finding import Diagnosis, Finding, NotExamined
from ensembles.diagnosis.rule import NotApplicable, Rule
from ensembles.diagnosis.rules.strided_readahead import rule as strided_readahead
from ensembles.passes.group import SummaryGroup, SummaryRequest

if TYPE_CHECKING:
    from ensembles.run.run import Run

RULES: tuple[Rule, ...] = (strided_readahead,)
"""All that there are."""


def diagnose(run: Run, rules: Sequence[Rule] = RULES) -> Diagnosis:
    """Why the I/O of a run is slow.

    Parameters
    ----------
    run : Run
    rules : sequence of Rule
        Those to judge by; default: all.

    Returns
    -------
    Diagnosis
        Findings, the strongest first; and the rules that could not be judged by, each with the reason.

    Raises
    ------
    EnsioError
        The run cannot be read, or more memory is needed than there may be.
    """
    examination = DiagnosisPass(run, rules)
    return examination.evaluate(run.summarize(examination.requests) if examination.requests else None)


class DiagnosisPass:
    """What rules ask of a run, for callers that make a pass over its events anyway.

    Parameters
    ----------
    run : Run
    rules : sequence of Rule

    Attributes
    ----------
    requests : dict of str to SummaryRequest
        Summaries that the rules need; none: there is nothing to ask of the events.
    """

    def __init__(self, run: Run, rules: Sequence[Rule] = RULES) -> None:
        self._run, self._rules = run, rules
        self._refused: dict[str, str] = {}
        self._wanted: list[Rule] = []
        for rule in rules:
            try:
                rule.preconditions(run)
                self._wanted.append(rule)
            except NotApplicable as reason:
                self._refused[rule.ID] = str(reason)
        self.requests: dict[str, SummaryRequest] = {
            name: need for rule in self._wanted for name, need in rule.NEEDS.items()
        }

    def evaluate(self, group: SummaryGroup | None) -> Diagnosis:
        """The findings of all rules.

        Parameters
        ----------
        group : SummaryGroup or None
            The filled summaries of `requests`, and perhaps others; None: there are no requests.
        """
        run, refused = self._run, dict(self._refused)
        findings: list[Finding] = []
        notes = list(run.notes)
        summaries = {} if group is None else group.summaries
        for rule in self._wanted:
            try:
                findings += rule.evaluate(run, {name: summaries[name] for name in rule.NEEDS})
            except NotApplicable as reason:
                refused[rule.ID] = str(reason)
        return Diagnosis(
            run=run.path,
            findings=tuple(sorted(findings, key=lambda finding: finding.weight, reverse=True)),
            examined=tuple(rule.ID for rule in self._rules if rule.ID not in refused),
            not_examined=tuple(NotExamined(name, reason) for name, reason in refused.items()),
            notes=tuple(notes),
        )

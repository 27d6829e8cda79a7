"""Puts all rules to a run: which summaries they need, one pass that fills these, and what they say."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from ensembles.diagnosis import strided_readahead
from ensembles.diagnosis.finding import Diagnosis, Finding, NotExamined
from ensembles.diagnosis.gathered import Gathered
from ensembles.diagnosis.rule import CannotSay, Rule

if TYPE_CHECKING:
    from ensembles.run import Run

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
    examination = Examination(run, rules)
    return examination.of(run.gather(examination.make, examination.columns) if examination.columns else None)


class Examination:
    """What rules ask of a run, for who makes a pass over its events anyway.

    Parameters
    ----------
    run : Run
    rules : sequence of Rule

    Attributes
    ----------
    make : callable
        Run → an empty summary, which is filled in the pass.
    columns : frozenset of str
        Columns of events that it needs; none: there is nothing to ask of the events.
    """

    def __init__(self, run: Run, rules: Sequence[Rule] = RULES) -> None:
        self._run, self._rules = run, rules
        self._refused: dict[str, str] = {}
        self._wanted: list[Rule] = []
        for rule in rules:
            try:
                rule.preconditions(run)
                self._wanted.append(rule)
            except CannotSay as reason:
                self._refused[rule.ID] = str(reason)
        needs = {name: need for rule in self._wanted for name, need in rule.NEEDS.items()}
        self.make: Callable[[Run], Gathered] = partial(Gathered, needs)
        columns = frozenset(column for need in needs.values() for column in need.columns)
        self.columns = columns | {"rank"} if needs else columns

    def of(self, gathered: Gathered | None) -> Diagnosis:
        """What the rules say to what was gathered; None: nothing was, as they ask for nothing."""
        run, refused = self._run, dict(self._refused)
        findings: list[Finding] = []
        notes = list(run.notes)
        if gathered is not None and gathered.left_out:
            notes.append(
                f"{gathered.left_out:,} tasks made more calls than may be held at once, and the order of "
                "their calls was not looked at: give more memory (--memory)"
            )
        summaries = {} if gathered is None else gathered.summaries
        for rule in self._wanted:
            try:
                findings += rule.examine(run, {name: summaries[name] for name in rule.NEEDS})
            except CannotSay as reason:
                refused[rule.ID] = str(reason)
        return Diagnosis(
            run=run.path,
            findings=tuple(sorted(findings, key=lambda finding: finding.weight, reverse=True)),
            examined=tuple(rule.ID for rule in self._rules if rule.ID not in refused),
            not_examined=tuple(NotExamined(name, reason) for name, reason in refused.items()),
            notes=tuple(notes),
        )

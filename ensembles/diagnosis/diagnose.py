"""Puts all rules to a run: which summaries they need, one pass that fills these, and what they say."""

from __future__ import annotations

from collections.abc import Sequence
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
    refused: dict[str, str] = {}
    wanted = []
    for rule in rules:
        try:
            rule.preconditions(run)
            wanted.append(rule)
        except CannotSay as reason:
            refused[rule.ID] = str(reason)
    needs = {name: need for rule in wanted for name, need in rule.NEEDS.items()}
    findings: list[Finding] = []
    notes = list(run.notes)
    if needs:
        columns = {column for need in needs.values() for column in need.columns} | {"rank"}
        gathered = run.gather(partial(Gathered, needs), columns)
        notes = list(run.notes)
        if gathered.left_out:
            notes.append(
                f"{gathered.left_out:,} tasks made more calls than may be held at once, and the order of "
                "their calls was not looked at: give more memory (--memory)"
            )
        for rule in wanted:
            try:
                findings += rule.examine(run, {name: gathered.summaries[name] for name in rule.NEEDS})
            except CannotSay as reason:
                refused[rule.ID] = str(reason)
    return Diagnosis(
        run=run.path,
        findings=tuple(sorted(findings, key=lambda finding: finding.weight, reverse=True)),
        examined=tuple(rule.ID for rule in rules if rule.ID not in refused),
        not_examined=tuple(NotExamined(name, reason) for name, reason in refused.items()),
        notes=tuple(notes),
    )

"""Which remedy of ``ensio try`` tests a finding."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from ensembles.model.calls import STORAGE
from ensembles.model.errors import EnsioError

if TYPE_CHECKING:
    from ensembles.diagnosis.finding import Finding
    from ensembles.run.run import Run
    from ensembles.workloads.recorded.accesses import Accesses

_MOST_CALLS = 1 << 20
"""Calls of the largest run whose findings name trials: what remedies change of so many takes a second."""


def with_trials(run: Run, findings: Sequence[Finding]) -> list[Finding]:
    """Give findings the remedies that change the calls that they concern; the run is read if one has any."""
    from ensembles.workloads.recorded.accesses import read_accesses

    named = {number: each.proposed_trial for number, each in enumerate(findings)}
    if not any(named.values()) or run.reading.source.capacity > _MOST_CALLS:
        return list(findings)
    try:
        found = read_accesses(run)
    except EnsioError:  # it cannot be made again
        return list(findings)
    functions = [
        [(call.layer, call.name) for call in run.calls if call.name in (each.where.calls or ())]
        for each in findings
    ]
    return [
        replace(each, trial=named[number]) if named[number] and _changes(found, named[number], mine) else each
        for number, (each, mine) in enumerate(zip(findings, functions, strict=True))
    ]


def _changes(found: Accesses, remedy: str, functions: Sequence[tuple[str, str]]) -> bool:
    """Whether a remedy can be applied and changes calls of some functions, given as (layer, name)."""
    from ensembles.workloads.recorded.accesses import MADE_AS
    from ensembles.workloads.recorded.remedies import remedy_named

    try:
        changed = remedy_named(remedy).apply(found)
    except EnsioError:
        return False
    if not any(layer in STORAGE for layer, _ in functions):
        return True
    names = [MADE_AS.get(function, "") for function in functions]
    one, other = (
        np.column_stack([each.task, each.offset, each.bytes])[each.is_call(*names)]
        for each in (found, changed)
    )
    return not np.array_equal(one, other)

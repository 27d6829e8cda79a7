"""Which remedy of ``ensio try`` tests a finding."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from ensembles.model.calls import STORAGE
from ensembles.model.errors import EnsioError
from ensembles.summaries.active_time import MOST_EXACT

if TYPE_CHECKING:
    from ensembles.diagnosis.finding import Finding
    from ensembles.run.run import Run
    from ensembles.workloads.recorded.accesses import Accesses


def with_trials(run: Run, findings: Sequence[Finding]) -> list[Finding]:
    """Give findings the remedies that change the calls that they concern; the run is read if one has any."""
    from ensembles.workloads.recorded.accesses import read_accesses

    is_any = any(each.proposed_trial for each in findings)
    if not is_any or run.reading.source.capacity > MOST_EXACT:
        return list(findings)
    try:
        found = read_accesses(run)
    except EnsioError:  # it cannot be made again
        return list(findings)
    return [
        replace(each, trial=each.proposed_trial) if _has_trial(run, each, found) else each
        for each in findings
    ]


def _has_trial(run: Run, finding: Finding, found: Accesses) -> bool:
    """Whether the remedy that a finding proposes can be applied to a run, and changes its calls."""
    from ensembles.workloads.recorded.remedies import remedy_named

    try:
        changed = remedy_named(finding.proposed_trial).apply(found)
    except EnsioError:
        return False
    return changes(run, finding, found, changed)


def changes(run: Run, finding: Finding, before: Accesses, after: Accesses) -> bool:
    """Check whether a remedy, by the calls before and after it, changes those that a finding concerns."""
    from ensembles.workloads.recorded.accesses import MADE_AS

    functions = [(call.layer, call.name) for call in run.calls if call.name in (finding.where.calls or ())]
    if not any(layer in STORAGE for layer, _ in functions):
        return True
    names = [MADE_AS.get(function, "") for function in functions]
    one, other = (
        np.column_stack([each.task, each.offset, each.bytes])[each.is_call(*names)]
        for each in (before, after)
    )
    return not np.array_equal(one, other)

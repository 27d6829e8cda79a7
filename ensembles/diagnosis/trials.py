"""Which remedy of ``ensio try`` tests a finding."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from glob import escape
from typing import TYPE_CHECKING

import numpy as np

from ensembles.model.errors import EnsioError
from ensembles.model.levels import MOST_SEEN
from ensembles.run.selection import Selection
from ensembles.summaries.active_time import MOST_EXACT

if TYPE_CHECKING:
    from ensembles.diagnosis.finding import Finding
    from ensembles.run.run import Run
    from ensembles.workloads.recorded.accesses import Accesses


def with_trials(run: Run, findings: Sequence[Finding]) -> list[Finding]:
    """Give findings the remedies that change the calls that they concern; the run is read if one has any."""
    read: dict[Selection | None, Accesses | None] = {}
    named = []
    for finding in findings:
        part = _part_of(run, finding) if finding.proposed_trials else None
        if part not in read:
            read[part] = None if part is None else _read(run, part)
        found = read[part]
        named.append(finding if found is None else replace(finding, trial=_trial_of(run, finding, found)))
    return named


def _part_of(run: Run, finding: Finding) -> Selection | None:
    """Select the calls that show what a remedy changes: all, or of a large run some of its files."""
    capacity = run.reading.source.capacity
    if capacity <= MOST_EXACT:
        return Selection()
    begin_s, end_s = finding.where.times_s or (0.0, 0.0)
    end_s = begin_s + (end_s - begin_s) * MOST_SEEN / capacity
    if not end_s or capacity * end_s > MOST_EXACT * run.length_s:
        return None
    return Selection(times_s=((0.0, end_s),), file_globs=tuple(map(escape, finding.where.files)) or None)


def _read(run: Run, part: Selection) -> Accesses | None:
    from ensembles.workloads.recorded.accesses import read_accesses

    try:
        return read_accesses(run, part)
    except EnsioError:  # it cannot be made again
        return None


def _trial_of(run: Run, finding: Finding, found: Accesses) -> str:
    """Return the remedy that a finding proposes which changes most of its time; ``""``: none changes any."""
    from ensembles.workloads.recorded.remedies import remedy_named

    changed_ns = {}
    for name in finding.proposed_trials:
        try:
            after = remedy_named(name).apply(found)
        except EnsioError:
            continue
        if changes(run, finding, found, after):
            one, other = (each.duration[_concerned(run, finding, each)] for each in (found, after))
            changed_ns[name] = int(one.sum() - np.maximum(other, 0).sum())
    return max(changed_ns, key=changed_ns.__getitem__, default="")


def changes(run: Run, finding: Finding, before: Accesses, after: Accesses) -> bool:
    """Check whether a remedy, by the calls before and after it, changes those that a finding concerns."""
    one, other = (
        np.column_stack([each.task, each.offset, each.bytes])[_concerned(run, finding, each)]
        for each in (before, after)
    )
    return not np.array_equal(one, other)


def changed_share(run: Run, finding: Finding, before: Accesses, after: Accesses) -> float:
    """Return the part of the functions of a finding whose calls a remedy changes."""
    functions = finding.where.calls or ()
    each = (replace(finding, where=replace(finding.where, calls=(name,))) for name in functions)
    return sum(changes(run, one, before, after) for one in each) / max(len(functions), 1)


def _concerned(run: Run, finding: Finding, found: Accesses) -> np.ndarray:
    """Whether calls are those of a finding or, of calls that are made as those inside, on its files."""
    from ensembles.workloads.recorded.accesses import MADE_AS

    functions = [(call.layer, call.name) for call in run.calls if call.name in (finding.where.calls or ())]
    names = [MADE_AS[function] for function in functions if function in MADE_AS]
    mine = found.is_call(*names)
    if names and not mine.any():
        files = [number for number, path in enumerate(found.files) if path in finding.where.files]
        mine = np.isin(found.file, files)
    return mine

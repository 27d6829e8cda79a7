"""The task that enters collective calls late, and not because of I/O that rules examine."""

from __future__ import annotations

import numpy as np

from ensembles.diagnosis.case import Case
from ensembles.structure.late_entry import LateEntry, late_entry
from ensembles.summaries.collective_entries import CollectiveEntries, is_meeting

_LEAST_PART = 0.5
"""Part of its lateness that a task spends longer in other I/O calls than the others do."""


def enters_late(case: Case, entries: CollectiveEntries) -> LateEntry | None:
    """Find the task for which others wait in collective calls, unless its own I/O makes it late.

    Parameters
    ----------
    case : Case
    entries : CollectiveEntries
        Filled.

    Returns
    -------
    LateEntry or None
        None also if the time of the task in other calls explains half of its lateness or more: rules examine
        these.
    """
    run = case.run
    found = late_entry(entries, run.tasks, case.run_s, run.info.clock_error_ns)
    if found is None or found.rank not in case.ranks:
        return found
    # Storage calls inside a collective call are part of it.
    collective = bool(np.char.endswith(case.name, "_all").any())
    own = ~is_meeting(tuple(run.calls))[case.rows["call"]]
    own &= (case.rows["depth"] == 0) | (not collective)
    busy = np.bincount(case.task, np.where(own, case.rows["time_ns"], 0), len(case.ranks))
    mine = case.ranks == found.rank
    beyond_s = 1e-9 * float(busy[mine].sum() - np.median(busy[~mine])) if (~mine).any() else 0.0
    return None if beyond_s >= _LEAST_PART * found.late_s else found

"""One task that moves the data of all, while the others wait for it."""

from __future__ import annotations

import numpy as np

from ensembles.diagnosis.case import SMALL_CLASS, Case
from ensembles.diagnosis.finding import Check
from ensembles.diagnosis.remedy import Remedy
from ensembles.model.units import bytes_text, count_text, seconds_text
from ensembles.structure.late_entry import late_entry
from ensembles.summaries.collective_entries import CollectiveEntries

ADVICE = (
    "let every task move its own part (MPI_File_write_at_all, parallel HDF5 or NetCDF, or a file for each "
    "node); where one task must write, let the others go on meanwhile (a thread, or a task that only writes)"
)
_LIKELY, _LEAST = 0.5, 0.2
"""Parts of the bound: tasks that share a disk or a server are slower together than one alone."""


def find_one_task(case: Case, entries: CollectiveEntries) -> Remedy | None:
    """Share the transfers of phases in which one task alone moves data out to all tasks of the run.

    The others need not make any call: that they wait is seen in collective calls, which the one task enters
    late. Its transfers cost at most what it is late.
    """
    run = case.run
    data = np.isin(case.op, ("read", "write")) & (case.rows["bytes"] > 0) & (case.rows["depth"] == 0)
    if run.tasks < 2 or not data.any() or np.char.endswith(case.name, "_all").any():
        return None
    moved = case.by_cell(np.where(data, case.rows["bytes"], 0))
    alone = (moved > 0).sum(axis=1) == 1
    of_task = moved[alone].sum(axis=0)
    if not of_task.any():
        return None
    task = int(np.argmax(of_task))
    # Parts that are as small as a record cost the same as the whole.
    alone &= moved[:, task] >= run.tasks << SMALL_CLASS
    only = np.zeros(moved.shape, bool)
    only[alone, task] = True
    rows = case.of_cells(only) & (case.rows["depth"] == 0)
    rows &= data | np.isin(case.op, ("sync", "close"))
    late = late_entry(entries, run.tasks, case.run_s, run.info.clock_error_ns)
    if not (rows & data).any() or late is None or late.rank != int(case.ranks[task]):
        return None
    time_ns = np.where(rows, case.rows["time_ns"], 0)
    waited = min(late.late_s * 1e9 / max(float(time_ns.sum()), 1.0), 1.0)
    most = time_ns * ((1 - 1 / run.tasks) * waited)
    amount = bytes_text(float(case.rows["bytes"][rows & data].sum()))
    phases = count_text(int(alone.sum()), "phase")
    checks = (
        Check(
            "alone",
            True,
            f"in {phases}, task {late.rank} moves {amount}, and no other of {run.tasks} tasks moves any",
        ),
        Check(
            "others-wait", True, f"it enters collective calls {seconds_text(late.late_s)} after the others"
        ),
    )
    return Remedy(
        rows,
        _LIKELY * most,
        f"task {late.rank} alone of {run.tasks} moves data in {phases}, {amount} in all, and the others "
        f"wait for it in {late.call}",
        ADVICE,
        checks,
        {"tasks_of_run": run.tasks, "moved_bytes": int(case.rows["bytes"][rows & data].sum())},
        _LEAST * most,
        most,
    )

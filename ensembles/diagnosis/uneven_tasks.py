"""Tasks that move more bytes than the others, which wait for them; or one that moves the bytes of all."""

from __future__ import annotations

import numpy as np

from ensembles.diagnosis.cannot_tell import refuse_bytes_of_few, transfers
from ensembles.diagnosis.case import SMALL_CLASS, Case
from ensembles.diagnosis.finding import Check
from ensembles.diagnosis.flushes import later_flushes_ns
from ensembles.diagnosis.remedy import Remedy
from ensembles.model.spans import find_spans, some_spans_text
from ensembles.model.units import bytes_text, count_text, number_text, seconds_text
from ensembles.structure.late_entry import late_entry
from ensembles.summaries.collective_entries import CollectiveEntries

LEAST_RATIO = 1.25
_MOVING = 0.5
_MOST_PER_BYTE = 3.0
_PARTS = (0.4, 2.0)
"""Parts of the best estimate: tasks that take over bytes are slower, or targets and caches even out."""


ADVICE_ONE = (
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
    data = transfers(case) & (case.rows["depth"] == 0)
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
    # Rows have the time without enclosed calls: that of MPI_File_write is mostly in the writes inside it.
    rows = case.of_cells(only) & (transfers(case) | np.isin(case.op, ("sync", "close")))
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
            f"in {phases}, task {late.rank} moves {amount}, and no other of {run.tasks:,} tasks moves any",
        ),
        Check(
            "others-wait", True, f"it enters collective calls {seconds_text(late.late_s)} after the others"
        ),
    )
    return Remedy(
        rows,
        _LIKELY * most,
        f"task {late.rank} alone of {run.tasks:,} moves data in {phases}, {amount} in all, and the others "
        f"wait for it in {late.call}",
        checks,
        {"tasks_of_run": run.tasks, "moved_bytes": int(case.rows["bytes"][rows & data].sum())},
        _LEAST * most,
        most,
        advice=ADVICE_ONE,
    )


def find_heavy_tasks(case: Case) -> Remedy | None:
    """Even the bytes of the tasks out."""
    data = transfers(case) & (case.rows["depth"] == 0)
    if np.char.endswith(case.name, "_all").any():
        return None
    moved = case.by_cell(np.where(data, case.rows["bytes"], 0))
    # Rows have the time without enclosed calls: that of MPI_File_write is mostly in the writes inside it.
    time_ns = case.by_cell(np.where(transfers(case), case.rows["time_ns"], 0))
    uneven = Uneven(case.ranks, moved, time_ns)
    rows = transfers(case) & case.of_cells(uneven.heavy)
    if not rows.any():
        refuse_bytes_of_few(case, moved, _MOVING)
        return None
    # Where something else than the bytes slows these tasks, too, they gain what the bytes take the others.
    slower, left = uneven.slower, uneven.left
    by_bytes = np.maximum(slower, 1) if uneven.is_slowed else 1.0
    bounds = [np.maximum(1 - left / np.minimum(slower, 1), 0) / by_bytes] * 2 + [1 - left]
    low, saved, high = (np.where(rows, case.rows["time_ns"] * case.of_cells(bound), 0.0) for bound in bounds)
    late = later_flushes_ns(case, uneven.heavy)
    return Remedy(
        rows,
        saved + late,
        f"{uneven.title}, and the others wait for {'it' if len(uneven.tasks) == 1 else 'them'}",
        uneven.checks,
        uneven.evidence,
        0.5 * (low + late),
        high + late,
        parts=_PARTS,
    )


class Uneven:
    """Tasks that move more bytes than the mean, in phases in which most tasks move some.

    Parameters
    ----------
    ranks : ndarray of int, shape (tasks,)
    moved, time : ndarray of float64, shape (phases, tasks)
        Bytes and time of the reads and writes of each task.

    Attributes
    ----------
    heavy, light : ndarray of bool, shape (phases, tasks)
        Those that move more, and the others that move some.
    left : ndarray of float64, shape (phases, tasks)
        Part of its time that a task keeps if the bytes are evened out.
    slower : ndarray of float64, shape (phases, tasks)
        Time per byte of those that move more, by the median of the others; 1: unknown.
    tasks : ndarray of int
        Those that move more in some phase.
    """

    def __init__(self, ranks: np.ndarray, moved: np.ndarray, time: np.ndarray) -> None:
        mean = moved.mean(axis=1)[:, None]
        moving = (moved > 0).mean(axis=1)[:, None] >= _MOVING
        ratio = np.divide(moved, mean, out=np.ones(moved.shape), where=moving & (mean > 0))
        self.heavy = ratio >= LEAST_RATIO
        self.light = ~self.heavy & (moved > 0)
        self.left = np.where(self.heavy, 1 / np.maximum(ratio, 1), 1.0)
        per_byte = np.divide(time, moved, out=np.zeros(moved.shape), where=moved > 0)
        # Evened bytes move at the rate of the others, which share the file system with all tasks.
        pairs = zip(per_byte, self.light, strict=True)
        usual = np.array([np.median(row[mine]) if mine.any() else np.nan for row, mine in pairs])[:, None]
        known = self.heavy & (usual > 0)
        self.slower = np.divide(per_byte, usual, out=np.ones(moved.shape), where=known)
        self.tasks, most = ranks[self.heavy.any(axis=0)], float(ratio.max(initial=0.0))
        move = f"{'moves' if len(self.tasks) == 1 else 'move'} up to {number_text(most)} times the mean"
        self.title = f"{len(self.tasks):,} of {len(ranks):,} tasks {move}"
        alike = float(np.median(self.slower[self.heavy])) if self.heavy.any() else 1.0
        self.is_slowed = alike > _MOST_PER_BYTE
        self.evidence = {"most_to_mean": most, "tasks_heavy": len(self.tasks)}
        who = f"{count_text(len(self.tasks), 'task')} ({some_spans_text(find_spans(self.tasks))})"
        too = ": other things slow them, too" * self.is_slowed
        same = f"their time per byte is {number_text(alike, 2)} times that of the others{too}"
        self.checks = (
            Check("more-bytes", True, f"{who} {move} of all tasks"),
            Check("same-time-per-byte", None if self.is_slowed else True, same),
        )


def find_uneven(ranks: np.ndarray, moved: np.ndarray, time_s: np.ndarray) -> Uneven | None:
    """Find tasks that move more bytes than the others, at the time per byte that all have.

    Parameters
    ----------
    ranks, moved, time_s : ndarray, shape (tasks,)
        Bytes and time of the reads and writes of each task, over the run.
    """
    found = Uneven(ranks, moved[None], time_s[None])
    return found if found.heavy.any() and found.light.any() and not found.is_slowed else None

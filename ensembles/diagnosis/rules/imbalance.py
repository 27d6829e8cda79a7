"""Rule ``imbalance``: some tasks, or one alone, move more bytes than the others, which wait for them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ensembles.diagnosis.case import Case
from ensembles.diagnosis.evidence_rule import EvidenceRule
from ensembles.diagnosis.finding import Check, Finding, NotApplicable
from ensembles.diagnosis.limits import FAR, LOW, SMALL_CLASS
from ensembles.diagnosis.remedy import Remedy
from ensembles.diagnosis.rules.one_run import refuse_bytes_of_few, transfers
from ensembles.diagnosis.storage_load import later_flushes_ns
from ensembles.diagnosis.without_calls import OTHERS_WAIT, counted_case, counted_finding
from ensembles.model.levels import A_TENTH, ALIKE, FEW, MOST, NEARLY_ALL
from ensembles.model.spans import find_spans, some_spans_text
from ensembles.model.units import bytes_text, count_text, number_text, seconds_text
from ensembles.passes.group import SummaryRequest
from ensembles.passes.summary import ignoring_run
from ensembles.structure.late_entry import late_entry
from ensembles.summaries.collective_steps import CollectiveEntries

if TYPE_CHECKING:
    from ensembles.run.run import Run


ADVICE_ONE = (
    "let every task move its own part (MPI_File_write_at_all, parallel HDF5 or NetCDF, or a file for each "
    "node); where one task must write, let the others go on meanwhile (a thread, or a task that only writes)"
)
_LEAST = 0.2
"""Part of the bound: tasks that share a disk or a server are slower together than one alone."""


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
            f"in {phases}, task {late.rank} moves {amount}, and no other of {run.tasks:,} tasks moves any",
        ),
        Check("others-wait", f"it enters collective calls {seconds_text(late.late_s)} after the others"),
    )
    return Remedy(
        rows,
        LOW * most,
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
        refuse_bytes_of_few(case, moved, MOST)
        return None
    # Where something else than the bytes slows these tasks, too, they gain what the bytes take the others.
    slower, left = uneven.slower, uneven.left
    by_bytes = np.maximum(slower, 1) if uneven.is_slowed else 1.0
    part = case.of_cells(np.maximum(1 - left / np.minimum(slower, 1), 0) / by_bytes)
    saved = np.where(rows, case.rows["time_ns"] * part, 0.0)
    late = later_flushes_ns(case, uneven.heavy)
    return Remedy(
        rows,
        saved + late,
        f"{uneven.title}, and the others wait for {'it' if len(uneven.tasks) == 1 else 'them'}",
        uneven.checks,
        uneven.evidence,
        _LEAST * (saved + late),
        # The others, which wait at the same servers, or take the bytes over, become faster or slower.
        case.spread_ns(np.minimum(FEW * (saved + late), case.rows["time_ns"]), np.max),
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
        moving = (moved > 0).mean(axis=1)[:, None] >= MOST
        ratio = np.divide(moved, mean, out=np.ones(moved.shape), where=moving & (mean > 0))
        self.heavy = ratio >= ALIKE
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
        self.is_slowed = alike > FAR
        self.evidence = {"most_to_mean": most, "tasks_heavy": len(self.tasks)}
        who = f"{count_text(len(self.tasks), 'task')} ({some_spans_text(find_spans(self.tasks))})"
        too = ": other things slow them, too" * self.is_slowed
        same = f"their time per byte is {number_text(alike, 2)} times that of the others{too}"
        self.checks = (
            Check("more-bytes", f"{who} {move} of all tasks"),
            Check("same-time-per-byte", same, None if self.is_slowed else True),
        )


def find_uneven(ranks: np.ndarray, moved: np.ndarray, time_s: np.ndarray) -> Uneven | None:
    """Find tasks that move more bytes than the others, at the time per byte that all have."""
    found = Uneven(ranks, moved[None], time_s[None])
    return found if found.heavy.any() and found.light.any() and not found.is_slowed else None


def find_counted(run: Run) -> Finding | None:
    """Even the bytes of the ranks out, in files that single ranks use."""
    case = counted_case(run)
    ranks, posix = case.module.by_rank, case.module
    if run.tasks < 2:
        raise NotApplicable("one task has no others to be compared with")
    own = float((ranks["bytes_read"] + ranks["bytes_written"]).sum())
    whole = float(posix.total("bytes_read") + posix.total("bytes_written"))
    if whole - own > A_TENTH * whole:
        files, at = case.files, int(np.argmax(case.time_s * case.files["is_shared"]))
        alone, moved = files["slowest_bytes"][at], (files["bytes_read"] + files["bytes_written"])[at]
        if alone >= NEARLY_ALL * max(moved, 1):
            of = f"the {bytes_text(int(moved))} that all tasks move in a file"
            title = f"rank {int(files['slowest_rank'][at])} alone moves {bytes_text(int(alone))} of {of}"
            said = (title, (OTHERS_WAIT,), {"bytes": int(alone)}, (0.0, 0.0, float(case.time_s[at])))
            only = np.arange(len(case.time_s)) == at
            return counted_finding(case, "imbalance", *said, only, advice=ADVICE_ONE)
        raise NotApplicable(
            "most bytes are in files whose counters are sums over all ranks, so that the bytes of a rank are "
            "not known: record with DARSHAN_DISABLE_SHARED_REDUCTION=1, or with DXT"
        )
    rank = ranks["rank"].astype(np.int64)
    moved = np.bincount(rank, ranks["bytes_read"] + ranks["bytes_written"], run.tasks)
    time_s = np.bincount(rank, ranks["read_s"] + ranks["write_s"] + ranks["meta_s"], run.tasks)
    uneven = find_uneven(np.arange(run.tasks), moved, time_s)
    if uneven is None:
        return None
    gain = min(max(float(time_s.max() - (time_s * uneven.left[0]).max()), 0.0), case.run_s)
    chosen = np.isin(case.files["slowest_rank"], uneven.tasks)
    chosen &= case.files["is_shared"] == 0
    parts = (uneven.title, (*uneven.checks, OTHERS_WAIT), uneven.evidence)
    return counted_finding(case, "imbalance", *parts, (0.0, gain, gain), chosen)


NO_OTHERS = "one task has no others to be compared with"
NOBODY_WAITS = (
    "the tasks are processes without MPI and without barriers: nothing recorded shows that they wait for "
    "each other"
)


ENTRIES = "collective-entries"
"""Name of the summary that shows who waits for whom; the diagnosis reads it, too."""


def _find(case: Case, entries: CollectiveEntries) -> Remedy | None:
    if case.run.tasks < 2:
        raise NotApplicable(NO_OTHERS)
    if not case.model.shows_waiting:
        raise NotApplicable(NOBODY_WAITS)
    alone = find_one_task(case, entries)
    return alone if alone is not None or len(case.ranks) < 2 else find_heavy_tasks(case)


rule = EvidenceRule(
    "imbalance",
    _find,
    {ENTRIES: SummaryRequest(ignoring_run(CollectiveEntries), CollectiveEntries.columns)},
    counted=find_counted,
    summed=_find,
)

"""Tasks that move more bytes than the others, which wait for them; or one that moves the bytes of all."""

from __future__ import annotations

from dataclasses import dataclass

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

ADVICE = (
    "give every task the same number of bytes (divide the domain by cost, not by index), or write "
    "collectively, so that aggregators even the bytes out (MPI_File_write_at_all, H5FD_MPIO_COLLECTIVE)"
)

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
        ADVICE_ONE,
        checks,
        {"tasks_of_run": run.tasks, "moved_bytes": int(case.rows["bytes"][rows & data].sum())},
        _LEAST * most,
        most,
    )


def find_heavy_tasks(case: Case) -> Remedy | None:
    """Even the bytes of the tasks out."""
    data = transfers(case) & (case.rows["depth"] == 0)
    if np.char.endswith(case.name, "_all").any():
        return None
    moved = case.by_cell(np.where(data, case.rows["bytes"], 0))
    moving = (moved > 0).mean(axis=1) >= _MOVING
    mean = moved.mean(axis=1)
    ratio = np.divide(
        moved, mean[:, None], out=np.ones_like(moved), where=moving[:, None] & (mean[:, None] > 0)
    )
    heavy = ratio >= LEAST_RATIO
    rows = transfers(case) & case.of_cells(heavy)
    if not rows.any():
        refuse_bytes_of_few(case, moved, _MOVING)
        return None
    tasks = np.unique(case.rows["rank"][rows])
    most = float(ratio[heavy].max())
    # Rows have the time without enclosed calls: that of MPI_File_write is mostly in the writes inside it.
    time_ns = case.by_cell(np.where(transfers(case), case.rows["time_ns"], 0))
    per_byte = np.divide(time_ns, moved, out=np.zeros_like(moved), where=moved > 0)
    # Evened bytes move at the rate of the others, which share the file system with all tasks.
    light = ~heavy & (moved > 0)
    pairs = zip(per_byte, light, strict=True)
    usual = np.array([np.median(row[mine]) if mine.any() else np.nan for row, mine in pairs])
    faster = np.divide(per_byte, usual[:, None], out=np.ones_like(moved), where=heavy & (usual[:, None] > 0))
    alike = float(np.median(faster[heavy]))
    # Where something else than the bytes slows these tasks, too, they gain what the bytes take the others.
    by_bytes = np.maximum(faster, 1) if alike > _MOST_PER_BYTE else 1.0
    left = 1 / np.maximum(ratio, 1)
    bounds = [np.maximum(1 - left / np.minimum(faster, 1), 0) / by_bytes] * 2 + [1 - left]
    low, saved, high = (np.where(rows, case.rows["time_ns"] * case.of_cells(bound), 0.0) for bound in bounds)
    late = later_flushes_ns(case, heavy)
    move = "moves" if len(tasks) == 1 else "move"
    checks = (
        Check(
            "more-bytes",
            True,
            f"{count_text(len(tasks), 'task')} ({some_spans_text(find_spans(tasks))}) {move} up to "
            f"{number_text(most)} times the mean of all tasks in a phase",
        ),
        Check(
            "same-time-per-byte",
            None if alike > _MOST_PER_BYTE else True,
            f"their time per byte is {number_text(alike, 2)} times that of the others"
            + (": other things slow them, too" if alike > _MOST_PER_BYTE else ""),
        ),
    )
    return Remedy(
        rows,
        saved + late,
        f"{len(tasks):,} of {len(case.ranks):,} tasks {move} up to {number_text(most)} times the "
        f"mean, and the others wait for {'it' if len(tasks) == 1 else 'them'}",
        ADVICE,
        checks,
        {"most_to_mean": most, "tasks_heavy": len(tasks)},
        0.5 * (low + late),
        high + late,
        parts=_PARTS,
    )


@dataclass(frozen=True)
class Uneven:
    """Tasks that move more bytes than the mean, at the time per byte that all have.

    Attributes
    ----------
    heavy : ndarray of bool, shape (tasks,)
    left : ndarray of float64, shape (tasks,)
        Part of its time that a task keeps if the bytes are evened out.
    title : str
    checks : tuple of Check
    evidence : dict of str to float
    """

    heavy: np.ndarray
    left: np.ndarray
    title: str
    checks: tuple[Check, ...]
    evidence: dict[str, float]


def find_uneven(ranks: np.ndarray, moved: np.ndarray, time_s: np.ndarray, unknown: Check) -> Uneven | None:
    """Find tasks that move more bytes than the others.

    Parameters
    ----------
    ranks, moved, time_s : ndarray, shape (tasks,)
        Bytes and time of the reads and writes of each task.
    unknown : Check
        What sums leave open: whether the others wait.
    """
    mean = float(moved.mean())
    heavy = moved >= LEAST_RATIO * max(mean, 1.0)
    light = (moved > 0) & ~heavy
    if not heavy.any() or not light.any() or (moved > 0).mean() < _MOVING:
        return None
    per_byte = np.divide(time_s, moved, out=np.zeros(len(moved)), where=moved > 0)
    alike = float(np.median(per_byte[heavy]) / max(float(np.median(per_byte[light])), 1e-30))
    if alike > _MOST_PER_BYTE:
        return None  # something else than the bytes makes these tasks slow
    number, most = int(heavy.sum()), float(moved.max() / mean)
    move = f"{'moves' if number == 1 else 'move'} up to {number_text(most)} times the mean"
    who = f"{count_text(number, 'task')} ({some_spans_text(find_spans(ranks[heavy]))})"
    same = f"their time per byte is {number_text(alike, 2)} times that of the others"
    return Uneven(
        heavy,
        np.where(heavy, mean / np.maximum(moved, 1), 1.0),
        f"{number:,} of {len(ranks):,} tasks {move}",
        (Check("more-bytes", True, f"{who} {move}"), Check("same-time-per-byte", True, same), unknown),
        {"most_to_mean": most, "tasks_heavy": number},
    )

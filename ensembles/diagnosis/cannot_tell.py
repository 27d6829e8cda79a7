"""Causes that one run cannot show by itself: what they cost at most, and what to record.

A cause whose calls could not shorten the run by 2 % even if they took no time at all is clean.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ensembles.diagnosis.case import Case
from ensembles.diagnosis.finding import refuse_if_it_matters
from ensembles.model.calls import STORAGE
from ensembles.model.spans import find_spans, some_spans_text
from ensembles.model.units import count_text, seconds_text


@dataclass(frozen=True)
class CannotTell:
    """A cause of which one run holds no evidence that would distinguish it from others."""

    concerns: Callable[[Case], np.ndarray]  # Returns the rows of `Case.rows` that the cause can slow down
    advice: str  # What to do, in one sentence
    record: str  # What to record next, in a few words

    def __call__(self, case: Case) -> None:
        """Refuse a run of which the cause could take a notable part."""
        at_most_s = case.most_s(np.where(in_storage(case, self.concerns(case)), case.rows["time_ns"], 0.0))
        refuse_if_it_matters(at_most_s, case.run_s, f": {self.advice}", False, self.record)


def in_storage(case: Case, rows: np.ndarray) -> np.ndarray:
    """Leave out calls of libraries, where storage calls are known: their other time is not in the storage."""
    storage = rows & np.isin(case.layer, STORAGE)
    return storage if storage.any() else rows


def transfers(case: Case) -> np.ndarray:
    """Find reads and writes that move bytes."""
    rows: np.ndarray = np.isin(case.op, ("read", "write")) & (case.rows["bytes"] > 0)
    return rows


def transfers_of_shared_files(case: Case, least_tasks: int) -> np.ndarray:
    """Find transfers of tasks that use a file with others."""
    uses = case.evidence.uses.columns()
    tasks = np.bincount(uses["file"], minlength=1)
    ranks = np.unique(uses["rank"][tasks[uses["file"]] >= least_tasks])
    rows: np.ndarray = transfers(case) & np.isin(case.rows["rank"], ranks)
    return rows


def refuse_bytes_of_few(case: Case, moved: np.ndarray, least: float) -> None:
    """Refuse a run in which few tasks move the bytes of long phases.

    The others may have nothing to move, as while a header is written or behind aggregators. One run does not
    show whether they could have moved a part.
    """
    few = (moved > 0).any(axis=1) & ((moved > 0).mean(axis=1) < least)
    rows = np.isin(case.op, ("read", "write", "sync")) & (case.rows["depth"] == 0)
    rows &= case.of_cells(few[:, None] & (moved > 0))
    if not rows.any():
        return
    tasks = np.unique(case.rows["rank"][rows])
    refuse_if_it_matters(
        case.most_s(np.where(rows, case.rows["time_ns"], 0.0)),
        case.run_s,
        f": in some phases only {count_text(len(tasks), 'task')} ({some_spans_text(find_spans(tasks))}) of "
        f"{len(case.ranks):,} {'moves' if len(tasks) == 1 else 'move'} "
        "bytes, and one run does not show whether the others could move a part; record a run in which they "
        "do, and compare the runs (ensio compare)",
    )


def refuse_syncs_of_steps(case: Case, rows: np.ndarray, least: int) -> None:
    """Refuse a run whose tasks sync few bytes in each of many steps: the program may need that, or not."""
    steps = len(np.unique(case.rows["phase"][rows]))
    time_ns = np.where(rows, case.rows["time_ns"], 0.0)
    if steps < least:
        return
    tasks, syncs = np.unique(case.rows["rank"][rows]), int(case.rows["n"][rows].sum())
    refuse_if_it_matters(
        case.most_s(time_ns),
        case.run_s,
        f": {count_text(len(tasks), 'task')} "
        f"({some_spans_text(find_spans(tasks))}) {'syncs' if len(tasks) == 1 else 'sync'} few bytes "
        f"in each of {steps:,} "
        f"phases, {seconds_text(1e-9 * float(time_ns.sum()) / syncs)} each, and one run does not show "
        "whether the program needs that, or what other tasks wrote to the file takes; record a run that "
        "syncs once in several steps, and compare the runs (ensio compare)",
    )

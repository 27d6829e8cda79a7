"""Rules of causes that one run does not show: what they could cost, and what to record.

``cache-cliff``: writes that find the cache of their node full; ``interference``: other jobs load the storage;
``too-many-writers``: a file has more writers than its targets serve well; ``single-large-call``: the slowest
of few large calls decides how long a phase lasts.
"""

from __future__ import annotations

import numpy as np

from ensembles.diagnosis.cannot_tell import CannotTell, transfers, transfers_of_shared_files
from ensembles.diagnosis.case import Case
from ensembles.diagnosis.evidence_rule import EvidenceRule

MANY_WRITERS = 64
"""Tasks with one file from which their number may matter."""

FEW_CALLS = 2
"""Calls of a task in a phase with so few of which the slowest call of all tasks decides."""


def _cached(case: Case) -> np.ndarray:
    """Find writes that a cache can take."""
    rows: np.ndarray = transfers(case) & (case.op == "write") & (case.layer != "stdio")
    return rows


def _served(case: Case) -> np.ndarray:
    """Find what waits for a device or a server: load of others delays syncs, opens and closes too."""
    rows: np.ndarray = transfers(case) | np.isin(case.op, ("sync", "open", "close", "meta"))
    return rows


def _of_many(case: Case) -> np.ndarray:
    """Find what writes to files of many tasks, and what makes their bytes leave the cache."""
    writes = transfers_of_shared_files(case, MANY_WRITERS) & (case.op == "write")
    flushes = np.isin(case.op, ("close", "sync")) & np.isin(case.rows["rank"], case.rows["rank"][writes])
    rows: np.ndarray = writes | flushes
    return rows


def _few(case: Case) -> np.ndarray:
    """Find transfers of tasks that make one or two of them before they wait for the others."""
    rows = transfers(case)
    count = case.by_cell(np.where(rows, case.rows["n"], 0))
    rows &= case.of_cells(count <= FEW_CALLS) & (len(case.windows) > 1)
    return rows


rules = tuple(
    EvidenceRule(name, CannotTell(concerned, advice, record))
    for name, concerned, advice, record in (
        (
            "cache-cliff",
            _cached,
            "a full cache and slow targets look alike; record a run with half the bytes for each node",
            "half the bytes for each node",
        ),
        (
            "interference",
            _served,
            "the load of other jobs is not in a trace; record the same run again, or add it to a history "
            "(ensio history)",
            "the same run again",
        ),
        (
            "too-many-writers",
            _of_many,
            "every phase has the same writers; record runs with half and a quarter of them",
            "half the writers",
        ),
        (
            "single-large-call",
            _few,
            "ensio split predicts what more and smaller calls between barriers would gain",
            "more and smaller calls",
        ),
    )
)

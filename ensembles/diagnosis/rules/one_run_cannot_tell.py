"""Causes that one run cannot show by itself: the diagnosis says what they cost at most, and what to record.

A cause whose calls could not shorten the run by 2 % even if they took no time at all is clean.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ensembles.diagnosis.case import Case
from ensembles.diagnosis.evidence_rule import EvidenceRule
from ensembles.diagnosis.finding import FROM_SHARE
from ensembles.diagnosis.rule import NotApplicable
from ensembles.model.units import seconds_text

MANY_WRITERS = 64
"""Tasks with one file from which their number may matter."""

FEW_CALLS = 2
"""Calls of a task in a phase with so few of which the slowest call of all tasks decides."""


@dataclass(frozen=True)
class CannotTell:
    """A cause of which one run holds no evidence that would distinguish it from others.

    Attributes
    ----------
    concerns : callable
        Returns the rows of `Case.rows` that the cause can slow down.
    advice : str
        What to do, in one sentence.
    """

    concerns: Callable[[Case], np.ndarray]
    advice: str

    def __call__(self, case: Case) -> None:
        """Refuse a run of which the cause could take a notable part."""
        at_most_s = case.most_s(np.where(self.concerns(case), case.rows["time_ns"], 0.0))
        if at_most_s >= FROM_SHARE["warning"] * case.span_s:
            raise NotApplicable(f"it could cost up to {seconds_text(at_most_s)} of this run: {self.advice}")


def transfers(case: Case) -> np.ndarray:
    rows: np.ndarray = np.isin(case.op, ("read", "write")) & (case.rows["bytes"] > 0)
    return rows


def _storage(case: Case) -> np.ndarray:
    """Find what waits for a device or a server: load of others delays syncs, opens and closes too."""
    rows: np.ndarray = transfers(case) | np.isin(case.op, ("sync", "open", "close", "meta"))
    return rows


def _buffered(case: Case) -> np.ndarray:
    rows: np.ndarray = transfers(case) & (case.op == "write") & (case.layer != "stdio")
    return rows


def transfers_of_shared_files(case: Case, least_tasks: int) -> np.ndarray:
    """Find transfers of tasks that use a file with others."""
    uses = case.evidence.uses.columns()
    tasks = np.bincount(uses["file"], minlength=1)
    ranks = np.unique(uses["rank"][tasks[uses["file"]] >= least_tasks])
    rows: np.ndarray = transfers(case) & np.isin(case.rows["rank"], ranks)
    return rows


def _writes_of_many(case: Case) -> np.ndarray:
    """Find what writes to files of many tasks, and what makes their bytes leave the cache."""
    writes = transfers_of_shared_files(case, MANY_WRITERS) & (case.op == "write")
    flushes = np.isin(case.op, ("close", "sync")) & np.isin(case.rows["rank"], case.rows["rank"][writes])
    rows: np.ndarray = writes | flushes
    return rows


def _few_calls(case: Case) -> np.ndarray:
    """Find transfers of tasks that make one or two of them before they wait for the others."""
    rows = transfers(case)
    count = case.by_cell(np.where(rows, case.rows["n"], 0))
    rows &= case.of_cells(count <= FEW_CALLS) & (len(case.windows) > 1)
    return rows


def _of_full_nodes(case: Case) -> np.ndarray:
    """Find transfers of tasks that share their node with others."""
    node = case.nodes_of_tasks()
    rows = transfers(case)
    rows &= len(case.ranks) > 1 if node is None else (np.bincount(node)[node] > 1)[case.task]
    return rows


def _rule(cause: str, concerns: Callable[[Case], np.ndarray], advice: str) -> EvidenceRule:
    return EvidenceRule(cause, CannotTell(concerns, advice))


cache_cliff = _rule(
    "cache-cliff",
    _buffered,
    "a full cache and slow targets look alike; record a run with half the bytes for each node",
)
interference = _rule(
    "interference",
    _storage,
    "the load of other jobs is not in a trace; record the same run again, or add it to a history "
    "(ensio history)",
)
too_many_writers = _rule(
    "too-many-writers",
    _writes_of_many,
    "every phase has the same writers; record runs with half and a quarter of them",
)
single_large_call = _rule(
    "single-large-call",
    _few_calls,
    "ensio split predicts what more and smaller calls between barriers would gain",
)
node_serialisation = _rule(
    "node-serialisation",
    _of_full_nodes,
    "it moves the same bytes in the same time; ensio modes shows its harmonics",
)
RULES = (cache_cliff, interference, too_many_writers, single_large_call, node_serialisation)

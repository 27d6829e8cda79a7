"""Collective calls of MPI-IO: what they take beyond the storage calls inside them, and who makes these."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ensembles.diagnosis.case import Case
from ensembles.diagnosis.finding import NotApplicable

if TYPE_CHECKING:
    from ensembles.run.run import Run


class CollectiveCalls(NamedTuple):
    """Collective calls of a run."""

    rows: np.ndarray  # bool, shape (n,): Rows of the collective calls
    # own, storage: float64, shape (windows, tasks): Time in collective calls, and in the storage calls inside
    # them, in ns
    own: np.ndarray
    storage: np.ndarray
    # slowest, beyond: float64, shape (windows,): Storage time of the slowest task, and what the task that
    # comes last spends beyond it, in ns
    slowest: np.ndarray
    beyond: np.ndarray
    piece_bytes: float  # Mean size of the storage calls
    aggregators: int
    nodes: int

    @property
    def busy(self) -> np.ndarray:
        """Windows with collective calls: shape (windows,)."""
        busy: np.ndarray = np.any(self.own > 0, axis=1)
        return busy

    def of_windows(self, case: Case, saved_ns: np.ndarray) -> np.ndarray:
        """Let each task's collective calls, by their time, save what their window saves: shape (n,)."""
        part = np.divide(saved_ns[:, None], self.own, out=np.zeros_like(self.own), where=self.own > 0)
        found: np.ndarray = np.where(self.rows, case.rows["time_ns"] * case.of_cells(part), 0.0)
        return found


def collective_calls(case: Case) -> CollectiveCalls | None:
    """Find the collective calls; None: there are none."""
    rows = np.char.endswith(case.name, "_all") & (case.layer == "mpiio")
    if not rows.any():
        return None
    inner = (case.layer == "posix") & (case.rows["depth"] > 0) & np.isin(case.op, ("read", "write"))
    if not inner.any():
        raise NotApplicable(
            "collective calls were recorded without the POSIX calls inside: record the layer posix too"
        )
    own, storage = (case.by_cell(np.where(each, case.rows["time_ns"], 0)) for each in (rows, inner))
    busy = np.any(own > 0, axis=1)
    # The task that comes last does not wait: what it spends beyond the slowest storage is coordination.
    whole = np.where(own > 0, own + storage, np.inf).min(axis=1)
    slowest = storage.max(axis=1)
    node = case.nodes_of_tasks()
    nodes = 1 if node is None else int(node.max()) + 1
    aggregators = max(int(np.median((storage[busy] > 0).sum(axis=1))), 1)
    beyond = np.where(busy & np.isfinite(whole), np.maximum(np.where(busy, whole, 0) - slowest, 0), 0)
    piece_bytes = float(case.rows["bytes"][inner].sum() / max(case.rows["n"][inner].sum(), 1))
    return CollectiveCalls(rows, own, storage, slowest, beyond, piece_bytes, aggregators, nodes)


def counted_writes(run: Run) -> tuple[int, int]:
    """Return how many collective and independent writes of MPI-IO counters tell."""
    totals = run.counters.modules["MPI-IO"].totals if "MPI-IO" in run.counters.modules else {}
    return int(totals.get("COLL_WRITES") or 0), int(totals.get("INDEP_WRITES") or 0)


def moves_together(run: Run) -> bool:
    """Return whether a program moves data in collective calls of MPI-IO already, by its calls or counters."""
    table = run.reading.known_ranks
    made = [] if table is None else [table.calls[at] for at in np.unique(table.call).tolist()]
    is_called = any(call.layer == "mpiio" and call.name.endswith("_all") for call in made)
    return is_called or counted_writes(run)[0] > 0

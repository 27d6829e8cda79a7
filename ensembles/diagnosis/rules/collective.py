"""Rules of collective calls of MPI-IO: what they take beyond the storage calls inside, and who makes these.

``aggregation-mismatch``: too few tasks make the storage calls. ``collective-coordination``: the calls take
longer than the storage calls inside them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ensembles.diagnosis.case import Case
from ensembles.diagnosis.evidence_rule import EvidenceRule
from ensembles.diagnosis.finding import Check, NotApplicable
from ensembles.diagnosis.limits import LARGE_BYTES, LOW, WIDE_BYTES
from ensembles.diagnosis.remedy import Remedy
from ensembles.diagnosis.without_calls import check_coordination
from ensembles.model.levels import MOST, NEARLY_ALL
from ensembles.model.units import seconds_text, share_text

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


def _find_mismatch(case: Case) -> Remedy | None:
    found = collective_calls(case)
    if found is None:
        return None
    calls = case.rows["n"][found.rows].sum() / len(case.ranks)
    per_call = case.rows["bytes"][found.rows].sum() / max(calls, 1)
    useful, aggregators = min(found.nodes, int(per_call // LARGE_BYTES)), found.aggregators
    if aggregators > MOST * useful:
        return None
    stored = _shares_saved(case, found, useful)
    # Messages to few aggregators go to more of them at once; without idle targets, caches empty meanwhile.
    low, saved, high = (
        found.of_windows(case, found.slowest * share + part * found.beyond * (1 - aggregators / useful))
        for share, part in zip(stored, (LOW * (stored[0] > 0), NEARLY_ALL, 1.0), strict=True)
    )
    check = Check(
        "few-aggregators", f"{aggregators:,} of {len(case.ranks):,} tasks write for all, on {useful} nodes"
    )
    idle = Check(
        "idle-targets",
        f"their storage calls leave {share_text(stored[0])} of the work of the targets to others",
        stored[0] > 0 or None,
    )
    spent = seconds_text(found.slowest[found.busy].sum() * 1e-9)
    return Remedy(
        found.rows,
        saved,
        f"{aggregators} aggregators for {useful} nodes make {spent} of storage calls",
        (check, idle),
        {"aggregators": aggregators, "nodes": useful},
        case.kept_after_flush(low),
        high,
    )


def _shares_saved(case: Case, found: CollectiveCalls, useful: int) -> tuple[float, float, float]:
    """Compute the least, likely and greatest share of the storage time that more aggregators save.

    At least they use the targets that the storage calls leave idle; at most they are as many times as fast as
    they are more, as the clients or their caches limit them.
    """
    stripes, stripe_bytes = _layout(case)
    pieces = found.piece_bytes / stripe_bytes
    wider = min(stripes, useful * max(WIDE_BYTES / stripe_bytes, 1.0))
    # A piece at any offset lies on one stripe more than its bytes fill.
    low, most = (1 - min(found.aggregators * each / wider, 1.0) for each in (1 + pieces, max(pieces, 1.0)))
    by_clients = 1 - found.aggregators / useful
    high = max(by_clients, most)
    low = min(low, by_clients)
    return low, (low + high) / 2, high


def _layout(case: Case) -> tuple[float, float]:
    """Return the largest known number of targets of a file, and bytes of a stripe there; else no limit."""
    layouts = [case.run.info.striping_of(path) for path in case.run.info.file_facts]
    known = [(each.stripe_count, each.stripe_bytes) for each in layouts if each and each.stripe_count > 0]
    return max(known, default=(np.inf, np.inf))


mismatch = EvidenceRule("aggregation-mismatch", _find_mismatch)


NETWORK_BYTES_PER_NS = (1.0, 3.0, 12.0)
"""Rates at which a node exchanges the bytes of its tasks: of 10 Gb/s Ethernet, usual, fast."""


def _find_coordination(case: Case) -> Remedy | None:
    found = collective_calls(case)
    if found is None:
        return None
    if crowded := case.run.info.crowded_text:
        at_most_s = case.most_s(found.of_windows(case, found.beyond))
        raise NotApplicable(
            f"collective calls take up to {seconds_text(at_most_s)} of this run beyond the storage inside "
            f"them, but {crowded}, so that messages wait for a processor: record with at least one processor "
            "for each task",
            at_most_s,
        )
    storage, beyond = found.storage, found.beyond
    moved = case.by_cell(np.where(found.rows, case.rows["bytes"], 0)).sum(axis=1)
    moved = moved / min(found.aggregators, found.nodes)
    low, gain, high = (np.maximum(beyond - moved / rate, 0) for rate in NETWORK_BYTES_PER_NS)
    # Where aggregators wait for each other after each buffer, another one may be the slowest each time.
    mean = storage.sum(axis=1) / np.maximum((storage > 0).sum(axis=1), 1)
    low = np.maximum(low - (found.slowest - mean), 0)
    spent = seconds_text(float(beyond.sum()) * 1e-9)
    check = Check(
        "beyond-storage",
        f"collective calls take {spent} beyond the slowest storage inside them and beyond the waiting for "
        "late tasks",
    )
    return Remedy(
        found.rows,
        found.of_windows(case, gain),
        f"collective calls spend {spent} in coordination and messages",
        (check,),
        {"coordination_s": float(beyond.sum()) * 1e-9},
        # While messages are exchanged, caches empty: what a close waits for then comes earlier.
        case.kept_after_flush(found.of_windows(case, low)),
        found.of_windows(case, high),
    )


coordination = EvidenceRule("collective-coordination", _find_coordination, summed=check_coordination)

"""Rules ``collective-coordination`` and ``aggregation-mismatch``.

Collective calls take longer than the storage calls inside them, or too few tasks make these.
"""

from __future__ import annotations

import numpy as np

from ensembles.diagnosis.case import Case
from ensembles.diagnosis.evidence_rule import EvidenceRule
from ensembles.diagnosis.finding import Check
from ensembles.diagnosis.remedy import Remedy
from ensembles.diagnosis.rule import NotApplicable
from ensembles.diagnosis.summed.cannot_tell import check_coordination
from ensembles.model.units import count_text, seconds_text

NETWORK_BYTES_PER_NS = (1.0, 3.0, 12.0)
"""Rates at which a node exchanges the bytes of its tasks: of 10 Gb/s Ethernet, usual, fast."""

LEAST_BYTES = 1 << 20
"""Bytes of a collective call from which one more aggregator is worth its messages."""

MESSAGE_SHARES = (0.5, 0.9, 1.0)
"""Part of the time beyond storage that is messages to the aggregators: these go to more of them at once."""

_MOST_SHARE_OF_NODES = 0.5

ADVICE = {
    "collective-coordination": "join collective calls into fewer and larger ones, write independently where "
    "the "
    "pieces are "
    "large and contiguous (romio_cb_write=disable), or use fewer tasks in the communicator",
    "aggregation-mismatch": "use one aggregator or more on each node (cb_nodes), buffers of 16 MiB or more "
    "(cb_buffer_size), and as many stripes as aggregators",
}


def _find(case: Case, cause: str) -> Remedy | None:
    collective = np.char.endswith(case.name, "_all") & (case.layer == "mpiio")
    if not collective.any():
        return None
    inner = (case.layer == "posix") & (case.rows["depth"] > 0) & np.isin(case.op, ("read", "write"))
    if not inner.any():
        raise NotApplicable(
            "collective calls were recorded without the POSIX calls inside: record the layer posix too"
        )
    if cause == "collective-coordination" and (crowded := case.run.info.oversubscribed):
        host, tasks = max(crowded.items(), key=lambda item: item[1])
        raise NotApplicable(
            f"{tasks} tasks share the {count_text(case.run.info.processors[host], 'processor')} of node "
            f"{host}, so that messages wait for a processor: record with at least one processor for each task"
        )
    own, storage = (
        case.by_cell(np.where(collective, case.rows["time_ns"], 0)),
        case.by_cell(np.where(inner, case.rows["time_ns"], 0)),
    )
    busy = np.any(own > 0, axis=1)
    # The task that comes last does not wait: what it spends beyond the slowest storage is coordination.
    whole = np.where(own > 0, own + storage, np.inf).min(axis=1)
    slowest = storage.max(axis=1)
    node = case.nodes_of_tasks()
    nodes = 1 if node is None else int(node.max()) + 1
    aggregators = max(int(np.median((storage[busy] > 0).sum(axis=1))), 1)
    beyond = np.where(busy & np.isfinite(whole), np.maximum(np.where(busy, whole, 0) - slowest, 0), 0)
    if cause == "aggregation-mismatch":
        per_call = case.rows["bytes"][collective].sum() / max(
            case.rows["n"][collective].sum() / len(case.ranks), 1
        )
        useful = min(nodes, int(per_call // LEAST_BYTES))
        if aggregators > _MOST_SHARE_OF_NODES * useful:
            return None
        nodes = useful
        # With more of them, each stores less, as far as there are stripes, and gets fewer messages.
        stored = slowest * max(1 - aggregators / min(nodes, _stripe_count(case)), 0)
        bounds = tuple(stored + part * beyond * (1 - aggregators / nodes) for part in MESSAGE_SHARES)
        checks = (
            Check(
                "few-aggregators",
                True,
                f"{aggregators} of {len(case.ranks)} tasks write for all, on {nodes} nodes",
            ),
        )
        spent = seconds_text(slowest[busy].sum() * 1e-9)
        title = f"{aggregators} aggregators for {nodes} nodes make {spent} of storage calls"
        evidence: dict[str, float] = {"aggregators": aggregators, "nodes": nodes}
    else:
        moved = case.by_cell(np.where(collective, case.rows["bytes"], 0)).sum(axis=1) / min(
            aggregators, nodes
        )
        low, gain, high = (np.maximum(beyond - moved / rate, 0) for rate in NETWORK_BYTES_PER_NS)
        # Where aggregators wait for each other after each buffer, another one may be the slowest each time.
        mean = storage.sum(axis=1) / np.maximum((storage > 0).sum(axis=1), 1)
        bounds = (np.maximum(low - (slowest - mean), 0), gain, high)
        checks = (
            Check(
                "beyond-storage",
                True,
                f"collective calls take {seconds_text(beyond.sum() * 1e-9)} beyond the slowest "
                "storage inside them and beyond the waiting for late tasks",
            ),
        )
        title = (
            f"collective calls spend {seconds_text(float(beyond.sum()) * 1e-9)} in coordination and messages"
        )
        evidence = {"coordination_s": float(beyond.sum()) * 1e-9}
    share = np.divide(own, own, out=np.zeros_like(own), where=own > 0)
    parts = [np.where(collective, case.of_cells(share * bound[:, None]), 0.0) for bound in bounds]
    cells = case.of_cells(np.maximum(case.by_cell(collective.astype(float)), 1))
    low, saved, high = (part / cells for part in parts)
    return Remedy(collective, saved, title, ADVICE[cause], checks, evidence, low, high)


def _stripe_count(case: Case) -> int:
    """Return the largest known number of targets of a file: more aggregators would not write faster."""
    counts = [
        striping.stripe_count
        for path in case.run.info.file_facts
        if (striping := case.run.info.striping_of(path)) is not None and striping.stripe_count > 0
    ]
    return max(counts, default=1 << 20)


coordination = EvidenceRule(
    "collective-coordination",
    lambda case: _find(case, "collective-coordination"),
    summed=check_coordination,
)
aggregation = EvidenceRule("aggregation-mismatch", lambda case: _find(case, "aggregation-mismatch"))

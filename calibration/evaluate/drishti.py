"""The published triggers of Drishti (version 0.5) on the same runs: facts of its table, code of this project.

Only triggers on operations, sizes, order, alignment, time and imbalance are here. Each is compared with the
causes that its recommendation names.
"""

from __future__ import annotations

import numpy as np

from ensembles.diagnosis.case import Case

SMALL_BYTES_CLASS = 20
"""Requests below 1 MiB are small."""

SMALL_SHARE, SMALL_CALLS = 0.1, 1000
RANDOM_SHARE, RANDOM_CALLS = 0.2, 1000
MISALIGNED_SHARE = 0.1
METADATA_S = 30.0
IMBALANCE_SHARE = 0.15

CAUSES = {
    "small": {"small-requests", "stdio-buffer", "serialised-metadata"},
    "random": {"seek-heavy"},
    "misaligned": {"misaligned-requests"},
    "metadata": {"metadata-storm", "serialised-metadata"},
    "imbalance": {"imbalance"},
    "straggler": {"straggler-task", "straggler-node"},
    "no-collective": {"aggregation-mismatch"},
}


def triggers(case: Case) -> set[str]:
    """Return the triggers that a run raises."""
    rows, posix = case.rows, case.layer == "posix"
    found = set()
    for op in ("read", "write"):
        data = posix & (case.op == op)
        calls = int(rows["n"][data].sum())
        small = int(rows["n"][data & (rows["size"] <= SMALL_BYTES_CLASS)].sum())
        if calls and small > SMALL_SHARE * calls and small > SMALL_CALLS:
            found.add("small")
    order = case.evidence.order.columns()
    reads, jumps = int(order["n"].sum()), int((order["n"] * (order["jumps"] > 0)).sum())
    if reads and jumps > RANDOM_SHARE * reads and jumps > RANDOM_CALLS:
        found.add("random")
    ends = case.evidence.ends.columns()
    transfers = int(ends["n"].sum())
    if transfers and int(ends["n"][ends["ragged"] > 0].sum()) > MISALIGNED_SHARE * transfers:
        found.add("misaligned")
    metadata = posix & np.isin(case.op, ("open", "close", "meta", "seek", "sync"))
    if case.by_cell(np.where(metadata, rows["time_ns"], 0)).sum(axis=0).max(initial=0) * 1e-9 > METADATA_S:
        found.add("metadata")
    moved = case.by_cell(np.where(posix, rows["bytes"], 0)).sum(axis=0)
    spent = case.by_cell(np.where(posix, rows["time_ns"], 0)).sum(axis=0)
    if len(moved) > 1 and moved.max() and (moved.max() - moved.min()) / moved.max() > IMBALANCE_SHARE:
        found.add("imbalance")
    if len(spent) > 1 and spent.sum() and (spent.max() - spent.min()) / spent.sum() > IMBALANCE_SHARE:
        found.add("straggler")
    return found

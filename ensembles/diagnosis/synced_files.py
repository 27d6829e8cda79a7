"""Which writes a sync waits for: those to files that the task syncs."""

from __future__ import annotations

import numpy as np

from ensembles.diagnosis.case import Case
from ensembles.diagnosis.file_uses import FileUses, share_of_rows
from ensembles.diagnosis.path_calls import MOVING


def to_synced_files(case: Case, uses: FileUses) -> dict[str, np.ndarray]:
    """Compute which share of each row's calls (``n``) and ``bytes`` goes to files that its task syncs.

    Where no file of a sync is known, all of them.
    """
    table = uses.table.columns()
    syncs = np.array([call.op == "sync" and call.layer == "posix" for call in case.run.calls] or [False])
    pairs = _pairs_of(table)
    synced = (np.bincount(pairs, syncs[table["call"]]) > 0)[pairs]
    if not synced.any():
        return dict.fromkeys(("n", "bytes"), np.ones(len(case)))
    return {what: share_of_rows(case, table, synced, of=what) for what in ("n", "bytes")}


def before_moves(case: Case, uses: FileUses) -> np.ndarray:
    """Find syncs of files that the task moves to their places as often: a file that is whole needs one.

    Returns
    -------
    ndarray of bool, shape (n,)
    """
    table = uses.table.columns()
    calls = case.run.calls
    syncs, moves = (
        np.array([each.layer == "posix" and wanted(each) for each in calls] or [False])[table["call"]]
        for wanted in (lambda call: call.op == "sync", lambda call: call.name in MOVING)
    )
    pairs = _pairs_of(table)
    synced, moved = (np.bincount(pairs, table["n"] * rows)[pairs] for rows in (syncs, moves))
    before = syncs & (moved > 0) & (synced <= moved)
    rows: np.ndarray = (share_of_rows(case, table, before, of="n") > 0) & (case.op == "sync")
    return rows


def _pairs_of(table: dict[str, np.ndarray]) -> np.ndarray:
    """Number the pairs of a file and a task that occur: int64, shape (m,)."""
    pairs: np.ndarray = np.unique(table["file"] << 32 | table["rank"], return_inverse=True)[1].reshape(-1)
    return pairs

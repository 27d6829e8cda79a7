"""Which writes a sync waits for: those to files that the task syncs."""

from __future__ import annotations

import numpy as np

from ensembles.diagnosis.case import Case
from ensembles.diagnosis.file_uses import FileUses, share_of_rows


def to_synced_files(case: Case, uses: FileUses) -> dict[str, np.ndarray]:
    """Compute which share of each row's calls (``n``) and ``bytes`` goes to files that its task syncs.

    Where no file of a sync is known, all of them.
    """
    table = uses.table.columns()
    syncs = np.array([call.op == "sync" and call.layer == "posix" for call in case.run.calls] or [False])
    pairs = np.unique(table["file"] << 32 | table["rank"], return_inverse=True)[1].reshape(-1)
    synced = (np.bincount(pairs, syncs[table["call"]]) > 0)[pairs]
    if not synced.any():
        return dict.fromkeys(("n", "bytes"), np.ones(len(case)))
    return {what: share_of_rows(case, table, synced, of=what) for what in ("n", "bytes")}

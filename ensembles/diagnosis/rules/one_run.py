"""Rules of causes that one run does not show: what they could cost, and what to record.

``cache-cliff``: writes that find the cache of their node full; ``interference``: other jobs load the storage;
``too-many-writers``: a file has more writers than its targets serve well; ``single-large-call``: the slowest
of few large calls decides how long a phase lasts; ``misaligned-requests``: writes to a shared file begin or
end inside a stripe.
"""

from __future__ import annotations

import numpy as np

from ensembles.diagnosis.cannot_tell import CannotTell, transfers, transfers_of_shared_files
from ensembles.diagnosis.case import Case
from ensembles.diagnosis.evidence_rule import EvidenceRule
from ensembles.diagnosis.limits import FEW
from ensembles.model.distinct import distinct_rows

MANY_WRITERS = 64
"""Tasks with one file from which their number may matter."""


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
    rows &= case.of_cells(count <= FEW) & (len(case.windows) > 1)
    return rows


def _ragged(case: Case) -> np.ndarray:
    """Find writes to files of several tasks; none where all stripes are known and hold whole records."""
    rows: np.ndarray = transfers_of_shared_files(case, 2) & (case.op == "write")
    ends, stripes = case.evidence.ends.columns(), case.evidence.stripes
    chosen = np.isin(ends["call"], np.unique(case.rows["call"][rows]))
    ends = {name: column[chosen] for name, column in ends.items()}
    files = np.unique(case.evidence.uses.columns()["file"])
    known = len(files) > 0 and int(files.max()) < len(stripes) and bool((stripes[files, 0] > 0).all())
    if known and chosen.any():
        whole = whole_in_stripes(case, ends, np.unique(stripes[files, 0]))
        rows &= bool(ends["ragged"][~whole].any())
    return rows


def whole_in_stripes(case: Case, ends: dict[str, np.ndarray], stripes: np.ndarray) -> np.ndarray:
    """Find rows of records of which each stripe holds a whole number.

    Of k records in a stripe, two ends are at ends of the stripe; records with any other offset have fewer.
    """
    fit = np.zeros(len(ends["n"]), bool)
    for call, size in distinct_rows(ends["call"], ends["size"])[0].T.tolist():
        rows = (case.rows["call"] == call) & (case.rows["size"] == size)
        mine = (ends["call"] == call) & (ends["size"] == size)
        each = max(float(case.rows["bytes"][rows].sum() / case.rows["n"][rows].sum()), 1.0)
        inside = float(np.average(ends["ragged"][mine], weights=ends["n"][mine]))
        fit[mine] = not np.any(stripes % each) and inside <= 2 - each / float(stripes.min())
    return fit


misaligned, *others = (
    EvidenceRule(name, CannotTell(concerned, advice, record))
    for name, concerned, advice, record in (
        (
            "misaligned-requests",
            _ragged,
            "records of one size have ends of one kind; record the same program with records that are "
            "multiples of the stripe size, and compare the runs (ensio compare)",
            "",
        ),
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

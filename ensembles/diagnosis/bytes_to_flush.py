"""Bytes that syncs and closes had to flush: those after other bytes are not the same call."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ensembles.diagnosis.case import MOST_RATIO
from ensembles.diagnosis.flushes import SMALL_FLUSH_BYTES
from ensembles.model.distinct import distinct_rows
from ensembles.summaries.keyed_sums import groups_of_rows

if TYPE_CHECKING:
    from ensembles.diagnosis.case import Case
    from ensembles.diagnosis.file_uses import FileUses

_FLUSHING = ("sync", "close")


def bytes_to_flush(case: Case, uses: FileUses) -> np.ndarray:
    """Compute how many bytes each sync or close of a row had to flush.

    They are what the task wrote to the file since the phase of its sync or close of this file before. Layers
    see the same bytes, so that the one with most of them counts.

    Parameters
    ----------
    case : Case
    uses : FileUses
        Filled.

    Returns
    -------
    ndarray of float64, shape (n,)
        Mean by call, in bytes; 0 for other calls.
    """
    table = uses.table.columns()
    calls = case.run.calls
    op = np.array([call.op for call in calls])[table["call"]]
    layer = np.unique([call.layer for call in calls], return_inverse=True)[1][table["call"]]
    flushes = np.isin(op, _FLUSHING)
    used = np.flatnonzero(flushes | (op == "write"))
    if not flushes.any():
        return np.zeros(len(case))
    (file, rank, _), cell = distinct_rows(*(table[name][used] for name in ("file", "rank", "phase")))
    written = np.zeros(len(file))
    for number in np.unique(layer[used]):
        mine = (op[used] == "write") & (layer[used] == number)
        written = np.maximum(written, np.bincount(cell[mine], table["bytes"][used[mine]], len(file)))
    # Cells are in the order of file, task and phase: what is written adds up to the next flush.
    flushed = np.bincount(cell, flushes[used], len(file)) > 0
    before = np.cumsum(written) - written
    starts = np.ones(len(file), bool)
    starts[1:] = (np.diff(file) != 0) | (np.diff(rank) != 0) | flushed[:-1]
    first = np.flatnonzero(starts)
    since = before + written - before[first[np.cumsum(starts) - 1]]
    rows = flushes[used]
    names = ("phase", "rank", "call")
    _, number = distinct_rows(*(np.concatenate([table[name][used[rows]], case.rows[name]]) for name in names))
    theirs, mine = number[: int(rows.sum())], number[int(rows.sum()) :]
    whole = np.bincount(theirs, since[cell[rows]], int(number.max()) + 1)
    count = np.bincount(theirs, table["n"][used[rows]], int(number.max()) + 1)
    found: np.ndarray = (whole / np.maximum(count, 1))[mine]
    return found


def flushes_alike(case: Case, uses: FileUses) -> np.ndarray:
    """Find the rows that compare with those of other tasks: syncs and closes only after the same bytes.

    Parameters
    ----------
    case : Case
    uses : FileUses
        Filled.

    Returns
    -------
    ndarray of bool, shape (n,)
        True for calls that flush nothing. A sync or close had to flush as much as that of the median task in
        the phase, within `MOST_RATIO`; `SMALL_FLUSH_BYTES` cost what none do.
    """
    if flushes_alike not in case.shared:
        alike = np.ones(len(case), bool)
        rows = np.flatnonzero(np.isin(case.op, _FLUSHING))
        if len(rows):
            moved = np.maximum(bytes_to_flush(case, uses)[rows], SMALL_FLUSH_BYTES)
            names = ("phase", "call", "size", "depth")
            group = groups_of_rows([case.rows[name][rows].astype(np.int64) for name in names])[0]
            order = np.lexsort((moved, group))
            # The upper of two middle values: between them, there may be no call.
            middle = np.searchsorted(group[order], np.arange(int(group.max()) + 1)) + np.bincount(group) // 2
            usual = moved[order][middle][group]
            alike[rows] = np.maximum(moved, usual) <= MOST_RATIO * np.minimum(moved, usual)
        case.shared[flushes_alike] = alike
    found: np.ndarray = case.shared[flushes_alike]
    return found

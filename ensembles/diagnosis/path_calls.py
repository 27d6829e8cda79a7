"""Calls on paths: which functions look a path up, and which of these calls a program could leave out."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ensembles.diagnosis.case import Case
from ensembles.diagnosis.file_uses import FileUses, share_of_rows
from ensembles.diagnosis.finding import Check

_FILE_CALLS = "dup dup2 dup3 fallocate fchmod fcntl fstat ftruncate posix_fadvise posix_fallocate readdir"
ON_DESCRIPTORS = frozenset(_FILE_CALLS.split(" ")) | {"mmap", "mremap", "munmap"}
"""Functions of the operation ``meta`` that take an open file: they ask for no path."""

REMOVING = frozenset(("remove", "unlink", "unlinkat"))
_CHANGES = "link linkat mkdir mkdirat mkstemp rename renameat renameat2 rmdir symlink symlinkat"
CHANGING = REMOVING | frozenset(_CHANGES.split(" "))
"""Functions that make, move or remove a path: none of them can be answered from memory."""

LEAST_CALLS = 2

FEW_LONG = 3
"""Calls of equal duration below which the time of a function is that of single long calls."""

_SHARE = 0.5


class Avoidable(NamedTuple):
    """Calls that a program could leave out.

    Attributes
    ----------
    share : ndarray of float64, shape (n,)
        Share of each row of the case.
    counted : ndarray of bool, shape (n,)
        Rows of calls on paths, without closes and other calls that go with them.
    check : Check or None
        None: there are no such calls.
    """

    share: np.ndarray
    counted: np.ndarray
    check: Check | None


def looks_up(name: np.ndarray, op: np.ndarray) -> np.ndarray:
    """Find functions that look a path up, which a program could ask once: shape of the arguments."""
    found: np.ndarray = np.isin(op, ("open", "meta")) & ~np.isin(name, [*ON_DESCRIPTORS, *CHANGING])
    return found


def asked_again(case: Case, temporary: Avoidable) -> Avoidable:
    """Find lookups of the path of the task's call before, and the closes and calls that go with opens.

    Parameters
    ----------
    case : Case
    temporary : Avoidable
        Calls of `removed_again`: a file that was removed has to be made anew.
    """
    posix = case.layer == "posix"
    repeats = case.rows["repeats"] - np.rint(temporary.share * case.rows["n"])
    # A call that a signal interrupted has to be made again: it does not ask once more.
    repeats = np.where(case.interrupted_share < _SHARE, repeats, 0)
    rows = posix & looks_up(case.name, case.op)
    rows &= (repeats >= _SHARE * case.rows["n"]) & (case.rows["n"] >= LEAST_CALLS)
    share = np.where(rows, repeats / case.rows["n"], 0.0)
    if not rows.any():
        return Avoidable(share, rows, None)
    # A file that stays open is neither closed nor asked about.
    opens = case.by_cell(np.where(rows & (case.op == "open"), repeats, 0))
    for with_opens in (posix & (case.op == "close"), posix & (case.name == "fstat")):
        calls = case.by_cell(np.where(with_opens, case.rows["n"], 0))
        part = np.divide(opens, calls, out=np.zeros_like(opens), where=calls > 0)
        share += np.where(with_opens, np.minimum(case.of_cells(part), 1.0), 0.0)
    share = np.minimum(share, 1 - temporary.share)
    again, count = int(repeats[rows].sum()), int(case.rows["n"][rows].sum())
    sentence = f"{again:,} of {count:,} calls ask for the path of the task's call before"
    return Avoidable(share, rows, Check("same-path-again", True, sentence))


def removed_again(case: Case, uses: FileUses) -> Avoidable:
    """Find files that a task makes and removes again and again, such as the journal of a database."""
    table = uses.table.columns()
    names, ops, layers = (
        np.array([getattr(call, what) for call in case.run.calls] or [""])[table["call"]]
        for what in ("name", "op", "layer")
    )
    posix = layers == "posix"
    removes = posix & np.isin(names, list(REMOVING))
    if not removes.any():
        return Avoidable(np.zeros(len(case)), np.zeros(len(case), bool), None)
    pairs = np.unique(table["file"] << 32 | table["rank"], return_inverse=True)[1]
    removed = np.bincount(pairs, table["n"] * removes)[pairs]
    chosen = posix & (removed >= LEAST_CALLS) & (removes | np.isin(ops, ("open", "close")))
    share = share_of_rows(case, table, chosen, 1 - 1 / np.maximum(removed, 1))
    counted = (share > 0) & (case.layer == "posix") & (case.op != "close")
    if not counted.any():
        return Avoidable(np.zeros(len(case)), counted, None)
    count = int(table["n"][removes & chosen].sum())
    files = len(np.unique(table["file"][removes & chosen]))
    sentence = f"{count:,} times, a task removes a path that it makes again ({files:,} of them)"
    return Avoidable(share, counted, Check("made-and-removed", True, sentence))


def without_single_long_ns(case: Case, rows: np.ndarray) -> np.ndarray:
    """Take single long calls off the time of rows: which calls can be left out does not say that it is these.

    An open that empties a large file waits for the file system, and so does the first one of a path. Removals
    are those of the same file again and again (`removed_again`), however long a few of them take.

    Parameters
    ----------
    case : Case
    rows : ndarray of bool, shape (n,)
        Rows of calls on paths.

    Returns
    -------
    ndarray of float64, shape (n,)
        Time in ns. Where fewer than `FEW_LONG` calls of equal duration would make up that of a function, it
        is the time that its calls usually take.
    """
    time_ns = case.rows["time_ns"].astype(np.float64)
    single = rows & (case.op != "close") & ~np.isin(case.name, list(REMOVING))
    for call in np.unique(case.rows["call"][single]):
        mine = rows & (case.rows["call"] == call)
        if case.effective_count(mine) < FEW_LONG <= case.rows["n"][mine].sum():
            time_ns = np.where(mine, np.minimum(time_ns, case.rows["n"] * case.usual_ns()), time_ns)
    return time_ns

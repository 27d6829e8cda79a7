"""Files that many tasks open although one task could open them for all."""

from __future__ import annotations

import numpy as np

from ensembles.diagnosis.case import Case
from ensembles.diagnosis.file_uses import FileUses, share_of_rows
from ensembles.diagnosis.finding import Check
from ensembles.model.distinct import distinct_rows
from ensembles.model.units import bytes_text, count_text

LEAST_FILES = 32
"""Files that several tasks open from which one task could open them for all."""

MOST_FILE_BYTES = 1 << 20
"""Bytes of an open up to which sending them is cheaper than opening the file again."""


def opened_by_all(case: Case, uses: FileUses) -> tuple[np.ndarray, tuple[str, ...], Check | None]:
    """Compute which share of the opens and closes others make for the same small files.

    Returns
    -------
    share : ndarray of float64, shape (n,)
        Of the time of each row of the case.
    files : tuple of str
    check : Check or None
        None: there are no such files.
    """
    table = uses.table.columns()
    calls = case.run.calls
    op = np.array([call.op for call in calls] or [""])[table["call"]]
    posix = np.array([call.layer == "posix" for call in calls] or [False])[table["call"]]
    nothing = np.zeros(len(case)), (), None
    opens = posix & (op == "open")
    if len(case.ranks) < 2 or not opens.any():
        return nothing
    size = int(table["file"].max()) + 1
    pairs, _ = distinct_rows(table["file"][opens], table["rank"][opens])
    tasks = np.bincount(pairs[0], minlength=size)
    moved = np.bincount(table["file"][posix], table["bytes"][posix], size)
    times = np.bincount(table["file"][opens], table["n"][opens], size)
    read_only = np.bincount(table["file"], table["bytes"] * (posix & (op == "write")), size) <= moved / 2
    chosen = (tasks >= max(2, len(case.ranks) / 2)) & (moved <= MOST_FILE_BYTES * times) & read_only
    if np.count_nonzero(chosen) < LEAST_FILES:
        return nothing
    mine = posix & np.isin(op, ("open", "close")) & chosen[table["file"]]
    share = share_of_rows(case, table, mine, 1 - 1 / np.maximum(tasks, 1)[table["file"]])
    numbers = np.flatnonzero(chosen)
    names = tuple(case.run.files[number] for number in numbers.tolist())
    each = bytes_text(round(float(moved[chosen].sum() / times[chosen].sum())))
    sentence = (
        f"{count_text(len(numbers), 'file')} with {each} for each open are opened by {tasks[chosen].min()} "
        "tasks or more each"
    )
    return share, names, Check("same-files-by-all", True, sentence)

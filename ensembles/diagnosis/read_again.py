"""Bytes that a task reads from a file again although it had them before."""

from __future__ import annotations

import numpy as np

from ensembles.diagnosis.case import Case
from ensembles.diagnosis.file_uses import METADATA, NOT_READ_BY_PROGRAM, STORAGE, FileUses, share_of_rows
from ensembles.diagnosis.finding import Check
from ensembles.diagnosis.remedy import Remedy
from ensembles.model.distinct import distinct_rows
from ensembles.model.units import bytes_text, count_text, number_text

LEAST_TIMES = 3.0
"""Bytes read, as a multiple of their range in the file, from which reading again is a habit."""

_LOW = 0.5

KEEP = (
    "read the bytes once and keep them in memory, where they fit; of a file that does not fit, finish all "
    "work on a piece before the next one"
)


def read_again(case: Case, uses: FileUses) -> Remedy | None:
    """Compute what a task saves that keeps what it read from a file.

    A task that reads more bytes than the range in which they lie reads some of them again. What tasks wrote
    to the file may be read once more. Reads that libraries make for themselves are left out.

    Parameters
    ----------
    case : Case
    uses : FileUses
        Filled.
    """
    table = uses.table.columns()
    op, layer = np.array([(call.op, call.layer) for call in case.run.calls] or [("", "")]).T
    op, layer = op[table["call"]], layer[table["call"]]
    rows = (op == "read") & np.isin(layer, STORAGE) & (table["high"] > table["low"])
    rows &= ~np.isin(table["kind"], (*NOT_READ_BY_PROGRAM, METADATA))
    writes = (op == "write") & np.isin(layer, STORAGE)
    written = np.bincount(table["file"], table["bytes"] * writes)
    if not rows.any():
        return None
    names, pair = distinct_rows(table["file"][rows], table["rank"][rows])
    bytes_ = np.bincount(pair, (table["bytes"] - table["opening_bytes"])[rows])
    low, high = np.full(len(bytes_), np.iinfo(np.int64).max), np.zeros(len(bytes_), np.int64)
    np.minimum.at(low, pair, table["low"][rows])
    np.maximum.at(high, pair, table["high"][rows])
    once = high - low + written[names[0]]
    times = bytes_ / once
    found = times >= LEAST_TIMES
    if not found.any():
        return None
    part = np.zeros(len(rows))
    part[rows] = np.where(found, 1 - 1 / times, 0.0)[pair]
    share = share_of_rows(case, table, part > 0, part)
    saved = share * case.rows["time_ns"]
    files = np.unique(names[0][found])
    held, read = int(once[found].sum()), int(bytes_[found].sum())
    tasks = count_text(len(np.unique(names[1][found])), "task")
    return Remedy(
        share > 0,
        saved,
        f"{tasks} read{'s' * (tasks == '1 task')} the same bytes again and again: {bytes_text(read)} of "
        f"{count_text(len(files), 'file')}, whose ranges and changes are {bytes_text(held)} in all",
        (Check("more-than-the-range", True, f"{number_text(read / held)} times these bytes are read"),),
        {"read_bytes": read, "held_bytes": held, "files": len(files)},
        _LOW * saved,
        saved,
        tuple(case.run.files[number] for number in files.tolist()),
        advice=KEEP,
    )

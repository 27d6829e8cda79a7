"""Files that a program opens by a library again and again, with all that the library does in these opens."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ensembles.diagnosis.case import Case
from ensembles.diagnosis.file_uses import FileUses, share_of_rows
from ensembles.diagnosis.finding import Check
from ensembles.diagnosis.path_calls import REMOVING
from ensembles.model.distinct import distinct_rows
from ensembles.model.units import bytes_text, count_text, seconds_text

LEAST_OPENS = 4
"""Opens of a file by a task that are a habit."""

LEAST_READ = 1 << 20
"""Bytes read inside opens from which they are named."""

_LOW = 0.75
"""Part of the saving at the lower end: what an open reads, the program may need later."""

KEEP_OPEN = (
    "open the file once, before the loop, and keep it open; where each step has to reach the file, flush it "
    "instead of closing it (nc_sync, H5Fflush, MPI_File_sync, fflush)"
)


class OpenedAgain(NamedTuple):
    """Opens of libraries, and closes, that a program could leave out.

    Attributes
    ----------
    opens : ndarray of bool, shape (n,)
        Rows of the case with these opens.
    low, share, high : ndarray of float64, shape (n,)
        Share of the time of each row that is in them. The upper two have closes too, and opens of objects,
        which a library remembers while the file is open; of what closes write, only the last has a share.
    title : str
    files : tuple of str
    check : Check
    evidence : dict
    """

    opens: np.ndarray
    low: np.ndarray
    share: np.ndarray
    high: np.ndarray
    title: str
    files: tuple[str, ...]
    check: Check
    evidence: dict[str, float]


def opened_again(case: Case, uses: FileUses) -> OpenedAgain | None:
    """Find files that tasks open by a library again and again: HDF5, netCDF, MPI-IO, or streams.

    A file that was removed has to be made anew.

    Parameters
    ----------
    case : Case
    uses : FileUses
        Filled.

    Returns
    -------
    OpenedAgain or None
        None: there are none.
    """
    table = uses.table.columns()
    if not table["opens"].any():
        return None
    names, pair = distinct_rows(table["file"], table["rank"])
    opens = np.bincount(pair, table["opens"])
    functions, ops = np.array([(call.name, call.op) for call in case.run.calls]).T
    removals = np.bincount(table["file"], table["n"] * np.isin(functions, list(REMOVING))[table["call"]])
    again = opens - 1 - removals[names[0]]
    again = np.where(again >= LEAST_OPENS - 1, again, 0)
    if not again.any():
        return None
    part = (again / np.maximum(opens, 1))[pair]
    has_to_write = np.isin(ops, ("write", "sync"))[table["call"]]
    opening, besides, closing = (
        share_of_rows(case, table, chosen, part * table[name] / np.maximum(table["time_ns"], 1))
        for name, chosen in (
            ("opening_ns", part > 0),
            ("with_open_ns", ~has_to_write),
            ("with_open_ns", part > 0),
        )
    )
    outermost = (table["opens"] > 0) & (part > 0)
    rows = share_of_rows(case, table, outermost, of="n") > 0
    count, times = int(opens[again > 0].sum()), int(again.sum())
    time_ns, read = (float((table[name] * (part > 0)).sum()) for name in ("opening_ns", "opening_bytes"))
    by = ", ".join(np.unique(functions[table["call"][outermost]]).tolist())
    cost = np.bincount(table["file"], table["opening_ns"] * part)
    files = tuple(case.run.files[number] for number in np.argsort(-cost).tolist() if cost[number] > 0)
    reads = f", in which {bytes_text(round(read))} are read" if read >= LEAST_READ else ""
    title = (
        f"{count:,} opens of {count_text(len(files), 'file')} by {by}, {times:,} of them of a file that the "
        f"task had open before, take {seconds_text(time_ns * 1e-9 / count)} each with all calls inside{reads}"
    )
    sentence = f"tasks open {count_text(len(files), 'file')} {times:,} times more than once each"
    return OpenedAgain(
        rows,
        np.minimum(_LOW * opening, 1.0),
        np.minimum(opening + besides, 1.0),
        np.minimum(opening + closing, 1.0),
        title,
        files,
        Check("same-file-again", True, sentence),
        {"opens": count, "mean_s": time_ns * 1e-9 / count, "read_bytes": read},
    )

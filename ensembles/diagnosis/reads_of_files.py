"""What a program reads from its files, without what libraries read in order to write."""

from __future__ import annotations

import numpy as np

from ensembles.diagnosis.case import Case
from ensembles.diagnosis.enclosing import Rows
from ensembles.diagnosis.file_uses import NOT_READ_BY_PROGRAM, STORAGE
from ensembles.model.distinct import distinct_rows


def reads_of_files(case: Case, uses: Rows) -> Rows:
    """Add up what tasks read from files, without what libraries read in order to write.

    Reads of the file system count, as those of the library above move the same bytes; of files without them,
    those of the library.

    Parameters
    ----------
    case : Case
    uses : dict of str to ndarray
        Columns of `FileUses.table`.

    Returns
    -------
    dict of str to ndarray, shape (m,)
        By ``file`` and ``rank``: ``bytes``, ``low`` and ``high`` offset.
    """
    calls = case.run.calls
    reads = np.array([call.op == "read" for call in calls] or [False])[uses["call"]]
    storage = np.array([call.layer in STORAGE for call in calls] or [False])[uses["call"]]
    size = int(uses["file"].max(initial=0)) + 1
    has_storage = np.bincount(uses["file"][reads & storage], minlength=size)[uses["file"]] > 0
    reads &= (storage | ~has_storage) & (uses["high"] > uses["low"])
    reads &= ~np.isin(uses["kind"], NOT_READ_BY_PROGRAM)
    names, where = distinct_rows(uses["file"][reads], uses["rank"][reads])
    low, high = np.full(names.shape[1], np.iinfo(np.int64).max), np.zeros(names.shape[1], np.int64)
    np.minimum.at(low, where, uses["low"][reads])
    np.maximum.at(high, where, uses["high"][reads])
    bytes_ = np.bincount(where, uses["bytes"][reads], names.shape[1]).astype(np.int64)
    return {"file": names[0], "rank": names[1], "bytes": bytes_, "low": low, "high": high}

"""Pieces in which the C library passes streams on, by the kernel's counters of system calls."""

from __future__ import annotations

import numpy as np

from ensembles.diagnosis.case import Case
from ensembles.model.surroundings import SurroundingsTable

COUNTERS = {"write": ("write_calls", "written_by_calls"), "read": ("read_calls", "read_by_calls")}
"""Counters of the calls and of the bytes, by operation."""

_LEAST_PART, _MOST_PART = 0.9, 1.5


def pieces_below(
    case: Case, samples: SurroundingsTable, op: str, chosen: np.ndarray
) -> tuple[float, float] | None:
    """Compute the mean size and number of system calls below streams.

    Parameters
    ----------
    case : Case
    samples : SurroundingsTable
        Of the run.
    op : str
        One of `COUNTERS`.
    chosen : ndarray of bool, shape (n,)
        Rows of the transfers on streams.

    Returns
    -------
    (float, float) or None
        Bytes of a piece, and number of pieces. None: the counters are missing, or they hold other transfers.
    """
    count, moved = (float(samples.rises(name).rise.sum()) for name in COUNTERS[op])
    recorded = (case.layer == "posix") & (case.op == op)
    below = moved - float(case.rows["bytes"][recorded].sum())
    expected = float(case.rows["bytes"][chosen].sum())
    # Transfers of other files, which are not recorded, may be among them.
    if not _LEAST_PART * expected <= below <= _MOST_PART * expected:
        return None
    count -= float(case.rows["n"][recorded].sum())
    return (below / count, count) if count > 0 else None

"""Time that tasks wait in calls of a library while one of them makes the requests of all."""

from __future__ import annotations

import numpy as np

from ensembles.diagnosis.case import Case


def with_waits_in_hdf5(case: Case, saved_ns: np.ndarray) -> np.ndarray:
    """Add what other tasks save in collective calls of HDF5 that move no data: they wait there.

    Where at most half of the tasks of a window make the requests inside such calls, the others save the part
    of their time in the calls that the requests are of those of the busiest of these tasks.

    Parameters
    ----------
    case : Case
    saved_ns : ndarray of float64, shape (n,)
        Time saved in requests inside calls of HDF5.

    Returns
    -------
    ndarray of float64, shape (n,)
    """
    moves = np.char.startswith(case.name, "H5D") & np.isin(case.op, ("read", "write"))
    own_ns = np.where((case.layer == "hdf5") & ~moves, case.rows["time_ns"], 0.0)
    saved, own = case.by_cell(saved_ns), case.by_cell(own_ns)
    busiest = np.argmax(saved, axis=1)[:, None]
    most, waits = (np.take_along_axis(each, busiest, 1)[:, 0] for each in (saved, own))
    alone = 2 * (saved > 0).sum(axis=1) <= case.present.sum(axis=1)
    part = np.where(alone & (most > 0), most / np.maximum(most + waits, 1), 0.0)
    # A task waits no longer than the requests take.
    part = np.minimum(part[:, None], most[:, None] / np.maximum(own, 1)) * (saved <= 0)
    found: np.ndarray = saved_ns + own_ns * case.of_cells(part)
    return found

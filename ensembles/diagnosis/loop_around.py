"""Loops of very many small calls, whose time passes between the calls, as in an interpreter."""

from __future__ import annotations

import numpy as np

from ensembles.diagnosis.case import Case
from ensembles.model.units import bytes_text, seconds_text

SMALL_BYTES, LEAST_CALLS, MOST_OF_RUN = 8192, 1000, 0.5
"""Size and number of calls in a loop that fills at least this part of the run."""


def loop_text(case: Case, lasts_s: float) -> str:
    """Return what a loop of small calls takes, as the end of a sentence; ``""`` if there is none.

    Parameters
    ----------
    case : Case
    lasts_s : float
        Length of the run, s.
    """
    rows = case.rows
    small = np.isin(case.op, ("read", "write")) & (rows["depth"] == 0) & (rows["bytes"] > 0)
    small &= rows["bytes"] < SMALL_BYTES * rows["n"]
    calls = np.bincount(case.task[small], rows["n"][small], len(case.ranks))
    mine = small & (case.task == int(np.argmax(calls)))
    if calls.max(initial=0) < LEAST_CALLS:
        return ""
    around_s = 1e-9 * float(rows["end_ns"][mine].max() - rows["start_ns"][mine].min())
    if around_s < MOST_OF_RUN * lasts_s:
        return ""
    size = bytes_text(round(float(rows["bytes"][mine].sum() / calls.max())))
    return (
        f"; but a loop of {int(calls.max()):,} calls of {size} on average fills {seconds_text(around_s)}: if "
        "it does little else (h5py and netCDF4 work as long on a small piece as on a large one, outside of "
        "the calls), larger pieces in each call make it shorter"
    )

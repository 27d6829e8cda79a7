"""What writes of one size cost for each end inside a stripe, and sizes that need no such end."""

from __future__ import annotations

import numpy as np

from ensembles.diagnosis.case import LEAST_CALLS, Case
from ensembles.model.distinct import distinct_rows

_LEAST_PART = 0.1
"""Part of the calls with either kind of ends: the few that happen to end with a stripe are first or last."""


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


def slopes(ends: dict[str, np.ndarray]) -> np.ndarray:
    """Regress log durations on the number of ends inside a stripe, in each phase, function and size class."""
    found = []
    enough = ends["n"] >= LEAST_CALLS
    names, group = distinct_rows(*(ends[name] for name in ("phase", "call", "size")))
    for number in range(names.shape[1]):
        mine = enough & (group == number)
        if mine.sum() < 2 or ends["n"][mine].max() > (1 - _LEAST_PART) * ends["n"][mine].sum():
            continue
        weight, x, y = ends["n"][mine], ends["ragged"][mine], ends["log_ns"][mine] / ends["n"][mine]
        x = x - np.average(x, weights=weight)
        found.append(float((weight * x * y).sum() / (weight * x * x).sum()))
    return np.array(found)

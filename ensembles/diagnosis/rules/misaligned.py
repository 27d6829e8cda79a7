"""Rule ``misaligned-requests``: writes to a shared file that begin or end inside a stripe are slower."""

from __future__ import annotations

import numpy as np

from ensembles.diagnosis.cannot_tell import transfers_of_shared_files
from ensembles.diagnosis.case import Case
from ensembles.diagnosis.evidence_rule import EvidenceRule
from ensembles.diagnosis.finding import FROM_SHARE, Check
from ensembles.diagnosis.remedy import Remedy
from ensembles.diagnosis.rule import NotApplicable
from ensembles.model.units import seconds_text

LEAST_CALLS = 8
"""Calls of each kind of ends in a phase, to compare them."""

LEAST_PHASES = 3
LEAST_SLOPE = 0.15
"""Logarithm of the slowdown for each end inside a stripe."""

_LEAST_T = 3.0
_LEAST_PART = 0.1
"""Part of the calls with either kind of ends: the few that happen to end with a stripe are first or last."""

ADVICE = (
    "make records and their offsets multiples of the stripe size (HDF5: H5Pset_alignment; MPI-IO: "
    "striping_unit), or choose a stripe size that divides the records"
)


def _find(case: Case) -> Remedy | None:
    ends, stripes = case.evidence.ends.columns(), case.evidence.stripes
    rows = transfers_of_shared_files(case, 2) & (case.op == "write")
    writes = np.unique(case.rows["call"][rows])
    chosen = np.isin(ends["call"], writes)
    ends = {name: column[chosen] for name, column in ends.items()}
    files = np.unique(case.evidence.uses.columns()["file"])
    known = len(files) > 0 and int(files.max()) < len(stripes) and bool((stripes[files, 0] > 0).all())
    if known and len(ends["ragged"]) and not ends["ragged"].any():
        return None
    at_most_s = case.most_s(np.where(rows, case.rows["time_ns"], 0.0))
    if at_most_s < FROM_SHARE["warning"] * case.span_s:
        return None
    slopes = _slopes(ends)
    if len(slopes) < LEAST_PHASES:
        raise NotApplicable(
            f"it could cost up to {seconds_text(at_most_s)} of this run: records of one size have ends of "
            "one kind; record the same program with records that are multiples of the stripe size, and "
            "compare the runs (ensio compare)"
        )
    slope, error = float(slopes.mean()), float(slopes.std(ddof=1)) / len(slopes) ** 0.5
    if slope < LEAST_SLOPE or slope < _LEAST_T * error:
        return None
    bounds = []
    for each in (slope - 1.645 * error, slope, slope + 1.645 * error):
        lost = float((ends["time_ns"] * -np.expm1(-max(each, 0) * ends["ragged"])).sum())
        share = lost / max(float(ends["time_ns"].sum()), 1)
        bounds.append(np.where(rows, case.rows["time_ns"] * share, 0.0))
    checks = (
        Check(
            "each-end-costs",
            True,
            f"each end inside a stripe makes a write {np.exp(slope):.3g} times as long, in {len(slopes)} "
            "phases in which writes of one size end inside and at the end of stripes",
        ),
        Check("bytes-stay", None, "bytes that writes no longer wait for have to leave the cache later"),
    )
    return Remedy(
        rows,
        bounds[1],
        f"writes to shared files take {np.exp(slope):.3g} times as long for each end inside a stripe",
        ADVICE,
        checks,
        {"slowdown_per_end": float(np.exp(slope)), "phases_compared": len(slopes)},
        0.5 * bounds[0],
        bounds[2],
    )


def _slopes(ends: dict[str, np.ndarray]) -> np.ndarray:
    """Regress log durations on the number of ends inside a stripe, in each phase, function and size class."""
    keys = np.stack([ends[name] for name in ("phase", "call", "size")])
    found = []
    enough = ends["n"] >= LEAST_CALLS
    names, group = np.unique(keys, axis=1, return_inverse=True)
    for number in range(names.shape[1]):
        mine = enough & (group.reshape(-1) == number)
        if mine.sum() < 2 or ends["n"][mine].max() > (1 - _LEAST_PART) * ends["n"][mine].sum():
            continue
        weight, x, y = ends["n"][mine], ends["ragged"][mine], ends["log_ns"][mine] / ends["n"][mine]
        x = x - np.average(x, weights=weight)
        found.append(float((weight * x * y).sum() / (weight * x * x).sum()))
    return np.array(found)


rule = EvidenceRule("misaligned-requests", _find)

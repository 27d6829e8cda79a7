"""Small requests in sums: the fixed cost of the calls of each function and size class."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ensembles.diagnosis.case import LEAST_CALLS
from ensembles.diagnosis.finding import Check, Finding
from ensembles.diagnosis.fixed_cost import COPIED_BYTES, JOINED_BYTES, fixed_costs_ns
from ensembles.diagnosis.summed.case import SummedCase, summed_finding, without_order
from ensembles.diagnosis.summed.o_sync import flagged_files
from ensembles.model.units import bytes_text, seconds_text

if TYPE_CHECKING:
    from ensembles.run.run import Run

SMALL_CLASS = 18


def find_summed(run: Run) -> Finding | None:
    """Take off the fixed cost of small reads and writes, as far as they can be joined."""
    case = SummedCase(run)
    rows = case.rows
    small = (case.layer == "posix") & np.isin(case.op, ("read", "write"))
    flagged = flagged_files(run)
    if flagged and len(flagged) >= len(run.files) - 1:
        small &= case.op == "read"  # writes wait for the device because of the flags
    small &= (rows["size"] <= SMALL_CLASS) & (rows["bytes"] > 0)
    count = int(rows["n"][small].sum())
    if not count or count < LEAST_CALLS * len(case.ranks):
        return None
    mean_bytes, mean_ns = rows["bytes"] / rows["n"], rows["own_ns"] / rows["n"]
    middle_ns = np.where(mean_bytes < COPIED_BYTES, case.usual_ns(), case.quantile_ns(0.5))
    floors = [np.minimum(each, mean_ns) for each in (case.quantile_ns(0.25), middle_ns, mean_ns)]
    fixed = fixed_costs_ns(mean_bytes, floors)
    joined = np.ceil(rows["bytes"][small].sum() / JOINED_BYTES)
    kept = min(float(joined) / count, 1.0)
    low, likely, high = (case.divided(np.where(small, rows["n"] * each * (1 - kept), 0.0)) for each in fixed)
    size = float(rows["bytes"][small].sum()) / count
    each_s = float(np.average(fixed[1][small], weights=rows["n"][small])) * 1e-9
    checks = [
        Check(
            "fixed-cost",
            True,
            f"these calls usually take {seconds_text(each_s)} beyond the time of their bytes in memory: the "
            "cost is there whatever the size",
        ),
        Check("many", True, f"{count:,} calls of {bytes_text(round(size))} on average"),
    ]
    if (case.op[small] == "read").any():
        checks.append(without_order("whether reads jump through the file"))
    if flagged and (case.op[small] == "write").any():
        checks.append(without_order("whether writes wait because of O_SYNC, O_DSYNC or O_DIRECT"))
    return summed_finding(
        case,
        "small-requests",
        f"small requests: {count:,} calls of {bytes_text(round(size))}, {seconds_text(each_s)} of fixed cost "
        "each",
        checks,
        {"mean_bytes": size, "fixed_cost_s": each_s, "calls": count},
        (low, likely, high),
        calls=np.unique(case.name[small]).tolist(),
    )

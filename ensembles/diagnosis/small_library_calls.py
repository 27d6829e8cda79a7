"""Small calls of HDF5 and netCDF: what many of them cost in the libraries, whatever reaches the storage."""

from __future__ import annotations

import numpy as np

from ensembles.diagnosis.case import Case
from ensembles.diagnosis.finding import Check
from ensembles.diagnosis.fixed_cost import COPIED_BYTES, JOINED_BYTES
from ensembles.diagnosis.hdf5_work import FILTER_NS_PER_BYTE
from ensembles.diagnosis.remedy import Remedy
from ensembles.model.units import bytes_text, seconds_text
from ensembles.structure.library_time import LIBRARIES

LEAST_CALLS = 64
"""Calls of a task."""

_LAYERS = ("hdf5", "netcdf")
_SLOW_FILTER_NS_PER_BYTE = 4 * FILTER_NS_PER_BYTE

JOIN = (
    "move larger pieces in each call: whole rows, planes or time steps instead of parts of them (a larger "
    "count or selection), or collect them in an array and write it at once"
)


def join_library_calls(case: Case) -> Remedy | None:
    """Compute what joining small calls of libraries saves inside these libraries.

    Their time without the calls inside, beyond what filters take for the bytes, is a cost of each call.

    Returns
    -------
    Remedy or None
        None: there are no such calls.
    """
    rows = np.isin(case.layer, _LAYERS) & np.isin(case.op, ("read", "write")) & (case.rows["bytes"] > 0)
    data = (case.layer == "netcdf") | np.char.startswith(case.name, "H5D")
    calls = np.maximum(case.rows["n"], 1)
    mean_bytes, mean_ns = (case.rows[name] / calls for name in ("bytes", "time_ns"))
    rows &= data & (mean_bytes < COPIED_BYTES)
    outermost = rows & (case.rows["depth"] == 0)
    tasks = len(case.ranks)
    count, moved = (
        np.bincount(case.task, np.where(outermost, case.rows[name], 0), tasks) for name in ("n", "bytes")
    )
    kept = np.divide(np.ceil(moved / JOINED_BYTES), count, out=np.ones(tasks), where=count > 0)
    left_out = np.where(rows & (count >= LEAST_CALLS)[case.task], 1 - np.minimum(kept, 1.0)[case.task], 0.0)
    if not left_out.any():
        return None
    usual_ns = np.minimum(case.usual_ns(), mean_ns)
    least_ns = np.minimum(case.quartile_ns(0.25), mean_ns)
    in_parallel = tasks > 1 and bool(((case.layer == "mpiio") & (case.rows["depth"] > 0)).any())
    low, saved, high = (
        calls * left_out * np.maximum(each_ns - mean_bytes * ns_per_byte, 0)
        for each_ns, ns_per_byte in (
            (least_ns * (not in_parallel), _SLOW_FILTER_NS_PER_BYTE),
            (usual_ns, FILTER_NS_PER_BYTE),
            (mean_ns, 0.0),
        )
    )
    shown = outermost & (left_out > 0)
    number = int(case.rows["n"][shown].sum())
    size = float(case.rows["bytes"][shown].sum()) / number
    each_s = 1e-9 * float(saved.sum()) / number
    whose = " and ".join(LIBRARIES[layer] for layer in np.unique(case.layer[saved > 0]).tolist())
    if not whose:
        return None
    of_size = f"{number:,} calls of {bytes_text(round(size))}"
    checks = (
        Check(
            "cost-of-calls",
            True,
            f"{seconds_text(each_s)} of each call are in {whose} and in no call inside, more than filters "
            "take for its bytes",
        ),
        Check("many", True, of_size),
    )
    return Remedy(
        shown,
        saved,
        f"small requests: {of_size}, {seconds_text(each_s)} of fixed cost each inside {whose}",
        checks,
        {"mean_bytes": size, "fixed_cost_s": each_s},
        low,
        high,
        fewer=np.where(outermost, calls * left_out, 0.0),
        advice=JOIN,
    )

"""Rules for small requests, whose time is a fixed cost for each call and not that of their bytes.

Where one or two tasks make them and the others wait, the cause is ``serialised-metadata``; where the reads
jump, ``seek-heavy``; where the C library's buffer makes them, ``stdio-buffer``; else ``small-requests``.
"""

from __future__ import annotations

import numpy as np

from ensembles.diagnosis.case import SMALL_CLASS, Case
from ensembles.diagnosis.counted.small_requests import find_counted
from ensembles.diagnosis.evidence_rule import EvidenceRule
from ensembles.diagnosis.finding import Check
from ensembles.diagnosis.fixed_cost import COPIED_BYTES, JOINED_BYTES, fixed_costs_ns
from ensembles.diagnosis.remedy import Remedy
from ensembles.diagnosis.summed.small_requests import find_summed
from ensembles.model.units import bytes_text, seconds_text

LEAST_CALLS = 8
_FEW_TASKS = 2
_LEAST_OTHERS = 4
_JUMPS = 0.8

ADVICE = {
    "small-requests": "join small transfers in a buffer of 1 MiB or more, or use collective I/O "
    "(romio_cb_write=enable; "
    "HDF5: chunk cache, H5Pset_sieve_buf_size; NetCDF: larger chunks)",
    "stdio-buffer": "give the stream a larger buffer before its first use: setvbuf(file, buffer, _IOFBF, "
    "1 << 20) with memory that lives as long as the stream (glibc ignores the size if buffer is NULL), in "
    "Fortran the compiler's buffer size (GFORTRAN_UNFORMATTED_BUFFER_SIZE), in Python open(..., "
    "buffering=1 << 20); or write(2) large pieces",
    "serialised-metadata": "let the one task write its small pieces at once: buffer them, defer metadata "
    "until "
    "the file "
    "is closed (HDF5: H5Pset_meta_block_size, H5Pset_coll_metadata_write), or spread them over tasks",
    "seek-heavy": (
        "read the file in the order of its bytes and sort in memory, or read one large range and pick from it"
    ),
}


def _find(case: Case, cause: str) -> Remedy | None:
    rows_of = case.rows
    small = np.isin(case.op, ("read", "write")) & (rows_of["size"] <= SMALL_CLASS) & (rows_of["bytes"] > 0)
    stdio = small & (case.layer == "stdio")
    outermost = small & ((case.layer == "posix") | _without_inner_calls(case))
    if not (stdio | outermost).any():
        return None
    few = np.unique(rows_of["rank"][outermost])
    is_few = len(few) <= _FEW_TASKS and len(case.ranks) - len(few) >= _LEAST_OTHERS
    jumping = outermost & (case.op == "read") & _jumps(case)
    single = outermost if is_few else outermost & _of_single_tasks(case, outermost)
    chosen = {
        "stdio-buffer": stdio,
        "serialised-metadata": single,
        "seek-heavy": jumping & ~single,
        "small-requests": outermost & ~single,
    }[cause]
    if not chosen.any():
        return None
    mean_bytes, mean_ns = rows_of["bytes"] / rows_of["n"], rows_of["time_ns"] / rows_of["n"]
    middle_ns = np.where(mean_bytes < COPIED_BYTES, case.usual_ns(), case.quartile_ns(0.5))
    floors = [case.quartile_ns(0.25), middle_ns, mean_ns]
    if cause == "stdio-buffer":
        floors = [0.4 * mean_ns, mean_ns, mean_ns]  # most calls only fill the buffer
    fixed = fixed_costs_ns(mean_bytes, [np.minimum(floor, mean_ns) for floor in floors])
    fixed_ns = fixed[1]
    calls = case.by_cell(np.where(chosen, rows_of["n"], 0))
    joined = np.ceil(case.by_cell(np.where(chosen, rows_of["bytes"], 0)) / JOINED_BYTES)
    kept = np.divide(np.minimum(joined, calls), calls, out=np.ones_like(calls), where=calls >= LEAST_CALLS)
    rows = chosen & case.of_cells(calls >= LEAST_CALLS)
    if not rows.any():
        return None
    low, saved, high = (
        np.where(rows, rows_of["n"] * each * (1 - case.of_cells(kept)), 0.0) for each in fixed
    )
    total = int(rows_of["n"][rows].sum())
    size = float(np.average(mean_bytes[rows], weights=rows_of["n"][rows]))
    each_s = float(np.average(fixed_ns[rows], weights=rows_of["n"][rows])) * 1e-9
    checks = (
        Check(
            "fixed-cost",
            True,
            f"these calls usually take {seconds_text(each_s)} beyond the time of their bytes in memory: the "
            "cost is there whatever the size",
        ),
        Check("many", True, f"{total:,} calls of {bytes_text(round(size))} on average"),
    )
    makers = len(np.unique(rows_of["rank"][rows]))
    told = {
        "seek-heavy": "reads jump through the file",
        "stdio-buffer": "small writes through the C library's buffer",
        "serialised-metadata": (
            f"{makers} of {len(case.ranks)} tasks make small calls one by one, and the others wait"
        ),
        "small-requests": "small requests",
    }[cause]
    return Remedy(
        rows,
        saved,
        f"{told}: {total:,} calls of {bytes_text(round(size))}, {seconds_text(each_s)} of fixed cost each",
        ADVICE[cause],
        checks,
        {"mean_bytes": size, "fixed_cost_s": each_s},
        low,
        high,
    )


def _without_inner_calls(case: Case) -> np.ndarray:
    """Find independent MPI-IO calls of a run that recorded no POSIX calls inside: they are the requests."""
    inside = (case.layer == "posix") & (case.rows["depth"] > 0) & np.isin(case.op, ("read", "write"))
    alone = (case.layer == "mpiio") & ~np.char.endswith(case.name, "_all")
    return np.zeros(len(case), bool) if inside.any() else alone


def _jumps(case: Case) -> np.ndarray:
    """Find the rows of reads most of which do not begin where the one before ended."""
    table = case.evidence.order.columns()
    names = ("phase", "rank", "call", "size")
    keys = np.stack([np.concatenate([table[name], case.rows[name]]) for name in names])
    number = np.unique(keys, axis=1, return_inverse=True)[1].reshape(-1)
    mine, theirs = number[len(table["n"]) :], number[: len(table["n"])]
    count = np.bincount(theirs, table["n"], int(number.max()) + 1)
    jumped = np.bincount(theirs, table["n"] * table["jumps"], int(number.max()) + 1)
    found: np.ndarray = (jumped >= _JUMPS * np.maximum(count, 1))[mine] & (count[mine] >= LEAST_CALLS)
    return found


def _of_single_tasks(case: Case, chosen: np.ndarray) -> np.ndarray:
    """Find rows whose function and size class only one or two tasks use in any phase."""
    key = case.rows["call"] * 128 + case.rows["size"]
    pairs = np.unique(np.stack([key[chosen], case.rows["rank"][chosen]]), axis=1)
    names, tasks = np.unique(pairs[0], return_counts=True)
    single = names[(tasks <= _FEW_TASKS) & (len(case.ranks) - tasks >= _LEAST_OTHERS)]
    found: np.ndarray = np.isin(key, single)
    return found


def _rule(cause: str) -> EvidenceRule:
    return EvidenceRule(cause, lambda case: _find(case, cause))


small_requests = EvidenceRule(
    "small-requests",
    lambda case: _find(case, "small-requests"),
    counted=lambda run: find_counted(run, ADVICE["small-requests"]),
    summed=lambda run: find_summed(run, ADVICE["small-requests"]),
)
stdio_buffer = _rule("stdio-buffer")
serialised_metadata, seek_heavy = _rule("serialised-metadata"), _rule("seek-heavy")

"""Rules ``small-requests``, ``seek-heavy`` and ``serialised-metadata``: many small transfers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ensembles.diagnosis.case import Case
from ensembles.diagnosis.counted_case import counted_case, counted_finding
from ensembles.diagnosis.evidence_rule import FILE_USES, EvidenceRule
from ensembles.diagnosis.file_uses import FileUses
from ensembles.diagnosis.finding import Check, Finding, NotApplicable, matters
from ensembles.diagnosis.fixed_cost import COPIED_BYTES, SHARED_MEMORY_BYTES_PER_NS
from ensembles.diagnosis.limits import LARGE_BYTES, LEAST_CALLS
from ensembles.diagnosis.principles import cause_of
from ensembles.diagnosis.remedy import Remedy
from ensembles.diagnosis.rules.hdf5 import FILTER_NS_PER_BYTE, refill
from ensembles.diagnosis.small_calls import between_others, join_calls, jumps, small_calls
from ensembles.model.units import bytes_text, seconds_text
from ensembles.structure.library_time import LIBRARIES

if TYPE_CHECKING:
    from ensembles.run.run import Run


_LAYERS = ("hdf5", "netcdf")
_SLOW_FILTER_NS_PER_BYTE = 4 * FILTER_NS_PER_BYTE

JOIN = (
    "move larger pieces in each call: whole rows, planes or time steps instead of parts of them (a larger "
    "count or selection), or collect them in an array and write it at once"
)


def join_library_calls(case: Case, again: np.ndarray) -> Remedy | None:
    """Compute what joining small calls of libraries saves inside these libraries.

    Their time without the calls inside, beyond what filters take for the bytes, is a cost of each call.
    """
    rows = np.isin(case.layer, _LAYERS) & np.isin(case.op, ("read", "write")) & (case.rows["bytes"] > 0)
    data = (case.layer == "netcdf") | np.char.startswith(case.name, "H5D")
    calls = np.maximum(case.rows["n"], 1)
    mean_bytes, mean_ns = (case.rows[name] / calls for name in ("bytes", "time_ns"))
    rows &= data & ~again
    # A call that moves a whole chunk for a few bytes takes what the chunk does.
    below = (case.layer == "posix") & (case.rows["depth"] > 0)
    for op in ("read", "write"):
        moved, count = (
            case.by_cell(np.where(chosen & (case.op == op), case.rows[name], 0))
            for chosen, name in ((below, "bytes"), (rows, "n"))
        )
        each = np.divide(moved, count, out=np.zeros_like(moved), where=count > 0)
        rows &= (case.op != op) | (np.maximum(mean_bytes, case.of_cells(each)) < COPIED_BYTES)
    outermost = rows & (case.rows["depth"] == 0)
    tasks = len(case.ranks)
    count, moved = (
        np.bincount(case.task, np.where(outermost, case.rows[name], 0), tasks) for name in ("n", "bytes")
    )
    kept = np.divide(np.ceil(moved / LARGE_BYTES), count, out=np.ones(tasks), where=count > 0)
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


READ_AHEAD = (
    "look at the calls of posix_fadvise on these files, too: POSIX_FADV_RANDOM switches off the kernel's "
    "read-ahead, which a file that is read in order needs"
)

SMALL_BYTES = 128 << 10
_FLOORS = (0.3, 0.7, 1.0)
"""Part of the mean duration that is a fixed cost: counters do not show the fastest calls."""


def find_counted(run: Run) -> Finding | None:
    """Take off the fixed cost of the calls of files with small requests, as far as they can be joined."""
    case = counted_case(run)
    files = case.files
    calls = files["reads"] + files["writes"]
    moved = files["bytes_read"] + files["bytes_written"]
    chosen = (calls >= LEAST_CALLS * files["records"]) & (moved > 0) & (moved < SMALL_BYTES * calls)
    spent = files["read_s"] + files["write_s"]
    chosen &= spent > 0
    if not chosen.any():
        return None
    whole = np.maximum(spent + files["meta_s"], 1e-12)
    beyond = np.maximum(spent - 1e-9 * moved / SHARED_MEMORY_BYTES_PER_NS[1], 0) / whole
    joined = np.ceil(moved / LARGE_BYTES)
    left = np.minimum(joined / np.maximum(calls, 1), 1.0)
    saved = np.where(chosen, case.time_s * beyond * (1 - left), 0.0)
    low_s, likely_s, high_s = (case.gain_s(part * saved) for part in _FLOORS)
    count, size = int(calls[chosen].sum()), float(moved[chosen].sum() / calls[chosen].sum())
    each_s = float(spent[chosen].sum() / count)
    checks = (
        Check(
            "many",
            True,
            f"{count:,} calls of {bytes_text(round(size))} on average take {seconds_text(each_s)}",
        ),
        Check(
            "fixed-cost",
            None,
            "counters have no durations of single calls: record them with DXT or ensio to see what a call "
            "costs whatever its size",
        ),
    )
    return counted_finding(
        case,
        "small-requests",
        f"small requests: {count:,} calls of {bytes_text(round(size))} in {chosen.sum():,} "
        f"file{'s' * (int(chosen.sum()) != 1)}, {seconds_text(each_s)} each",
        checks,
        {"mean_bytes": size, "mean_s": each_s, "calls": count},
        (low_s, likely_s, high_s),
        chosen,
    )


def _moved_again(case: Case, uses: FileUses) -> np.ndarray:
    """Find the rows of ``hdf5-refill``: bool, shape (n,)."""
    try:
        found = refill.find(case, uses)
    except NotApplicable:
        found = None
    return np.zeros(len(case), bool) if found is None else found.rows


def _find(case: Case, uses: FileUses) -> Remedy | None:
    of_library = join_library_calls(case, _moved_again(case, uses))
    try:
        found = join_calls(case, "small-requests", "small requests", between_others(case, uses))
    except NotApplicable:
        if of_library is None or not matters(case.gain_s(of_library.saved_ns), case.run_s):
            raise
        return of_library
    if of_library is None or (
        found is not None and case.gain_s(found.saved_ns) > case.gain_s(of_library.saved_ns)
    ):
        return found if found is None else _with_read_ahead(case, uses, found)
    return of_library


def _with_read_ahead(case: Case, uses: FileUses, found: Remedy) -> Remedy:
    """Name calls of posix_fadvise on files that are read in small pieces: they may switch read-ahead off."""
    table = uses.table.columns()
    reads = np.isin(table["call"], case.rows["call"][found.rows & (case.op == "read")])
    advised = (case.names == "posix_fadvise")[table["call"]] & np.isin(table["file"], table["file"][reads])
    if jumps(case)[found.rows].all() or not advised.any():
        return found
    found.evidence["posix_fadvise_calls"] = int(table["n"][advised].sum())
    found.advice = f"{cause_of('small-requests').advice}; {READ_AHEAD}"
    return found


rule = EvidenceRule(
    "small-requests",
    _find,
    FILE_USES,
    counted=find_counted,
    summed=_find,
)


def _find_jumps(case: Case) -> Remedy | None:
    rows = small_calls(case)["seek-heavy"]
    goes_back = bool(rows.any()) and bool(jumps(case, least=2)[rows].all())
    what = "reads go backwards through the file" if goes_back else "reads jump through the file"
    return join_calls(case, "seek-heavy", what)


seek_heavy = EvidenceRule("seek-heavy", _find_jumps)


def _find_serialised(case: Case) -> Remedy | None:
    makers = len(np.unique(case.rows["rank"][small_calls(case)["serialised-metadata"]]))
    verb = "makes" if makers == 1 else "make"
    what = f"{makers:,} of {len(case.ranks):,} tasks {verb} small calls one by one, and the others wait"
    return join_calls(case, "serialised-metadata", what)


serialised_metadata = EvidenceRule("serialised-metadata", _find_serialised)

"""Rule ``hdf5-metadata``: HDF5 reads and writes its own structures in many small requests."""

from __future__ import annotations

import numpy as np

from ensembles.diagnosis.case import Case
from ensembles.diagnosis.evidence_rule import FILE_USES, EvidenceRule
from ensembles.diagnosis.file_uses import CACHED, METADATA, FileUses, chunks_from_cache, share_of_rows
from ensembles.diagnosis.finding import Check, NotApplicable, matters
from ensembles.diagnosis.fixed_cost import fixed_costs_ns
from ensembles.diagnosis.hdf5_work import other_data_calls
from ensembles.diagnosis.limits import LARGE_BYTES, MOST
from ensembles.diagnosis.remedy import Remedy
from ensembles.model.units import bytes_text, seconds_text


def with_waits_in_hdf5(case: Case, saved_ns: np.ndarray) -> np.ndarray:
    """Add what other tasks save in collective calls of HDF5 that move no data: they wait there.

    Where at most half of the tasks of a window make the requests inside such calls, the others save the part
    of their time in the calls that the requests are of those of the busiest of these tasks.
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


LEAST_REQUESTS = 64
"""Requests of metadata below which a file of data, with some groups and attributes, is as it should be."""

_PARTS = (0.7, 2.0)  # of the estimate: transfers that stay queue less, or as long (9 of 11 drawn runs)

ADVICE = (
    "make fewer objects (one dataset with an index instead of many, attributes of a group instead of "
    "each dataset's), keep datasets open, and let HDF5 join its metadata: H5Pset_libver_bounds(latest), "
    "H5Pset_meta_block_size(1 MiB), H5Pset_page_buffer_size or H5Pset_file_space_strategy(paged)"
)
ADVICE_PARALLEL = (
    "; with several tasks, H5Pset_all_coll_metadata_ops and H5Pset_coll_metadata_write let one task make "
    "these requests for all"
)


def _find(case: Case, uses: FileUses) -> Remedy | None:
    table = uses.table.columns()
    calls = case.run.calls
    layer = case.layers[table["call"]]
    of_library = layer == "hdf5"
    if not of_library.any():
        if any(path.endswith((".h5", ".hdf5", ".nc")) for path in case.run.files):
            raise NotApplicable(
                "no call of HDF5 was recorded: record the layer hdf5 too, by preload or its library"
            )
        return None
    data = np.char.startswith(case.names, "H5D") & np.isin(case.ops, ("read", "write"))
    if not (layer == "posix").any():
        raise NotApplicable(
            "calls of HDF5 were recorded without the POSIX calls inside: record the layer posix too"
        )
    chosen = np.isin(table["kind"], (METADATA, CACHED)) & ~chunks_from_cache(table, calls)
    count, transfers = int(table["n"][chosen].sum()), int(table["n"][data[table["call"]]].sum())
    busiest_s = 1e-9 * np.bincount(table["rank"][chosen], table["time_ns"][chosen]).max(initial=0)
    are_few = count < LEAST_REQUESTS or count < MOST * transfers
    if are_few and (len(case.ranks) < 2 or not matters(busiest_s, case.run_s)):
        return None
    tasks = len(np.unique(table["rank"][chosen]))
    size = float(table["bytes"][chosen].sum()) / count
    small = case.rows["size"] <= 16
    share = share_of_rows(case, table, chosen) * small
    mean_bytes, mean_ns = (case.rows[name] / case.rows["n"] for name in ("bytes", "time_ns"))
    kept = np.minimum(size / LARGE_BYTES, 1.0)
    floors = [np.minimum(each, mean_ns) for each in (case.quartile_ns(0.25), case.usual_ns(), mean_ns)]
    low, saved, high = (
        with_waits_in_hdf5(case, share * case.rows["n"] * cost * (1 - kept))
        for cost in fixed_costs_ns(mean_bytes, floors)
    )
    each_s = float(table["time_ns"][chosen].sum()) / count * 1e-9
    names = case.paths(np.bincount(table["file"][chosen], table["time_ns"][chosen]))
    checks = (
        Check(
            "inside-hdf5",
            True,
            f"{count:,} transfers are inside calls of HDF5 that move no data of the program",
        ),
        Check(
            "small",
            True,
            f"they are of {bytes_text(round(size))} on average, against {transfers:,} calls that move data",
        ),
        Check("by-many-tasks", True, f"{tasks:,} of {len(case.ranks):,} tasks make them"),
    )
    return Remedy(
        share > 0,
        saved,
        f"HDF5 makes {count:,} requests of {bytes_text(round(size))} for metadata in {tasks} "
        f"task{'s' * (tasks != 1)}, {seconds_text(each_s)} each",
        checks,
        {"requests": count, "mean_bytes": size, "data_calls": transfers, "mean_s": each_s},
        low,
        high,
        names,
        parts=_PARTS,
        not_inside=other_data_calls(case),
        advice=ADVICE + (ADVICE_PARALLEL if tasks > 1 else ""),
    )


rule = EvidenceRule("hdf5-metadata", _find, FILE_USES)

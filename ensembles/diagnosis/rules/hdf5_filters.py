"""Rule ``hdf5-filters``: calls of HDF5 spend their time in filters, not in the file system.

Only bytes that become fewer on the way show a filter. A record does not say what other time inside HDF5 is:
copies, conversion of types, page faults, waiting for a processor. The account names it by its principle.
"""

from __future__ import annotations

import numpy as np

from ensembles.diagnosis.case import Case
from ensembles.diagnosis.evidence_rule import FILE_USES, EvidenceRule
from ensembles.diagnosis.file_uses import FileUses, chunks_from_cache, share_of_rows
from ensembles.diagnosis.finding import Check, matters
from ensembles.diagnosis.hdf5_work import CALL_NS, FILTER_NS_PER_BYTE, FILTERED
from ensembles.diagnosis.remedy import Remedy
from ensembles.diagnosis.rules.hdf5_refill import rule as refill
from ensembles.model.units import bytes_text, seconds_text, share_text
from ensembles.structure.library_time import MOST_COMPRESSED

FASTER = (
    "look which filter the dataset has (h5dump -pH): instead of gzip, a lower level (compression_opts=1; "
    "H5Pset_deflate(plist, 1)) or a faster filter (h5py: compression='lzf'; hdf5plugin has Zstd and Blosc); "
    "instead of a fast one, none; or let several tasks compress"
)

_FLUSHES = ("sync", "close")
"""Operations besides writes in which HDF5 filters what its chunk cache holds."""


def _find(case: Case, uses: FileUses) -> Remedy | None:
    again = refill.find(case, uses)  # refuses runs without the layers
    table = uses.table.columns()
    calls, width = case.run.calls, len(case.run.files)
    op, layer, data = (
        np.array(column)[table["call"]]
        for column in zip(*((c.op, c.layer, c.name.startswith("H5D")) for c in calls), strict=True)
    )
    own = layer == "hdf5"
    if again is not None:  # work that is done again has its finding
        files = np.array([path in again.files for path in case.run.files])[table["file"]]
        own &= ~(files & np.isin(table["call"], case.rows["call"][again.rows]))
    work_ns = np.maximum(table["time_ns"] - CALL_NS * table["n"], 0.0)
    # A close of an object that flushes no chunk has nothing to filter.
    cached = np.bincount(table["file"][chunks_from_cache(table, calls)], minlength=width) > 0
    chosen, given_bytes, moved_bytes = np.zeros(len(op), bool), 0, 0
    for direction in ("write", "read"):
        asked = (layer == "hdf5") & data & (op == direction)
        disk = (layer == "posix") & (op == direction)
        given, moved = (
            np.bincount(table["file"][rows], table["bytes"][rows], width) for rows in (asked, disk)
        )
        flushes = np.isin(op, _FLUSHES) & cached[table["file"]] & (direction == "write")
        mine = own & ((data & (op == direction)) | flushes)
        took_ns = np.bincount(table["file"][mine], work_ns[mine], width)
        # With still fewer bytes, the storage calls were not recorded.
        filtered = (moved < given) & (moved * MOST_COMPRESSED >= given)
        found = filtered & (took_ns >= FILTER_NS_PER_BYTE * given)
        chosen |= mine & found[table["file"]]
        given_bytes += int(given[found].sum())
        moved_bytes += int(moved[found].sum())
    own_ns = share_of_rows(case, table, chosen) * case.rows["time_ns"]
    if not matters(case.most_s(own_ns), case.run_s):
        return None
    own_s = 1e-9 * float(table["time_ns"][chosen].sum())
    storage = case.layer == "posix"
    whole_s = 1e-9 * float(case.rows["time_ns"][storage].sum()) + own_s
    summed = " summed over tasks" if len(np.unique(table["rank"][chosen])) > 1 else ""
    in_parallel = bool(np.isin(table["file"][layer == "mpiio"], table["file"][chosen]).any())
    cost = np.bincount(table["file"][chosen], table["time_ns"][chosen], width)
    checks = (
        Check(
            "inside-hdf5",
            True,
            f"{seconds_text(own_s)} are in these calls and in none that HDF5 makes, "
            f"{share_text(own_s / whole_s)} of this and all storage calls",
        ),
        Check(
            "more-than-copies",
            True,
            f"copies take less: the program moved {bytes_text(given_bytes)}, storage calls "
            f"{bytes_text(moved_bytes)}",
        ),
        Check(
            "no-waiting",
            None if in_parallel else True,
            "tasks may wait for each other in HDF5" if in_parallel else "no task waits for others in HDF5",
        ),
    )
    return Remedy(
        own_ns > 0,
        FILTERED[1] * own_ns,
        f"HDF5 spends {seconds_text(own_s)}{summed} in compression and other filters, not in the file system",
        checks,
        {"hdf5_time_s": own_s, "asked_bytes": given_bytes, "moved_bytes": moved_bytes},
        np.zeros(len(own_ns)),
        own_ns,
        case.paths(cost),
        advice=f"no file system makes this shorter: {FASTER}",
    )


rule = EvidenceRule("hdf5-filters", _find, FILE_USES)

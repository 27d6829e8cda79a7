"""Writes that wait for the device because of flags of ``open``, in sums, which have no calls by file."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ensembles.diagnosis.case import LEAST_CALLS
from ensembles.diagnosis.finding import MOST_FILES, Check, Finding
from ensembles.diagnosis.summed.cannot_tell import refuse
from ensembles.diagnosis.summed.case import SummedCase, summed_finding
from ensembles.model.metadata import OPEN_FLAGS, OPEN_RANKS
from ensembles.model.units import bytes_text, count_text, seconds_text

if TYPE_CHECKING:
    from ensembles.run.run import Run

MOST_BYTES = 4 << 20
_MEMORY_BYTES_PER_NS = 4.0
_LOW = 0.5


def flagged_files(run: Run) -> dict[str, str]:
    """Return the flags of each file that was opened with some of them."""
    return {path: facts[OPEN_FLAGS] for path, facts in run.info.file_facts.items() if OPEN_FLAGS in facts}


def find_summed(run: Run, advice: dict[bool, str]) -> Finding | None:
    """Find writes that wait, if each open of the run had flags; else sums do not show which do.

    Raises
    ------
    NotApplicable
        Some opens had flags and others may not.
    """
    flagged = flagged_files(run)
    if not flagged:
        return None
    case = SummedCase(run)
    some = any(OPEN_RANKS in facts for facts in run.info.file_facts.values())
    opens = case.of_tasks("n", ("open",), "posix")
    # A file has an open with flags in each task that uses it, and further ones may be without.
    some |= opens.sum() > max(len(flagged), np.count_nonzero(opens))
    if some or len(flagged) < len(run.files) - 1:
        refuse(
            case,
            float(case.of_tasks("own_ns", ("write",), "posix").max(initial=0.0)) * 1e-9,
            f"sums do not show which writes used the opens of {count_text(len(flagged), 'file')} with "
            "O_SYNC, O_DSYNC or O_DIRECT",
        )
        return None
    rows = case.rows
    writes = (case.layer == "posix") & (case.op == "write") & (rows["bytes"] > 0)
    writes &= rows["bytes"] < MOST_BYTES * rows["n"]
    count = int(rows["n"][writes].sum())
    if count < LEAST_CALLS:
        return None
    saved = case.divided(
        np.where(writes, np.maximum(rows["own_ns"] - rows["bytes"] / _MEMORY_BYTES_PER_NS, 0), 0)
    )
    size, each_s = rows["bytes"][writes].sum() / count, rows["own_ns"][writes].sum() / count * 1e-9
    flags = " and ".join(sorted(set(flagged.values())))
    checks = (
        Check(
            "flags", True, f"{count_text(len(flagged), 'file')}, all that the run knows, opened with {flags}"
        ),
        Check("flags-cost", None, "no writes go to files without these flags: the disk may be slow as such"),
    )
    return summed_finding(
        case,
        "o-sync",
        f"{count:,} writes of {bytes_text(round(size))} to files opened with {flags} take "
        f"{seconds_text(each_s)} each",
        checks,
        {"flags": flags, "writes": count, "mean_bytes": size, "mean_s": each_s},
        # The bytes still have to reach the device: a later flush may take as long as they did.
        (_LOW * saved, saved, saved),
        op="write",
        files=tuple(flagged)[:MOST_FILES],
        advice=advice["SYNC" in flags],
    )

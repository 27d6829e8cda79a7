"""Rule ``o-sync``: files are open so that each write waits for the device."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from ensembles.diagnosis.case import Case
from ensembles.diagnosis.evidence_rule import FILE_USES, EvidenceRule
from ensembles.diagnosis.file_uses import FileUses, share_of_rows
from ensembles.diagnosis.finding import MOST_FILES, Check, Finding, NotApplicable
from ensembles.diagnosis.fixed_cost import COPIED_BYTES_PER_NS
from ensembles.diagnosis.limits import LEAST_CALLS, LEAST_RATIO, LOW
from ensembles.diagnosis.remedy import Remedy
from ensembles.diagnosis.summed_case import SummedCase, refuse, summed_finding
from ensembles.model.metadata import OPEN_FLAGS, OPEN_RANKS
from ensembles.model.units import bytes_text, count_text, seconds_text

if TYPE_CHECKING:
    from ensembles.run.run import Run


def flagged_files(run: Run) -> dict[str, str]:
    """Return the flags of each file that was opened with some of them."""
    return {path: facts[OPEN_FLAGS] for path, facts in run.info.file_facts.items() if OPEN_FLAGS in facts}


def find_summed(run: Run, advice: dict[bool, str]) -> Finding | None:
    """Find writes that wait, if each open of the run had flags; else sums do not show which do."""
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
        np.where(writes, np.maximum(rows["own_ns"] - rows["bytes"] / COPIED_BYTES_PER_NS[1], 0), 0)
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
        (LOW * saved, saved, saved),
        op="write",
        files=tuple(flagged)[:MOST_FILES],
        advice=advice["SYNC" in flags],
    )


MOST_BYTES = 4 << 20
"""Mean size of writes from which waiting for the device is mostly the time of the bytes."""


ADVICE = {
    True: "open without O_SYNC and O_DSYNC, and call fsync once when a step is complete (SQLite: "
    "journal_mode=WAL, synchronous=NORMAL); the administrator can check whether the file system is "
    "mounted with the option sync",
    False: "open without O_DIRECT, or join writes to 4 MiB and more before they bypass the page cache (IOR: "
    "without -B; MPICH: no hint direct_write)",
}


def _find(case: Case, uses: FileUses) -> Remedy | None:
    facts = [case.run.info.file_facts.get(path, {}).get(OPEN_FLAGS, "") for path in case.run.files]
    flagged = np.array([bool(flags) for flags in facts])
    if not flagged.any():
        posix = case.layer == "posix"
        if ((case.op == "write") & posix).any() and not ((case.op == "open") & posix).any():
            raise NotApplicable("no open was recorded, and so no flags: record the whole program, with posix")
        return None
    table = uses.table.columns()
    writes = (case.ops == "write") & (case.layers == "posix")
    writes = writes[table["call"]] & (table["bytes"] > 0)
    writes_flagged = writes & flagged[table["file"]]
    waits = writes_flagged & (table["waits"] > 0)
    if writes_flagged.any() and not waits.any():
        opened = "files were opened with O_SYNC, O_DSYNC or O_DIRECT, and "
        asynchronous = np.char.startswith(case.names, "aio_")[table["call"]]
        if asynchronous[writes_flagged].all():
            flight = case.run.info.flights.get("write")
            raise NotApplicable(
                f"{opened}written by asynchronous requests, for which programs wait in calls without a file",
                None if flight is None else 1e-9 * flight.wait_ns,
            )
        raise NotApplicable(
            f"{opened}no event says that its write used such a descriptor: writes used others, or the record "
            "is of an older recorder"
        )
    chosen = writes & waits & (table["bytes"] < MOST_BYTES * np.maximum(table["n"], 1))
    count = int(table["n"][chosen].sum())
    if count < LEAST_CALLS:
        return None
    each_ns = float(table["time_ns"][chosen].sum()) / count
    size = float(table["bytes"][chosen].sum()) / count
    left = table["bytes"] / COPIED_BYTES_PER_NS[1] / np.maximum(table["time_ns"], 1)
    share = share_of_rows(case, table, chosen, np.maximum(1 - left, 0))
    saved = case.rows["time_ns"] * share
    files = np.unique(table["file"][chosen])
    names = case.paths(np.bincount(table["file"][chosen], table["time_ns"][chosen]))
    flags = " and ".join(sorted({facts[number] for number in files.tolist()}))
    sync = "SYNC" in flags
    return Remedy(
        share_of_rows(case, table, chosen) > 0,
        saved,
        f"{count:,} writes of {bytes_text(round(size))} to files opened with {flags} take "
        f"{seconds_text(each_ns * 1e-9)} each",
        (
            Check("flags", True, f"{len(files)} of {len(facts) - 1} files were opened with {flags}"),
            _compared(table, writes & ~waits, size, each_ns),
        ),
        {"flags": flags, "writes": count, "mean_bytes": size, "mean_s": each_ns * 1e-9},
        # The bytes still have to reach the device: a later flush may take as long as they did.
        LOW * saved,
        files=names,
        advice=ADVICE[sync],
    )


def _compared(table: dict[str, np.ndarray], others: np.ndarray, size: float, each_ns: float) -> Check:
    """Compare with writes of about the same size without these flags."""
    mean = table["bytes"] / np.maximum(table["n"], 1)
    others = others & (mean > size / 2) & (mean < 2 * size)
    count = int(table["n"][others].sum())
    if count < LEAST_CALLS:
        why = "no writes of this size are without these flags: the disk may be slow as such"
        return Check("flags-cost", None, why)
    usual_ns = float(table["time_ns"][others].sum()) / count
    sentence = (
        f"{count:,} writes of about this size without these flags take {seconds_text(usual_ns * 1e-9)} each"
    )
    return Check("flags-cost", LEAST_RATIO * usual_ns < each_ns, sentence)


rule = EvidenceRule("o-sync", _find, FILE_USES, summed=partial(find_summed, advice=ADVICE))

"""Rule ``o-sync``: files are open so that each write waits for the device."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from ensembles.diagnosis.case import Case
from ensembles.diagnosis.evidence_rule import FILE_USES, EvidenceRule
from ensembles.diagnosis.file_uses import FileUses, share_of_rows
from ensembles.diagnosis.finding import Check, NotApplicable
from ensembles.diagnosis.fixed_cost import COPIED_BYTES_PER_NS
from ensembles.diagnosis.limits import LEAST_CALLS, LEAST_RATIO, LOW
from ensembles.diagnosis.remedy import Remedy
from ensembles.diagnosis.summed_case import refuse
from ensembles.model.metadata import OPEN_FLAGS, OPEN_RANKS
from ensembles.model.units import bytes_text, count_text, seconds_text

if TYPE_CHECKING:
    from ensembles.run.run import Run


def flagged_files(run: Run) -> dict[str, str]:
    """Return the flags of each file that was opened with some of them."""
    return {path: facts[OPEN_FLAGS] for path, facts in run.info.file_facts.items() if OPEN_FLAGS in facts}


def find_summed(case: Case, uses: FileUses) -> Remedy | None:
    """Find writes that wait, if each open of the run had flags; else sums do not show which do."""
    flagged, rows = flagged_files(case.run), case.rows
    writes = (case.layer == "posix") & (case.op == "write") & (rows["bytes"] > 0)
    if not flagged:
        return None
    some = any(OPEN_RANKS in facts for facts in case.run.info.file_facts.values())
    opens = case.by_cell(np.where((case.layer == "posix") & (case.op == "open"), rows["n"], 0))
    # A file has an open with flags in each task that uses it, and further ones may be without.
    some |= opens.sum() > max(len(flagged), np.count_nonzero(opens))
    if some or len(flagged) < len(case.run.files) - 1:
        refuse(
            case,
            case.most_s(np.where(writes, rows["time_ns"], 0.0)),
            f"sums do not show which writes used the opens of {count_text(len(flagged), 'file')} with "
            "O_SYNC, O_DSYNC or O_DIRECT",
        )
        return None
    flags = " and ".join(sorted(set(flagged.values())))
    known = f"{count_text(len(flagged), 'file')}, all that the run knows, opened with {flags}"
    none = np.zeros(len(case), bool)
    return _remedy(case, rows, writes, none, lambda part: part, tuple(flagged), flags, known)


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
            raise NotApplicable("no flags of opens were recorded (streams have none): record all")
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
    chosen = writes & waits
    files = np.unique(table["file"][chosen])
    names = case.paths(np.bincount(table["file"][chosen], table["time_ns"][chosen]))
    flags = " and ".join(sorted({facts[number] for number in files.tolist()}))
    known = f"{len(files)} of {len(facts) - 1} files were opened with {flags}"
    to_rows = partial(share_of_rows, case, table, np.ones(len(chosen), bool))
    return _remedy(case, table, chosen, writes & ~waits, to_rows, names, flags, known)


def _remedy(
    case: Case,
    table: dict[str, np.ndarray],
    chosen: np.ndarray,
    others: np.ndarray,
    to_rows: Callable[[np.ndarray], np.ndarray],
    files: tuple[str, ...],
    flags: str,
    known: str,
) -> Remedy | None:
    """Take what is beyond copying off writes of a table; `to_rows` gives each row of the case its part."""
    chosen = chosen & (table["bytes"] < MOST_BYTES * np.maximum(table["n"], 1))
    count = int(table["n"][chosen].sum())
    if count < LEAST_CALLS:
        return None
    each_ns, size = (float(table[name][chosen].sum()) / count for name in ("time_ns", "bytes"))
    left = table["bytes"] / COPIED_BYTES_PER_NS[1] / np.maximum(table["time_ns"], 1)
    saved = case.rows["time_ns"] * to_rows(chosen * np.maximum(1 - left, 0))
    return Remedy(
        to_rows(chosen * 1.0) > 0,
        saved,
        f"{count:,} writes of {bytes_text(round(size))} to files opened with {flags} take "
        f"{seconds_text(each_ns * 1e-9)} each",
        (Check("flags", known), _compared(table, others, size, each_ns)),
        {"flags": flags, "writes": count, "mean_bytes": size, "mean_s": each_ns * 1e-9},
        # The bytes still have to reach the device: a later flush may take as long as they did.
        LOW * saved,
        files=files,
        advice=ADVICE["SYNC" in flags],
    )


def _compared(table: dict[str, np.ndarray], others: np.ndarray, size: float, each_ns: float) -> Check:
    """Compare with writes of about the same size without these flags."""
    mean = table["bytes"] / np.maximum(table["n"], 1)
    others = others & (mean > size / 2) & (mean < 2 * size)
    count = int(table["n"][others].sum())
    if count < LEAST_CALLS:
        why = "no writes of this size are without these flags: the disk may be slow as such"
        return Check("flags-cost", why, None)
    usual_ns = float(table["time_ns"][others].sum()) / count
    sentence = (
        f"{count:,} writes of about this size without these flags take {seconds_text(usual_ns * 1e-9)} each"
    )
    return Check("flags-cost", sentence, LEAST_RATIO * usual_ns < each_ns)


rule = EvidenceRule("o-sync", _find, FILE_USES, summed=find_summed)

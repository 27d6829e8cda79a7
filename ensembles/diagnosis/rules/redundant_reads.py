"""Rule ``redundant-reads``: several tasks read the same bytes from the file system, or one does again."""

from __future__ import annotations

import numpy as np

from ensembles.diagnosis.case import Case
from ensembles.diagnosis.evidence_rule import FILE_USES, EvidenceRule
from ensembles.diagnosis.file_uses import (
    METADATA,
    NOT_READ_BY_PROGRAM,
    FileUses,
    Rows,
    share_of_rows,
)
from ensembles.diagnosis.finding import Check
from ensembles.diagnosis.limits import DENSE, FAR, FEW, LOW
from ensembles.diagnosis.remedy import Remedy
from ensembles.diagnosis.rules.small_requests import jumps
from ensembles.model.calls import STORAGE
from ensembles.model.distinct import distinct_rows, extents
from ensembles.model.units import bytes_text, count_text, number_text, share_text


def reads_of_files(case: Case, uses: Rows) -> Rows:
    """Add up what tasks read from files, without what libraries read in order to write.

    Reads of the file system count, as those of the library above move the same bytes; of files without them,
    those of the library. By ``file`` and ``rank``: ``bytes``, ``low`` and ``high`` offset.
    """
    reads = case.ops[uses["call"]] == "read"
    storage = np.isin(case.layers[uses["call"]], list(STORAGE))
    size = int(uses["file"].max(initial=0)) + 1
    has_storage = np.bincount(uses["file"][reads & storage], minlength=size)[uses["file"]] > 0
    reads &= (storage | ~has_storage) & (uses["high"] > uses["low"])
    reads &= ~np.isin(uses["kind"], NOT_READ_BY_PROGRAM)
    names, where = distinct_rows(uses["file"][reads], uses["rank"][reads])
    low, high = extents(where, uses["low"][reads], uses["high"][reads], names.shape[1])
    bytes_ = np.bincount(where, uses["bytes"][reads], names.shape[1]).astype(np.int64)
    return {"file": names[0], "rank": names[1], "bytes": bytes_, "low": low, "high": high}


KEEP = (
    "read the bytes once and keep them in memory, where they fit; of a file that does not fit, finish all "
    "work on a piece before the next one"
)
SORT = (
    "sort the reads by offset: they jump, and a buffer fetches what is around each record, too; else make it "
    "as small as a record (GFORTRAN_UNFORMATTED_BUFFER_SIZE; Python: buffering=0), or keep the file in memory"
)


def read_again(case: Case, uses: FileUses) -> Remedy | None:
    """Compute what a task saves that keeps what it read from a file.

    A task that reads more bytes than the range in which they lie reads some of them again. What tasks wrote
    to the file may be read once more. Reads that libraries make for themselves are left out.
    """
    table = uses.table.columns()
    op, layer = case.ops[table["call"]], case.layers[table["call"]]
    rows = (op == "read") & np.isin(layer, STORAGE)
    rows &= ~np.isin(table["kind"], (*NOT_READ_BY_PROGRAM, METADATA))
    writes = (op == "write") & np.isin(layer, STORAGE)
    written = np.bincount(table["file"], table["bytes"] * writes)
    if not rows.any():
        return None
    names, pair = distinct_rows(table["file"], table["rank"])
    bytes_ = np.bincount(pair, (table["bytes"] - table["opening_bytes"]) * rows)
    placed = rows & (table["high"] > table["low"])
    low, high = extents(pair[placed], table["low"][placed], table["high"][placed], len(bytes_))
    once = np.maximum(high - low, 0) + written[names[0]] + _of_streams(table, pair, rows & ~placed, op, layer)
    times = bytes_ / np.maximum(once, 1)
    found = times >= FAR
    if not found.any():
        return None
    part = np.where(rows & found[pair], 1 - 1 / np.maximum(times[pair], 1), 0.0)
    share = share_of_rows(case, table, part > 0, part)
    saved = share * case.rows["time_ns"]
    files = np.unique(names[0][found])
    held, read = int(once[found].sum()), int(bytes_[found].sum())
    are_apart = held * int(table["n"][part > 0].sum()) > FEW * read
    tasks = count_text(len(np.unique(names[1][found])), "task")
    return Remedy(
        share > 0,
        saved,
        f"{tasks} read{'s' * (tasks == '1 task')} the same bytes again and again: {bytes_text(read)} of "
        f"{count_text(len(files), 'file')}, whose ranges and changes are {bytes_text(held)} in all",
        (Check("more-than-the-range", f"{number_text(read / held)} times these bytes are read"),),
        {"read_bytes": read, "held_bytes": held, "files": len(files)},
        LOW * saved,
        saved,
        tuple(case.run.files[number] for number in files.tolist()),
        advice=SORT if are_apart and 2 * saved @ jumps(case) > saved.sum() else KEEP,
    )


def _of_streams(
    table: Rows, pair: np.ndarray, reads: np.ndarray, op: np.ndarray, layer: np.ndarray
) -> np.ndarray:
    """Bound the ranges that tasks read by streams, from open or seek on, without offsets: shape (pairs,)."""
    moved = np.bincount(pair, table["bytes"] * reads)
    opens = [np.bincount(pair, table["n"] * ((op == "open") & (layer == each))) for each in STORAGE]
    reached, seeks = np.zeros(len(moved), np.int64), op == "seek"
    np.maximum.at(reached, pair[seeks], table["high"][seeks])
    found: np.ndarray = np.where(moved > 0, reached + moved / np.maximum(np.maximum(*opens), 1), 0.0)
    return found


MESSAGE_BYTES_PER_NS = (0.5, 1.0, 4.0)
"""Rates at which a task gets from another one what it does not read, for the least, likely and greatest gain:
reads that memory serves are no slower."""


def _find(case: Case, uses: FileUses) -> Remedy | None:
    found, again = _read_by_several(case, uses), read_again(case, uses)
    if again is None or (found is not None and case.gain_s(found.saved_ns) > case.gain_s(again.saved_ns)):
        return found
    return again


def _read_by_several(case: Case, uses: FileUses) -> Remedy | None:
    uses_of_files = uses.table.columns()
    table = reads_of_files(case, uses_of_files)
    if not len(table["bytes"]):
        return None
    width = table["high"] - table["low"]
    files, where = np.unique(table["file"], return_inverse=True)
    low, high = extents(where, table["low"], table["high"], len(files))
    # Dense: a task reads most of its range, so that equal ranges are equal bytes.
    dense = table["bytes"] >= DENSE * width
    read = np.bincount(where, np.where(dense, np.minimum(table["bytes"], width), 0), len(files))
    redundancy = read / np.maximum(high - low, 1)
    several = np.bincount(where, minlength=len(files)) >= 2
    found = (redundancy >= FEW) & several
    if not found.any():
        return None
    total = np.bincount(where, table["bytes"], len(files))
    ranks = np.unique(table["rank"][found[where]])
    mean = float(np.average(redundancy[found], weights=total[found]))
    # Only the time of reads of these files counts: a task reads others too, perhaps slowly.
    part_of_file = np.zeros(len(case.run.files))
    part_of_file[files[found]] = 1 - 1 / redundancy[found]
    asked = (case.ops[uses_of_files["call"]] == "read") & ~np.isin(uses_of_files["kind"], NOT_READ_BY_PROGRAM)
    part, time_ns = part_of_file[uses_of_files["file"]] * asked, uses_of_files["time_ns"].clip(1)
    saved_parts = (
        np.clip(margin * part * (1 - uses_of_files["bytes"] / (rate * time_ns)), 0.0, 1.0)
        for margin, rate in zip((0.85, 1.0, 1.1), MESSAGE_BYTES_PER_NS, strict=True)
    )
    low, saved, high = (
        share_of_rows(case, uses_of_files, part > 0, each) * case.rows["time_ns"] for each in saved_parts
    )
    names = case.paths(np.bincount(table["file"], table["bytes"] * found[where]))
    checks = (
        Check(
            "same-bytes",
            f"{len(ranks)} tasks read ranges that add up to {number_text(mean)} times the range of the file",
        ),
        Check("dense", f"each reads at least {share_text(DENSE)} of the bytes of its range"),
    )
    return Remedy(
        high > 0,
        saved,
        f"tasks read the same bytes: {number_text(mean)} times what the files hold",
        checks,
        {"redundancy": mean, "files": int(found.sum())},
        low,
        high,
        names,
    )


rule = EvidenceRule("redundant-reads", _find, FILE_USES)

"""Rules of bytes that need not move.

``redundant-reads``: several tasks read the same bytes from the file system, or one does again.
``read-modify-write``: MPI-IO reads what lies between the pieces of a write, and writes it again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ensembles.diagnosis.case import Case
from ensembles.diagnosis.evidence_rule import FILE_USES, EvidenceRule
from ensembles.diagnosis.file_uses import (
    METADATA,
    NOT_READ_BY_PROGRAM,
    SIEVED,
    FileUses,
    Rows,
    share_of_rows,
)
from ensembles.diagnosis.finding import Check, Finding, NotApplicable
from ensembles.diagnosis.limits import DENSE, FAR, LOW, SHARED_MEMORY_BYTES_PER_NS
from ensembles.diagnosis.remedy import Remedy
from ensembles.diagnosis.rules.collective import counted_writes
from ensembles.diagnosis.rules.hdf5 import other_data_calls
from ensembles.diagnosis.rules.small_requests import jumps
from ensembles.diagnosis.without_calls import counted_case, counted_finding
from ensembles.model.calls import STORAGE
from ensembles.model.distinct import distinct_rows, extents
from ensembles.model.levels import A_TENTH, AGAIN, FEW
from ensembles.model.units import bytes_text, count_text, number_text, share_text

if TYPE_CHECKING:
    from ensembles.run.run import Run


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
    are_apart = held * int(table["n"][part > 0].sum()) > FEW * read * len(files)  # in each file
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


def _find_redundant(case: Case, uses: FileUses) -> Remedy | None:
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
    redundancy, held = read / np.maximum(high - low, 1), high - low
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
        f"{count_text(len(ranks), 'task')} read the same bytes: {bytes_text(int(total[found].sum()))} of "
        f"{count_text(int(found.sum()), 'file')}, from ranges of {bytes_text(int(held[found].sum()))}",
        checks,
        {"redundancy": mean, "files": int(found.sum())},
        low,
        high,
        names,
    )


redundant_reads = EvidenceRule("redundant-reads", _find_redundant, FILE_USES)


_LOCKS = (
    "Administrator: data sieving locks ranges of the file (fcntl), which is slow on file systems that "
    "are mounted with flock"
)

_AT_ONCE = (
    "write all pieces of all tasks at once: a collective write (MPI_File_write_all, HDF5: "
    "H5FD_MPIO_COLLECTIVE) leaves no holes to be read, if the pieces of all tasks fill the range; where "
    "pieces are 1 MiB and larger, let each be "
    "written by itself (romio_ds_write=disable); store the array so that a task's part is contiguous. "
)
ADVICE = _AT_ONCE + _LOCKS

_HOLES = (
    "the pieces of each call leave holes between them: write all pieces of a step in one call (a file view, "
    "MPI_File_set_view, that has them all), or fill the holes; else let the pieces be written without "
    "reading (hint romio_ds_write=disable). "
)

COLLECTIVE_ADVICE = f"the writes are collective already, but {_HOLES}{_LOCKS}"
"""Where the calls are collective: another such call of the same pieces would have the same holes."""

WHOLE_ADVICE = (
    "each range is written whole, so that reading it first gains nothing: switch data sieving off for "
    "writes (hint romio_ds_write=disable), or give each call contiguous memory and one contiguous range of "
    "the file. "
    f"{_LOCKS}"
)
"""Where the pieces of a call leave no holes."""

BOTH_ADVICE = f"{_AT_ONCE}Where writes are collective already, {_HOLES}{_LOCKS}"
"""For logs that count collective writes, and do not tell which of the writes have holes."""


def _advice(collective: float, others: float) -> str:
    if collective > others:
        return COLLECTIVE_ADVICE
    return BOTH_ADVICE if collective else ADVICE


def find_counted_sieving(run: Run) -> Finding | None:
    """Compare the bytes of MPI-IO and of POSIX, file by file: who asked for the reads is not in counters."""
    modules = run.counters.modules
    if "MPI-IO" not in modules:
        return None
    if "POSIX" not in modules:
        raise NotApplicable("the log has counters of MPI-IO and none of POSIX: record both modules")
    case, below = counted_case(run, "MPI-IO"), modules["POSIX"].by_file
    above = case.files
    _, mine, theirs = np.intersect1d(above["file"], below["file"], return_indices=True)
    asked, written = above["bytes_written"][mine], below["bytes_written"][theirs]
    read, reads = (below[name][theirs] - above[name][mine] for name in ("bytes_read", "reads"))
    # A read beyond the end of the file moves nothing, but waits for the lock of its range.
    sieved = (asked > 0) & (reads > 0) & (written >= (1 + A_TENTH) * asked)
    if not sieved.any():
        return None
    sums = [int(each[sieved].sum()) for each in (asked, written, read, reads)]
    asked_bytes, written_bytes, read_bytes, count = sums
    # Nothing says when the reads were made, or by whom: at most the time of the slowest task is gained. What
    # a write of MPI-IO takes outside of POSIX may be the lock of its range, or waiting for other tasks.
    slowest = (np.nan_to_num(each["slowest_s"][at]) for each, at in ((above, mine), (below, theirs)))
    most_s = min(float(np.maximum(*slowest)[sieved].sum()), run.counters.run_time_s)
    checks = (
        Check(
            "nobody-asked",
            f"MPI-IO wrote {bytes_text(asked_bytes)}; POSIX wrote {bytes_text(written_bytes)}, and made "
            f"{count_text(count, 'read')} of {bytes_text(read_bytes)} that MPI-IO did not make",
        ),
        Check("same-range", "counters have no offsets: record with ensio to see the calls", None),
    )
    chosen = np.zeros(len(above["file"]), bool)
    chosen[mine[sieved]] = True
    return counted_finding(
        case,
        "read-modify-write",
        f"POSIX wrote {number_text(written_bytes / asked_bytes)} times the bytes of MPI-IO, and made "
        f"{count_text(count, 'read')} of {bytes_text(read_bytes)} for it (data sieving)",
        checks,
        dict(zip(("asked_bytes", "written_bytes", "read_bytes", "reads"), sums, strict=True)),
        (0.0, 0.0, most_s),
        chosen,
        "write",
        advice=_advice(*counted_writes(run)),
    )


def _find_sieved(case: Case, uses: FileUses) -> Remedy | None:
    table = uses.table.columns()
    layer, op = case.layers[table["call"]], case.ops[table["call"]]
    asks = (layer == "mpiio") & (op == "write")
    if not asks.any():
        return None
    inside = (layer == "posix") & (op == "write")
    if not inside.any():
        raise NotApplicable(
            "writes of MPI-IO were recorded without the POSIX calls inside: record the layer posix too"
        )
    sieved = table["kind"] == SIEVED
    count = int(table["n"][sieved].sum())
    if count < AGAIN:
        return None
    files = np.unique(table["file"][sieved])
    mine = np.isin(table["file"], files)
    asked, written = (float(table["bytes"][mine & chosen].sum()) for chosen in (asks, inside))
    again = max(1 - asked / written, 0.0) if written else 0.0
    read = float(table["bytes"][sieved].sum())
    reads = share_of_rows(case, table, sieved) * case.rows["time_ns"]
    writes = share_of_rows(case, table, mine & inside) * case.rows["time_ns"] * again
    # What the call itself takes beyond copying is mostly the waiting for the lock of the range.
    calls = share_of_rows(case, table, mine & asks)
    own = calls * np.maximum(case.rows["time_ns"] - case.rows["bytes"] / SHARED_MEMORY_BYTES_PER_NS[1], 0)
    waits = own * (case.layer == "mpiio")
    collective = np.char.endswith(case.names, "_all")[table["call"]]
    asked_at_once = float(table["bytes"][mine & asks & collective].sum())
    names = tuple(case.run.files[number] for number in files.tolist())
    checks = (
        Check(
            "same-range",
            f"{count:,} reads inside MPI_File_write calls are followed by a write of the same range",
        ),
        Check(
            "nobody-asked",
            f"MPI-IO was asked to write {bytes_text(round(asked))}; the storage got "
            f"{bytes_text(round(written))} and had to give {bytes_text(round(read))}",
            read > 0 or written >= (1 + A_TENTH) * asked,
        ),
    )
    evidence = {"reads": count, "read_bytes": read, "asked_bytes": asked, "written_bytes": written}
    title = (
        f"writes with holes make {count_text(count, 'read')} of {bytes_text(round(read))}, and write "
        f"{number_text(written / max(asked, 1))} times the bytes that MPI-IO was asked for (data sieving)"
    )
    counted = counted_writes(case.run)  # the calls of a DXT log do not tell which are collective
    advice = _advice(*counted) if any(counted) else _advice(asked_at_once, asked - asked_at_once)
    if written <= asked:
        advice = WHOLE_ADVICE
        title = f"writes read {bytes_text(round(read))} although they have no holes (data sieving)"
    rows = (reads + writes + calls) > 0
    return Remedy(
        rows,
        reads + writes + LOW * waits,
        title,
        checks,
        evidence,
        reads,
        reads + writes + waits,
        names,
        not_inside=other_data_calls(case, table["call"][mine & asks], "mpiio", "MPI_File_"),
        advice=advice,
    )


read_modify_write = EvidenceRule("read-modify-write", _find_sieved, FILE_USES, counted=find_counted_sieving)

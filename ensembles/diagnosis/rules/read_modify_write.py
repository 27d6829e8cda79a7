"""Rule ``read-modify-write``: MPI-IO reads what lies between the pieces of a write, and writes it again."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ensembles.diagnosis.case import Case
from ensembles.diagnosis.counted_case import counted_case, counted_finding
from ensembles.diagnosis.evidence_rule import FILE_USES, EvidenceRule
from ensembles.diagnosis.file_uses import SIEVED, FileUses, share_of_rows
from ensembles.diagnosis.finding import Check, Finding, NotApplicable
from ensembles.diagnosis.fixed_cost import SHARED_MEMORY_BYTES_PER_NS
from ensembles.diagnosis.limits import AGAIN, MARGIN
from ensembles.diagnosis.remedy import Remedy
from ensembles.diagnosis.rules.collective import counted_writes
from ensembles.diagnosis.rules.hdf5 import other_data_calls
from ensembles.model.units import bytes_text, number_text

if TYPE_CHECKING:
    from ensembles.run.run import Run


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


def find_counted(run: Run) -> Finding | None:
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
    read = below["bytes_read"][theirs] - above["bytes_read"][mine]
    sieved = (asked > 0) & (read >= MARGIN * asked) & (written >= (1 + MARGIN) * asked)
    if not sieved.any():
        return None
    asked_bytes, written_bytes, read_bytes = (int(each[sieved].sum()) for each in (asked, written, read))
    # Nothing says when the reads were made, or by whom: at most the time of the slowest task is gained. What
    # a write of MPI-IO takes outside of POSIX may be the lock of its range, or waiting for other tasks.
    slowest = (np.nan_to_num(each["slowest_s"][at]) for each, at in ((above, mine), (below, theirs)))
    most_s = min(float(np.maximum(*slowest)[sieved].sum()), run.counters.run_time_s)
    checks = (
        Check(
            "nobody-asked",
            f"MPI-IO wrote {bytes_text(asked_bytes)}; POSIX wrote {bytes_text(written_bytes)} and read "
            f"{bytes_text(read_bytes)} that MPI-IO did not read",
        ),
        Check("same-range", "counters have no offsets: record with ensio to see the calls", None),
    )
    chosen = np.zeros(len(above["file"]), bool)
    chosen[mine[sieved]] = True
    return counted_finding(
        case,
        "read-modify-write",
        f"POSIX wrote {number_text(written_bytes / asked_bytes)} times the bytes of MPI-IO, and read "
        f"{bytes_text(read_bytes)} for it (data sieving)",
        checks,
        {"asked_bytes": asked_bytes, "written_bytes": written_bytes, "read_bytes": read_bytes},
        (0.0, 0.0, most_s),
        chosen,
        "write",
        advice=_advice(*counted_writes(run)),
    )


def _find(case: Case, uses: FileUses) -> Remedy | None:
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
            read > 0,
        ),
    )
    evidence = {"reads": count, "read_bytes": read, "asked_bytes": asked, "written_bytes": written}
    title = (
        f"writes with holes read {bytes_text(round(read))} and write "
        f"{number_text(written / max(asked, 1))} times"
    )
    title += " the bytes that MPI-IO was asked for (data sieving)"
    counted = counted_writes(case.run)  # the calls of a DXT log do not tell which are collective
    advice = _advice(*counted) if any(counted) else _advice(asked_at_once, asked - asked_at_once)
    if written <= asked:
        advice = WHOLE_ADVICE
        title = f"writes read {bytes_text(round(read))} although they have no holes (data sieving)"
    rows = (reads + writes + calls) > 0
    return Remedy(
        rows,
        reads + writes + 0.5 * waits,
        title,
        checks,
        evidence,
        reads,
        reads + writes + waits,
        names,
        not_inside=other_data_calls(case, table["call"][mine & asks], "mpiio", "MPI_File_"),
        advice=advice,
    )


rule = EvidenceRule("read-modify-write", _find, FILE_USES, counted=find_counted)

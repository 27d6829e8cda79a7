"""Data sieving in counters of another tool, for the rule ``read-modify-write``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ensembles.diagnosis.finding import MOST_FILES, Check, Finding, Where, rate_confidence
from ensembles.diagnosis.rule import NotApplicable
from ensembles.model.units import bytes_text, number_text

if TYPE_CHECKING:
    from ensembles.run.run import Run

LEAST_PART = 0.1
"""Of the bytes that were asked for: least part that is read, or written beyond them, in counters."""

_LOCKS = (
    "Administrator: data sieving locks ranges of the file (fcntl), which is slow on file systems that "
    "are mounted with flock"
)

ADVICE = (
    "write all pieces of all tasks at once: a collective write (MPI_File_write_all, HDF5: "
    "H5FD_MPIO_COLLECTIVE) leaves no holes to be read, if the pieces of all tasks fill the range; where "
    "pieces are 1 MiB and larger, let each be "
    "written by itself (romio_ds_write=disable); store the array so that a task's part is contiguous. "
    f"{_LOCKS}"
)

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

BOTH_ADVICE = f"{ADVICE.removesuffix(_LOCKS)}Where writes are collective already, {_HOLES}{_LOCKS}"
"""For logs that count collective writes, and do not tell which of the writes have holes."""


def find_counted(run: Run) -> Finding | None:
    """Compare the bytes of MPI-IO and of POSIX, file by file: who asked for the reads is not in counters."""
    modules = run.counters.modules
    if "MPI-IO" not in modules:
        return None
    if "POSIX" not in modules:
        raise NotApplicable("the log has counters of MPI-IO and none of POSIX: record both modules")
    above, below = modules["MPI-IO"].by_file, modules["POSIX"].by_file
    files, mine, theirs = np.intersect1d(above["file"], below["file"], return_indices=True)
    asked, written = above["bytes_written"][mine], below["bytes_written"][theirs]
    read = below["bytes_read"][theirs] - above["bytes_read"][mine]
    sieved = (asked > 0) & (read >= LEAST_PART * asked) & (written >= (1 + LEAST_PART) * asked)
    if not sieved.any():
        return None
    names = tuple(run.files[number] for number in files[sieved].tolist())
    asked_bytes, written_bytes, read_bytes = (int(each[sieved].sum()) for each in (asked, written, read))
    # Nothing says when the reads were made, or by whom: at most the time of the slowest task is gained. What
    # a write of MPI-IO takes outside of POSIX may be the lock of its range, or waiting for other tasks.
    slowest = (np.nan_to_num(each["slowest_s"][at]) for each, at in ((above, mine), (below, theirs)))
    most_s = min(float(np.maximum(*slowest)[sieved].sum()), run.counters.run_time_s)
    at_once = int(modules["MPI-IO"].totals.get("COLL_WRITES") or 0) > 0
    checks = (
        Check(
            "nobody-asked",
            True,
            f"MPI-IO wrote {bytes_text(asked_bytes)}; POSIX wrote {bytes_text(written_bytes)} and read "
            f"{bytes_text(read_bytes)} that MPI-IO did not read",
        ),
        Check("same-range", None, "counters have no offsets: record with ensio to see the calls"),
    )
    return Finding(
        "read-modify-write",
        "note",
        rate_confidence(checks),
        Where(
            op="write",
            layer="mpiio",
            files=names[:MOST_FILES],
            file_count=len(names),
            tasks=run.tasks,
            ranks=((0, run.tasks - 1),),
        ),
        {"asked_bytes": asked_bytes, "written_bytes": written_bytes, "read_bytes": read_bytes},
        checks,
        BOTH_ADVICE if at_once else ADVICE,
        (0.0, most_s),
        f"POSIX wrote {number_text(written_bytes / asked_bytes)} times the bytes of MPI-IO, and read "
        f"{bytes_text(read_bytes)} for it (data sieving)",
    )

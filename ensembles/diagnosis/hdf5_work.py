"""Bytes that HDF5 moves for those that a program asks for, and its own work on them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from ensembles.diagnosis.limits import LEAST_CALLS, LOW
from ensembles.model.distinct import extents
from ensembles.model.units import bytes_text

if TYPE_CHECKING:
    from ensembles.diagnosis.case import Case


FILTER_NS_PER_BYTE = 5.0
"""From this time on, the work is that of filters: copies of elements take less, compression takes more."""

CALL_NS = 20_000
"""Time of a call of HDF5 whatever its bytes: selection, metadata, the interpreter around it."""

FILTERED = (0.5, 0.9)
"""Least and likely part of the work of filters: they run each time that a chunk is moved."""

FILL = (
    "do not write fill values that are overwritten (H5Pset_fill_time(H5D_FILL_TIME_NEVER); netCDF: "
    "nc_set_fill with NC_NOFILL; h5py: create_dataset(..., fill_time='never'))"
)
CHUNKS = (
    "let the chunk cache hold all chunks that calls come back to (H5Pset_chunk_cache; h5py: "
    "File(..., rdcc_nbytes=...)), keep the dataset open, because its cache ends with it, choose chunks in "
    "the shape of the program's pieces, and move whole chunks in one call"
)

FLUSHES = "flush less often: each H5Fflush (h5py: flush()) writes chunks that are not yet full"


def parts_of_work(own_ns: float, moved_bytes: float) -> tuple[float, float]:
    """Estimate which part of HDF5's own work goes if it moves bytes once: at least, and likely.

    Examples
    --------
    >>> from ensembles.diagnosis.hdf5_work import parts_of_work
    >>> parts_of_work(1e9, 4e9), parts_of_work(1e9, 2e7)
    ((0.0, 0.5), (0.5, 0.9))
    """
    return FILTERED if own_ns >= FILTER_NS_PER_BYTE * moved_bytes else (0.0, LOW)


def bytes_of_files(
    table: Mapping[str, np.ndarray], data: np.ndarray, disk: np.ndarray, files: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Add up bytes of each file: asked for by the program, moved by storage calls, and needed at most."""
    asked, moved = (np.bincount(table["file"][rows], table["bytes"][rows], files) for rows in (data, disk))
    low, high = extents(table["file"][disk], table["low"][disk], table["high"][disk], files)
    return asked, moved, np.maximum(asked, np.maximum(high - low, 0))


def bytes_again_text(op: str, moved: int, needed: int, asked: int) -> str:
    """Say how many bytes were moved for how many, in numbers that a reader can compute again.

    Examples
    --------
    >>> from ensembles.diagnosis.hdf5_work import bytes_again_text
    >>> bytes_again_text("write", 4 << 20, 2 << 20, 2 << 20)
    '4.00 MiB written for 2.00 MiB'
    >>> bytes_again_text("read", 4 << 20, 2 << 20, 1 << 20)
    '4.00 MiB read for 2.00 MiB (from the first byte to the last; the program asked for 1.00 MiB)'
    """
    verb, program = {"write": ("written", "wrote"), "read": ("read", "asked for")}[op]
    text = f"{bytes_text(moved)} {verb} for {bytes_text(needed)}"
    if bytes_text(needed) != bytes_text(asked):
        text += f" (from the first byte to the last; the program {program} {bytes_text(asked)})"
    return text


def other_data_calls(
    case: Case, mine: Sequence[int] | np.ndarray = (), layer: str = "hdf5", prefix: str = "H5D"
) -> tuple[str, ...]:
    """Return the reads and writes of a library that a run made, without some of them."""
    others = np.setdiff1d(case.rows["call"], np.asarray(mine, np.int64))
    calls = [case.run.calls[number] for number in others.tolist()]
    data = [call.name for call in calls if call.layer == layer and call.op in ("read", "write")]
    return tuple(sorted(name for name in data if name.startswith(prefix)))


def refill_advice(case: Case, writes: bool, reads_back: bool) -> str:
    """Return what lets HDF5 move bytes once, the cause that the run shows first."""
    flushes = int(case.rows["n"][(case.op == "sync") & (case.layer == "hdf5")].sum())
    flush = [FLUSHES] * (writes and flushes >= LEAST_CALLS)
    advice = [CHUNKS, *flush, *[FILL] * writes] if reads_back else [*[FILL] * writes, CHUNKS, *flush]
    return "; ".join(advice)

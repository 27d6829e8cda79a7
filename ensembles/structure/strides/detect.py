"""Detection of strided runs; compiled or in NumPy, with equal results.

``NATIVE`` is True if the compiled version is in use. `ensembles.structure.strides.summary` defines the terms.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ensembles.model.events import OPS, Call, Events, of_calls, op_of_calls
from ensembles.passes.start_order import order_by_start
from ensembles.structure.strides.streams import LAYERS, find_strided_runs, layer_of_calls, select_reads

try:
    from ensembles.structure.strides import _strides
except ImportError:
    _strides = None  # type: ignore[assignment]

NATIVE = _strides is not None

MOST_POSITIONS = 64
"""Largest number of reads of a run that have separate rows; the following ones are summed in one more row."""

LEAST_READS = 4
"""Least number of reads of a strided run."""

COLUMNS = ("rank", "thread", "call", "depth", "carried", "file", "offset", "moved", "start", "duration")
"""Columns of events that the detection reads."""

ROW = np.dtype(
    [
        ("start_ns", "i8"),
        ("end_ns", "i8"),
        ("duration_ns", "i8"),
        ("bytes", "i8"),
        ("stride_bytes", "i8"),
        ("written_bytes", "i8"),
        ("writing_ns", "i8"),
        ("rank", "u4"),
        ("file", "u4"),
        ("run", "u4"),
        ("reads", "u4"),
        ("ordinal", "u4"),
        ("calls", "u4"),
        ("call", "u2"),
        ("position", "u2"),
        ("layer", "u1"),
        ("interleaved", "?"),
    ],
    align=True,
)
"""One row for each read. ``run``: index of the strided run of its task, layer and file by time, from 0;
``reads``: number of reads of the run; ``position``: position in the run, from 1, and `MOST_POSITIONS` + 1 for
the sum of the following ones; ``ordinal``: index of the read of its task, layer and file; ``written_bytes``,
``writing_ns``: bytes and time of the writes of the task since the read before."""

BYTES = np.dtype([("bytes", "i8"), ("file", "u4"), ("layer", "u4")])
"""Bytes that a task read of a file through a layer (index into `LAYERS`)."""

_WRITTEN_SHARE = 1 / 16
_KINDS = {"read": 1, "write": 2, "wait": 3}
_LIMITS = np.iinfo(np.int64)


class StrideRuns(NamedTuple):
    """The strided runs of some tasks, and sums over their reads.

    Attributes
    ----------
    rows : ndarray of ROW
        Reads of strided runs, sorted by rank, layer, file, run and position.
    bytes : ndarray of BYTES
        Bytes read; a file may have several entries.
    reads, reads_with_offset, io_time_ns, read_time_ns, first_ns, last_ns : int
        As in `ensembles.structure.strides.summary.StridedReads`.
    """

    rows: np.ndarray
    bytes: np.ndarray
    reads: int
    reads_with_offset: int
    io_time_ns: int
    read_time_ns: int
    first_ns: int
    last_ns: int


def find_strides(events: Events) -> StrideRuns:
    """Find the strided reads of some tasks.

    Parameters
    ----------
    events : Events
        All calls of these tasks, at least one, in the order of ranks.

    Returns
    -------
    StrideRuns

    Raises
    ------
    IndexError
        The ``call`` of an event is not an index into ``events.calls``.

    Examples
    --------
    One task reads 4 bytes every 10 bytes:

    >>> from ensembles.model.events import Call, Events
    >>> from ensembles.structure.strides.detect import find_strides
    >>> number, zeros = np.arange(5), np.zeros(5, int)
    >>> columns = {"rank": zeros, "thread": zeros, "call": zeros, "depth": zeros, "carried": zeros,
    ...     "file": zeros + 1, "offset": 10 * number, "requested": zeros + 4, "moved": zeros + 4,
    ...     "error": zeros, "start": 100 * number, "duration": zeros + 50}
    >>> found = find_strides(Events(columns, [Call("pread", "posix", "read")], ["", "/data"]))
    >>> found.rows["position"], found.rows["stride_bytes"]
    (array([1, 2, 3, 4, 5], dtype=uint16), array([10, 10, 10, 10, 10]))
    """
    if _strides is None:
        return numpy_find_strides(events)
    sums = np.array([0, 0, 0, 0, _LIMITS.max, _LIMITS.min], np.int64)
    columns = [np.ascontiguousarray(getattr(events, name)) for name in COLUMNS]
    tables = (_kind_of_calls(events.calls), layer_of_calls(events.calls))
    arrays = (*columns, *tables, sums, order_by_start(events))
    rows, amounts = _strides.strided_reads(arrays, LEAST_READS, MOST_POSITIONS, _WRITTEN_SHARE, ROW.itemsize)
    return StrideRuns(np.frombuffer(rows, ROW), np.frombuffer(amounts, BYTES), *sums.tolist())


def numpy_find_strides(events: Events) -> StrideRuns:
    """Compute `find_strides` without compiled code."""
    if int(events.call.max()) >= len(events.calls):
        raise IndexError("the call of an event is not an index into the calls")
    op = events.op
    outer = (events.depth == 0) & (op != OPS.index("wait"))
    is_read = (op == OPS.index("read")) & (events.moved > 0)
    alone = is_read & ((events.carried & 1) == 0)
    reads = select_reads(events)
    rows = find_strided_runs(reads, LEAST_READS)
    return StrideRuns(
        _table_of(rows) if len(rows["rank"]) else np.empty(0, ROW),
        _bytes_of(reads),
        int(np.count_nonzero(alone)),
        int(np.count_nonzero(alone & (events.offset >= 0))),
        int(events.duration[outer].sum()),
        int(events.duration[outer & is_read].sum()),
        int(events.start.min()),
        int(events.end.max()),
    )


@of_calls
def _kind_of_calls(calls: Sequence[Call]) -> np.ndarray:
    """Return the kind of each function for the compiled loop."""
    return np.array([_KINDS.get(op, 0) for op in OPS], np.uint8)[op_of_calls(calls)]


def _bytes_of(reads: dict[str, np.ndarray]) -> np.ndarray:
    code = reads["file"].astype(np.int64) * len(LAYERS) + reads["layer"]
    codes, where = np.unique(code, return_inverse=True)
    found = np.zeros(len(codes), BYTES)
    np.add.at(found["bytes"], where.reshape(-1), reads["bytes"])
    found["file"], found["layer"] = np.divmod(codes, len(LAYERS))
    return found


def _table_of(reads: dict[str, np.ndarray]) -> np.ndarray:
    """Make the rows of the reads of strided runs, up to `MOST_POSITIONS` and a sum."""
    new = reads["position_in_run"] == 0
    run = np.cumsum(new) - 1
    count = np.bincount(run)
    late = reads["position_in_run"] >= 3
    mixed = reads["written_bytes"] >= _WRITTEN_SHARE * reads["bytes"]
    of_run = np.bincount(run, late & mixed) >= 0.5 * np.maximum(np.bincount(run, late), 1)
    place = np.minimum(reads["position_in_run"], MOST_POSITIONS)
    first = np.flatnonzero(np.diff(run * (MOST_POSITIONS + 1) + place, prepend=-1))
    rows = np.empty(len(first), ROW)
    for name in ("rank", "file", "layer", "call", "run", "ordinal", "start_ns", "stride_bytes"):
        rows[name] = reads[name][first]
    for name in ("calls", "duration_ns", "bytes", "written_bytes", "writing_ns"):
        rows[name] = np.add.reduceat(reads[name], first)
    rows["end_ns"] = np.maximum.reduceat(reads["end_ns"], first)
    rows["reads"] = count[run[first]]
    rows["position"] = place[first] + 1 + reads["begun_before"][first]
    rows["interleaved"] = of_run[run[first]]
    return rows

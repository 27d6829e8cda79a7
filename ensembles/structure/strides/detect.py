"""Detection of strided runs, in C. `ensembles.structure.strides.summary` defines the terms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ensembles import _compiled
from ensembles.model.events import OPS, Call, Events, of_calls, op_of_calls
from ensembles.passes.start_order import order_by_start

LAYERS = ("posix", "stdio", "mpiio", "hdf5")
"""Layers from the file system up; others count as the last."""

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


class StrideRuns(NamedTuple):
    """The strided runs of some tasks, and sums over their reads.

    Attributes
    ----------
    rows : ndarray of ROW
        Reads of strided runs, sorted by rank, layer, file, run and position.
    bytes : ndarray of BYTES
        Bytes read; a file may have several entries.
    reads, reads_with_offset, io_time_ns, read_time_ns : int
        As in `ensembles.structure.strides.summary.StridedReads`.
    """

    rows: np.ndarray
    bytes: np.ndarray
    reads: int
    reads_with_offset: int
    io_time_ns: int
    read_time_ns: int


def find_strides(events: Events) -> StrideRuns:
    """Find the strided reads of some tasks.

    Parameters
    ----------
    events : Events
        All calls of these tasks, at least one, in the order of ranks.

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
    sums = np.zeros(4, np.int64)
    columns = [np.ascontiguousarray(getattr(events, name)) for name in COLUMNS]
    tables = (_kind_of_calls(events.calls), _layer_of_calls(events.calls))
    arrays = (*columns, *tables, sums, order_by_start(events))
    rows, amounts = _compiled.strided_reads(arrays, LEAST_READS, MOST_POSITIONS, _WRITTEN_SHARE, ROW.itemsize)
    return StrideRuns(np.frombuffer(rows, ROW), np.frombuffer(amounts, BYTES), *sums.tolist())


@of_calls
def _kind_of_calls(calls: Sequence[Call]) -> np.ndarray:
    """Return the kind of each function for the compiled loop."""
    return np.array([_KINDS.get(op, 0) for op in OPS], np.uint8)[op_of_calls(calls)]


@of_calls
def _layer_of_calls(calls: Sequence[Call]) -> np.ndarray:
    """Return the index into `LAYERS` of each function's layer: uint8, (len(calls),)."""
    last = len(LAYERS) - 1
    return np.array([LAYERS.index(call.layer) if call.layer in LAYERS else last for call in calls], np.uint8)

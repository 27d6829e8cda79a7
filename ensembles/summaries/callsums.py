"""Sums over the events of a chunk by function, and counts of request sizes.

Several summaries of a pass use the same sums, which a chunk therefore caches.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ensembles import _compiled
from ensembles.model.events import OPS, Call, Events, of_calls, op_of_calls
from ensembles.summaries.keyed_sums import sum_by_keys

_NO_LAYER = 255
_MOST_LAYERS = 255
_LIMITS = np.iinfo(np.int64)
_CARRIED = {"read": 1, "write": 2}
"""The bit of ``carried`` that is set if a call around a call of this operation counts its bytes."""


@dataclass(frozen=True, slots=True)
class CallSums:
    """Sums over the events of a chunk, by function."""

    present: np.ndarray  # Indices of the functions that occur, rising; shape (k,)
    # count, errors: Number of events, and of failed events; shape (calls,)
    count: np.ndarray
    errors: np.ndarray
    # moved, counted: Bytes moved; the same without bytes that a call around counts
    # (`ensembles.summaries.runtotals.direction_of_events`); shape (calls,)
    moved: np.ndarray
    counted: np.ndarray
    time_ns: np.ndarray  # Sum of durations; shape (calls,)
    # shortest_ns, longest_ns: Least and largest duration, of functions that occur; shape (calls,)
    shortest_ns: np.ndarray
    longest_ns: np.ndarray
    # start_ns, end_ns: First entry into a call and last return from one, since the origin of the run
    start_ns: int
    end_ns: int
    deepest: int  # Largest nesting depth


SUM_COLUMNS = ("call", "depth", "carried", "moved", "start", "duration")
"""Columns of events that `compute_call_sums` reads."""


def compute_call_sums(chunk: Events) -> CallSums:
    """Compute the sums of a chunk, or return those that were computed before.

    Examples
    --------
    >>> from ensembles.summaries.callsums import compute_call_sums
    >>> events = en.open("ensio-ior").events
    >>> sums = compute_call_sums(events)
    >>> {events.calls[i].name: int(sums.count[i]) for i in sums.present}
    {'open': 8, 'close': 8, 'pread': 160, 'pwrite': 160}
    """
    return chunk.remembered(compute_call_sums, _made)


@of_calls
def carried_bits(calls: Sequence[Call]) -> np.ndarray:
    """Return the bit of ``carried`` that applies to each function.

    The result is uint8, shape (len(calls),).
    """
    bit_of_op = np.array([_CARRIED.get(op, 0) for op in OPS], np.uint8)
    return bit_of_op[op_of_calls(calls)]


def _made(chunk: Events) -> CallSums:
    sums = np.zeros((len(chunk.calls), 7), np.int64)
    sums[:, 5], sums[:, 6] = _LIMITS.max, _LIMITS.min
    ends = np.array([_LIMITS.max, _LIMITS.min, 0], np.int64)
    columns = (chunk.call, chunk.start, chunk.duration, chunk.moved, chunk.depth, chunk.carried)
    bits = carried_bits(chunk.calls)
    _compiled.sum_calls(*map(np.ascontiguousarray, columns), bits, sums, ends)
    first, last, deepest = ends.tolist()
    count, errors, moved, counted, time_ns, shortest_ns, longest_ns = sums.T
    return CallSums(
        present=np.flatnonzero(count),
        count=count,
        errors=errors,
        moved=moved,
        counted=counted,
        time_ns=time_ns,
        shortest_ns=shortest_ns,
        longest_ns=longest_ns,
        start_ns=first,
        end_ns=last,
        deepest=deepest,
    )


def central_sums(call: np.ndarray, duration_ns: np.ndarray, mean_ns: np.ndarray) -> np.ndarray:
    """Sum powers (2 to 4) of the deviations from the mean of each function.

    Examples
    --------
    >>> from ensembles.summaries.callsums import central_sums
    >>> call, duration_ns = np.zeros(3, np.uint16), np.array([1, 2, 6])
    >>> central_sums(call, duration_ns, np.array([3.0]))
    array([[14., 18., 98.]])
    """
    call, duration_ns = np.ascontiguousarray(call), np.ascontiguousarray(duration_ns)
    sums = np.zeros((len(mean_ns), 3))
    _compiled.sum_powers(call, duration_ns, mean_ns, sums)
    return sums


def count_sizes(
    call: np.ndarray, requested: np.ndarray, layer_of: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Count the request sizes of each layer."""
    layer = layer_of[call]
    found = sum_by_keys({"layer": layer, "size": requested.view(np.int64)}, taken=layer != _NO_LAYER)
    return found["layer"].astype(np.uint8), found["size"].view(np.uint64), found["n"]


@of_calls
def layers_of_transfers(calls: Sequence[Call]) -> tuple[list[str], np.ndarray]:
    """List the layers with reads or writes, and the layer of each function."""
    return _numbered([call.layer if call.op in _CARRIED else None for call in calls])


@of_calls
def operations_of_transfers(calls: Sequence[Call]) -> tuple[list[str], np.ndarray]:
    """List the layers and operations of reads and writes, and the one of each function."""
    return _numbered([f"{call.layer} {call.op}" if call.op in _CARRIED else None for call in calls])


def _numbered(keys: Sequence[str | None]) -> tuple[list[str], np.ndarray]:
    names = list(dict.fromkeys(key for key in keys if key is not None))
    if len(names) > _MOST_LAYERS:
        raise ValueError(f"there are {len(names)} layers, and no more than {_MOST_LAYERS} can be counted")
    number = {name: place for place, name in enumerate(names)}
    return names, np.array([_NO_LAYER if key is None else number[key] for key in keys], np.uint8)

"""What the events of a chunk add up to by call, and how often each size occurs in it: compiled where
possible, else in NumPy.

Several summaries of a pass stand on the same sums, so a chunk remembers its own. Integers are equal to the
last bit, whoever makes them, and sums of real numbers to rounding. ``NATIVE`` tells whether the compiled
version is in use."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ensembles.model.events import OPS, Call, Events, of_calls, op_of_calls

try:
    from ensembles.summaries import _callsums
except ImportError:
    _callsums = None  # type: ignore[assignment]

NATIVE = _callsums is not None

_NO_LAYER = 255
_MOST_LAYERS = 255
_LIMITS = np.iinfo(np.int64)
_CARRIED = {"read": 1, "write": 2}
"""The bit of ``carried`` that says of a call of this kind that its bytes are counted elsewhere."""


@dataclass(frozen=True, slots=True)
class CallSums:
    """What the events of a chunk add up to.

    Attributes
    ----------
    present : ndarray of int64, shape (k,)
        Numbers of the calls that occur, rising; all else by call, int64, shape (calls,).
    count, errors : ndarray
        Events, and those of them that failed.
    moved, counted : ndarray
        Bytes; and without those that a call around counts (`runtotals.direction_of_events`).
    time_ns : ndarray
        Sum of durations.
    shortest_ns, longest_ns : ndarray
        Least and largest duration, where there is any event.
    start_ns, end_ns : int
        First entry into a call and last return from one.
    deepest : int
        Largest depth.
    """

    present: np.ndarray
    count: np.ndarray
    errors: np.ndarray
    moved: np.ndarray
    counted: np.ndarray
    time_ns: np.ndarray
    shortest_ns: np.ndarray
    longest_ns: np.ndarray
    start_ns: int
    end_ns: int
    deepest: int


SUM_COLUMNS = ("call", "depth", "carried", "moved", "start", "duration")
"""Columns of events that `compute_call_sums` needs."""


def compute_call_sums(chunk: Events) -> CallSums:
    """The sums of a chunk, which are made when they are first asked for. It has one event at least.

    Raises
    ------
    IndexError
        An event is of a call without a number.
    """
    return chunk.remembered(compute_call_sums, _made)


@of_calls
def carried_bits(calls: Sequence[Call]) -> np.ndarray:
    """The bit of ``carried`` that bears on each call: uint8, shape (len(calls),)."""
    bit_of_op = np.array([_CARRIED.get(op, 0) for op in OPS], np.uint8)
    return bit_of_op[op_of_calls(calls)]


def _made(chunk: Events) -> CallSums:
    sums = np.zeros((len(chunk.calls), 7), np.int64)
    sums[:, 5], sums[:, 6] = _LIMITS.max, _LIMITS.min
    ends = np.array([_LIMITS.max, _LIMITS.min, 0], np.int64)
    columns = (chunk.call, chunk.start, chunk.duration, chunk.moved, chunk.depth, chunk.carried)
    bits = carried_bits(chunk.calls)
    if _callsums is None:
        numpy_sum_calls(*columns, bits, sums, ends)
    else:
        _callsums.sum_calls(*map(np.ascontiguousarray, columns), bits, sums, ends)
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


def numpy_sum_calls(
    call: np.ndarray,
    start: np.ndarray,
    duration: np.ndarray,
    moved: np.ndarray,
    depth: np.ndarray,
    carried: np.ndarray,
    bits: np.ndarray,
    sums: np.ndarray,
    ends: np.ndarray,
) -> None:
    """Add events to `sums`, of which the columns are those of `CallSums`, and to `ends`: first start, last
    end, largest depth. Without compiled code."""
    if int(call.max()) >= len(bits):
        raise IndexError("an event is of a call without a number")
    order = np.argsort(call, kind="stable")
    first = np.concatenate([[0], np.flatnonzero(np.diff(call[order])) + 1])
    number = call[order[first]]
    bytes_moved = np.maximum(moved, 0)
    elsewhere = (carried & bits[call]) != 0
    duration_of = duration[order]
    sums[number, 0] += np.diff(np.append(first, len(call)))
    for place, values in ((1, moved < 0), (2, bytes_moved), (3, np.where(elsewhere, 0, bytes_moved))):
        sums[number, place] += np.add.reduceat(values[order].astype(np.int64), first)
    sums[number, 4] += np.add.reduceat(duration_of, first)
    sums[number, 5] = np.minimum(sums[number, 5], np.minimum.reduceat(duration_of, first))
    sums[number, 6] = np.maximum(sums[number, 6], np.maximum.reduceat(duration_of, first))
    ends[0], ends[1] = min(ends[0], start.min()), max(ends[1], (start + duration).max())
    ends[2] = depth.max()


def central_sums(call: np.ndarray, duration_ns: np.ndarray, mean_ns: np.ndarray) -> np.ndarray:
    """Sums of the second, third and fourth powers of what durations differ from the mean of their call.

    Parameters
    ----------
    call : ndarray of uint16, shape (n,)
    duration_ns : ndarray of int64, shape (n,)
    mean_ns : ndarray of float64, shape (calls,)

    Returns
    -------
    ndarray of float64, shape (calls, 3)
        ns², ns³, ns⁴.

    Raises
    ------
    IndexError
        An event is of a call without a number.
    """
    call, duration_ns = np.ascontiguousarray(call), np.ascontiguousarray(duration_ns)
    if _callsums is None:
        return numpy_central_sums(call, duration_ns, mean_ns)
    sums = np.zeros((len(mean_ns), 3))
    _callsums.sum_powers(call, duration_ns, mean_ns, sums)
    return sums


def numpy_central_sums(call: np.ndarray, duration_ns: np.ndarray, mean_ns: np.ndarray) -> np.ndarray:
    """`central_sums` without compiled code."""
    beyond = duration_ns - mean_ns[call]
    square = beyond * beyond
    powers = (square, square * beyond, square * square)
    return np.stack([np.bincount(call, power, len(mean_ns)) for power in powers], axis=1)


def count_sizes(
    call: np.ndarray, requested: np.ndarray, layer_of: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """How often each size was asked for in each layer.

    Parameters
    ----------
    call : ndarray of uint16, shape (n,)
    requested : ndarray of uint64, shape (n,)
    layer_of : ndarray of uint8, shape (calls,)
        Number of the layer of each call; 255: its events are left out.

    Returns
    -------
    layer : ndarray of uint8, shape (k,)
    size : ndarray of uint64, shape (k,)
    count : ndarray of int64, shape (k,)
        In no order; a size may be there several times.

    Raises
    ------
    IndexError
        An event is of a call without a number.
    """
    if _callsums is None:
        return numpy_count_sizes(call, requested, layer_of)
    n = len(call)
    found = np.empty(n, np.uint8), np.empty(n, np.uint64), np.empty(n, np.int64)
    columns = np.ascontiguousarray(call), np.ascontiguousarray(requested)
    length = _callsums.count_sizes(*columns, *found, layer_of)
    layer, size, count = (column[:length] for column in found)
    return layer, size, count


def numpy_count_sizes(
    call: np.ndarray, requested: np.ndarray, layer_of: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """`count_sizes` without compiled code."""
    layer = layer_of[call]
    layers, sizes, counts = [], [], []
    for number in np.flatnonzero(np.bincount(layer, minlength=_NO_LAYER)[:_NO_LAYER]):
        size, count = np.unique(requested[layer == number], return_counts=True)
        layers.append(np.full(len(size), number, np.uint8))
        sizes.append(size)
        counts.append(count)
    none = np.empty(0)
    return (
        np.concatenate([none, *layers]).astype(np.uint8),
        np.concatenate([none.astype(np.uint64), *sizes]),
        np.concatenate([none.astype(np.int64), *counts]),
    )


@of_calls
def layers_of_transfers(calls: Sequence[Call]) -> tuple[list[str], np.ndarray]:
    """The layers with functions that read or write, and the number of each function's layer among them:
    uint8, shape (len(calls),); 255: it neither reads nor writes.

    Raises
    ------
    ValueError
        There are too many layers.
    """
    names = list(dict.fromkeys(call.layer for call in calls if call.op in _CARRIED))
    if len(names) > _MOST_LAYERS:
        raise ValueError(f"{len(names)} layers are too many")
    number = {name: place for place, name in enumerate(names)}
    layer_of = [number[call.layer] if call.op in _CARRIED else _NO_LAYER for call in calls]
    return names, np.array(layer_of, np.uint8)


def mark(numbers: np.ndarray, seen: np.ndarray) -> None:
    """Say which numbers occur.

    Parameters
    ----------
    numbers : ndarray of uint32, shape (n,)
    seen : ndarray of uint8, shape (m,)
        Becomes 1 at these places.

    Raises
    ------
    IndexError
        A number is not below m.
    """
    if _callsums is None:
        seen[numbers] = 1
    else:
        _callsums.mark(np.ascontiguousarray(numbers), seen)

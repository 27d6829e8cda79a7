"""Loops over events that the summaries use, in C.

They add integers, so that results do not depend on the order of events, to the last bit. Sums of real numbers
depend on it only by rounding.

Spreading of calls over rows of cells of time, in C and without temporary columns.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from itertools import repeat

import numpy as np

from ensembles import _compiled
from ensembles.model.errors import EnsioError
from ensembles.model.events import Events
from ensembles.model.units import AT_ONCE, LARGEST_INT64
from ensembles.summaries.bins import BIN_COUNT

THREADS = min(4, len(os.sched_getaffinity(0)))


def spread(
    start_ns: np.ndarray,
    duration_ns: np.ndarray,
    row: np.ndarray,
    amount: np.ndarray | None,
    level: int,
    first: int,
    out: np.ndarray,
) -> None:
    """Spread amounts of events evenly over their durations, into cells of time.

    Cell ``c`` of `out` is the time from ``(first + c) * 2**level`` to ``(first + c + 1) * 2**level`` ns. An
    event of no duration adds its whole amount to the cell of its start. The parts of an event are rounded to
    integers whose sum is exactly its amount.

    `amount`: amounts, such as bytes, not negative. None: the durations, so that a cell gets the ns inside it.
    """
    start_ns, duration_ns = _contiguous(start_ns, np.int64), _contiguous(duration_ns, np.int64)
    row = _contiguous(row, np.int32)
    amount = None if amount is None else _contiguous(amount, np.int64)
    _compiled.spread(start_ns, duration_ns, row, amount, level, first, out, out.shape[1])


def count_bins(group: np.ndarray, duration_ns: np.ndarray, groups: int) -> np.ndarray:
    """Count durations by group and bin."""
    group, duration_ns = _contiguous(group, np.uint16), _contiguous(duration_ns, np.int64)
    counts = np.zeros((groups, BIN_COUNT), dtype=np.int64)
    _compiled.count_bins(group, duration_ns, counts)
    return counts


def count_groups(
    key: np.ndarray,
    duration_ns: np.ndarray,
    taken: np.ndarray | None,
    cuts: np.ndarray,
    out: dict[str, np.ndarray],
    apart: bool = False,
) -> np.ndarray | None:
    """Count durations by group and bin, and sum them by group.

    The group of an event is the number of cuts that are not above its key. With start times as keys, a group
    is the time between two cuts.

    `taken`: false: the event is left out. None: all events count.
    """
    key, duration_ns = _contiguous(key, np.int64), _contiguous(duration_ns, np.int64)
    taken = None if taken is None else _contiguous(taken, np.bool_).view(np.uint8)
    arrays = (out["counts"], out["least"], out["most"], out["sums"])
    place = np.empty(len(key), np.int32) if apart else None
    found = _compiled.count_groups(key, duration_ns, taken, _contiguous(cuts, np.int64), *arrays, place)
    return None if place is None else place[:found]


def count_seconds(seconds: np.ndarray, limit_s: float) -> tuple[np.ndarray, np.ndarray]:
    """Count durations in seconds by bin, rounded to whole ns (halves to even)."""
    seconds = _contiguous(seconds, np.float64)
    reference = float(seconds[0]) if len(seconds) else 0.0
    if len(seconds) <= AT_ONCE:
        return _count_seconds(seconds, limit_s, reference)
    counts, stats = np.zeros(BIN_COUNT, np.int64), np.array([np.inf, -np.inf, 0, 0, reference])
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(THREADS) as pool:
        blocks = np.array_split(seconds, -(-len(seconds) // AT_ONCE))
        for more, found in pool.map(_count_seconds, blocks, repeat(limit_s), repeat(reference)):
            counts += more
            stats[0], stats[1] = min(stats[0], found[0]), max(stats[1], found[1])
            stats[2:4] += found[2:4]
    return counts, stats


def _count_seconds(seconds: np.ndarray, limit_s: float, reference: float) -> tuple[np.ndarray, np.ndarray]:
    counts, stats = np.zeros(BIN_COUNT, np.int64), np.array([np.inf, -np.inf, 0, 0, reference])
    if _compiled.count_seconds(seconds, limit_s, counts, stats) >= 0:
        raise ValueError("a duration is negative, not a number or too long")
    return counts, stats


def _contiguous(values: np.ndarray, dtype: type) -> np.ndarray:
    return np.ascontiguousarray(values, dtype=dtype)


@dataclass(frozen=True, slots=True)
class Choice:
    """The calls to spread, their rows, and their amounts."""

    row_of_call: np.ndarray  # Row of each function; negative: its calls are left out; shape (calls,)
    # Number of ranks that share a row. The row of a function is that of rank 0. 0: all ranks share it.
    ranks_per_row: int = 0
    outermost: bool = False  # Leave out calls inside others
    # None: spread the time of all calls. Otherwise spread the bytes of calls that moved any, and whose
    # ``carried`` has no bit of their function in common with this; those of non-blocking requests over their
    # ``flight``. Shape (calls,).
    bits: np.ndarray | None = None
    # Multiply bytes by ``2**shift``. Negative: spread the time of these calls in place of their bytes.
    shift: int = 0


def moving_ns(chunk: Events) -> np.ndarray:
    """Compute how long each call moved its bytes."""
    return chunk.remembered(moving_ns, lambda events: np.maximum(events.duration, events.flight))


def bounds_ns(chunk: Events) -> tuple[int, int] | None:
    """Compute bounds of the time span of any calls of a chunk, once for all summaries.

    A moment before which no call starts, and one at which all calls and flights have ended, in ns. None: a
    call has a negative duration, or its end is beyond 64-bit nanoseconds.
    """
    return chunk.remembered(bounds_ns, _bounds_ns)


def _bounds_ns(chunk: Events) -> tuple[int, int] | None:
    flight = np.ascontiguousarray(chunk.flight) if hasattr(chunk, "flight") else None
    columns = np.ascontiguousarray(chunk.start), np.ascontiguousarray(chunk.duration), flight
    low, last, shortest, longest, end = _compiled.time_bounds(*columns)
    if shortest < 0 or last + longest >= LARGEST_INT64:
        return None
    return low, end + 1


def compute_extent(chunk: Events, choice: Choice) -> tuple[int, int] | None:
    """Compute the time span of the chosen calls.

    First moment and the moment after the last, in ns; a call of no duration takes up one ns. None: no call is
    chosen.
    """
    try:
        return _compiled.spread_calls(*_arguments(chunk, choice), 0, 0, None, 0, None)
    except OverflowError:
        raise EnsioError(
            "an event ends before it starts: the time stamps of this run are damaged, record it again"
        ) from None


def spread_calls(
    chunk: Events, choice: Choice, level: int, first: int, out: np.ndarray, begun: np.ndarray | None = None
) -> None:
    """Spread the chosen calls over cells of time."""
    _compiled.spread_calls(*_arguments(chunk, choice), level, first, out, out.shape[1], begun)


_Arguments = tuple[
    np.ndarray,
    np.ndarray,
    np.ndarray | None,
    np.ndarray,
    np.ndarray,
    np.ndarray | None,
    int,
    np.ndarray | None,
    np.ndarray | None,
    np.ndarray | None,
    np.ndarray | None,
    int,
]


def _arguments(chunk: Events, choice: Choice) -> _Arguments:
    of_bytes = choice.bits is not None
    return (
        np.ascontiguousarray(chunk.start),
        np.ascontiguousarray(chunk.duration),
        np.ascontiguousarray(chunk.flight) if of_bytes else None,
        np.ascontiguousarray(chunk.call),
        choice.row_of_call,
        np.ascontiguousarray(chunk.rank) if choice.ranks_per_row else None,
        max(choice.ranks_per_row, 1),
        np.ascontiguousarray(chunk.depth) if choice.outermost else None,
        np.ascontiguousarray(chunk.moved) if of_bytes else None,
        np.ascontiguousarray(chunk.carried) if of_bytes else None,
        choice.bits,
        choice.shift,
    )

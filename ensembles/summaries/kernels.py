"""Loops over events that the summaries use, in C.

They add integers, so that results do not depend on the order of events, to the last bit. Sums of real numbers
depend on it only by rounding.
"""

from __future__ import annotations

import os
from itertools import repeat

import numpy as np

from ensembles import _compiled
from ensembles.summaries.bins import BIN_COUNT

THREADS = min(4, len(os.sched_getaffinity(0)))

_BLOCK_SECONDS = 1 << 20


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
    if len(seconds) <= _BLOCK_SECONDS:
        return _count_seconds(seconds, limit_s, reference)
    counts, stats = np.zeros(BIN_COUNT, np.int64), np.array([np.inf, -np.inf, 0, 0, reference])
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(THREADS) as pool:
        blocks = np.array_split(seconds, -(-len(seconds) // _BLOCK_SECONDS))
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

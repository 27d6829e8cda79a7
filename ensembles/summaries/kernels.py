"""The loops over events on which the summaries stand, compiled where possible, else in NumPy.

Both versions add integers to integers, so that their results are equal to the last bit, in whatever order
events come; sums of real numbers are equal to rounding. ``NATIVE`` tells whether the compiled version is in
use; those in NumPy (``numpy_...``) are always there."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from itertools import repeat

import numpy as np

from ensembles.summaries.bins import BIN_COUNT, bin_index

try:
    from ensembles.summaries import _kernels as compiled
except ImportError:
    compiled = None  # type: ignore[assignment]
if not hasattr(compiled, "spread_calls"):  # built from older sources
    compiled = None  # type: ignore[assignment]

__all__ = [
    "NATIVE",
    "THREADS",
    "compiled",
    "count_bins",
    "count_groups",
    "count_seconds",
    "numpy_count_bins",
    "numpy_count_groups",
    "numpy_count_seconds",
    "numpy_spread",
    "spread",
]

NATIVE = compiled is not None

THREADS = min(4, len(os.sched_getaffinity(0)))

_BLOCK_CELLS = 1 << 20
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
    """Spread what each event moved evenly over its duration, and add it to the cells of its row.

    Cell ``c`` of `out` is the time from ``(first + c) * 2**level`` to ``(first + c + 1) * 2**level`` ns. An
    event of no duration leaves its whole amount in the cell of its start. The parts of an event are rounded
    to integers in such a way that they always add up to its amount.

    Parameters
    ----------
    start_ns, duration_ns : ndarray of int64, shape (n,)
    row : ndarray of int32, shape (n,)
        Row of `out`; events with a negative row are left out.
    amount : ndarray of int64, shape (n,), or None
        What the event moved, not negative; None: its duration, so that cells get the ns that lie within them.
    level, first : int
        Binary logarithm of the width of a cell in ns; index of the cell in column 0, may be negative.
    out : ndarray of int64, shape (rows, cells), C-contiguous
        Is added to.

    Raises
    ------
    IndexError
        An event lies outside of `out`, or has a negative duration.
    """
    start_ns, duration_ns = _contiguous(start_ns, np.int64), _contiguous(duration_ns, np.int64)
    row = _contiguous(row, np.int32)
    amount = None if amount is None else _contiguous(amount, np.int64)
    if compiled is None:
        numpy_spread(start_ns, duration_ns, row, amount, level, first, out)
    else:
        compiled.spread(start_ns, duration_ns, row, amount, level, first, out, out.shape[1])


def count_bins(group: np.ndarray, duration_ns: np.ndarray, groups: int) -> np.ndarray:
    """Count durations per group and bin.

    Parameters
    ----------
    group : ndarray of uint16, shape (n,)
    duration_ns : ndarray of int64, shape (n,)
    groups : int
        Number of groups.

    Returns
    -------
    ndarray of int64, shape (groups, BIN_COUNT)

    Raises
    ------
    IndexError
        A group is not below `groups`, or a duration is negative.
    """
    group, duration_ns = _contiguous(group, np.uint16), _contiguous(duration_ns, np.int64)
    if compiled is None:
        return numpy_count_bins(group, duration_ns, groups)
    counts = np.zeros((groups, BIN_COUNT), dtype=np.int64)
    compiled.count_bins(group, duration_ns, counts)
    return counts


def count_groups(
    key: np.ndarray,
    duration_ns: np.ndarray,
    taken: np.ndarray | None,
    cuts: np.ndarray,
    out: dict[str, np.ndarray],
    apart: bool = False,
) -> np.ndarray | None:
    """Count durations per group and bin, and what else they add up to.

    The group of an event is the number of cuts that are not above its key: with start times for keys, the
    time between two cuts.

    Parameters
    ----------
    key, duration_ns : ndarray of int64, shape (n,)
    taken : ndarray of bool, shape (n,), or None
        False: the event is left out.
    cuts : ndarray of int64, shape (g - 1,)
        Rising.
    out : dict
        Arrays that are added to: ``counts`` int64, shape (g, BIN_COUNT); ``least``, ``most`` int64 (g,);
        ``sums`` float64 (g, 2), of the durations and of their squares, ns and ns².
    apart : bool
        Tell which events are in groups of odd numbers.

    Returns
    -------
    ndarray of integers, or None
        Their positions, if they are asked for.

    Raises
    ------
    IndexError
        A duration is negative.
    """
    key, duration_ns = _contiguous(key, np.int64), _contiguous(duration_ns, np.int64)
    taken = None if taken is None else _contiguous(taken, np.bool_).view(np.uint8)
    if compiled is None:
        return numpy_count_groups(key, duration_ns, taken, cuts, out, apart)
    arrays = (out["counts"], out["least"], out["most"], out["sums"])
    place = np.empty(len(key), np.int32) if apart else None
    found = compiled.count_groups(key, duration_ns, taken, _contiguous(cuts, np.int64), *arrays, place)
    return None if place is None else place[:found]


def count_seconds(seconds: np.ndarray, limit_s: float) -> tuple[np.ndarray, np.ndarray]:
    """Count durations in seconds by bins, rounded to whole ns (halves to even ones).

    Parameters
    ----------
    seconds : ndarray of float64, shape (n,)
    limit_s : float
        All must be below it, and not negative.

    Returns
    -------
    counts : ndarray of int64, shape (BIN_COUNT,)
    stats : ndarray of float64, shape (5,)
        Least and largest, the sum of the differences to a reference and that of their squares, the reference.

    Raises
    ------
    ValueError
        A duration is negative, not a number, or not below the limit.
    """
    seconds = _contiguous(seconds, np.float64)
    reference = float(seconds[0]) if len(seconds) else 0.0
    if len(seconds) <= _BLOCK_SECONDS:
        return _count_seconds(seconds, limit_s, reference)
    counts, stats = np.zeros(BIN_COUNT, np.int64), np.array([np.inf, -np.inf, 0, 0, reference])
    with ThreadPoolExecutor(THREADS) as pool:
        blocks = np.array_split(seconds, -(-len(seconds) // _BLOCK_SECONDS))
        for more, found in pool.map(_count_seconds, blocks, repeat(limit_s), repeat(reference)):
            counts += more
            stats[0], stats[1] = min(stats[0], found[0]), max(stats[1], found[1])
            stats[2:4] += found[2:4]
    return counts, stats


def _count_seconds(seconds: np.ndarray, limit_s: float, reference: float) -> tuple[np.ndarray, np.ndarray]:
    if compiled is None:
        return numpy_count_seconds(seconds, limit_s, reference)
    counts, stats = np.zeros(BIN_COUNT, np.int64), np.array([np.inf, -np.inf, 0, 0, reference])
    if compiled.count_seconds(seconds, limit_s, counts, stats) >= 0:
        raise ValueError("a duration is negative, not a number or too long")
    return counts, stats


def numpy_spread(
    start_ns: np.ndarray,
    duration_ns: np.ndarray,
    row: np.ndarray,
    amount: np.ndarray | None,
    level: int,
    first: int,
    out: np.ndarray,
) -> None:
    """`spread` without compiled code."""
    taken = row >= 0
    if not taken.all():
        start_ns, duration_ns, row = start_ns[taken], duration_ns[taken], row[taken]
        amount = None if amount is None else amount[taken]
    if not len(row):
        return
    rows, cells = out.shape
    first_cell = (start_ns >> level) - first
    last_cell = ((start_ns + np.maximum(duration_ns - 1, 0)) >> level) - first
    # Where an end is beyond 64 bits, the last cell is before the first.
    beyond = (last_cell < first_cell).any() or last_cell.max() >= cells
    if beyond or row.max() >= rows or duration_ns.min() < 0 or first_cell.min() < 0:
        raise IndexError("an event lies outside of the rows or cells")
    flat = out.reshape(-1)
    place = row.astype(np.int64) * cells + first_cell
    whole = first_cell == last_cell
    np.add.at(flat, place[whole], (duration_ns if amount is None else amount)[whole])

    long = np.flatnonzero(~whole)
    pieces = last_cell[long] - first_cell[long] + 1
    ends = np.cumsum(pieces)
    begin = 0
    while begin < len(long):
        # Blocks bound the memory: a few long events may cover as many cells as millions of short ones.
        done = ends[begin - 1] if begin else 0
        end = max(int(np.searchsorted(ends, done + _BLOCK_CELLS, side="right")), begin + 1)
        block, count = long[begin:end], pieces[begin:end]
        event = np.repeat(block, count)
        piece = np.arange(len(event)) - np.repeat(np.cumsum(count) - count, count)
        edge = (first + first_cell[event] + piece) * (1 << level) - start_ns[event]
        after = _used(amount, event, edge + (1 << level), duration_ns)
        before = _used(amount, event, np.maximum(edge, 0), duration_ns)
        np.add.at(flat, place[event] + piece, after - before)
        begin = end


def _used(
    amount: np.ndarray | None, event: np.ndarray, elapsed_ns: np.ndarray, duration_ns: np.ndarray
) -> np.ndarray:
    """How much of its amount each event has used after `elapsed_ns`: all of it at the end, whatever the
    rounding before."""
    length = duration_ns[event]
    if amount is None:
        return np.minimum(elapsed_ns, length)
    total = amount[event]
    share = np.minimum(elapsed_ns, length) / length
    return np.where(elapsed_ns >= length, total, (total * share).astype(np.int64))


def numpy_count_bins(group: np.ndarray, duration_ns: np.ndarray, groups: int) -> np.ndarray:
    """`count_bins` without compiled code."""
    if len(group) and (group.max() >= groups or duration_ns.min() < 0):
        raise IndexError("a group is too large, or a duration is negative")
    place = group.astype(np.int64) * BIN_COUNT + bin_index(duration_ns)
    return np.bincount(place, minlength=groups * BIN_COUNT).reshape(groups, BIN_COUNT)


def numpy_count_groups(
    key: np.ndarray,
    duration_ns: np.ndarray,
    taken: np.ndarray | None,
    cuts: np.ndarray,
    out: dict[str, np.ndarray],
    apart: bool = False,
) -> np.ndarray | None:
    """`count_groups` without compiled code."""
    mine = np.arange(len(key)) if taken is None else np.flatnonzero(taken)
    key, duration_ns = key[mine], duration_ns[mine]
    if len(key) and duration_ns.min() < 0:
        raise IndexError("a duration is negative")
    group = np.searchsorted(cuts, key, side="right")
    place, count = np.unique(group * BIN_COUNT + bin_index(duration_ns), return_counts=True)
    out["counts"].reshape(-1)[place] += count
    np.minimum.at(out["least"], group, duration_ns)
    np.maximum.at(out["most"], group, duration_ns)
    real, groups = duration_ns.astype(np.float64), len(cuts) + 1
    out["sums"][:, 0] += np.bincount(group, real, groups)
    out["sums"][:, 1] += np.bincount(group, real * real, groups)
    return mine[group % 2 == 1] if apart else None


def numpy_count_seconds(
    seconds: np.ndarray, limit_s: float, reference: float
) -> tuple[np.ndarray, np.ndarray]:
    """`count_seconds` without compiled code."""
    if not len(seconds):
        return np.zeros(BIN_COUNT, np.int64), np.array([np.inf, -np.inf, 0, 0, reference])
    least, most = float(seconds.min()), float(seconds.max())
    if not (least >= 0 and most < limit_s):
        raise ValueError("a duration is negative, not a number or too long")
    ns = np.rint(seconds * 1e9).astype(np.int64)
    beyond = seconds - reference
    stats = np.array([least, most, beyond.sum(), (beyond * beyond).sum(), reference])
    return np.bincount(bin_index(ns), minlength=BIN_COUNT), stats


def _contiguous(values: np.ndarray, dtype: type) -> np.ndarray:
    return np.ascontiguousarray(values, dtype=dtype)

"""Loops over events that the summaries use; compiled or in NumPy.

Both versions add integers, so that their results are equal to the last bit and do not depend on the order of
events. Sums of real numbers are equal to rounding. ``NATIVE`` is True if the compiled version is in use; the
functions ``numpy_*`` are the other version.
"""

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
    """Spread amounts of events evenly over their durations, into cells of time.

    Cell ``c`` of `out` is the time from ``(first + c) * 2**level`` to ``(first + c + 1) * 2**level`` ns. An
    event of no duration adds its whole amount to the cell of its start. The parts of an event are rounded to
    integers whose sum is exactly its amount.

    Parameters
    ----------
    start_ns, duration_ns : ndarray of int64, shape (n,)
        Times of the events.
    row : ndarray of int32, shape (n,)
        Row of `out`; events with a negative row are left out.
    amount : ndarray of int64, shape (n,), or None
        Amounts, such as bytes, not negative. None: the durations, so that a cell gets the ns inside it.
    level : int
        Binary logarithm of the width of a cell in ns.
    first : int
        Index of the cell in column 0; it may be negative.
    out : ndarray of int64, shape (rows, cells), C-contiguous
        Is added to.

    Raises
    ------
    IndexError
        An event lies outside of `out`, or has a negative duration.

    Examples
    --------
    Two events of 6 and 4 ns, with 600 and 4 bytes, in cells of 4 ns:

    >>> from ensembles.summaries.kernels import spread
    >>> out = np.zeros((1, 3), np.int64)
    >>> row, amount = np.zeros(2, np.int32), np.array([600, 4])
    >>> spread(np.array([2, 8]), np.array([6, 4]), row, amount, 2, 0, out)
    >>> out
    array([[200, 400,   4]])
    """
    start_ns, duration_ns = _contiguous(start_ns, np.int64), _contiguous(duration_ns, np.int64)
    row = _contiguous(row, np.int32)
    amount = None if amount is None else _contiguous(amount, np.int64)
    if compiled is None:
        numpy_spread(start_ns, duration_ns, row, amount, level, first, out)
    else:
        compiled.spread(start_ns, duration_ns, row, amount, level, first, out, out.shape[1])


def count_bins(group: np.ndarray, duration_ns: np.ndarray, groups: int) -> np.ndarray:
    """Count durations by group and bin.

    Parameters
    ----------
    group : ndarray of uint16, shape (n,)
        Group of each duration, below `groups`.
    duration_ns : ndarray of int64, shape (n,)
        Durations, not negative.
    groups : int
        Number of groups.

    Returns
    -------
    ndarray of int64, shape (groups, BIN_COUNT)
        Counts.

    Raises
    ------
    IndexError
        A group is not below `groups`, or a duration is negative.

    Examples
    --------
    >>> from ensembles.summaries.kernels import count_bins
    >>> counts = count_bins(np.array([0, 1, 1]), np.array([5, 7, 7]), 2)
    >>> int(counts[1, 7]), counts.sum(axis=1)
    (2, array([1, 2]))
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
    """Count durations by group and bin, and sum them by group.

    The group of an event is the number of cuts that are not above its key. With start times as keys, a group
    is the time between two cuts.

    Parameters
    ----------
    key : ndarray of int64, shape (n,)
        Keys, such as start times in ns.
    duration_ns : ndarray of int64, shape (n,)
        Durations, not negative.
    taken : ndarray of bool, shape (n,), or None
        False: the event is left out. None: all events count.
    cuts : ndarray of int64, shape (g - 1,)
        Keys at which a new group begins, rising.
    out : dict of str to ndarray
        Is updated: ``counts``, int64, shape (g, BIN_COUNT); ``least`` and ``most``, int64, shape (g,), in ns;
        ``sums``, float64, shape (g, 2), of durations and of their squares, in ns and ns².
    apart : bool
        Return the positions of events in groups with odd numbers.

    Returns
    -------
    ndarray of int, shape (k,), or None
        Positions, if `apart` is True.

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
    """Count durations in seconds by bin, rounded to whole ns (halves to even).

    Parameters
    ----------
    seconds : ndarray of float64, shape (n,)
        Durations in seconds, not negative and below `limit_s`.
    limit_s : float
        Upper limit in seconds.

    Returns
    -------
    counts : ndarray of int64, shape (BIN_COUNT,)
        Counts.
    stats : ndarray of float64, shape (5,)
        Least and largest duration; sums of the differences from a reference and of their squares; the
        reference. In seconds, and seconds².

    Raises
    ------
    ValueError
        A duration is negative, NaN, or not below the limit.

    Examples
    --------
    >>> from ensembles.summaries.kernels import count_seconds
    >>> counts, stats = count_seconds(np.array([2e-9, 3e-9, 3e-9]), 1.0)
    >>> counts[:5]
    array([0, 0, 1, 2, 0])
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
    """Compute `spread` without compiled code."""
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
    """Compute the share of its amount that each event has used after `elapsed_ns`.

    At the end of the event it is the whole amount, so that rounding before does not change the sum.
    """
    length = duration_ns[event]
    if amount is None:
        return np.minimum(elapsed_ns, length)
    total = amount[event]
    share = np.minimum(elapsed_ns, length) / length
    return np.where(elapsed_ns >= length, total, (total * share).astype(np.int64))


def numpy_count_bins(group: np.ndarray, duration_ns: np.ndarray, groups: int) -> np.ndarray:
    """Compute `count_bins` without compiled code."""
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
    """Compute `count_groups` without compiled code."""
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
    """Compute `count_seconds` without compiled code."""
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

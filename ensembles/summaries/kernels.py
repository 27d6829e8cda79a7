"""The two loops over events on which the summaries stand, compiled where possible, else in NumPy.

Both versions add integers to integers, so that their results are equal to the last bit, in whatever order
events come. ``NATIVE`` tells whether the compiled version is in use; ``numpy_spread`` and
``numpy_count_bins`` are always there."""

from __future__ import annotations

import numpy as np

from ensembles.summaries.bins import BIN_COUNT, bin_of

try:
    from ensembles.summaries import _kernels
except ImportError:
    _kernels = None

NATIVE = _kernels is not None

_BLOCK_CELLS = 1 << 20


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
    if _kernels is None:
        numpy_spread(start_ns, duration_ns, row, amount, level, first, out)
    else:
        _kernels.spread(start_ns, duration_ns, row, amount, level, first, out, out.shape[1])


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
    if _kernels is None:
        return numpy_count_bins(group, duration_ns, groups)
    counts = np.zeros((groups, BIN_COUNT), dtype=np.int64)
    _kernels.count_bins(group, duration_ns, counts)
    return counts


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
    if row.max() >= rows or duration_ns.min() < 0 or first_cell.min() < 0 or last_cell.max() >= cells:
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
    return np.where(elapsed_ns >= length, total, (total * (elapsed_ns / length)).astype(np.int64))


def numpy_count_bins(group: np.ndarray, duration_ns: np.ndarray, groups: int) -> np.ndarray:
    """`count_bins` without compiled code."""
    if len(group) and (group.max() >= groups or duration_ns.min() < 0):
        raise IndexError("a group is too large, or a duration is negative")
    place = group.astype(np.int64) * BIN_COUNT + bin_of(duration_ns)
    return np.bincount(place, minlength=groups * BIN_COUNT).reshape(groups, BIN_COUNT)


def _contiguous(values: np.ndarray, dtype: type) -> np.ndarray:
    return np.ascontiguousarray(values, dtype=dtype)

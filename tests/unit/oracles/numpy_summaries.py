"""The loops of `ensembles.summaries` (`kernels`, `callsums` and `spreading`), in NumPy."""

from __future__ import annotations

import numpy as np

from ensembles.model.events import Events
from ensembles.summaries.bins import BIN_COUNT, bin_index
from ensembles.summaries.kernels import Choice


def spread(
    start_ns: np.ndarray,
    duration_ns: np.ndarray,
    row: np.ndarray,
    amount: np.ndarray | None,
    level: int,
    first: int,
    out: np.ndarray,
) -> None:
    """Compute `kernels.spread`."""
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
    event = np.repeat(long, pieces)
    piece = np.arange(len(event)) - np.repeat(np.cumsum(pieces) - pieces, pieces)
    edge = (first + first_cell[event] + piece) * (1 << level) - start_ns[event]
    after = _used(amount, event, edge + (1 << level), duration_ns)
    before = _used(amount, event, np.maximum(edge, 0), duration_ns)
    np.add.at(flat, place[event] + piece, after - before)


def _used(
    amount: np.ndarray | None, event: np.ndarray, elapsed_ns: np.ndarray, duration_ns: np.ndarray
) -> np.ndarray:
    """Compute the share of its amount that each event has used after `elapsed_ns`.

    At the end of the event it is the whole amount, so that rounding before does not change the sum.
    """
    length = duration_ns[event]
    elapsed: np.ndarray = np.minimum(elapsed_ns, length)
    if amount is None:
        return elapsed
    total = amount[event]
    share = elapsed / length
    used: np.ndarray = np.where(elapsed_ns >= length, total, (total * share).astype(np.int64))
    return used


def rows_of_events(chunk: Events, choice: Choice) -> np.ndarray:
    """Compute the row of each event: int32, shape (n,); -1: it is left out."""
    row = choice.row_of_call[chunk.call]
    if choice.ranks_per_row:
        row = np.where(row < 0, -1, row + (chunk.rank // np.uint32(choice.ranks_per_row)).astype(np.int32))
    if choice.outermost:
        row[chunk.depth > 0] = -1
    if choice.bits is not None:
        row[(chunk.moved <= 0) | ((chunk.carried & choice.bits[chunk.call]) != 0)] = -1
    return row.astype(np.int32)


def compute_extent(chunk: Events, choice: Choice) -> tuple[int, int] | None:
    """Compute `spreading.compute_extent` of events that are not damaged."""
    chosen = rows_of_events(chunk, choice) >= 0
    start, duration = chunk.start[chosen], chunk.duration[chosen]
    return (int(start.min()), int((start + np.maximum(duration, 1)).max())) if len(start) else None


def spread_calls(chunk: Events, choice: Choice, level: int, first: int, out: np.ndarray) -> None:
    """Compute `spreading.spread_calls`."""
    amount = None if choice.bits is None else chunk.moved << choice.shift
    spread(chunk.start, chunk.duration, rows_of_events(chunk, choice), amount, level, first, out)


def count_bins(group: np.ndarray, duration_ns: np.ndarray, groups: int) -> np.ndarray:
    """Compute `kernels.count_bins`."""
    if len(group) and (group.max() >= groups or duration_ns.min() < 0):
        raise IndexError("a group is too large, or a duration is negative")
    place = group.astype(np.int64) * BIN_COUNT + bin_index(duration_ns)
    return np.bincount(place, minlength=groups * BIN_COUNT).reshape(groups, BIN_COUNT)


def count_groups(
    key: np.ndarray,
    duration_ns: np.ndarray,
    taken: np.ndarray | None,
    cuts: np.ndarray,
    out: dict[str, np.ndarray],
    apart: bool = False,
) -> np.ndarray | None:
    """Compute `kernels.count_groups`."""
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


def count_seconds(seconds: np.ndarray, limit_s: float, reference: float) -> tuple[np.ndarray, np.ndarray]:
    """Compute `kernels.count_seconds` with a given reference."""
    if not len(seconds):
        return np.zeros(BIN_COUNT, np.int64), np.array([np.inf, -np.inf, 0, 0, reference])
    least, most = float(seconds.min()), float(seconds.max())
    if not (least >= 0 and most < limit_s):
        raise ValueError("a duration is negative, not a number or too long")
    ns = np.rint(seconds * 1e9).astype(np.int64)
    beyond = seconds - reference
    stats = np.array([least, most, beyond.sum(), (beyond * beyond).sum(), reference])
    return np.bincount(bin_index(ns), minlength=BIN_COUNT), stats


def sum_calls(
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
    """Compute `_compiled.sum_calls`: add events to the columns of `CallSums`."""
    if int(call.max()) >= len(bits):
        raise IndexError("the call of an event is out of range")
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
    """Compute `callsums.central_sums`."""
    beyond = duration_ns - mean_ns[call]
    square = beyond * beyond
    powers = (square, square * beyond, square * square)
    return np.stack([np.bincount(call, power, len(mean_ns)) for power in powers], axis=1)

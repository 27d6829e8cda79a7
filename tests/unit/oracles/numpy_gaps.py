"""The marking of gaps, in NumPy: what `_compiled.mark_gaps` adds to the arrays of `GapOccupancy`."""

from __future__ import annotations

import numpy as np

from ensembles.summaries.bins import bin_index

_NEVER = np.iinfo(np.int64).max


def _cell_of(
    time: np.ndarray,
    gap: np.ndarray,
    gap_from: np.ndarray,
    gap_to: np.ndarray,
    width: np.ndarray,
    even: np.ndarray,
    edge: np.ndarray,
) -> np.ndarray:
    """Compute the cell of its gap in which each moment lies."""
    first_fine = edge[gap, even[gap]]
    left, most = gap_to[gap] - 1 - time, gap_to[gap] - 1 - first_fine
    fine = even[gap] + bin_index(most) - bin_index(np.minimum(left, most))
    cell: np.ndarray = np.where(time < first_fine, (time - gap_from[gap]) // width[gap], fine)
    return cell


def mark_gaps(
    start: np.ndarray,
    duration: np.ndarray,
    call: np.ndarray,
    depth: np.ndarray,
    transfers: np.ndarray,
    gap_from: np.ndarray,
    gap_to: np.ndarray,
    width: np.ndarray,
    even: np.ndarray,
    edge: np.ndarray,
    whole: np.ndarray,
    part: np.ndarray,
    first: np.ndarray,
    last: np.ndarray,
    begun: np.ndarray,
    before: np.ndarray,
) -> None:
    """Add calls to the arrays of `GapOccupancy`."""
    mine = np.flatnonzero((depth == 0) & (transfers[call] > 0))
    start, end = start[mine], start[mine] + duration[mine]
    gap = np.searchsorted(gap_to, start, side="right")
    before += np.bincount(gap[start < np.append(gap_from, _NEVER)[gap]], minlength=len(before))
    while True:
        inside = gap < len(gap_to)
        start, end, gap = start[inside], end[inside], gap[inside]
        reaches = (end > gap_from[gap]) | (start >= gap_from[gap])
        start, end, gap = start[reaches], end[reaches], gap[reaches]
        if not len(gap):
            return
        low, high = np.maximum(start, gap_from[gap]), np.minimum(end, gap_to[gap])
        cell, ends = (
            _cell_of(time, gap, gap_from, gap_to, width, even, edge)
            for time in (low, np.maximum(high - 1, low))
        )
        one = cell == ends
        np.add.at(part, (gap[one], cell[one]), (high - low)[one])
        more = edge[gap, cell + 1] - low
        np.add.at(part, (gap[~one], cell[~one]), more[~one])
        more = high - edge[gap, ends]
        np.add.at(part, (gap[~one], ends[~one]), more[~one])
        np.add.at(whole, (gap[~one], cell[~one] + 1), 1)
        np.add.at(whole, (gap[~one], ends[~one]), -1)
        inside = start >= gap_from[gap]
        np.add.at(begun, (gap[inside], cell[inside]), 1)
        np.minimum.at(first, (gap, cell), low)
        np.maximum.at(last, (gap, ends), high)
        gap = gap + 1

"""Spreads the calls of a chunk over rows of cells of time, without a column being made for it: compiled where
possible, else in NumPy, with results that are equal to the last bit."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ensembles.model.errors import EnsioError
from ensembles.model.events import Events
from ensembles.summaries import kernels


@dataclass(frozen=True, slots=True)
class Choice:
    """Which calls are spread, into which row, and what of each.

    Attributes
    ----------
    row_of_call : ndarray of int32, shape (calls,)
        Negative: calls of this function are left out.
    ranks_per_row : int
        So many ranks share a row, and the row of a function is that of rank 0; 0: all share one.
    outermost : bool
        Calls inside others are left out.
    bits : ndarray of uint8, shape (calls,), or None
        None: the time of the calls is spread. Else their bytes are, of those that moved any and have none of
        these bits of their function in ``carried``.
    shift : int
        Each byte is so many binary digits.
    """

    row_of_call: np.ndarray
    ranks_per_row: int = 0
    outermost: bool = False
    bits: np.ndarray | None = None
    shift: int = 0

    def compute_rows(self, chunk: Events) -> np.ndarray:
        """Row of each call, int32, shape (n,); -1: it is left out."""
        row = self.row_of_call[chunk.call]
        if self.ranks_per_row:
            row = np.where(row < 0, -1, row + (chunk.rank // np.uint32(self.ranks_per_row)).astype(np.int32))
        if self.outermost:
            row[chunk.depth > 0] = -1
        if self.bits is not None:
            row[(chunk.moved <= 0) | ((chunk.carried & self.bits[chunk.call]) != 0)] = -1
        return row

    def compute_amounts(self, chunk: Events) -> np.ndarray | None:
        """What each call has, as for `kernels.spread`."""
        return None if self.bits is None else chunk.moved << self.shift


def compute_extent(chunk: Events, choice: Choice) -> tuple[int, int] | None:
    """First moment of the chosen calls, and the one after their last (a call of no duration takes up one ns);
    None: there are none.

    Raises
    ------
    EnsioError
        A call ends before it starts, or beyond the range of 64-bit nanoseconds.
    """
    if kernels.compiled is None:
        chosen = choice.compute_rows(chunk) >= 0
        start, duration = chunk.start[chosen], chunk.duration[chosen]
        end = start + np.maximum(duration, 1)
        damaged = bool(len(start)) and bool(duration.min() < 0 or np.any(end <= start))
        extent = (int(start.min()), int(end.max())) if len(start) and not damaged else None
    else:
        damaged = False
        try:
            extent = kernels.compiled.spread_calls(*_arguments(chunk, choice), 0, 0, None, 0)
        except OverflowError:
            damaged = True
    if damaged:
        raise EnsioError(
            "an event ends before it starts: the time stamps of this run are damaged, record it again"
        )
    return extent


def spread_calls(chunk: Events, choice: Choice, level: int, first: int, out: np.ndarray) -> None:
    """Spread the chosen calls.

    Parameters
    ----------
    level, first, out
        As for `kernels.spread`.

    Raises
    ------
    IndexError
        A call lies outside of `out`, or has no number.
    """
    if kernels.compiled is None:
        row, amount = choice.compute_rows(chunk).astype(np.int32), choice.compute_amounts(chunk)
        kernels.numpy_spread(chunk.start, chunk.duration, row, amount, level, first, out)
    else:
        kernels.compiled.spread_calls(*_arguments(chunk, choice), level, first, out, out.shape[1])


_Arguments = tuple[
    np.ndarray,
    np.ndarray,
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

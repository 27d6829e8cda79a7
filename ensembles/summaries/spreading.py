"""Spreading of calls over rows of cells of time, compiled or in NumPy.

The compiled version needs no temporary columns. Results are equal to the last bit.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ensembles.model.errors import EnsioError
from ensembles.model.events import Events
from ensembles.summaries import kernels


@dataclass(frozen=True, slots=True)
class Choice:
    """The calls to spread, their rows, and their amounts.

    Attributes
    ----------
    row_of_call : ndarray of int32, shape (calls,)
        Row of each function; negative: its calls are left out.
    ranks_per_row : int
        Number of ranks that share a row. The row of a function is that of rank 0. 0: all ranks share it.
    outermost : bool
        Leave out calls inside others.
    bits : ndarray of uint8, shape (calls,), or None
        None: spread the time of the calls. Otherwise spread the bytes of calls that moved any, and whose
        ``carried`` has no bit of their function in common with this.
    shift : int
        Multiply bytes by ``2**shift``.
    """

    row_of_call: np.ndarray
    ranks_per_row: int = 0
    outermost: bool = False
    bits: np.ndarray | None = None
    shift: int = 0

    def compute_rows(self, chunk: Events) -> np.ndarray:
        """Compute the row of each event: int32, shape (n,); -1: it is left out."""
        row = self.row_of_call[chunk.call]
        if self.ranks_per_row:
            row = np.where(row < 0, -1, row + (chunk.rank // np.uint32(self.ranks_per_row)).astype(np.int32))
        if self.outermost:
            row[chunk.depth > 0] = -1
        if self.bits is not None:
            row[(chunk.moved <= 0) | ((chunk.carried & self.bits[chunk.call]) != 0)] = -1
        return row

    def compute_amounts(self, chunk: Events) -> np.ndarray | None:
        """Compute the amount of each event, for `ensembles.summaries.kernels.spread`."""
        return None if self.bits is None else chunk.moved << self.shift


def compute_extent(chunk: Events, choice: Choice) -> tuple[int, int] | None:
    """Compute the time span of the chosen calls.

    Parameters
    ----------
    chunk : Events
        The events.
    choice : Choice
        The calls that count.

    Returns
    -------
    (int, int) or None
        First moment and the moment after the last, in ns; a call of no duration takes up one ns. None: no
        call is chosen.

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
    """Spread the chosen calls over cells of time.

    Parameters
    ----------
    chunk : Events
        The events.
    choice : Choice
        The calls that count, their rows and amounts.
    level, first, out
        As for `ensembles.summaries.kernels.spread`.

    Raises
    ------
    IndexError
        A call lies outside of `out`, or its ``call`` is out of range.
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

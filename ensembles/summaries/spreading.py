"""Spreading of calls over rows of cells of time, in C and without temporary columns."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ensembles import _compiled
from ensembles.model.errors import EnsioError
from ensembles.model.events import Events

_LATEST_NS = np.iinfo(np.int64).max


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
    if shortest < 0 or last + longest >= _LATEST_NS:
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

"""What an ensemble is made of: checked columns, and names and caveats of the functions that were called."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Literal, TypeVar

import numpy as np

from ensembles.model.errors import EnsioError

if TYPE_CHECKING:
    import numpy.typing as npt

    from ensembles.model.events import Call, Events

Number = TypeVar("Number", np.float64, np.int64)


def as_column(name: str, values: npt.ArrayLike, dtype: type[Number]) -> npt.NDArray[Number]:
    """Convert `values` to an array of shape (n,).

    Raises
    ------
    EnsioError
        `values` is not a flat array of real numbers, or some of them are masked.
    """
    try:
        if np.ma.isMaskedArray(values) and np.ma.getmaskarray(values).any():
            raise EnsioError(
                f"{name} has masked values: leave these calls out of all columns (column[~mask])"
            )
        column = np.asarray(values)
        if column.dtype.kind in "cmM":
            raise EnsioError(f"{name} has the type {column.dtype}: give plain numbers")
        if column.ndim != 1 and column.size:
            raise EnsioError(f"{name} has {column.ndim} dimensions: an ensemble takes arrays of shape (n,)")
        return column.reshape(-1).astype(dtype, copy=False)
    except (TypeError, ValueError) as error:
        raise EnsioError(f"{name} is not an array of numbers: {error}") from error


def as_seconds(name: str, values: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """Convert `values` to an array of seconds, shape (n,); differences of times by their own unit.

    Raises
    ------
    EnsioError
        `values` is not a flat array of real numbers or differences of times, or some of them are masked.
    """
    if np.ma.isMaskedArray(values):
        return as_column(name, values, np.float64)
    column = np.asarray(values)
    if column.dtype.kind == "O" and column.size and isinstance(column.flat[0], timedelta):
        column = column.astype("timedelta64[us]")
    if column.dtype.kind == "m":
        if np.isnat(column).any():
            raise EnsioError(f"{name} has missing values (NaT): leave these calls out of all columns")
        column = column / np.timedelta64(1, "s")
    return as_column(name, column, np.float64)


def as_integers(name: str, values: npt.ArrayLike | None, n: int) -> npt.NDArray[np.int64] | None:
    """Convert `values` to an array of n integers; None stays None.

    Raises
    ------
    EnsioError
        `values` is not a flat array of n numbers.
    """
    if values is None:
        return None
    column = as_column(name, values, np.int64)
    if len(column) != n:
        raise EnsioError(
            f"an ensemble of {n:,} durations has {len(column):,} values of {name}: give one for each "
            "duration, or none"
        )
    return column


def checked_per(per: str) -> Literal["call", "MiB"]:
    """Return `per`, which must be ``"call"`` or ``"MiB"``.

    Raises
    ------
    EnsioError
        It is neither.
    """
    if per == "MiB":
        return "MiB"
    if per == "call":
        return "call"
    raise EnsioError(f'an ensemble per "{per}" does not exist: choose "call" or "MiB"')


def describe_calls(events: Events) -> tuple[str, str, list[str]]:
    """Return name, operation and caveats of the functions that occur in `events`."""
    used = [events.calls[number] for number in np.flatnonzero(np.bincount(events.call))]
    return call_name(used), op_name(used), caveats_about(used)


def call_name(used: Sequence[Call]) -> str:
    """Return the functions' names, comma-separated; of more than three, the first three and a count."""
    names = [call.name for call in used]
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


def op_name(used: Sequence[Call]) -> str:
    """Return the common operation of the functions; ``""`` if they have several, or there are none."""
    ops = {call.op for call in used}
    return ops.pop() if len(ops) == 1 else ""


def caveats_about(used: Sequence[Call]) -> list[str]:
    """Return one sentence for each reason why these calls are not one ensemble.

    Calls of several layers may contain each other; calls of several operations have different distributions.
    """
    layers = sorted({call.layer for call in used})
    ops = sorted({call.op for call in used})
    doubts = []
    if len(layers) > 1:
        doubts.append(
            f"this ensemble has calls of {len(layers)} layers ({', '.join(layers)}), and calls of one layer "
            "may contain calls of another: choose one layer"
        )
    if len(ops) > 1:
        doubts.append(f"this ensemble has calls of {len(ops)} operations ({', '.join(ops)}): choose one op")
    return doubts

"""What an ensemble is made of: checked columns, and names and caveats of the functions that were called."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, TypeVar

import numpy as np

from ensembles.model.errors import EnsioError

if TYPE_CHECKING:
    import numpy.typing as npt

    from ensembles.model.events import Call, Events

Number = TypeVar("Number", np.float64, np.int64)


def as_column(name: str, values: npt.ArrayLike, dtype: type[Number]) -> npt.NDArray[Number]:
    """Convert `values` to an array of shape (n,).

    Lengths of time (`numpy.timedelta64`, `datetime.timedelta`, pandas) become seconds.
    """
    # `np.ma` is asked only of what may be masked, as its import takes 30 ms.
    masked = int(np.ma.getmaskarray(np.ma.asarray(values)).sum()) if hasattr(values, "compressed") else 0
    if masked:
        raise EnsioError(
            f"{name} has {masked:,} masked values: leave them out, such as by .compressed(), here and in the "
            "other columns"
        )
    try:
        column = np.asarray(values)
        if column.ndim != 1 and column.size:
            raise EnsioError(f"{name} has {column.ndim} dimensions: an ensemble takes arrays of shape (n,)")
        column = column.reshape(-1)
        if dtype is np.float64:
            column = _in_seconds(column)
        if column.size and column.dtype.kind in "bcmMS":
            raise EnsioError(f"{name} is not an array of numbers, but of {column.dtype.name}")
        if dtype is np.int64 and column.dtype.kind == "f" and not _are_whole(column):
            raise EnsioError(f"{name} is not an array of whole numbers")
        return column.astype(dtype, copy=False)
    except (TypeError, ValueError, OverflowError) as error:
        raise EnsioError(f"{name} is not an array of numbers: {error}") from error


def _in_seconds(column: np.ndarray) -> np.ndarray:
    """Convert lengths of time to seconds; missing ones become NaN. Other values stay as they are."""
    if column.dtype == object and column.size and isinstance(column[0], datetime.timedelta):
        column = column.astype("timedelta64[ns]")
    if column.dtype.kind != "m":
        return column
    seconds: np.ndarray = column / np.timedelta64(1, "s")
    return seconds


def _are_whole(column: np.ndarray) -> bool:
    return bool(np.all(np.isfinite(column) & (column == np.floor(column))))


def as_integers(name: str, values: npt.ArrayLike | None, n: int) -> npt.NDArray[np.int64] | None:
    """Convert `values` to an array of n integers; None stays None."""
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
    """Return `per`, which must be ``"call"`` or ``"MiB"``."""
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

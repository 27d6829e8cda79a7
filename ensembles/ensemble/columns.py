"""Checked columns of an ensemble."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeVar

import numpy as np

from ensembles.model.errors import EnsioError

if TYPE_CHECKING:
    import numpy.typing as npt

Number = TypeVar("Number", np.float64, np.int64)


def as_column(name: str, values: npt.ArrayLike, dtype: type[Number]) -> npt.NDArray[Number]:
    """Convert `values` to an array of shape (n,).

    Raises
    ------
    EnsioError
        `values` is not a flat array of numbers.
    """
    try:
        column = np.asarray(values)
        if column.ndim != 1 and column.size:
            raise EnsioError(f"{name} has {column.ndim} dimensions: an ensemble takes arrays of shape (n,)")
        return column.reshape(-1).astype(dtype, copy=False)
    except (TypeError, ValueError) as error:
        raise EnsioError(f"{name} is not an array of numbers: {error}") from error


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

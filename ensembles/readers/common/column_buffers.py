"""Column buffers that successive chunks reuse."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ensembles.model.events import COLUMNS
from ensembles.passes.memory import held_elsewhere


class ReusedColumns:
    """Columns for successive chunks that reuse their memory unless a caller still holds a column.

    The kernel clears and maps new memory page by page, which takes as long as decoding.

    Parameters
    ----------
    length : int
        Length of each column.
    names : sequence of str or None
        As for `empty_columns`.
    """

    def __init__(self, length: int, names: Sequence[str] | None) -> None:
        self._length, self._names = length, names
        self._last: dict[str, np.ndarray] = {}

    def taken(self) -> dict[str, np.ndarray]:
        """Return columns with undefined values."""
        if not self._last or held_elsewhere(self._last):
            self._last = empty_columns(self._length, self._names)
        return self._last


def empty_columns(length: int, names: Sequence[str] | None = None) -> dict[str, np.ndarray]:
    """Allocate columns of events with undefined values.

    Parameters
    ----------
    length : int
        Length of each column.
    names : sequence of str, optional
        Names of the wanted columns; those that decoding needs are added. Default: all columns.

    Returns
    -------
    dict of str to ndarray, shape (length,)
    """
    if names is None:
        return {name: np.empty(length, dtype) for name, dtype in COLUMNS.items()}
    needed = {*names, "call", "start", "duration"} | ({"error"} if "moved" in names else set())
    return {name: np.empty(length, dtype) for name, dtype in COLUMNS.items() if name in needed}

"""Columns whose memory is used again for chunk after chunk."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ensembles.model.events import COLUMNS
from ensembles.passes.memory import held_elsewhere


class ReusedColumns:
    """Columns for chunk after chunk: the same memory again, unless somebody still holds a column of it.

    Memory that is new to the process has to be cleared and mapped page by page, which takes as long as
    decoding.

    Parameters
    ----------
    length : int
        Of each column.
    names : sequence of str or None
        As for `empty_columns`.
    """

    def __init__(self, length: int, names: Sequence[str] | None) -> None:
        self._length, self._names = length, names
        self._last: dict[str, np.ndarray] = {}

    def taken(self) -> dict[str, np.ndarray]:
        """Columns whose values are not set yet."""
        if not self._last or held_elsewhere(self._last):
            self._last = empty_columns(self._length, self._names)
        return self._last


def empty_columns(length: int, names: Sequence[str] | None = None) -> dict[str, np.ndarray]:
    """Columns of this length whose values are not set yet: all, or those that are named and the few on which
    decoding stands."""
    if names is None:
        return {name: np.empty(length, dtype) for name, dtype in COLUMNS.items()}
    needed = {*names, "call", "start", "duration"} | ({"error"} if "moved" in names else set())
    return {name: np.empty(length, dtype) for name, dtype in COLUMNS.items() if name in needed}

"""Columns that readers fill: plausible values, and memory that successive chunks reuse.

All readers reject values outside of `LIMITS`, because sums that include them would be meaningless.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ensembles.model.events import COLUMNS
from ensembles.passes.memory import held_elsewhere

LARGEST_NS = 1 << 58
"""Largest plausible time, ns (nine years). Sums of a few of them fit into 64 bits."""

LARGEST_MOVED_BYTES = 1 << 50
"""Largest plausible number of bytes of a call. Linux moves less than 2**31 bytes in one call."""

LATEST_NS = 1 << 62
"""Latest plausible origin of a run, ns since 1970."""

LIMITS = {
    "moved": (-1, LARGEST_MOVED_BYTES),
    "start": (-LARGEST_NS, LATEST_NS + LARGEST_NS),
    "duration": (0, LARGEST_NS),
    "flight": (-1, LARGEST_NS),
}
"""Smallest and largest value of each column."""


def unsound(columns: Mapping[str, np.ndarray]) -> np.ndarray | None:
    """Test which rows have a value outside of `LIMITS`.

    None: all values are in range.

    Examples
    --------
    >>> import numpy as np
    >>> from ensembles.readers.common.columns import unsound
    >>> unsound({"moved": np.array([4096, -7]), "duration": np.array([0, 10])})
    array([False,  True])
    """
    found = None
    for name, (least, most) in LIMITS.items():
        column = columns.get(name)
        if column is None or not len(column) or (column.min() >= least and column.max() <= most):
            continue
        beyond = (column < least) | (column > most)
        found = beyond if found is None else found | beyond
    return found


class ReusedColumns:
    """Columns for successive chunks that reuse their memory unless a caller still holds a column.

    The kernel clears and maps new memory page by page, which takes as long as decoding.
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

    `names`: names of the wanted columns; those that decoding needs are added. Default: all columns.
    """
    if names is None:
        return {name: np.empty(length, dtype) for name, dtype in COLUMNS.items()}
    needed = {*names, "call", "start", "duration"} | ({"error"} if "moved" in names else set())
    return {name: np.empty(length, dtype) for name, dtype in COLUMNS.items() if name in needed}

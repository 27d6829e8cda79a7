"""Single calls that a summary holds, as long as they are few."""

from __future__ import annotations

import numpy as np

from ensembles.summaries.active_time import MOST_EXACT


class HeldCalls:
    """Columns of integers of single calls, up to `MOST_EXACT` calls; of more, how many there are."""

    results = ("count", "_parts")

    def __init__(self, *names: str) -> None:
        self._names, self.count = names, 0
        self._parts: list[np.ndarray] = []

    def add(self, *columns: np.ndarray) -> None:
        """Add calls, by a column for each name."""
        if len(columns[0]):
            self._hold(len(columns[0]), [np.stack([each.astype(np.int64) for each in columns])])

    def _hold(self, calls: int, parts: list[np.ndarray]) -> None:
        self.count += calls
        self._parts = [*self._parts, *parts] if self.is_complete else []

    def hold_instead(self, rows: np.ndarray) -> None:
        """Replace the columns by fewer rows that say the same: shape (names, n)."""
        self._parts = [rows]

    def merge(self, other: HeldCalls) -> None:
        """Add the calls of another part of the run."""
        self._hold(other.count, other._parts)

    @property
    def is_complete(self) -> bool:
        """Whether all calls are held."""
        return self.count <= MOST_EXACT

    def to_arrays(self) -> dict[str, np.ndarray]:
        """Return the columns by name, empty if there were too many calls."""
        return dict(zip(self._names, self.rows(), strict=True))

    def rows(self) -> np.ndarray:
        """Return the columns as rows of one array."""
        self._parts = [np.concatenate([np.empty((len(self._names), 0), np.int64), *self._parts], axis=1)]
        return self._parts[0]

"""Sums of Darshan's heat maps: bytes over time by module, and by rank."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ensembles.model.counters import HeatMap
from ensembles.readers.foreign.darshan.header import DamagedLog

_PREFIX = "heatmap:"
_MOST_S = 1e9
_MOST = float(1 << 62)
_MOST_ROWS = 512


class _Grid:
    """Bytes by rank and time in a bounded number of rows, of one rank each or of 2, 4, … neighbours."""

    def __init__(self) -> None:
        self.per_row = 1
        self.rows = np.zeros((0, 0), np.int64)

    def add(self, rank: int, moved: np.ndarray) -> None:
        while rank // self.per_row >= _MOST_ROWS:
            self.per_row *= 2
            self.rows = _with_shape(self.rows, -(-len(self.rows) // 2) * 2, self.rows.shape[1])
            self.rows = self.rows[::2] + self.rows[1::2]
        row = rank // self.per_row
        rows, bins = max(len(self.rows), row + 1), max(self.rows.shape[1], len(moved))
        self.rows = _with_shape(self.rows, rows, bins)
        self.rows[row, : len(moved)] += moved


class HeatMapSums:
    """Sums of the records of the module HEATMAP: one for each interface and rank."""

    def __init__(self) -> None:
        self._maps: dict[str, tuple[float, np.ndarray, np.ndarray, dict[int, tuple[int, int]]]] = {}
        self._grids: dict[str, tuple[_Grid, _Grid]] = {}

    def add(self, name: str, width_s: float, arrays: Sequence[np.ndarray]) -> None:
        """Add a record.

        Parameters
        ----------
        name : str
            Name of the record, such as ``"heatmap:POSIX"``.

        Raises
        ------
        DamagedLog
            A value is impossible, or the bins of two ranks differ in width.
        """
        _, rank, written, read = arrays
        if not 0 < width_s < _MOST_S or len(written) != len(read):
            raise DamagedLog("a heat map in it is impossible")
        if min(written.min(initial=0), read.min(initial=0)) < 0:
            raise DamagedLog("a heat map in it is negative")
        module = name.removeprefix(_PREFIX)
        known = self._maps.get(module, (width_s, np.zeros(0, np.int64), np.zeros(0, np.int64), {}))
        if known[0] != width_s:
            raise DamagedLog("the heat maps of its ranks have bins of different widths")
        sums = _longer_sum(known[1], read), _longer_sum(known[2], written)
        known[3][int(rank[0])] = (int(read.sum()), int(written.sum()))
        if max(float(column.astype("f8").sum()) for column in sums) > _MOST:
            raise DamagedLog("the sums of a heat map are impossibly large")
        self._maps[module] = (width_s, *sums, known[3])
        for grid, moved in zip(
            self._grids.setdefault(module, (_Grid(), _Grid())), (read, written), strict=True
        ):
            grid.add(int(rank[0]), moved)

    def finished(self) -> dict[str, HeatMap]:
        """Return the sums by name of the interface."""
        return {
            module: HeatMap(
                width_s,
                read,
                written,
                np.array(sorted(ranks), np.int64),
                np.array([ranks[rank][0] for rank in sorted(ranks)], np.int64),
                np.array([ranks[rank][1] for rank in sorted(ranks)], np.int64),
                self._grids[module][0].per_row,
                *(grid.rows for grid in self._grids[module]),
            )
            for module, (width_s, read, written, ranks) in self._maps.items()
        }


def _with_shape(rows: np.ndarray, count: int, bins: int) -> np.ndarray:
    if rows.shape == (count, bins):
        return rows
    found = np.zeros((count, bins), np.int64)
    found[: len(rows), : rows.shape[1]] = rows
    return found


def _longer_sum(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    found = np.zeros(max(len(a), len(b)), np.int64)
    found[: len(a)] += a
    found[: len(b)] += b
    return found

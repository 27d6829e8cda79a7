"""Find records that were written several times, because fork copies DFTracer's buffer."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

_ODD = np.uint64(0x9E3779B97F4A7C15)
_HALF = np.uint64(32)


class Copies:
    """The records seen so far, as hashes of 64 bits.

    Attributes
    ----------
    found : int
        Number of copies.
    """

    def __init__(self) -> None:
        self.found = 0
        self._seen: list[np.ndarray] = []

    def are_new(self, ids: Sequence[int | str | None], columns: np.ndarray) -> np.ndarray:
        """Test which records occur for the first time.

        Parameters
        ----------
        ids : sequence, length n
            Ids of the records in their processes. None: unknown; such a record is never a copy.
        columns : ndarray of int64, shape (k, n)
            What copies have in common besides the id.

        Returns
        -------
        ndarray of bool, shape (n,)
        """
        new = np.ones(len(ids), bool)
        rows = np.flatnonzero(np.fromiter((known is not None for known in ids), bool, len(ids)))
        if not len(rows):
            return new
        key = np.fromiter(map(hash, ids), np.int64, len(ids)).view(np.uint64)
        for column in columns:
            key = (key ^ key >> _HALF) * _ODD + column.view(np.uint64)
        known, first = np.unique(((key ^ key >> _HALF) * _ODD)[rows], return_index=True)
        fresh = np.ones(len(known), bool)
        for seen in self._seen:
            place = np.minimum(np.searchsorted(seen, known), len(seen) - 1)
            fresh &= seen[place] != known
        new[rows] = False
        new[rows[first[fresh]]] = True
        self.found += len(rows) - int(fresh.sum())
        # Parts of twice the size of the next: few to search, and each hash is sorted few times.
        part = known[fresh]
        while self._seen and len(self._seen[-1]) <= len(part):
            part = np.sort(np.concatenate([self._seen.pop(), part]))
        if len(part):
            self._seen.append(part)
        return new

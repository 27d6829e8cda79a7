"""Sums, least and most values of rows that have the same key: the mergeable core of tables."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

_LEAST_ROWS = 1 << 14
"""Rows of new parts up to which they are not joined with the first."""


class KeyedSums:
    """A table with one row for each key, filled part by part.

    Parameters
    ----------
    keys : tuple of str
        Columns of int64 that make the key.
    sums, least, most : tuple of str
        Columns of float64 or int64 that are added, or of which the least or most value is kept.

    Examples
    --------
    >>> from ensembles.summaries.keyed_sums import KeyedSums
    >>> table = KeyedSums(("rank",), sums=("bytes",), most=("end",))
    >>> table.add({"rank": np.array([1, 0, 1]), "bytes": np.array([5, 6, 7]), "end": np.array([3, 9, 2])})
    >>> {name: column.tolist() for name, column in table.columns().items()}
    {'rank': [0, 1], 'bytes': [6, 12], 'end': [9, 3]}
    """

    results = ("_parts",)

    def __init__(
        self,
        keys: tuple[str, ...],
        sums: tuple[str, ...],
        least: tuple[str, ...] = (),
        most: tuple[str, ...] = (),
    ) -> None:
        self.keys = keys
        self._ways = (
            dict.fromkeys(sums, np.add) | dict.fromkeys(least, np.minimum) | dict.fromkeys(most, np.maximum)
        )
        self._parts: list[dict[str, np.ndarray]] = []

    def add(self, columns: Mapping[str, np.ndarray]) -> None:
        """Add rows: arrays of one length, for each key and value."""
        if len(columns[self.keys[0]]):
            self._parts.append(self._grouped(columns))
            rows = [len(part[self.keys[0]]) for part in self._parts]
            if sum(rows[1:]) > max(_LEAST_ROWS, rows[0]):
                self.columns()

    def merge(self, other: KeyedSums) -> None:
        """Add the rows of another table."""
        self._parts += other._parts
        self.columns()

    def condense(self) -> None:
        """Join the parts."""
        self.columns()

    def columns(self) -> dict[str, np.ndarray]:
        """Return the columns, with rows sorted by their keys."""
        names = (*self.keys, *self._ways)
        if len(self._parts) > 1:
            joined = {name: np.concatenate([part[name] for part in self._parts]) for name in names}
            self._parts = [self._grouped(joined)]
        return dict(self._parts[0]) if self._parts else {name: np.empty(0, np.int64) for name in names}

    def _grouped(self, columns: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        order, first = sorted_groups([np.asarray(columns[name], np.int64) for name in self.keys])
        found = {name: np.asarray(columns[name], np.int64)[order[first]] for name in self.keys}
        for name, way in self._ways.items():
            found[name] = way.reduceat(columns[name][order], first)
        return found


def sorted_groups(keys: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Sort rows by keys.

    Parameters
    ----------
    keys : list of ndarray of int64, shape (n,)
        At least one; n is at least 1. The first is the most significant.

    Returns
    -------
    order, first : ndarray of int64
        The order, and where in it each group of equal keys begins.

    Examples
    --------
    >>> from ensembles.summaries.keyed_sums import sorted_groups
    >>> order, first = sorted_groups([np.array([5, 3, 5])])
    >>> order.tolist(), first.tolist()
    ([1, 0, 2], [0, 1])
    """
    packed = _packed(keys)
    order = np.lexsort(keys[::-1]) if packed is None else np.argsort(packed, kind="stable")
    new = np.zeros(len(order), bool)
    new[0] = True
    for key in keys if packed is None else [packed]:
        new[1:] |= key[order][1:] != key[order][:-1]
    return order, np.flatnonzero(new)


def _packed(keys: list[np.ndarray]) -> np.ndarray | None:
    """Pack keys into one number; None: they need more than 63 bits."""
    total, bits = np.zeros(len(keys[0]), np.int64), 0
    for key in keys:
        low = int(key.min())
        width = (int(key.max()) - low).bit_length()
        bits += width
        if bits > 63:
            return None
        total = (total << width) | (key - low)
    # NumPy sorts numbers of 16 bits by radix, which is several times as fast.
    return total.astype(np.uint16) if bits <= 16 else total

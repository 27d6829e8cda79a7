"""Sums, least and most values of rows that have the same key: the mergeable core of tables."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ensembles import _compiled

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
        self._new_rows = 0
        """Rows of all parts but the first."""
        self._is_sorted = True
        """Whether the rows of each part are sorted, and differ in their keys."""

    def add(self, columns: Mapping[str, np.ndarray]) -> None:
        """Add rows: arrays of one length, for each key and value."""
        if len(columns[self.keys[0]]):
            self._append(self._grouped(columns))

    def add_summed(self, columns: Mapping[str, np.ndarray]) -> None:
        """Add few rows, such as sums over a chunk. They are kept as they are until many have come.

        Parameters
        ----------
        columns : mapping of str to ndarray
            As for `add`; keys are int64. The arrays must not change afterwards.
        """
        if len(columns[self.keys[0]]):
            self._is_sorted = False
            self._append({name: columns[name] for name in (*self.keys, *self._ways)})

    def _append(self, part: dict[str, np.ndarray]) -> None:
        self._parts.append(part)
        if len(self._parts) > 1:
            self._new_rows += len(part[self.keys[0]])
        if self._new_rows > max(_LEAST_ROWS, len(self._parts[0][self.keys[0]])):
            self.columns()

    def merge(self, other: KeyedSums) -> None:
        """Add the rows of another table."""
        self._parts += other._parts
        self._is_sorted &= other._is_sorted
        self.columns()

    def condense(self) -> None:
        """Join the parts."""
        self.columns()

    def columns(self) -> dict[str, np.ndarray]:
        """Return the columns, with rows sorted by their keys."""
        names = (*self.keys, *self._ways)
        if len(self._parts) > 1 or not self._is_sorted:
            joined = {name: np.concatenate([part[name] for part in self._parts]) for name in names}
            self._parts = [self._grouped(joined)]
        self._new_rows, self._is_sorted = 0, True
        return dict(self._parts[0]) if self._parts else {name: np.empty(0, np.int64) for name in names}

    def _grouped(self, columns: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        keys = [np.asarray(columns[name], np.int64) for name in self.keys]
        group, first = groups_of_rows(keys)
        found = {name: key[first] for name, key in zip(self.keys, keys, strict=True)}
        for name, way in self._ways.items():
            values = columns[name]
            found[name] = np.zeros(len(first), values.dtype) if way is np.add else values[first]
            way.at(found[name], group, values)
        order = np.lexsort([found[name] for name in reversed(self.keys)])
        return {name: column[order] for name, column in found.items()}


def groups_of_rows(keys: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Number the groups of rows with equal keys, in the order in which they appear.

    Parameters
    ----------
    keys : list of ndarray of int64, shape (n,)
        One to eight.

    Returns
    -------
    group : ndarray of int64, shape (n,)
        Group of each row.
    first : ndarray of int64, shape (m,)
        First row of each group.

    Examples
    --------
    >>> from ensembles.summaries.keyed_sums import groups_of_rows
    >>> group, first = groups_of_rows([np.array([5, 3, 5])])
    >>> group.tolist(), first.tolist()
    ([0, 1, 0], [0, 1])
    """
    rows = len(keys[0])
    group, first = np.empty(rows, np.int32), np.empty(rows, np.int64)
    count = _compiled.group_rows(group, first, *map(np.ascontiguousarray, keys))
    return group.astype(np.int64), first[:count].copy()


def unique_counts(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Find the values that occur, and how often, as `numpy.unique` does, without sorting all of them.

    Parameters
    ----------
    values : ndarray of int64, shape (n,)

    Returns
    -------
    values, counts : ndarray of int64, shape (m,)
        Values rise.

    Examples
    --------
    >>> from ensembles.summaries.keyed_sums import unique_counts
    >>> unique_counts(np.array([5, 3, 5]))
    (array([3, 5]), array([1, 2]))
    """
    group, first = groups_of_rows([values])
    order = np.argsort(values[first])
    return values[first][order], np.bincount(group, minlength=len(first))[order]

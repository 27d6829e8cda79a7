"""Sums, least and most values of rows that have the same key: the mergeable core of tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ensembles import _compiled
from ensembles.model.events import Call
from ensembles.model.units import ROWS_AT_ONCE

_WAYS = "slm"
"""What `_compiled.sum_by_keys` does with a column: sum, least, most; in capitals for real numbers."""


class KeyedSums:
    """A table with one row for each key, filled part by part."""

    results = ("_parts",)

    def __init__(
        self,
        keys: tuple[str, ...],
        sums: tuple[str, ...],
        least: tuple[str, ...] = (),
        most: tuple[str, ...] = (),
    ) -> None:
        self.keys = keys
        self._ways = {
            name: way for way, names in zip(_WAYS, (sums, least, most), strict=True) for name in names
        }
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
        """Add few rows, such as sums over a chunk. They are kept as they are until many have come."""
        if len(columns[self.keys[0]]):
            self._is_sorted = False
            self._append({name: columns[name] for name in (*self.keys, *self._ways)})

    def put(self, columns: dict[str, np.ndarray]) -> None:
        """Replace the rows by others, which are sorted by their keys."""
        self._parts = [columns]

    def _append(self, part: dict[str, np.ndarray]) -> None:
        self._parts.append(part)
        if len(self._parts) > 1:
            self._new_rows += len(part[self.keys[0]])
        if self._new_rows > max(ROWS_AT_ONCE, len(self._parts[0][self.keys[0]])):
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
        keys = {name: np.asarray(columns[name], np.int64) for name in self.keys}
        sums, least, most = (
            {name: columns[name] for name, kept in self._ways.items() if kept == way} for way in _WAYS
        )
        found = sum_by_keys(keys, sums, least, most)
        order = np.lexsort([found[name] for name in reversed(self.keys)])
        return {name: found[name][order] for name in (*self.keys, *self._ways)}


def sum_by_keys(
    keys: Mapping[str, np.ndarray],
    sums: Mapping[str, np.ndarray] | None = None,
    least: Mapping[str, np.ndarray] | None = None,
    most: Mapping[str, np.ndarray] | None = None,
    taken: np.ndarray | None = None,
    row_of: np.ndarray | None = None,
) -> dict[str, np.ndarray]:
    """Join the rows that have equal keys, in one compiled loop.

    `row_of`: is set to the place of each row in the result; -1: it is left out.
    """
    ways, values = "", {}
    for way, columns in zip(_WAYS, (sums, least, most), strict=True):
        for name, column in (columns or {}).items():
            is_real = column.dtype == np.float64
            ways += way.upper() if is_real else way
            values[name] = np.ascontiguousarray(column, np.float64 if is_real else np.int64)
    rows = _compiled.sum_by_keys(
        tuple(map(np.ascontiguousarray, keys.values())),
        tuple(values.values()),
        ways,
        None if taken is None else np.ascontiguousarray(taken, np.bool_),
        row_of,
    )
    matrix = np.frombuffer(rows, np.int64).reshape(len(keys) + 1 + len(values), -1)
    found = dict(zip((*keys, "n", *values), matrix, strict=True))
    return found | {name: found[name].view(values[name].dtype) for name in values}


def groups_of_rows(keys: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Number the groups of rows with equal keys, in the order in which they appear."""
    group = np.empty(len(keys[0]), np.int32)
    rows = {"first": np.arange(len(group))}
    found = sum_by_keys({str(number): key for number, key in enumerate(keys)}, least=rows, row_of=group)
    return group.astype(np.int64), found["first"]


def unique_counts(values: np.ndarray, counts: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Find the values that occur, and how often, as `numpy.unique` does, without sorting all of them.

    `counts`: how often each one occurs. None: once.
    """
    found = sum_by_keys({"value": values}, {} if counts is None else {"n": counts})
    order = np.argsort(found["value"])
    return found["value"][order], found["n"][order]


def with_known_calls(
    known: tuple[Call, ...], calls: Sequence[Call], rows: dict[str, np.ndarray]
) -> tuple[tuple[Call, ...], dict[str, np.ndarray]]:
    """Number the column ``call`` of rows by the functions that are known, behind which come new ones."""
    if tuple(calls) == known:
        return known, rows
    numbers = {call: number for number, call in enumerate(known)}
    own = np.array([numbers.setdefault(call, len(numbers)) for call in calls], np.int64)
    return tuple(numbers), rows | {"call": own[rows["call"]]}

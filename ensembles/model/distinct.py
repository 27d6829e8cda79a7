"""The different values of a column, and the different rows of several."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from ensembles.model.units import HALF_INT64

_DENSE = 4


def distinct(values: np.ndarray) -> np.ndarray:
    """Return the different values, rising, as `numpy.unique` does.

    That function imports NumPy's masked arrays, which takes 30 ms of processor time. Commands that take a
    tenth of a second do without.

    `values`: numbers that can be compared, without NaN.
    """
    ascending = np.sort(values)
    different: np.ndarray = ascending[np.append(True, ascending[1:] != ascending[:-1])[: len(ascending)]]
    return different


def numbered_together(
    names: Sequence[str], table: Mapping[str, np.ndarray], others: Mapping[str, np.ndarray]
) -> tuple[np.ndarray, np.ndarray, int]:
    """Number the rows of two tables by some columns: equal rows have one number; and how many there are."""
    _, number = distinct_rows(*(np.concatenate([table[name], others[name]]) for name in names))
    count = len(table[names[0]])
    return number[:count], number[count:], int(number.max(initial=-1)) + 1


def extents(
    group: np.ndarray, low: np.ndarray, high: np.ndarray, groups: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return the least `low` and the largest `high` of each group; of an empty one the first is larger."""
    least, most = np.full(groups, np.iinfo(np.int64).max), np.zeros(groups, np.int64)
    np.minimum.at(least, group, low)
    np.maximum.at(most, group, high)
    return least, most


def distinct_rows(*columns: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the different rows of some columns, rising, and the number of each row among them.

    `numpy.unique` with an axis compares rows field by field. Ranks, phases and functions have few values, so
    that a row is one number here, which is counted or sorted.

    `columns`: at least one.
    `rows`: sorted by the first column, then by the second …
    `number`: index into ``rows``.
    """
    stacked = np.stack([np.asarray(column, np.int64) for column in columns])
    count = stacked.shape[1]
    if not count:
        return stacked, np.empty(0, np.int64)
    least = stacked.min(axis=1)
    widths = [int(high) - int(low) + 1 for low, high in zip(least, stacked.max(axis=1), strict=True)]
    if math.prod(widths) >= HALF_INT64:
        rows, number = np.unique(stacked, axis=1, return_inverse=True)
        return rows, number.reshape(-1)
    key = np.zeros(count, np.int64)
    for column, low, width in zip(stacked, least, widths, strict=True):
        key = key * width + (column - low)
    if math.prod(widths) <= _DENSE * count:
        seen = np.bincount(key, minlength=math.prod(widths)) > 0
        names, number = np.flatnonzero(seen), (np.cumsum(seen) - 1)[key]
    else:
        names, number = np.unique(key, return_inverse=True)
    rows = np.empty((len(widths), len(names)), np.int64)
    for index in range(len(widths) - 1, -1, -1):
        names, rest = np.divmod(names, widths[index])
        rows[index] = rest + least[index]
    return rows, number

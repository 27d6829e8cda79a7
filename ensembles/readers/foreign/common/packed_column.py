"""A column of integers in the least memory: most columns of an imported trace are constant or small."""

from __future__ import annotations

import numpy as np

_KINDS = tuple(np.dtype(kind) for kind in ("u1", "u2", "u4"))


class PackedColumn:
    """Integers as their least value and unsigned differences from it, in the fewest bytes.

    Parameters
    ----------
    values : ndarray of integers, shape (n,)

    Examples
    --------
    >>> from ensembles.readers.foreign.common.packed_column import PackedColumn
    >>> packed = PackedColumn(np.array([1_000_007, 1_000_000, 1_000_255]))
    >>> packed.nbytes, packed.unpacked(1, 3).tolist()
    (3, [1000000, 1000255])
    """

    def __init__(self, values: np.ndarray) -> None:
        self._dtype, self._length = values.dtype, len(values)
        low, high = (int(values.min()), int(values.max())) if len(values) else (0, 0)
        self._least = values.dtype.type(low)
        spread = high - low
        kind = next((kind for kind in _KINDS if spread <= np.iinfo(kind).max), values.dtype)
        self._differences: np.ndarray | None
        """None: all values are equal."""
        if not spread:
            self._differences = None
        elif kind.itemsize < values.dtype.itemsize:
            self._differences = (values - self._least).astype(kind)
        else:
            self._least, self._differences = values.dtype.type(0), values.copy()

    def __len__(self) -> int:
        return self._length

    @property
    def nbytes(self) -> int:
        """Bytes of the differences."""
        return 0 if self._differences is None else self._differences.nbytes

    def unpacked(self, low: int = 0, high: int | None = None) -> np.ndarray:
        """Return the values from place `low` to `high`, in new memory unless nothing was packed."""
        low, high, _ = slice(low, high).indices(self._length)
        if self._differences is None:
            return np.full(max(high - low, 0), self._least)
        part = self._differences[low:high]
        if part.dtype == self._dtype:
            return part
        values = part.astype(self._dtype)
        values += self._least
        return values

"""Size classes and ordinal classes, with the constants of ``event.h``."""

from __future__ import annotations

import numpy as np

from ensembles.model.c_layout import CONSTANTS
from ensembles.model.events import Events, op_of_calls
from ensembles.summaries.bins import bit_length

ALL_SIZES = CONSTANTS["ENSIO_ALL_SIZES"]
ALL_ORDINALS = CONSTANTS["ENSIO_ALL_ORDINALS"]
UNKNOWN_ORDINAL = CONSTANTS["ENSIO_ORDINAL_UNKNOWN"]
_APART = CONSTANTS["ENSIO_ORDINALS_APART"]


def size_class(requested_bytes: np.ndarray) -> np.ndarray:
    """Compute the size class of each size.

    Class 0 is for no bytes, class k for 2**(k - 1) to 2**k - 1 bytes.
    """
    return bit_length(np.asarray(requested_bytes).astype(np.uint64))


def size_range_bytes(number: int) -> tuple[int, int]:
    """Return the least and the largest size of a class, in bytes.

    `ALL_SIZES` has the whole range of 64 bits.
    """
    if number == ALL_SIZES:
        return 0, (1 << 64) - 1
    return (1 << number >> 1, (1 << number) - 1)


def ordinal_class(ordinal: np.ndarray) -> np.ndarray:
    """Compute the ordinal class of each ordinal.

    Each of the first 16 ordinals has a separate class; larger ones have one class an octave.
    """
    ordinal = np.asarray(ordinal).astype(np.uint64)
    octave = bit_length(ordinal) - _APART.bit_length()
    return np.where(ordinal <= _APART, ordinal.astype(np.int64), _APART + 1 + octave)


def ordinal_range(number: int) -> tuple[int, int]:
    """Return the least and the largest ordinal of a class.

    The result is (0, 0) if ordinals are not known or not distinguished.
    """
    if number in (ALL_ORDINALS, UNKNOWN_ORDINAL):
        return 0, 0
    if number <= _APART:
        return number, number
    bits = _APART.bit_length() + number - _APART - 1
    return max(1 << bits >> 1, _APART + 1), (1 << bits) - 1


class Ordinals:
    """A counter of the calls of each rank, operation and file, chunk by chunk."""

    def __init__(self) -> None:
        self._calls: dict[tuple[int, int], int] = {}

    def count(self, chunk: Events) -> np.ndarray:
        """Compute the ordinal of each call, in the order in which calls come."""
        op = op_of_calls(chunk.calls)[chunk.call].astype(np.uint64)
        low = chunk.file.astype(np.uint64) << np.uint64(3) | op
        order = np.lexsort((low, chunk.rank))
        rank, low = chunk.rank[order], low[order]
        first = np.flatnonzero(np.concatenate([[True], (rank[1:] != rank[:-1]) | (low[1:] != low[:-1])]))
        counts = np.diff(np.append(first, len(chunk)))
        before = np.empty(len(first), np.int64)
        for i, key in enumerate(zip(rank[first].tolist(), low[first].tolist(), strict=True)):
            before[i] = self._calls.get(key, 0)
            self._calls[key] = int(before[i] + counts[i])
        ordinal = np.empty(len(chunk), np.int64)
        ordinal[order] = np.arange(1, len(chunk) + 1) - np.repeat(first - before, counts)
        return ordinal

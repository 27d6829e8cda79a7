"""The bin law of duration histograms, with the constants of ``bins.h``.

Durations are integer nanoseconds. Below ``2**(BIN_BITS + 1)`` every value has a separate bin. Above, every
octave has ``2**BIN_BITS`` bins of equal width, so that no bin is wider than ``1 / 2**BIN_BITS`` of its lower
edge.

Size classes and ordinal classes, with the constants of ``event.h``.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from ensembles import _compiled
from ensembles.model.c_layout import BIN_CONSTANTS, CONSTANTS
from ensembles.model.events import Events, op_of_calls

BIN_BITS = BIN_CONSTANTS["ENSIO_BIN_BITS"]
BIN_COUNT = BIN_CONSTANTS["ENSIO_BIN_COUNT"]
RELATIVE_WIDTH = 2.0**-BIN_BITS
"""Largest width of a bin, relative to its lower edge."""


def bin_index(duration_ns: np.ndarray) -> np.ndarray:
    """Compute the bin of each duration."""
    value = np.ascontiguousarray(duration_ns).astype(np.uint64, copy=False)
    index = np.empty(value.shape, np.int64)
    _compiled.bin_indices(value, index)
    return index


def bin_low_ns() -> np.ndarray:
    """Compute the least duration of each bin."""
    return _low_ns().copy()


@lru_cache(maxsize=1)
def _low_ns() -> np.ndarray:
    bins = np.arange(BIN_COUNT, dtype=np.uint64)
    per_octave = np.uint64(1 << BIN_BITS)
    octave = np.maximum(bins >> np.uint64(BIN_BITS), np.uint64(1)) - np.uint64(1)
    return np.where(bins < per_octave, bins, ((bins % per_octave) + per_octave) << octave)


def bin_edges_s() -> np.ndarray:
    """Compute the edges of the bins in seconds: float64, shape (BIN_COUNT + 1,)."""
    return _edges_s().copy()


@lru_cache(maxsize=1)
def _edges_s() -> np.ndarray:
    edges: np.ndarray = np.append(_low_ns().astype(np.float64), 2.0**64) * 1e-9
    return edges


def bit_length(value: np.ndarray) -> np.ndarray:
    """Count the bits of each uint64 value exactly: logarithms of floats would round 2**k - 1 up."""
    value = np.ascontiguousarray(value).astype(np.uint64, copy=False)
    length = np.empty(value.shape, np.int64)
    _compiled.bit_lengths(value, length)
    return length


ALL_SIZES = CONSTANTS["ENSIO_ALL_SIZES"]
ALL_ORDINALS = CONSTANTS["ENSIO_ALL_ORDINALS"]
UNKNOWN_ORDINAL = CONSTANTS["ENSIO_ORDINAL_UNKNOWN"]
_APART = CONSTANTS["ENSIO_ORDINALS_APART"]


def size_class(requested_bytes: np.ndarray) -> np.ndarray:
    """Compute the size class of each size: 0 for no bytes, k for 2**(k - 1) to 2**k - 1 bytes."""
    return bit_length(np.asarray(requested_bytes).astype(np.uint64))


def size_range_bytes(number: int) -> tuple[int, int]:
    """Return the least and the largest size of a class, in bytes; `ALL_SIZES`: those of 64 bits."""
    if number == ALL_SIZES:
        return 0, (1 << 64) - 1
    return (1 << number >> 1, (1 << number) - 1)


def ordinal_class(ordinal: np.ndarray) -> np.ndarray:
    """Compute the ordinal class of each ordinal: each of the first 16, and one an octave beyond."""
    ordinal = np.asarray(ordinal).astype(np.uint64)
    octave = bit_length(ordinal) - _APART.bit_length()
    return np.where(ordinal <= _APART, ordinal.astype(np.int64), _APART + 1 + octave)


def ordinal_range(number: int) -> tuple[int, int]:
    """Return the least and the largest ordinal of a class; (0, 0): not known or distinguished."""
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

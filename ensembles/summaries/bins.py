"""The bin law of duration histograms, with the constants of ``bins.h``.

Durations are integer nanoseconds. Below ``2**(BIN_BITS + 1)`` every value has a separate bin. Above, every
octave has ``2**BIN_BITS`` bins of equal width, so that no bin is wider than ``1 / 2**BIN_BITS`` of its lower
edge.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from ensembles import _compiled
from ensembles.model.c_layout import BIN_CONSTANTS

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
    """Count the bits of each uint64 value.

    The count is exact: logarithms of floats would round 2**k - 1 up.

    Examples
    --------
    >>> from ensembles.summaries.bins import bit_length
    >>> bit_length(np.array([0, 1, 255, 256], dtype=np.uint64))
    array([0, 1, 8, 9])
    """
    value = np.ascontiguousarray(value).astype(np.uint64, copy=False)
    length = np.empty(value.shape, np.int64)
    _compiled.bit_lengths(value, length)
    return length

"""Classes of ordinals: each of the first is one of its own, those beyond are put together by octaves."""

from __future__ import annotations

import numpy as np

APART = 1024
"""Ordinals up to this one have an ensemble each, those beyond one for 32 to an octave."""


def class_of(ordinal: np.ndarray) -> np.ndarray:
    """The class of each ordinal, from 0: int64, shape (n,)."""
    ordinal = np.asarray(ordinal, np.int64)
    octave = np.maximum(np.floor(np.log2(np.maximum(ordinal - 1, 1))).astype(np.int64) - 10, 0)
    beyond = APART + 32 * octave + ((ordinal - 1 - (APART << octave)) >> (5 + octave))
    return np.where(ordinal <= APART, ordinal - 1, beyond)


def class_ranges(size: int) -> tuple[np.ndarray, np.ndarray]:
    """The first and the last ordinal of the first `size` classes: int64, shape (size,) each."""
    number = np.arange(size, dtype=np.int64)
    octave = np.maximum(number - APART, 0) // 32
    width = np.where(number < APART, 1, np.int64(32) << octave)
    low = np.where(
        number < APART, number + 1, (APART << octave) + 1 + (np.maximum(number - APART, 0) % 32) * width
    )
    return low, low + width - 1

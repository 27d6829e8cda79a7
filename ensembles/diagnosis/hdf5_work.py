"""Bytes that HDF5 moves for those that a program asks for, and its own work on them."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

LIKELY_PART = 0.5
"""Likely part of HDF5's work on bytes that it moves again: filters run for each chunk, the choice of elements
for each call, and one run does not show their parts."""

FILTER_NS_PER_BYTE = 5.0
"""From this time on, the work is that of filters: copies of elements take less, compression takes more."""

FILTERED = (0.5, 0.9)
"""Least and likely part of the work of filters: they run each time that a chunk is moved."""


def parts_of_work(own_ns: float, moved_bytes: float) -> tuple[float, float]:
    """Estimate which part of HDF5's own work goes if it moves bytes once: at least, and likely.

    Parameters
    ----------
    own_ns : float
        Time in HDF5's calls outside of storage calls.
    moved_bytes : float
        Bytes of the storage calls inside.

    Examples
    --------
    >>> from ensembles.diagnosis.hdf5_work import parts_of_work
    >>> parts_of_work(1e9, 4e9), parts_of_work(1e9, 2e7)
    ((0.0, 0.5), (0.5, 0.9))
    """
    return FILTERED if own_ns >= FILTER_NS_PER_BYTE * moved_bytes else (0.0, LIKELY_PART)


def bytes_of_files(
    table: Mapping[str, np.ndarray], data: np.ndarray, disk: np.ndarray, files: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Add up bytes of each file: asked for by the program, moved by storage calls, and needed at most.

    Parameters
    ----------
    table : dict of str to ndarray, shape (m,)
        Columns of `ensembles.diagnosis.file_uses.FileUses.table`.
    data, disk : ndarray of bool, shape (m,)
        Rows of the program's calls, and of storage calls.
    files : int

    Returns
    -------
    asked, moved, needed : ndarray, shape (files,)
        ``needed``: what the program asked for, or the extent of the storage calls if that is larger.
    """
    asked, moved = (np.bincount(table["file"][rows], table["bytes"][rows], files) for rows in (data, disk))
    low, high = np.full(files, np.iinfo(np.int64).max), np.full(files, -1)
    np.minimum.at(low, table["file"][disk], table["low"][disk])
    np.maximum.at(high, table["file"][disk], table["high"][disk])
    return asked, moved, np.maximum(asked, np.maximum(high - low, 0))

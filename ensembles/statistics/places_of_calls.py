"""Phase and bin of each of many calls, and how many calls have both in common."""

from __future__ import annotations

import numpy as np

from ensembles.summaries import kernels
from ensembles.summaries.bins import BIN_COUNT, bin_of
from ensembles.summaries.phasecounts import PhaseCounts

MOST_DENSE = 1024
"""Up to so many phases, all their bins are held at once while calls are counted."""


def places_of(group: np.ndarray, groups: int, duration_ns: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Group times BIN_COUNT plus bin, of those that hold calls, and how many each."""
    if groups > MOST_DENSE:
        return np.unique(group * BIN_COUNT + bin_of(duration_ns), return_counts=True)
    found = PhaseCounts(np.arange(1, groups))
    kernels.count_groups(group, duration_ns, None, found.cuts, found.arrays)
    counts = found.arrays["counts"].reshape(-1)
    place = np.flatnonzero(counts)
    return place, counts[place]


def numbered(number: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The different numbers, rising, and the place of each entry's number among them."""
    low, high = (int(number.min()), int(number.max())) if len(number) else (0, 0)
    if high - low > 4 * len(number) + 1024:
        ids, place = np.unique(number, return_inverse=True)
        return ids, place.reshape(-1)
    used = np.bincount(number - low) > 0 if len(number) else np.zeros(0, bool)
    return np.flatnonzero(used) + low, (np.cumsum(used) - 1)[number - low]

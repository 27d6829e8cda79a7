"""Modes by the sizes of the calls: modes of time per MiB may be sizes rather than speeds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ensembles.model.fields import Fields
from ensembles.model.units import bytes_text

_MOST_SIZES = 8


@dataclass(frozen=True)
class SizeShares(Fields):
    """How the calls of a size, or of a range of sizes, are distributed over the modes."""

    # low_bytes, high_bytes: Smallest and largest size
    low_bytes: int
    high_bytes: int
    calls: int  # Number of calls
    shares: tuple[float, ...]  # Share of these calls in each mode

    @property
    def name(self) -> str:
        """The size, or the range of sizes, for people."""
        low, high = bytes_text(self.low_bytes), bytes_text(self.high_bytes)
        return low if self.low_bytes == self.high_bytes else f"{low} – {high}"


def shares_by_size(
    sizes: np.ndarray, durations_s: np.ndarray, ranges_s: Sequence[tuple[float, float]]
) -> tuple[SizeShares, ...]:
    """Count the calls of each size in each mode."""
    kind = np.unique(sizes)
    number = np.searchsorted(kind, sizes)
    if len(kind) > _MOST_SIZES:
        octave = np.floor(np.log2(sizes)).astype(np.int64)
        number = np.searchsorted(np.unique(octave), octave)
    ends_s = np.array(ranges_s)
    inside = [(durations_s >= low) & (durations_s <= high) for low, high in ends_s]
    rows = []
    for one in range(int(number.max(initial=-1)) + 1):
        mine = number == one
        shares = tuple(float(np.mean(held[mine])) for held in inside)
        rows.append(SizeShares(int(sizes[mine].min()), int(sizes[mine].max()), int(mine.sum()), shares))
    return tuple(rows)

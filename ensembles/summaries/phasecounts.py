"""Durations of chosen calls, counted by phase and bin: what an ensemble is made of in one pass over a run."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ensembles.events import Events
from ensembles.summaries import kernels
from ensembles.summaries.bins import BIN_COUNT

LARGEST = np.iinfo(np.int64).max
MIB = float(1 << 20)


class PhaseCounts:
    """Counts by phase and bin.

    Parameters
    ----------
    cuts : ndarray of int64, shape (g - 1,)
        Rising. A call belongs to the group whose number is that of the cuts that are not above its key.
    choose : callable, optional
        Events → which of them are meant, bool, shape (n,); default: all.
    key : callable, optional
        Events → key of each, int64, shape (n,); default: its start, so that cuts are moments (ns).
    per_mib : bool
        Durations are divided by the MiB that a call moved, and rounded to whole ns per MiB.

    Attributes
    ----------
    arrays : dict of str to ndarray
        As `kernels.count_groups` describes them, for g groups.
    """

    def __init__(
        self,
        cuts: np.ndarray,
        choose: Callable[[Events], np.ndarray] | None = None,
        key: Callable[[Events], np.ndarray] | None = None,
        per_mib: bool = False,
    ) -> None:
        groups = len(cuts) + 1
        self.cuts = np.ascontiguousarray(cuts, np.int64)
        self.choose, self.key, self.per_mib = choose, key, per_mib
        self.arrays = {
            "counts": np.zeros((groups, BIN_COUNT), np.int64),
            "least": np.full(groups, LARGEST, np.int64),
            "most": np.full(groups, -1, np.int64),
            "sums": np.zeros((groups, 2)),
            "across": np.zeros(groups, np.int64),
        }

    def add(self, chunk: Events) -> None:
        """Add events, which need ``duration``, ``start`` (or what `key` asks for) and what `choose` does."""
        taken = None if self.choose is None else self.choose(chunk)
        if taken is not None and taken.all():
            taken = None
        duration = chunk.duration
        if self.per_mib:
            moved = np.maximum(chunk.moved, 1)
            duration = np.rint(duration / (moved / MIB)).astype(np.int64)
        key = chunk.start if self.key is None else self.key(chunk)
        kernels.count_groups(key, duration, taken, self.cuts, self.arrays)

    def merge(self, other: PhaseCounts) -> None:
        """Add what another one with the same cuts holds.

        Raises
        ------
        ValueError
            Its cuts are others.
        """
        if not np.array_equal(self.cuts, other.cuts):
            raise ValueError("counts by phase can be merged only if they are of the same phases")
        mine, theirs = self.arrays, other.arrays
        for name in ("counts", "sums", "across"):
            mine[name] += theirs[name]
        np.minimum(mine["least"], theirs["least"], out=mine["least"])
        np.maximum(mine["most"], theirs["most"], out=mine["most"])

    def to_arrays(self) -> dict[str, np.ndarray]:
        """``cuts``, and the arrays by group."""
        return {"cuts": self.cuts, **self.arrays}

    def without_cuts(self, dropped: np.ndarray) -> PhaseCounts:
        """The same calls, with the groups on both sides of a dropped cut put together.

        Parameters
        ----------
        dropped : ndarray of bool, shape (g - 1,)
        """
        kept = PhaseCounts(self.cuts[~dropped], self.choose, self.key, self.per_mib)
        first = np.flatnonzero(np.concatenate([[True], ~dropped]))
        for name, ufunc in (
            ("counts", np.add),
            ("sums", np.add),
            ("least", np.minimum),
            ("most", np.maximum),
        ):
            kept.arrays[name] = ufunc.reduceat(self.arrays[name], first, axis=0)
        last = np.append(first[1:], len(self.cuts) + 1) - 1
        kept.arrays["across"] = self.arrays["across"][last]
        return kept

"""Durations of chosen calls, counted by phase and bin: what an ensemble is made of in one pass over a run."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ensembles.model.events import Events
from ensembles.passes.summary import ANY_ORDER, Summary
from ensembles.summaries import kernels
from ensembles.summaries.bins import BIN_COUNT

LARGEST = np.iinfo(np.int64).max
MIB = float(1 << 20)

LARGEST_PER_MIB_NS = 2.0**62
"""Longer ones are counted as this: 146 years for each MiB."""

MOST_KEPT = 1 << 20
"""So many calls are kept one by one: 16 bytes each."""


class PhaseCounts(Summary):
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

    keep_odd : bool
        Groups of odd numbers are times of which it is not known yet to which neighbour they belong: their
        calls are kept one by one, up to `MOST_KEPT`.

    Attributes
    ----------
    arrays : dict of str to ndarray
        As `kernels.count_groups` describes them, for g groups.
    kept : list of (ndarray, ndarray), or None
        Keys and durations of those calls; None: there were too many.
    """

    requires = ANY_ORDER

    def __init__(
        self,
        cuts: np.ndarray,
        choose: Callable[[Events], np.ndarray] | None = None,
        key: Callable[[Events], np.ndarray] | None = None,
        per_mib: bool = False,
        keep_odd: bool = False,
    ) -> None:
        groups = len(cuts) + 1
        self.cuts = np.ascontiguousarray(cuts, np.int64)
        self.choose, self.key, self.per_mib = choose, key, per_mib
        self.arrays: dict[str, np.ndarray] = {
            "counts": np.zeros((groups, BIN_COUNT), np.int64),
            "least": np.full(groups, LARGEST, np.int64),
            "most": np.full(groups, -1, np.int64),
            "sums": np.zeros((groups, 2)),
        }
        self.kept: list[tuple[np.ndarray, np.ndarray]] | None = [] if keep_odd else None
        self._kept_calls = 0

    def add(self, chunk: Events) -> None:
        """Add events, which need ``duration``, ``start`` (or what `key` asks for) and what `choose` does."""
        taken = None if self.choose is None else self.choose(chunk)
        if taken is not None and taken.all():
            taken = None
        duration = chunk.duration
        if self.per_mib:
            moved = np.maximum(chunk.moved, 1)
            duration = np.minimum(np.rint(duration / (moved / MIB)), LARGEST_PER_MIB_NS).astype(np.int64)
        key = chunk.start if self.key is None else self.key(chunk)
        self._count(key, duration, taken)

    def _count(self, key: np.ndarray, duration: np.ndarray, taken: np.ndarray | None) -> None:
        odd = kernels.count_groups(key, duration, taken, self.cuts, self.arrays, self.kept is not None)
        if self.kept is not None and odd is not None and len(odd):
            self._keep([(key[odd], duration[odd])])

    def _keep(self, calls: list[tuple[np.ndarray, np.ndarray]]) -> None:
        self._kept_calls += sum(len(key) for key, _ in calls)
        if self.kept is not None:
            self.kept = self.kept + calls if self._kept_calls <= MOST_KEPT else None

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
        for name in ("counts", "sums"):
            mine[name] += theirs[name]
        if other.kept is None:
            self.kept = None
        else:
            self._keep(other.kept)
        np.minimum(mine["least"], theirs["least"], out=mine["least"])
        np.maximum(mine["most"], theirs["most"], out=mine["most"])

    def to_arrays(self) -> dict[str, np.ndarray]:
        """``cuts``, and the arrays by group."""
        return {"cuts": self.cuts, **self.arrays}

    def parted(self, cuts: np.ndarray) -> PhaseCounts:
        """The same calls, counted by other groups.

        Parameters
        ----------
        cuts : ndarray of int64, shape (h - 1,)
            Rising. They lie within groups of odd numbers (their beginning left out, their end not).

        Raises
        ------
        ValueError
            The calls of these groups were not kept.
        """
        if self.kept is None:
            raise ValueError("calls that were not kept cannot be counted again")
        found = PhaseCounts(cuts, self.choose, self.key, self.per_mib)
        even = np.arange(0, len(self.cuts) + 1, 2)
        begin = np.concatenate([[np.iinfo(np.int64).min], self.cuts[even[1:] - 1]])
        group = np.searchsorted(found.cuts, begin, side="right")
        for name, ufunc in (
            ("counts", np.add),
            ("sums", np.add),
            ("least", np.minimum),
            ("most", np.maximum),
        ):
            ufunc.at(found.arrays[name], group, self.arrays[name][even])
        for key, duration in self.kept:
            found._count(key, duration, None)
        return found


class CountsOfSeveral(Summary):
    """Counts of several choices of calls by the same phases, side by side.

    Attributes
    ----------
    each : list of PhaseCounts
    """

    requires = ANY_ORDER

    def __init__(self, each: Sequence[PhaseCounts]) -> None:
        self.each = list(each)

    def add(self, chunk: Events) -> None:
        """Add events."""
        for counts in self.each:
            counts.add(chunk)

    def merge(self, other: CountsOfSeveral) -> None:
        """Add what other ones of the same choices hold."""
        for mine, theirs in zip(self.each, other.each, strict=True):
            mine.merge(theirs)

    def to_arrays(self) -> dict[str, np.ndarray]:
        """As `PhaseCounts.to_arrays`, of each, with its number before each name."""
        arrays = ((place, counts.to_arrays()) for place, counts in enumerate(self.each))
        return {f"{place}.{name}": values for place, found in arrays for name, values in found.items()}

    @property
    def all_kept(self) -> bool:
        """Whether the calls of groups of odd numbers are there one by one, for `parted`."""
        return all(counts.kept is not None for counts in self.each)

    def parted(self, cuts: np.ndarray) -> CountsOfSeveral:
        """As `PhaseCounts.parted`, of each."""
        return CountsOfSeveral([counts.parted(cuts) for counts in self.each])

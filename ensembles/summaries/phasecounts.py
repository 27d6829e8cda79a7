"""Phase counts: durations of selected calls by phase and bin.

Ensembles are made from them in one pass.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ensembles.model.events import Events
from ensembles.model.units import HALF_INT64, LARGEST_INT64, MIB
from ensembles.passes.summary import ANY_ORDER, Summary
from ensembles.summaries import kernels
from ensembles.summaries.active_time import MOST_EXACT
from ensembles.summaries.bins import BIN_COUNT

LARGEST_PER_MIB_NS = float(HALF_INT64)
"""Upper limit of durations per MiB; longer ones count as this, 146 years for each MiB."""


def duration_per_mib_ns(duration_ns: np.ndarray, moved: np.ndarray) -> np.ndarray:
    """Return durations per MiB that calls moved, in whole ns: int64, shape (n,)."""
    per_mib = np.rint(duration_ns / (np.maximum(moved, 1) / MIB))
    whole: np.ndarray = np.minimum(per_mib, LARGEST_PER_MIB_NS).astype(np.int64)
    return whole


_JOINS = {"counts": np.add, "sums": np.add, "least": np.minimum, "most": np.maximum}
"""How the arrays of two groups become one."""


class PhaseCounts(Summary):
    """A mergeable summary: durations counted by group (phase) and bin.

    `key`: key of each event: Events → int64, shape (n,). Default: its start in ns, so that cuts are moments.
    `arrays`: ``counts``, ``least``, ``most`` and ``sums`` as in `ensembles.summaries.kernels.count_groups`.
    `kept`: keys and durations of the calls in groups with odd numbers. None: not kept, or too many.
    """

    requires = ANY_ORDER
    results = ("arrays", "kept", "_kept_calls")

    def __init__(
        self,
        cuts: np.ndarray,
        choose: Callable[[Events], np.ndarray] | None = None,
        key: Callable[[Events], np.ndarray] | None = None,
        per_mib: bool = False,
        keep_odd: bool = False,
        quantity: str = "duration",
    ) -> None:
        groups = len(cuts) + 1
        self.cuts = np.ascontiguousarray(cuts, np.int64)
        self.choose, self.key, self.per_mib, self.quantity = choose, key, per_mib, quantity
        self.arrays: dict[str, np.ndarray] = {
            "counts": np.zeros((groups, BIN_COUNT), np.int64),
            "least": np.full(groups, LARGEST_INT64, np.int64),
            "most": np.full(groups, -1, np.int64),
            "sums": np.zeros((groups, 2)),
        }
        self.kept: list[tuple[np.ndarray, np.ndarray]] | None = [] if keep_odd else None
        self._kept_calls = 0

    def add(self, chunk: Events) -> None:
        """Add events, with the columns `quantity`, ``start`` and those that `key` and `choose` read."""
        taken = None if self.choose is None else self.choose(chunk)
        if taken is not None and taken.all():
            taken = None
        duration = getattr(chunk, self.quantity)
        if self.per_mib:
            duration = duration_per_mib_ns(duration, chunk.moved)
        key = chunk.start if self.key is None else self.key(chunk)
        self._count(key, duration, taken)

    def _count(self, key: np.ndarray, duration: np.ndarray, taken: np.ndarray | None) -> None:
        odd = kernels.count_groups(key, duration, taken, self.cuts, self.arrays, self.kept is not None)
        if self.kept is not None and odd is not None and len(odd):
            self._keep([(key[odd], duration[odd])])

    def _keep(self, calls: list[tuple[np.ndarray, np.ndarray]]) -> None:
        self._kept_calls += sum(len(key) for key, _ in calls)
        if self.kept is not None:
            self.kept = self.kept + calls if self._kept_calls <= MOST_EXACT else None

    def merge(self, other: PhaseCounts) -> None:
        """Add counts with the same cuts."""
        if not np.array_equal(self.cuts, other.cuts):
            raise ValueError("counts by phase can be merged only if their cuts are equal")
        for name, join in _JOINS.items():
            join(self.arrays[name], other.arrays[name], out=self.arrays[name])
        if other.kept is None:
            self.kept = None
        else:
            self._keep(other.kept)

    def parted(self, cuts: np.ndarray) -> PhaseCounts:
        """Count the same calls by other groups."""
        if self.kept is None:
            raise ValueError("calls can be counted again only if they were kept (keep_odd)")
        found = PhaseCounts(cuts, self.choose, self.key, self.per_mib, quantity=self.quantity)
        even = np.arange(0, len(self.cuts) + 1, 2)
        begin = np.concatenate([[np.iinfo(np.int64).min], self.cuts[even[1:] - 1]])
        group = np.searchsorted(found.cuts, begin, side="right")
        for name, join in _JOINS.items():
            join.at(found.arrays[name], group, self.arrays[name][even])
        for key, duration in self.kept:
            found._count(key, duration, None)
        return found


class CountsOfSeveral(Summary):
    """A mergeable summary: counts of several selections of calls by the same phases."""

    requires = ANY_ORDER
    results = ("each",)

    def __init__(self, each: Sequence[PhaseCounts]) -> None:
        self.each = list(each)

    def add(self, chunk: Events) -> None:
        """Add events."""
        for counts in self.each:
            counts.add(chunk)

    def merge(self, other: CountsOfSeveral) -> None:
        """Add counts of the same selections."""
        for mine, theirs in zip(self.each, other.each, strict=True):
            mine.merge(theirs)

    @property
    def all_kept(self) -> bool:
        """Whether all calls of groups with odd numbers were kept, as `parted` needs."""
        return all(counts.kept is not None for counts in self.each)

    def parted(self, cuts: np.ndarray) -> CountsOfSeveral:
        """Count the same calls by other groups (`PhaseCounts.parted`)."""
        return CountsOfSeveral([counts.parted(cuts) for counts in self.each])

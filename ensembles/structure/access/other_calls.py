"""The I/O calls that loops of a pattern are not made of: how many there are, and how much time they take."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ensembles.model.events import Call, Events, is_io_of_calls, op_of_calls
from ensembles.passes.summary import Summary
from ensembles.structure.access.tokens import READ, SEEK, SYNC, WRITE


@dataclass(frozen=True)
class OtherCall:
    """A function whose calls are not in the loops of a pattern."""

    layer: str
    call: str
    count: int
    time_s: float


@dataclass(frozen=True)
class Coverage:
    """What the loops of a pattern are of all I/O calls.

    Attributes
    ----------
    calls, all_calls : int
        Calls of the loops, and all I/O calls.
    time_s, all_time_s : float
    others : tuple of OtherCall
        The functions that are not in loops, those with most calls first.
    """

    calls: int
    all_calls: int
    time_s: float
    all_time_s: float
    others: tuple[OtherCall, ...]

    @property
    def time_share(self) -> float:
        """Share of the time of all I/O calls that those of loops have; 1 if there is none."""
        return self.time_s / self.all_time_s if self.all_time_s > 0 else 1.0


class IoCalls(Summary):
    """A mergeable summary: number and time of I/O calls by function, in loops of patterns and elsewhere."""

    columns = ("call", "depth", "carried", "file", "duration")
    results = ("sums",)

    def __init__(self, nested: bool = False) -> None:
        self._nested = nested
        self.sums: dict[tuple[Call, bool], tuple[int, int]] = {}

    def add(self, chunk: Events) -> None:
        """Add events."""
        if not len(chunk):
            return
        calls = chunk.calls
        chosen = is_io_of_calls(calls)[chunk.call] & (chunk.outermost | self._nested)
        op = op_of_calls(calls)[chunk.call]
        looped = np.isin(op, (READ, WRITE, SEEK, SYNC)) & (chunk.file > 0)
        key = (chunk.call.astype(np.int64) * 2 + looped)[chosen]
        count = np.bincount(key)
        time_ns = np.bincount(key, chunk.duration[chosen])
        for number in np.flatnonzero(count).tolist():
            self._put((calls[number // 2], bool(number % 2)), int(count[number]), int(time_ns[number]))

    def merge(self, other: IoCalls) -> None:
        """Add other sums."""
        for key, sums in other.sums.items():
            self._put(key, *sums)

    def _put(self, key: tuple[Call, bool], count: int, time_ns: int) -> None:
        known = self.sums.get(key, (0, 0))
        self.sums[key] = known[0] + count, known[1] + time_ns

    def to_arrays(self) -> dict[str, np.ndarray]:
        """Return ``count`` and ``time_ns`` of the functions."""
        found = np.array(list(self.sums.values()), np.int64).reshape(-1, 2)
        return {"count": found[:, 0], "time_ns": found[:, 1]}

    def coverage(self) -> Coverage:
        """Return what loops are made of, and the other calls."""
        looped = [sums for (_, is_looped), sums in self.sums.items() if is_looped]
        count, time_ns = (sum(sums[at] for sums in looped) for at in (0, 1))
        others = [
            OtherCall(call.layer, call.name, *(sums[0], sums[1] * 1e-9))
            for (call, is_looped), sums in self.sums.items()
            if not is_looped
        ]
        others.sort(key=lambda one: (-one.count, one.layer, one.call))
        whole, whole_ns = (sum(sums[at] for sums in self.sums.values()) for at in (0, 1))
        return Coverage(count, whole, time_ns * 1e-9, whole_ns * 1e-9, tuple(others))


_NAMED = 6
_LEAST_SHARE = 0.05


def coverage_text(found: Coverage) -> str:
    """Say which share of the I/O the loops are, and name the other calls; "": hardly any others.

    Examples
    --------
    >>> from ensembles.structure.access.other_calls import Coverage, OtherCall, coverage_text
    >>> opens = OtherCall("posix", "open", 800, 0.75)
    >>> coverage_text(Coverage(400, 1200, 0.25, 1.0, (opens,))).split("; besides, ")[0]
    'Transfers, seeks and syncs are 400 of 1,200 I/O calls, 25 % of their time'
    """
    from ensembles.model.units import count_text, share_text

    share = found.time_share
    if min(share, found.calls / max(found.all_calls, 1)) >= 1 - _LEAST_SHARE:
        return ""
    told = [f"{one.count:,} x {one.call}" for one in found.others[:_NAMED]]
    more = found.others[_NAMED:]
    if more:
        told.append(f"{count_text(sum(one.count for one in more), 'call')} of {len(more):,} other functions")
    return (
        f"Transfers, seeks and syncs are {found.calls:,} of {found.all_calls:,} I/O calls, "
        f"{share_text(share, None)} of their time; besides, of all tasks: {', '.join(told)}."
    )

"""Bursts: times in which data moved, apart from idle times, with rates that no grid limits."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from ensembles.model.events import Events
from ensembles.passes.summary import ANY_ORDER, Summary
from ensembles.summaries.active_time import MOST_EXACT
from ensembles.summaries.runtotals import DIRECTIONS, direction_of_events

LEAST_BYTES = 0.01
"""Least share of all bytes that a burst moves."""


@dataclass(frozen=True)
class Burst:
    """A time in which data moved, from the start of the first call to the end of the last.

    Attributes
    ----------
    from_s, to_s : float
        In s since the origin of the run.
    bytes, calls : int
        Bytes moved, and the number of calls that moved them.
    bytes_per_s : float
        Rate: bytes by the length of the burst.
    """

    from_s: float
    to_s: float
    bytes: int
    calls: int
    bytes_per_s: float

    @property
    def time_s(self) -> float:
        """Length in s."""
        return self.to_s - self.from_s

    def to_json(self) -> dict[str, Any]:
        """A dict with the names of the attributes, and `time_s`."""
        return asdict(self) | {"time_s": self.time_s}


class MovedSpans(Summary):
    """A mergeable summary: start, end and bytes of each call that moved bytes, up to `MOST_EXACT` calls.

    Non-blocking requests move their bytes in their flight.

    Examples
    --------
    >>> from ensembles.passes.summary import ignoring_run
    >>> from ensembles.structure.bursts import MovedSpans
    >>> spans = en.open("ensio-ior").summarize(ignoring_run(MovedSpans))
    >>> bursts = spans.bursts("write", idle_s=0.0)
    >>> sum(burst.bytes for burst in bursts)
    167772160
    """

    columns = ("call", "carried", "moved", "start", "duration", "flight")
    requires = ANY_ORDER
    results = ("_calls", "_parts")

    def __init__(self) -> None:
        self._calls = 0
        self._parts: list[np.ndarray] = []

    def add(self, chunk: Events) -> None:
        """Add events."""
        if not len(chunk):
            return
        direction = direction_of_events(chunk)
        mine = np.flatnonzero(direction >= 0)
        if len(mine):
            lasted = np.maximum(chunk.duration[mine], chunk.flight[mine])
            start = chunk.start[mine]
            self._hold(len(mine), [np.stack([direction[mine], start, start + lasted, chunk.moved[mine]])])

    def merge(self, other: MovedSpans) -> None:
        """Add a summary of other events."""
        self._hold(other._calls, other._parts)

    def _hold(self, calls: int, parts: list[np.ndarray]) -> None:
        self._calls += calls
        self._parts = [*self._parts, *parts] if self._calls <= MOST_EXACT else []

    def to_arrays(self) -> dict[str, np.ndarray]:
        """Return ``direction``, ``start_ns``, ``end_ns`` and ``bytes``, empty if there were too many."""
        columns = np.concatenate([np.empty((4, 0), np.int64), *self._parts], axis=1)
        return dict(zip(("direction", "start_ns", "end_ns", "bytes"), columns, strict=True))

    def bursts(self, direction: str, idle_s: float) -> list[Burst] | None:
        """Find the bursts of a direction.

        Those that moved at least `LEAST_BYTES` of the bytes and took time, in the order of time. None: there
        were more calls than `MOST_EXACT`.
        """
        if self._calls > MOST_EXACT:
            return None
        arrays = self.to_arrays()
        mine = arrays["direction"] == DIRECTIONS.index(direction)
        start, end, moved = (arrays[name][mine] for name in ("start_ns", "end_ns", "bytes"))
        if not len(start):
            return []
        order = np.argsort(start, kind="stable")
        start, end, moved = start[order], np.maximum.accumulate(end[order]), moved[order]
        first = np.flatnonzero(np.append(True, start[1:] - end[:-1] > idle_s * 1e9))
        last = np.append(first[1:], len(start)) - 1
        total = np.add.reduceat(moved, first)
        return [
            Burst(
                int(start[low]) * 1e-9,
                int(end[high]) * 1e-9,
                int(bytes_),
                int(high - low + 1),
                int(bytes_) / (int(end[high] - start[low]) * 1e-9),
            )
            for low, high, bytes_ in zip(first, last, total, strict=True)
            if bytes_ >= LEAST_BYTES * moved.sum() and end[high] > start[low]
        ]

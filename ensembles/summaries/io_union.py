"""Time in I/O of a run as a whole: when at least one thread was in an I/O call."""

from __future__ import annotations

import numpy as np

from ensembles.model.events import Events, is_io_of_calls
from ensembles.passes.summary import Summary
from ensembles.summaries.active_time import disjoint

_LEAST_WAITING = 1 << 16
"""Spans that may wait at least before they are joined."""


class IoUnion(Summary):
    """A mergeable summary: the times in which at least one thread was in an I/O call.

    It holds spans that do not overlap, at most one for each outermost call.

    Examples
    --------
    >>> from ensembles.passes.summary import ignoring_run
    >>> from ensembles.summaries.io_union import IoUnion
    >>> run = en.open("ensio-ior")
    >>> 0 < run.summarize(ignoring_run(IoUnion)).time_s < float(run.events.end.max()) * 1e-9
    True
    """

    of_all_calls = True
    columns = ("call", "depth", "start", "duration")
    results = ("_spans",)

    def __init__(self) -> None:
        self._spans = np.empty((2, 0), np.int64)
        self._waiting: list[np.ndarray] = []
        self._waiting_spans = 0

    def add(self, chunk: Events) -> None:
        """Add events."""
        if not len(chunk):
            return
        mine = np.flatnonzero(is_io_of_calls(chunk.calls)[chunk.call] & (chunk.depth == 0))
        start = chunk.start[mine]
        self._hold(disjoint([np.stack([start, start + chunk.duration[mine]])]))

    def _hold(self, spans: np.ndarray) -> None:
        self._waiting.append(spans)
        self._waiting_spans += spans.shape[1]
        # As many are joined as are there, so that a span is sorted a few times in all.
        if self._waiting_spans > max(self._spans.shape[1], _LEAST_WAITING):
            self._join()

    def _join(self) -> None:
        if self._waiting:
            self._spans = disjoint([self._spans, *self._waiting])
            self._waiting, self._waiting_spans = [], 0

    def condense(self) -> None:
        """Replace the spans by one that is as long as all of them."""
        time_ns = self._time_ns
        self._spans = np.array([[0], [time_ns]] if time_ns else [[], []], np.int64)

    def merge(self, other: IoUnion) -> None:
        """Add the calls of another part of the run."""
        other._join()
        self._hold(other._spans)

    def to_arrays(self) -> dict[str, np.ndarray]:
        """Return ``start_ns`` and ``end_ns`` of the spans, rising."""
        self._join()
        return {"start_ns": self._spans[0], "end_ns": self._spans[1]}

    @property
    def time_s(self) -> float:
        """Time in s in which at least one thread was in an I/O call."""
        return 1e-9 * float(self._time_ns)

    @property
    def _time_ns(self) -> int:
        self._join()
        return int((self._spans[1] - self._spans[0]).sum())

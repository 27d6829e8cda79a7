"""The longest calls of a run, in bounded memory."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ensembles.model.calls import is_io_of_calls
from ensembles.model.events import COLUMNS, Call, Events
from ensembles.passes.summary import ANY_ORDER, Summary


class LongestCalls(Summary):
    """A mergeable summary: the calls with the longest durations, without those that wait for other tasks.

    Examples
    --------
    >>> from ensembles.summaries.longest_calls import LongestCalls
    >>> run = en.open("ensio-ior")
    >>> longest = LongestCalls(3, run.calls, run.files)
    >>> longest.add(run.events)
    >>> len(longest.events), longest.io_calls
    (3, 336)
    """

    requires = ANY_ORDER
    has_sites = True
    """Whether the calls have the table of their call sites, not only the numbers in that of the run."""

    def __init__(self, most: int, calls: Sequence[Call] = (), files: Sequence[str] = ("",)) -> None:
        self._most = most
        self.events = Events.empty(calls, files)
        self.io_calls = 0

    def add(self, chunk: Events) -> None:
        """Add events."""
        is_io = is_io_of_calls(chunk.calls)
        io = np.arange(len(chunk)) if is_io.all() else np.flatnonzero(is_io[chunk.call])
        self.io_calls += len(io)
        if self._most and len(self.events) == self._most:
            # Most chunks have no call that is long enough.
            io = io[chunk.duration[io] >= self.events.duration[-1]]
        if len(io) > self._most > 0:
            # Only calls as long as the last that is kept are ordered.
            duration = chunk.duration[io]
            io = io[duration >= np.partition(duration, len(io) - self._most)[len(io) - self._most]]
        if len(io):
            self._keep(chunk[io].slowest(self._most))

    def merge(self, other: LongestCalls) -> None:
        """Add a summary of other events of the same run."""
        self.io_calls += other.io_calls
        self._keep(other.events)

    def _keep(self, more: Events) -> None:
        if not len(more):
            return
        copied = self._copied(more)
        joined = Events.concatenate([self.events, copied]) if len(self.events) else copied
        self.events = joined.slowest(self._most)

    def _copied(self, more: Events) -> Events:
        """Copy events out of memory that the reader uses again."""
        columns = {name: getattr(more, name).copy() for name in COLUMNS}
        if self.has_sites:
            return Events(columns, more.calls, more.files, more.sites)
        return Events(columns, more.calls, more.files)


class DiagramCalls(LongestCalls):
    """The calls that a trace diagram draws one by one: all of a run of few calls, else the longest.

    Call sites are numbers in the table of the run. Calls that wait for other tasks are among them only if
    all are.

    `events`: all calls, or the `most` longest.
    `count`, `io_calls`: number of all calls, and of those that do not wait for other tasks.
    """

    has_sites = False
    of_all_calls = True
    results = ("events", "io_calls", "count")

    def __init__(self, most: int, calls: Sequence[Call] = (), files: Sequence[str] = ("",)) -> None:
        super().__init__(most, calls, files)
        self.count = 0

    @property
    def is_complete(self) -> bool:
        """Whether all calls are kept."""
        return len(self.events) == self.count

    def longest(self, most: int) -> Events:
        """Return so many of the longest calls that do not wait for other tasks."""
        return self.events.slowest(most)

    def add(self, chunk: Events) -> None:
        """Add events."""
        if self.is_complete and self.count + len(chunk) <= self._most:
            self.io_calls += int(np.count_nonzero(is_io_of_calls(chunk.calls)[chunk.call]))
            self.count += len(chunk)
            self._join(chunk)
            return
        self._leave_out()
        self.count += len(chunk)
        super().add(chunk)

    def merge(self, other: LongestCalls) -> None:
        """Add a summary of other events of the same run."""
        assert isinstance(other, DiagramCalls)
        if self.is_complete and other.is_complete and self.count + other.count <= self._most:
            self.io_calls += other.io_calls
            self.count += other.count
            self._join(other.events)
            return
        self._leave_out()
        self.count += other.count
        super().merge(other)

    def _leave_out(self) -> None:
        """Keep the longest calls only, once these are not all."""
        if self.is_complete:
            self.events = self.events.slowest(self._most)

    def _join(self, more: Events) -> None:
        if len(more):
            copied = self._copied(more)
            self.events = Events.concatenate([self.events, copied]) if len(self.events) else copied

"""Rank buffer: makes chunks of whole ranks, in memory that is reused."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from ensembles.model.events import COLUMNS, Call, Events
from ensembles.passes.memory import held_elsewhere

ENOUGH = 1 << 15
"""Least number of events in a chunk, unless it is the last: fewer cost more Python calls, and many more would
not stay in the processor's cache."""


class RankBuffer:
    """Turns chunks into chunks of whole ranks.

    `names`: columns of the resulting chunks; ``rank`` and ``start`` are always among them.
    `left_out`: number of ranks that were left out.
    """

    def __init__(self, names: Iterable[str], most_events: int) -> None:
        self.left_out = 0
        self._names = tuple(name for name in COLUMNS if name in {*names, "rank", "start"})
        self._most_events = most_events
        self._columns: dict[str, np.ndarray] = {}
        self._room = self._count = 0
        self._begin = 0
        """Position of the first call of the last rank, which may go on in the next chunk."""
        self._too_large: int | None = None
        self._calls: Sequence[Call] = ()
        self._files: Sequence[str] = ("",)
        self._sites: Sequence[str] = ("",)

    def whole_ranks(self, chunks: Iterator[Events]) -> Iterator[Events]:
        """Iterate over the events of all these chunks, by whole ranks.

        It yields from `added` for each chunk, and then from `rest`.
        """
        for chunk in chunks:
            yield from self.added(chunk)
            del chunk  # so that its memory can be reused for the next one
        yield from self.rest()

    def added(self, chunk: Events) -> Iterator[Events]:
        """Add a chunk, and give the ranks that are complete.

        All calls of some ranks. Their memory is reused, unless the receiver still holds a column.
        """
        if not len(chunk):
            return
        low, high, last = 0, len(chunk), int(chunk.rank[-1])
        if self._too_large is not None:
            low = int(np.searchsorted(chunk.rank, self._too_large, side="right"))
            if low == high:
                return
            self._too_large = None
        if not self._count or int(self._columns["rank"][self._count - 1]) != last:
            self._begin = self._count + max(int(np.searchsorted(chunk.rank, last)) - low, 0)
        self._append(chunk, low)
        self._calls, self._files, self._sites = chunk.calls, chunk.files, chunk.sites
        too_large = self._count - self._begin > self._most_events
        if self._begin >= ENOUGH or (too_large and self._begin):
            yield self._first(self._begin)
            self._keep_from(self._begin)
        if too_large:
            self.left_out += 1
            self._too_large, self._count, self._begin = last, 0, 0

    def rest(self) -> Iterator[Events]:
        """Give the last ranks, after the last chunk, and release the memory."""
        if self._count:
            yield self._first(self._count)
        self._columns, self._room, self._count, self._begin = {}, 0, 0, 0

    def _first(self, count: int) -> Events:
        columns = {name: self._columns[name][:count] for name in self._names}
        return Events.partly(columns, self._calls, self._files, self._sites)

    def _append(self, chunk: Events, low: int) -> None:
        count = self._count + len(chunk) - low
        if count > self._room:
            self._room = max(2 * self._room, count, 2 * ENOUGH)
            self._renew(0, self._count)
        for name in self._names:
            self._columns[name][self._count : count] = getattr(chunk, name)[low:]
        self._count = count

    def _keep_from(self, begin: int) -> None:
        """Move the events from `begin` on to the front."""
        if held_elsewhere(self._columns):
            self._renew(begin, self._count)
        else:
            for column in self._columns.values():
                column[: self._count - begin] = column[begin : self._count]
        self._count -= begin
        self._begin -= begin

    def _renew(self, low: int, high: int) -> None:
        """Allocate new memory, and copy the events from `low` to `high` to its front."""
        before = self._columns
        self._columns = {name: np.empty(self._room, COLUMNS[name]) for name in self._names}
        for name in self._names if before else ():
            self._columns[name][: high - low] = before[name][low:high]

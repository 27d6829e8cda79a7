"""Groups of summaries that are filled in one pass."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ensembles.model.events import COLUMNS, Call, Events
from ensembles.model.units import ROWS_AT_ONCE
from ensembles.passes.memory import Budget, held_elsewhere, watched
from ensembles.passes.summary import ANY_ORDER, BY_RANK, Summary


@dataclass(frozen=True)
class SummaryRequest:
    """A request for a summary of a run."""

    # Makes an empty summary, given the run. It is a class or function of a module, or a partial of one, as
    # worker processes get it pickled. `ensembles.passes.summary.ignoring_run` wraps functions without
    # arguments.
    make: Callable[[Any], Summary]
    # Columns of events that the summary needs. None: its attribute ``columns``.
    columns: tuple[str, ...] | None = None


class SummaryGroup:
    """Summaries by name, filled with the same events.

    Each summary gets the chunks that it requires.

    `requests`: the summaries to make.
    `run`: argument of their `SummaryRequest.make`.
    `summaries`: the summaries; ``group[name]`` is one of them.
    `columns`: columns of events that any of them needs; None: all.
    `requires`: the strictest of their requirements.
    `left_out_ranks`: number of ranks with more events than may be held at once. Summaries that require
    `BY_RANK` lack them.
    """

    def __init__(self, requests: Mapping[str, SummaryRequest], run: Any) -> None:
        self.summaries: dict[str, Any] = {name: request.make(run) for name, request in requests.items()}
        self.requires = max((each.requires for each in self.summaries.values()), default=ANY_ORDER)
        self.left_out_ranks = 0
        needed = [
            (each.requires, each.columns if requests[name].columns is None else requests[name].columns)
            for name, each in self.summaries.items()
        ]
        self.columns = _union(columns for _, columns in needed)
        self._held_columns = _union(columns for requires, columns in needed if requires is BY_RANK)

    def __getitem__(self, name: str) -> Any:
        return self.summaries[name]

    def fill(self, chunks: Iterator[Events], budget: Budget, path: str) -> None:
        """Add the events of a part of the run to all summaries, and finalize these.

        `chunks`: in the order of ranks, unless `requires` is `ANY_ORDER`.
        `budget`: memory that the pass may take.
        `path`: path of the run, for messages.
        """
        as_read = _Stream(watched(chunks, budget, path))
        streams = {False: as_read}
        if self.requires is BY_RANK:
            names = COLUMNS if self._held_columns is None else self._held_columns
            held = RankBuffer(names, budget.held_events)
            waiting, reader = as_read.reader()
            streams[True] = _Stream(held.whole_ranks(reader), waiting)
        readers = []
        for summary in self.summaries.values():
            readers += streams[summary.requires is BY_RANK].give_to(summary, budget, path)
        _read_all([*readers, *reversed(streams.values())])
        if self.requires is BY_RANK:
            self.left_out_ranks += held.left_out
        for summary in self.summaries.values():
            summary.finalize()

    def merge(self, other: SummaryGroup) -> None:
        """Add the contents of a group with the same requests, filled from higher ranks."""
        self.left_out_ranks += other.left_out_ranks
        for name, summary in self.summaries.items():
            summary.merge(other.summaries[name])


def _union(columns: Iterable[tuple[str, ...] | None]) -> set[str] | None:
    """Unite sets of columns; None stands for all columns."""
    every = list(columns)
    return None if None in every else {name for each in every if each is not None for name in each}


class _Stream:
    """A stream of chunks for several summaries."""

    def __init__(self, chunks: Iterator[Events], waiting: deque[Events] | None = None) -> None:
        self.waiting: deque[Events] = deque() if waiting is None else waiting
        self._chunks = chunks
        self._summaries: list[Summary] = []
        self._readers: list[deque[Events]] = []

    def step(self) -> bool:
        """Read the next chunk; return False at the end."""
        chunk = next(self._chunks, None)
        if chunk is None:
            return False
        for summary in self._summaries:
            summary.add(chunk)
        for waiting in self._readers:
            waiting.append(chunk)
        return True

    def reader(self) -> tuple[deque[Events], Iterator[Events]]:
        """Add a reader: return the queue of its chunks, and an iterator over them."""
        waiting: deque[Events] = deque()
        self._readers.append(waiting)

        def read() -> Iterator[Events]:
            try:
                while waiting or self.step():
                    yield waiting.popleft()
            finally:
                self._readers = [each for each in self._readers if each is not waiting]

        return waiting, read()

    def give_to(self, summary: Summary, budget: Budget, path: str) -> list[_Prepared]:
        """Register a summary. If it prepares its chunks, return the object that steps it."""
        waiting, chunks = self.reader()
        pieces = summary.prepare_chunks(chunks, budget, path)
        if pieces is not chunks:
            return [_Prepared(summary, pieces, waiting)]
        self._readers.pop()
        self._summaries.append(summary)
        return []


@dataclass(eq=False)
class _Prepared:
    """A summary that prepares its chunks, with the iterator over the prepared ones."""

    summary: Summary
    pieces: Iterator[Events]
    waiting: deque[Events]

    def step(self) -> bool:
        """Add the next prepared chunk; return False at the end."""
        piece = next(self.pieces, None)
        if piece is not None:
            self.summary.add(piece)
        return piece is not None


def _read_all(readers: list[_Prepared | _Stream]) -> None:
    """Step the readers until all have read everything."""
    while readers:
        reader = max(readers, key=lambda each: len(each.waiting))
        if not reader.step():
            readers.remove(reader)


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
        if self._begin >= ROWS_AT_ONCE or (too_large and self._begin):
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
            self._room = max(2 * self._room, count, 2 * ROWS_AT_ONCE)
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

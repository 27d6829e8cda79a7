"""Several summaries that are filled in one pass."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ensembles.model.events import COLUMNS, Events
from ensembles.passes.memory import Budget, watched
from ensembles.passes.rank_buffer import RankBuffer
from ensembles.passes.summary import ANY_ORDER, BY_RANK, Summary


@dataclass(frozen=True)
class SummaryRequest:
    """A summary that is wanted of a run.

    Attributes
    ----------
    make : callable
        Run → an empty summary. Worker processes get it pickled: a class or function of a module, or a partial
        of one.
    columns : tuple of str or None
        Columns of events that the summary needs; None: those that it names itself.
    """

    make: Callable[[Any], Summary]
    columns: tuple[str, ...] | None = None


class SummaryGroup:
    """Summaries by name. All are filled with the same events, each as it requires.

    Parameters
    ----------
    requests : mapping of str to SummaryRequest
    run : Run

    Attributes
    ----------
    summaries : dict of str to Summary
    columns : set of str or None
        Columns of events that they need; None: all.
    requires : Requirement
        The strictest of theirs.
    left_out_ranks : int
        Ranks with more events than may be held at once: summaries that require `BY_RANK` are without them.
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
        """Add the events of a part of the run.

        Parameters
        ----------
        chunks : iterator of Events
            In the order of ranks, unless `requires` is `ANY_ORDER`.
        budget : Budget
        path : str
            Path of the run, for messages.

        Raises
        ------
        EnsioError
            The pass takes more memory than `budget` allows.
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
        """Add what a group of the same requests holds of higher ranks."""
        self.left_out_ranks += other.left_out_ranks
        for name, summary in self.summaries.items():
            summary.merge(other.summaries[name])


def _union(columns: Iterable[tuple[str, ...] | None]) -> set[str] | None:
    """All these columns; None stands for all that there are."""
    every = list(columns)
    return None if None in every else {name for each in every if each is not None for name in each}


class _Stream:
    """Chunks for several summaries. Most are given each chunk as it comes; those that prepare their chunks
    read the stream themselves, and a chunk is held until all of these have read it."""

    def __init__(self, chunks: Iterator[Events], waiting: deque[Events] | None = None) -> None:
        self.waiting: deque[Events] = deque() if waiting is None else waiting
        self._chunks = chunks
        self._summaries: list[Summary] = []
        self._readers: list[deque[Events]] = []

    def step(self) -> bool:
        """Read a chunk; False: there are no more."""
        chunk = next(self._chunks, None)
        if chunk is None:
            return False
        for summary in self._summaries:
            summary.add(chunk)
        for waiting in self._readers:
            waiting.append(chunk)
        return True

    def reader(self) -> tuple[deque[Events], Iterator[Events]]:
        """The chunks once more, and those of them that were read and wait for this reader."""
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
        """Let a summary have the chunks; one that prepares them has to be stepped."""
        waiting, chunks = self.reader()
        pieces = summary.prepare_chunks(chunks, budget, path)
        if pieces is not chunks:
            return [_Prepared(summary, pieces, waiting)]
        self._readers.pop()
        self._summaries.append(summary)
        return []


@dataclass(eq=False)
class _Prepared:
    """A summary that prepares its chunks."""

    summary: Summary
    pieces: Iterator[Events]
    waiting: deque[Events]

    def step(self) -> bool:
        """Add what it makes of the next chunks; False: there are no more."""
        piece = next(self.pieces, None)
        if piece is not None:
            self.summary.add(piece)
        return piece is not None


def _read_all(readers: list[_Prepared | _Stream]) -> None:
    """Step the reader that is furthest behind, so that few chunks are held, until all have read everything.
    Of readers that are equally far, the first goes on."""
    while readers:
        reader = max(readers, key=lambda each: len(each.waiting))
        if not reader.step():
            readers.remove(reader)

"""The interface of readers of other tools' formats, and the run that is made from them.

A reader makes one pass over its trace and yields blocks of columns in the order of the trace. The rest is
common to all formats: sorting by rank and start, and the interface of a run.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Protocol

import numpy as np

from ensembles.model.errors import EnsioError
from ensembles.model.events import COLUMNS, Events
from ensembles.model.metadata import RunMetadata
from ensembles.model.regions import RegionTable
from ensembles.model.units import count_text
from ensembles.passes.damage import DamageReport
from ensembles.passes.memory import Budget
from ensembles.readers.common.completion_order import NEEDED, CompletionOrder
from ensembles.readers.common.value_ranges import unsound
from ensembles.readers.foreign.common import sorting
from ensembles.summaries.cells import CellSummary
from ensembles.summaries.ranktable import RankTable

DEFAULTS = {"thread": 0, "depth": 0, "carried": 0, "file": 0, "offset": -1, "error": 0}
"""Values of the columns that a block may lack. Every block has the other columns."""


_LEAST_IN_MEMORY_EVENTS = 1 << 16


class ForeignTrace(Protocol):
    """A trace of another tool, which is read in one pass.

    Attributes
    ----------
    metadata : RunMetadata
        Complete when `blocks` is exhausted. Notes describe what the format does not contain, and how many
        records were skipped.
    """

    metadata: RunMetadata

    def blocks(self, max_events: int) -> Iterator[Mapping[str, np.ndarray]]:
        """Yield blocks of calls, in any order.

        Parameters
        ----------
        max_events : int
            Maximum number of calls of a block.

        Yields
        ------
        mapping of str to ndarray, shape (n,)
            Columns (`ensembles.model.events.COLUMNS`); those of `DEFAULTS` may be missing. ``call`` and
            ``file`` index `metadata.calls` and `metadata.files`; ``start`` is in ns since
            `metadata.origin_unix_ns`.

        Raises
        ------
        EnsioError
            The trace is damaged. The message says where, and what to do.
        """
        ...

    def regions(self) -> RegionTable:
        """Return the phases and regions in the trace, after `blocks`."""
        ...

    def summary(self) -> CellSummary | None:
        """Return the sums that the trace has in place of calls; None: sums are computed from the events."""
        ...

    def ranks(self) -> RankTable | None:
        """Return the sums by rank and function; None: they are computed from the events, or unknown."""
        ...


class ImportedSource:
    """A run that was read from a trace of another tool; an `EventSource`.

    Parameters
    ----------
    path : str
    trace : ForeignTrace
    budget : Budget, optional
        Memory for the calls; if they need more, they are stored in a temporary file.

    Attributes
    ----------
    metadata : RunMetadata
    capacity : int
        Number of events.
    complete : bool
        Always true.
    spools : dict
        Always empty.

    Raises
    ------
    EnsioError
        The trace is damaged, or its calls fit neither into memory nor into a temporary file.
    """

    is_complete = True

    def __init__(self, path: str, trace: ForeignTrace, budget: Budget | None = None) -> None:
        self.path = path
        self._trace = trace
        self._impossible = 0
        in_memory = sorting.IN_MEMORY_EVENTS
        if budget is not None:
            in_memory = min(in_memory, max(budget.held_events, _LEAST_IN_MEMORY_EVENTS))
        try:
            self._table = sorting.sorted_table(self._blocks(), path, in_memory)
        except MemoryError as error:
            raise EnsioError(f"the calls of {path} do not fit into memory: take a part of it") from error
        self.metadata = trace.metadata
        if self._impossible:
            self.metadata.note(
                f"{path}: left out {count_text(self._impossible, 'call')} with impossible times or numbers "
                "of bytes"
            )
        self.capacity = len(self._table)
        self.spool_identities: dict[str, tuple[int, int]] = {}

    def chunks(self, max_events: int, names: Sequence[str] | None = None) -> Iterator[Events]:
        """Yield all events in chunks, ordered by rank.

        Within a thread, events are in the order of completion if the columns include those of `NEEDED`, else
        in the order of start.

        Parameters
        ----------
        max_events : int
            Maximum length of a chunk.
        names : sequence of str, optional
            Names of the wanted columns (`Events.partly`). Default: all columns.

        Returns
        -------
        iterator of Events
        """
        return self._chunks(0, self.capacity, max_events, names)

    def parts(
        self, most_parts: int, max_events: int, names: Sequence[str] | None = None
    ) -> list[Iterator[Events]]:
        """Split the events into parts of whole ranks, of about equal length, for concurrent threads.

        Parameters
        ----------
        most_parts : int
            Maximum number of parts.
        max_events, names
            As for `chunks`.

        Returns
        -------
        list of iterator of Events
        """
        cuts = {0, self.capacity}
        for part in range(1, most_parts):
            rank = self._rank_at(self.capacity * part // most_parts)
            cuts.add(self._begin_of(rank))
        ends = sorted(cuts)
        spans = pairwise(ends)
        return [self._chunks(low, high, max_events, names) for low, high in spans] or [iter(())]

    def spans_of_ranks(self, most_parts: int) -> list[tuple[int, int]]:
        """Return one span with all ranks.

        Every worker process would have to open the trace, which is most of the work.
        """
        return [(0, self.metadata.tasks)] if self.capacity else []

    def chunks_of_ranks(
        self, span: tuple[int, int], max_events: int, names: Sequence[str] | None, flaws: DamageReport
    ) -> Iterator[Events]:
        """Yield the events of a span of ranks in chunks, as `chunks`."""
        return self._chunks(self._begin_of(span[0]), self._begin_of(span[1] + 1), max_events, names)

    def note_damage(self, flaws: DamageReport) -> None:
        """Do nothing: the notes describe skipped records already."""

    def some_ranks(self, most_events: int, least_ranks: int) -> Events:
        """Return about `most_events` events: all events of evenly spaced ranks."""
        tasks = self.metadata.tasks
        wanted = max(least_ranks, int(tasks * most_events / max(self.capacity, 1)))
        ranks = np.unique(np.linspace(0, max(tasks - 1, 0), min(wanted, max(tasks, 1))).astype(int)).tolist()
        spans = [(self._begin_of(rank), self._begin_of(rank + 1)) for rank in ranks]
        parts = [self._events(self._table.read(low, high, None)) for low, high in spans if high > low]
        return Events.concatenate(parts or [Events.empty(self.metadata.calls, self.metadata.files)])

    def events(self) -> Events:
        """Return all events, sorted by rank and start.

        If they do not fit into the memory budget, their columns are mapped from a temporary file.
        """
        return Events(self._table.mapped(), self.metadata.calls, self.metadata.files)

    def regions(self) -> RegionTable:
        """Return the phases and regions in the trace."""
        return self._trace.regions()

    def summary(self) -> CellSummary | None:
        """Return the sums that the trace has in place of calls, or None."""
        return self._trace.summary()

    def ranks(self) -> RankTable | None:
        """Return the sums by rank and function, or None."""
        return self._trace.ranks()

    def _blocks(self) -> Iterator[dict[str, np.ndarray]]:
        """Yield the blocks of the trace with all columns; calls with impossible values are left out."""
        for block in self._trace.blocks(1 << 20):
            columns = _whole(block)
            beyond = unsound(columns)
            if beyond is not None:
                self._impossible += int(beyond.sum())
                columns = {name: column[~beyond] for name, column in columns.items()}
            yield columns

    def _chunks(self, low: int, high: int, max_events: int, names: Sequence[str] | None) -> Iterator[Events]:
        order = CompletionOrder() if names is None or set(names) >= NEEDED else None
        for begin in range(low, high, max_events):
            end = min(begin + max_events, high)
            columns = self._table.read(begin, end, names)
            if order is not None:
                columns = order.put(columns, self._key_at(end) if end < high else None)
            length = len(next(iter(columns.values())))
            for first in range(0, length, max_events):  # calls kept from earlier chunks add to the length
                yield self._events(
                    {name: column[first : first + max_events] for name, column in columns.items()}
                )

    def _events(self, columns: Mapping[str, np.ndarray]) -> Events:
        make = Events if len(columns) == len(COLUMNS) else Events.partly
        return make(columns, self.metadata.calls, self.metadata.files)

    def _rank_at(self, row: int) -> int:
        return self._key_at(row)[0] if row < self.capacity else 1 << 32

    def _key_at(self, row: int) -> tuple[int, int]:
        """Return rank and start of a row."""
        found = self._table.read(row, row + 1, ("rank", "start"))
        return int(found["rank"][0]), int(found["start"][0])

    def _begin_of(self, rank: int) -> int:
        """Find the first row of a rank, or of the next rank with events."""
        return bisect_left(range(self.capacity), rank, key=self._rank_at)


def _whole(block: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return all columns of a block, with default values for missing ones."""
    length = len(block["rank"])
    missing = {
        name: np.full(length, value, COLUMNS[name]) for name, value in DEFAULTS.items() if name not in block
    }
    return {name: np.asarray(block.get(name, missing.get(name)), dtype) for name, dtype in COLUMNS.items()}

"""What a reader of another tool's format gives, and the run that is made of it.

A reader goes once through its trace and yields blocks of columns, in whatever order the trace has. The rest
(order by rank and start, the interface that every run has) is the same for all formats.
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
from ensembles.passes.damage import DamageReport
from ensembles.passes.memory import Budget
from ensembles.readers.common.completion_order import NEEDED, CompletionOrder
from ensembles.readers.common.value_ranges import unsound
from ensembles.readers.foreign.common import sorting
from ensembles.summaries.cells import CellSummary
from ensembles.summaries.ranktable import RankTable

DEFAULTS = {"thread": 0, "depth": 0, "carried": 0, "file": 0, "offset": -1, "error": 0}
"""What a block without such a column means. The other columns every block has."""


_LEAST_IN_MEMORY_EVENTS = 1 << 16


class ForeignTrace(Protocol):
    """A trace of another tool, to be gone through once.

    Attributes
    ----------
    metadata : RunMetadata
        Whole as soon as `blocks` has come to its end: notes say what the format cannot tell, and how many
        records were passed over.
    """

    metadata: RunMetadata

    def blocks(self, max_events: int) -> Iterator[Mapping[str, np.ndarray]]:
        """Columns (`ensembles.model.events.COLUMNS`) of at most `max_events` calls a block, in any order.

        ``call`` and ``file`` index `metadata.calls` and `metadata.files`, ``start`` counts from
        `metadata.origin_unix_ns`. Those of `DEFAULTS` may be missing.

        Raises
        ------
        EnsioError
            The trace is damaged; the sentence says where, and what to do.
        """
        ...

    def regions(self) -> RegionTable:
        """Phases and regions that the trace knows, after `blocks`."""
        ...

    def summary(self) -> CellSummary | None:
        """Where the trace has sums in place of (some) calls: those; None: it follows from the events."""
        ...

    def ranks(self) -> RankTable | None:
        """The same by rank and function."""
        ...


class ImportedSource:
    """A run that was read from another tool's trace, as `ensembles.run.run.Run` wants it.

    Parameters
    ----------
    path : str
    trace : Import
    budget : Budget, optional
        The memory that its calls may take; the others lie in a temporary file.

    Attributes
    ----------
    metadata : RunMetadata
    capacity : int
        Number of events.
    is_complete : bool
    spools : dict
        As of a run directory; there are none.
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
                f"{path}: {self._impossible:,} calls have times or numbers of bytes that no call has: "
                "they are left out"
            )
        self.capacity = len(self._table)
        self.spool_identities: dict[str, tuple[int, int]] = {}

    def chunks(self, max_events: int, names: Sequence[str] | None = None) -> Iterator[Events]:
        """At most `max_events` at a time, by rank; with these columns (`Events.partly`), or with all.

        With all columns, or all that tell it, those of a thread are in order of completion; else by start.
        """
        return self._chunks(0, self.capacity, max_events, names)

    def parts(
        self, most_parts: int, max_events: int, names: Sequence[str] | None = None
    ) -> list[Iterator[Events]]:
        """The same in up to `most_parts` parts of whole ranks, about equally long, which threads may read
        side by side."""
        cuts = {0, self.capacity}
        for part in range(1, most_parts):
            rank = self._rank_at(self.capacity * part // most_parts)
            cuts.add(self._begin_of(rank))
        ends = sorted(cuts)
        spans = pairwise(ends)
        return [self._chunks(low, high, max_events, names) for low, high in spans] or [iter(())]

    def spans_of_ranks(self, most_parts: int) -> list[tuple[int, int]]:
        """One span with all ranks: to open the trace is most of the work, and every worker would have to."""
        return [(0, self.metadata.tasks)] if self.capacity else []

    def chunks_of_ranks(
        self, span: tuple[int, int], max_events: int, names: Sequence[str] | None, flaws: DamageReport
    ) -> Iterator[Events]:
        """As `chunks`, of the ranks of a span."""
        return self._chunks(self._begin_of(span[0]), self._begin_of(span[1] + 1), max_events, names)

    def note_damage(self, flaws: DamageReport) -> None:
        """There are none: records that were passed over are in the notes."""

    def some_ranks(self, most_events: int, least_ranks: int) -> Events:
        """All events of some ranks, evenly spaced among all: about `most_events`."""
        tasks = self.metadata.tasks
        wanted = max(least_ranks, int(tasks * most_events / max(self.capacity, 1)))
        ranks = np.unique(np.linspace(0, max(tasks - 1, 0), min(wanted, max(tasks, 1))).astype(int)).tolist()
        spans = [(self._begin_of(rank), self._begin_of(rank + 1)) for rank in ranks]
        parts = [self._events(self._table.read(low, high, None)) for low, high in spans if high > low]
        return Events.concatenate(parts or [Events.empty(self.metadata.calls, self.metadata.files)])

    def events(self) -> Events:
        """All events, by rank and start; where they are too many for memory, their columns lie in a file."""
        return Events(self._table.mapped(), self.metadata.calls, self.metadata.files)

    def regions(self) -> RegionTable:
        """Phases and regions that the trace knows."""
        return self._trace.regions()

    def summary(self) -> CellSummary | None:
        """What all calls add up to, where the events do not tell."""
        return self._trace.summary()

    def ranks(self) -> RankTable | None:
        """The same by rank and function."""
        return self._trace.ranks()

    def _blocks(self) -> Iterator[dict[str, np.ndarray]]:
        """All columns of the trace's blocks, without calls of impossible numbers, which are counted."""
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
            for first in range(0, length, max_events):  # with what was kept back there may be more
                yield self._events(
                    {name: column[first : first + max_events] for name, column in columns.items()}
                )

    def _events(self, columns: Mapping[str, np.ndarray]) -> Events:
        make = Events if len(columns) == len(COLUMNS) else Events.partly
        return make(columns, self.metadata.calls, self.metadata.files)

    def _rank_at(self, row: int) -> int:
        return self._key_at(row)[0] if row < self.capacity else 1 << 32

    def _key_at(self, row: int) -> tuple[int, int]:
        """Rank and start of a row."""
        found = self._table.read(row, row + 1, ("rank", "start"))
        return int(found["rank"][0]), int(found["start"][0])

    def _begin_of(self, rank: int) -> int:
        """The first row of a rank, or of the next that has any."""
        return bisect_left(range(self.capacity), rank, key=self._rank_at)


def _whole(block: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """All columns of a block."""
    length = len(block["rank"])
    missing = {
        name: np.full(length, value, COLUMNS[name]) for name, value in DEFAULTS.items() if name not in block
    }
    return {name: np.asarray(block.get(name, missing.get(name)), dtype) for name, dtype in COLUMNS.items()}

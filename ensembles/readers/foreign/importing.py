"""What a reader of another tool's format gives, and the run that is made of it.

A reader goes once through its trace and yields blocks of columns, in whatever order the trace has. The rest
(order by rank and start, the interface that every run has) is the same for all formats.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol

import numpy as np

from ensembles.budget import Budget
from ensembles.errors import EnsioError
from ensembles.events import COLUMNS, Events
from ensembles.metadata import RunMetadata
from ensembles.readers.flaws import Flaws
from ensembles.regiontable import RegionTable
from ensembles.summaries.cells import CellSummary
from ensembles.summaries.ranktable import RankTable

DEFAULTS = {"thread": 0, "depth": 0, "carried": 0, "file": 0, "offset": -1, "error": 0}
"""What a block without such a column means. The other columns every block has."""


class Import(Protocol):
    """A trace of another tool, to be gone through once.

    Attributes
    ----------
    metadata : RunMetadata
        Whole as soon as `blocks` has come to its end: notes say what the format cannot tell, and how many
        records were passed over.
    """

    metadata: RunMetadata

    def blocks(self, max_events: int) -> Iterator[Mapping[str, np.ndarray]]:
        """Columns (`ensembles.events.COLUMNS`) of at most `max_events` calls a block, in any order; ``call``
        and ``file`` index `metadata.calls` and `metadata.files`, ``start`` counts from
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
    """A run that was read from another tool's trace, as `ensembles.run.Run` wants it.

    Parameters
    ----------
    path : str
    trace : Import
    budget : Budget, optional
        The memory that its calls may take.

    Raises
    ------
    EnsioError
        They take more, or the trace is damaged.

    Attributes
    ----------
    metadata : RunMetadata
    slots : int
        Number of events.
    complete : bool
    spools : dict
        As of a run directory; there are none.
    """

    complete = True

    def __init__(self, path: str, trace: Import, budget: Budget | None = None) -> None:
        self.path = path
        self._trace = trace
        try:
            blocks, events = [], 0
            for block in trace.blocks(1 << 20):
                blocks.append(_whole(block))
                events += len(block["rank"])
                if budget is not None:
                    budget.check_events(path, events, "all calls of a trace that ensio did not write")
            self._columns = _sorted(blocks)
        except MemoryError as error:
            raise EnsioError(f"the calls of {path} do not fit into memory: take a part of it") from error
        self.metadata = trace.metadata
        self.slots = len(self._columns["rank"])
        self.spools: dict[str, tuple[int, int]] = {}

    def chunks(self, max_events: int, names: Sequence[str] | None = None) -> Iterator[Events]:
        """At most `max_events` at a time, by rank and start."""
        for low in range(0, self.slots, max_events):
            yield self._slice(low, low + max_events)

    def parts(
        self, most_parts: int, max_events: int, names: Sequence[str] | None = None
    ) -> list[Iterator[Events]]:
        """The same in one part."""
        return [self.chunks(max_events, names)]

    def spans_of_ranks(self, most_parts: int) -> list[tuple[int, int]]:
        """One span with all ranks: to open the trace is most of the work, and every worker would have to."""
        return [(0, self.metadata.tasks)] if self.slots else []

    def chunks_of_ranks(
        self, span: tuple[int, int], max_events: int, names: Sequence[str] | None, flaws: Flaws
    ) -> Iterator[Events]:
        """As `chunks`, of the ranks of a span."""
        begin, end = np.searchsorted(self._columns["rank"], [span[0], span[1] + 1]).tolist()
        for low in range(begin, end, max_events):
            yield self._slice(low, min(low + max_events, end))

    def note_flaws(self, flaws: Flaws) -> None:
        """There are none: records that were passed over are in the notes."""

    def some_ranks(self, most_events: int, least_ranks: int) -> Events:
        """All events of some ranks, evenly spaced among all: about `most_events`."""
        tasks = self.metadata.tasks
        wanted = max(least_ranks, int(tasks * most_events / max(self.slots, 1)))
        ranks = np.unique(np.linspace(0, max(tasks - 1, 0), min(wanted, max(tasks, 1))).astype(int))
        return self.events()[np.isin(self._columns["rank"], ranks)]

    def events(self) -> Events:
        """All events, by rank and start."""
        return self._slice(0, self.slots)

    def regions(self) -> RegionTable:
        """Phases and regions that the trace knows."""
        return self._trace.regions()

    def summary(self) -> CellSummary | None:
        """What all calls add up to, where the events do not tell."""
        return self._trace.summary()

    def ranks(self) -> RankTable | None:
        """The same by rank and function."""
        return self._trace.ranks()

    def _slice(self, low: int, high: int) -> Events:
        columns = {name: column[low:high] for name, column in self._columns.items()}
        return Events(columns, self.metadata.calls, self.metadata.files)


def _whole(block: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """All columns of a block."""
    length = len(block["rank"])
    missing = {
        name: np.full(length, value, COLUMNS[name]) for name, value in DEFAULTS.items() if name not in block
    }
    return {name: np.asarray(block.get(name, missing.get(name)), dtype) for name, dtype in COLUMNS.items()}


def _sorted(blocks: Sequence[Mapping[str, np.ndarray]]) -> dict[str, np.ndarray]:
    columns = {
        name: np.concatenate([block[name] for block in blocks] or [np.empty(0, dtype)])
        for name, dtype in COLUMNS.items()
    }
    order = np.lexsort((columns["start"], columns["rank"]))
    return {name: column[order] for name, column in columns.items()}

"""The interface of a run for what lies below it; `ensembles.run.run.Run` and its `reading` document it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Protocol, overload

from ensembles.model.counters import Counters
from ensembles.model.events import Events
from ensembles.model.filters import Text
from ensembles.model.holds import Holds
from ensembles.model.regions import RegionTable
from ensembles.model.surroundings import SurroundingsTable
from ensembles.passes.group import SummaryGroup, SummaryRequest
from ensembles.passes.memory import Budget
from ensembles.passes.reading import Ranges
from ensembles.passes.spec import PassRun, PassRunReading
from ensembles.passes.summary import S
from ensembles.readers.common.source import EventSource
from ensembles.structure.phases.result import Phases
from ensembles.structure.unseen import Unseen
from ensembles.summaries.cells import CellSummary
from ensembles.summaries.ranktable import RankTable


class KeptResults(Protocol):
    """What is kept of earlier passes (`ensembles.run.kept.KeptSummaries`)."""

    def find(self, request: SummaryRequest, empty: Any, selection: Any = None) -> bool: ...

    def put(self, filled: Mapping[SummaryRequest, Any], selection: Any = None) -> None: ...


class RecordedRunReading(PassRunReading, Protocol):
    """How the events of a run are read."""

    budget: Budget
    reopen: Callable[[str, int], PassRun] | None

    @property
    def source(self) -> EventSource: ...

    @property
    def kept(self) -> KeptResults: ...

    @property
    def most_events(self) -> int: ...

    @property
    def has_phases(self) -> bool: ...

    @property
    def is_final(self) -> bool: ...

    @property
    def known_ranks(self) -> RankTable | None: ...

    def need(self, part: Holds, why: str) -> None: ...

    def some_ranks(
        self,
        most_events: int,
        least_ranks: int = 3,
        among: Ranges | None = None,
        columns: tuple[str, ...] | None = None,
    ) -> Events: ...

    def chunks_for(self, selection: Any, max_events: int | None = None) -> Iterator[Events]: ...


class RecordedRun(PassRun, Protocol):
    """A run as readers, selections and the search for structure need it."""

    @property
    def counters(self) -> Counters: ...

    @property
    def unseen(self) -> Unseen | None: ...

    @property
    def mode(self) -> str: ...

    @property
    def notes(self) -> list[str]: ...

    @property
    def length_s(self) -> float: ...

    @property
    def regions(self) -> RegionTable: ...

    @property
    def phases(self) -> Phases | None: ...

    @property
    def summary(self) -> CellSummary: ...

    @property
    def events(self) -> Events: ...

    @property
    def reading(self) -> RecordedRunReading: ...

    def chunks(self, max_events: int) -> Iterator[Events]: ...

    def surroundings(self) -> SurroundingsTable: ...

    def select(self, *, rank: Text, time: Text) -> Events: ...

    @overload
    def summarize(
        self, wanted: Callable[[Any], S], columns: Iterable[str] | None = None, selection: Any = None
    ) -> S: ...

    @overload
    def summarize(
        self, wanted: Mapping[str, SummaryRequest], columns: None = None, selection: Any = None
    ) -> SummaryGroup: ...

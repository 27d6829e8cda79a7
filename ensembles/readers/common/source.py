"""The interface of all readers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from ensembles.model.events import Events
from ensembles.model.metadata import RunMetadata
from ensembles.model.regions import RegionTable
from ensembles.summaries.cells import CellSummary
from ensembles.summaries.ranktable import RankTable

if TYPE_CHECKING:
    from ensembles.passes.damage import DamageReport
    from ensembles.readers.tracefile.index import Ranges


class EventSource(Protocol):
    """A run as a reader provides it.

    `ensembles.readers.native.spool_source.SpoolSource` documents the methods.
    """

    is_complete: bool
    spool_identities: dict[str, tuple[int, int]]

    @property
    def metadata(self) -> RunMetadata: ...

    @property
    def capacity(self) -> int: ...

    def chunks(self, max_events: int, names: Sequence[str] | None = None) -> Iterator[Events]: ...

    def parts(
        self, most_parts: int, max_events: int, names: Sequence[str] | None = None
    ) -> list[Iterator[Events]]: ...

    def spans_of_ranks(self, most_parts: int) -> list[tuple[int, int]]: ...

    def chunks_of_ranks(
        self, span: tuple[int, int], max_events: int, names: Sequence[str] | None, flaws: DamageReport
    ) -> Iterator[Events]: ...

    def note_damage(self, flaws: DamageReport) -> None: ...

    def some_ranks(self, most_events: int, least_ranks: int) -> Events: ...

    def events(self) -> Events: ...

    def regions(self) -> RegionTable: ...

    def summary(self) -> CellSummary | None: ...

    def ranks(self) -> RankTable | None: ...


@runtime_checkable
class Indexed(Protocol):
    """A source with an index of ranks and times."""

    def chunks_within(
        self, ranks: Ranges | None, times_ns: Ranges | None, max_events: int
    ) -> Iterator[Events]: ...

"""The interface of all readers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from ensembles.model.metadata import RunMetadata
from ensembles.model.regions import RegionTable
from ensembles.passes.reading import ChunkSource
from ensembles.summaries.cells import CellSummary
from ensembles.summaries.ranktable import RankTable


class EventSource(ChunkSource, Protocol):
    """A run as a reader provides it.

    `Run` makes everything else from it: all events in memory, some ranks, selections, passes and their parts.
    """

    is_complete: bool  # Whether every process has ended, so that the files are final
    is_checked: bool  # Whether checksums guard all times, so that none is a changed byte
    # By name of each spool and job file that was read: size in bytes and modification time in ns
    spool_identities: dict[str, tuple[int, int]]

    @property
    def metadata(self) -> RunMetadata: ...

    def regions(self) -> RegionTable:
        """Return the phases and regions that the program named."""
        ...

    def summary(self) -> CellSummary | None:
        """Return the sums of all calls, also of those without an event; None: they follow from events."""
        ...

    def ranks(self) -> RankTable | None:
        """Return the sums by rank and function, without sizes and ordinals; None: as of `summary`."""
        ...

    @property
    def kept(self) -> Callable[[str], bytes | None] | None:
        """What finds the result of a pass by its key in the files of the run; None: they keep none."""
        ...

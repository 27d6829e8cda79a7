"""Select a part of a run for writing as a separate run."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from ensembles.model.events import Events
from ensembles.model.metadata import RunMetadata
from ensembles.model.regions import RegionTable
from ensembles.model.surroundings import SurroundingsTable
from ensembles.passes.damage import DamageReport
from ensembles.passes.reading import ReadRequest

if TYPE_CHECKING:
    from ensembles.structure.recorded_run import RecordedRun
    from ensembles.summaries.selected_sites import Selects


class Extract:
    """The selected calls of a run, as input for `write_trace_file`. A note describes the selection."""

    is_complete = True

    def __init__(self, run: RecordedRun, selection: Selects, words: str) -> None:
        self._run = run
        self._selection = selection
        self._words = words
        self.capacity = run.reading.most_events
        self.spool_identities: dict[str, tuple[int, int]] = {}

    @property
    def metadata(self) -> RunMetadata:
        """Metadata of the run, with a note on the selection."""
        metadata = self._run.reading.source.metadata
        return replace(
            metadata, notes=[*metadata.notes, f"this is an extract: only the calls of {self._words}"]
        )

    def chunks(self, request: ReadRequest, damage: DamageReport) -> Iterator[Events]:
        """Yield the selected events, ordered by rank; the notes of the run describe damage."""
        return self._run.reading.chunks_for(self._selection, request.max_events)

    def regions(self) -> RegionTable:
        """Return all regions of the run."""
        return self._run.regions

    def surroundings(self) -> SurroundingsTable:
        """Return all samples of the kernel's counters."""
        return self._run.surroundings()

    def summary(self) -> None:
        """Return None: the summary is computed from the events."""

    def ranks(self) -> None:
        """Return None: the sums by rank are computed from the events."""

"""A part of a run as a run of its own."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from ensembles.model.errors import EnsioError
from ensembles.model.events import Events
from ensembles.model.metadata import RunMetadata
from ensembles.model.regions import RegionTable

if TYPE_CHECKING:
    from ensembles.run.run import Run
    from ensembles.run.selection import Selection


class Extract:
    """The calls of a run that a selection chooses; its notes say so.

    Parameters
    ----------
    run : Run
    selection : Selection
        For this run.
    words : str
        What it chooses, for the notes.

    Raises
    ------
    EnsioError
        The run's sums hold calls that are not among its events, and cannot be split.
    """

    is_complete = True

    def __init__(self, run: Run, selection: Selection, words: str) -> None:
        if not run.has_all_events:
            raise EnsioError(
                f"{run.path} keeps not every call as an event, and what all calls add up to cannot be "
                "filtered: export it without filters"
            )
        self._run = run
        self._selection = selection
        self._words = words
        self.capacity = run.most_events
        self.spool_identities: dict[str, tuple[int, int]] = {}

    @property
    def metadata(self) -> RunMetadata:
        """That of the run, with a note more."""
        metadata = self._run.source.metadata
        return replace(
            metadata, notes=[*metadata.notes, f"this is an extract: only the calls of {self._words}"]
        )

    def chunks(self, max_events: int) -> Iterator[Events]:
        """The events, in the order of ranks."""
        return self._run.chunks_for(self._selection, max_events)

    def regions(self) -> RegionTable:
        """Those of the run."""
        return self._run.regions

    def summary(self) -> None:
        """It follows from the events."""

    def ranks(self) -> None:
        """They follow from the events."""

"""The one pass over a run's events that fills the summaries of all rules."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from ensembles.events import Events
from ensembles.structure.held_ranks import HeldRanks

if TYPE_CHECKING:
    from ensembles.diagnosis.rule import Need
    from ensembles.run import Run


class Gathered:
    """Summaries by name, filled together: each with the events as they come, or with those of whole tasks.

    Parameters
    ----------
    needs : mapping of str to Need
    run : Run

    Attributes
    ----------
    summaries : dict of str to summary
    left_out : int
        Tasks with more calls than may be held at once: summaries that need whole tasks are without them.
    """

    def __init__(self, needs: Mapping[str, Need], run: Run) -> None:
        self.summaries: dict[str, Any] = {name: need.make(run) for name, need in needs.items()}
        self.left_out = 0
        whole = {name for name, each in self.summaries.items() if getattr(each, "whole_ranks", False)}
        self._of_ranks = [self.summaries[name] for name in whole]
        self._of_chunks = [self.summaries[name] for name in self.summaries.keys() - whole]
        columns = {column for name in whole for column in needs[name].columns}
        self._held = HeldRanks(columns, run.budget.held_events) if whole else None

    def add(self, chunk: Events) -> None:
        """Add events to the summaries."""
        for summary in self._of_chunks:
            summary.add(chunk)
        if self._held is not None:
            self._add_ranks(self._held.added(chunk))

    def finish(self) -> None:
        """All events were added."""
        if self._held is not None:
            self._add_ranks(self._held.rest())
            self.left_out += self._held.left_out
            self._held = None

    def _add_ranks(self, pieces: Iterator[Events]) -> None:
        for piece in pieces:
            for summary in self._of_ranks:
                summary.add(piece)
            del piece  # so that its memory can take the next one

    def merge(self, other: Gathered) -> None:
        """Add those of other ranks."""
        self.left_out += other.left_out
        for name, summary in self.summaries.items():
            summary.merge(other.summaries[name])

"""Several summaries that share one pass over the events of a run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ensembles.events import Events

if TYPE_CHECKING:
    from ensembles.run import Run


class Together:
    """Summaries that are filled with the same events.

    Parameters
    ----------
    makes : sequence of callable
        Run → an empty summary (`ensembles.gathering.Summary`).
    run : Run

    Attributes
    ----------
    each : list of summary
        In the order of `makes`.
    """

    def __init__(self, makes: Sequence[Callable[[Run], Any]], run: Run) -> None:
        self.each = [make(run) for make in makes]

    def add(self, chunk: Events) -> None:
        """Add events."""
        for summary in self.each:
            summary.add(chunk)

    def finish(self) -> None:
        """All events were added."""
        for summary in self.each:
            if hasattr(summary, "finish"):
                summary.finish()

    def merge(self, other: Together) -> None:
        """Add what others hold of higher ranks."""
        for mine, theirs in zip(self.each, other.each, strict=True):
            mine.merge(theirs)

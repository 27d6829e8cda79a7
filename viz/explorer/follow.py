"""A run in progress in the explorer."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

from ensembles.model.events import Events
from ensembles.run.follow import EVERY_S, RunInProgress, looks_until_begun
from ensembles.viz.explorer.background import Background
from ensembles.viz.explorer.shown import Shown

__all__ = ["EVERY_S", "MOST_FOLLOWED", "Followed", "wait_for_run"]

MOST_FOLLOWED = 1_000_000
"""The latest calls that are held of a run in progress."""


class Followed(Shown):
    """The latest calls of a run in progress; `refresh` reads what was recorded since."""

    is_growing = is_part = True

    def __init__(self, path: str, most_events: int = MOST_FOLLOWED) -> None:
        self.progress = RunInProgress(path, most_events)
        super().__init__(self.progress.run)
        self._causes_in_background = Background(lambda key, error: self._failed(error))
        if self.progress.has_ended:
            self.find_causes()

    def _held_calls(self, most_events: int, in_background: bool) -> Events:
        self.notes = self.progress.notes
        return self._with_derived(self.progress.events)

    def _with_derived(self, events: Events) -> Events:
        """Number phases of the calls, and their ordinals if all of them are held."""
        return self.run.reading.numbered(events, _unknown if self.progress.left_out else None)

    def refresh(self) -> bool:
        """Read what was recorded since the last time."""
        news = self.progress.refresh()
        self.run, self.notes = self.progress.run, self.progress.notes
        if news:
            self.events = self._with_derived(self.progress.events)
            self.version += 1
            self._begin()
            self.__dict__.pop("causes", None)
            if self.progress.has_ended:
                self.find_causes()
        return news

    @property
    def examines(self) -> bool:
        """Whether causes are examined without being asked for: the run has ended."""
        return self.progress.has_ended

    @property
    def knows_causes(self) -> bool:
        """Whether causes have been examined for the calls so far."""
        return "causes" in self.__dict__

    def _find_causes(self) -> Iterator[None]:
        version = self.version
        assert self.causes is not None
        if version != self.version:  # the run went on
            self.__dict__.pop("causes", None)
        self.version += 1
        yield


def wait_for_run(path: str, say: Callable[[str], None]) -> Followed:
    """Wait until a run has begun to record, and follow it."""
    for _ in looks_until_begun(path, say):
        time.sleep(EVERY_S)
    return Followed(path)


def _unknown() -> None:
    """The ordinals of calls of which earlier ones are not held."""

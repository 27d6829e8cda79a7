"""A run in progress in the explorer."""

from __future__ import annotations

from collections.abc import Callable

from ensembles.model.events import Events
from ensembles.run.follow import EVERY_S, RunInProgress, wait_until_begun
from ensembles.viz.explorer.shown import Shown

__all__ = ["EVERY_S", "MOST_FOLLOWED", "Followed", "wait_for_run"]

MOST_FOLLOWED = 1_000_000
"""The latest calls that are held of a run in progress."""


class Followed(Shown):
    """The latest calls of a run in progress; `refresh` reads what was recorded since.

    Parameters
    ----------
    path : str
        The run directory.
    most_events : int
        The latest calls that are held.

    Raises
    ------
    EnsioError
        There is no run yet, it was recorded without events, or it cannot be read.
    """

    is_growing = is_part = True

    def __init__(self, path: str, most_events: int = MOST_FOLLOWED) -> None:
        self.progress = RunInProgress(path, most_events)
        super().__init__(self.progress.run, most_events)

    def _read(self, most_events: int) -> Events:
        self.notes = self.progress.notes
        return self.progress.events

    def refresh(self) -> bool:
        """Read what was recorded since the last time.

        Returns
        -------
        bool
            Whether there is anything new.

        Raises
        ------
        EnsioError
            The run can no longer be read.
        """
        news = self.progress.refresh()
        self.run, self.notes = self.progress.run, self.progress.notes
        if news:
            self.events = self.progress.events
            self.version += 1
            self._filtered.cache_clear()
            self._structured.cache_clear()
            self.__dict__.pop("causes", None)
        return news

    @property
    def knows_causes(self) -> bool:
        """Whether causes have been examined for the calls so far."""
        return "causes" in self.__dict__


def wait_for_run(path: str, say: Callable[[str], None]) -> Followed:
    """Wait until a run has begun to record, and follow it.

    Parameters
    ----------
    path : str
        The run directory.
    say : callable
        Is given a sentence when there is something to wait for.

    Raises
    ------
    EnsioError
        The run was recorded without events, or cannot be read.
    """
    wait_until_begun(path, say)
    return Followed(path)

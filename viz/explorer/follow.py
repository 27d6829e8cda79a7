"""A run in progress in the explorer: its calls are read as they are recorded."""

from __future__ import annotations

import os
import time
from collections.abc import Callable

from ensembles.model.errors import EnsioError
from ensembles.model.events import Events
from ensembles.readers.native.directory import holds_record, run_directory_at
from ensembles.readers.native.following import Follower
from ensembles.readers.native.spool_source import SpoolSource
from ensembles.run.open import open as open_run
from ensembles.viz.explorer.shown import Shown

MOST_FOLLOWED = 1_000_000
"""The latest calls that are held of a run in progress."""

EVERY_S = 0.7
"""Time between two looks at the files of the run."""

_PATIENCE_S = 5.0
"""A process that begins to record may leave an unfinished file for so long."""


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

    def __init__(self, path: str, most_events: int = MOST_FOLLOWED) -> None:
        self._path, self._follower = path, Follower(most_events)
        super().__init__(open_run(path), most_events)

    def _read(self, most_events: int) -> Events:
        self._take()
        return self._held()

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
        before = self.run.tasks, self.run.is_final, type(self.run.source)
        self.run = open_run(self._path)
        news = self._take()
        if not news and before == (self.run.tasks, self.run.is_final, type(self.run.source)):
            return False
        if news:
            self.events = self._held()
        self.version += 1
        self._filtered.cache_clear()
        self.__dict__.pop("causes", None)
        return True

    def _take(self) -> bool:
        """Read new calls, and say what is shown."""
        source = self.run.source
        news = isinstance(source, SpoolSource) and self._follower.take(source)
        follower, count = self._follower, f"{self.run.tasks:,} task{'s' * (self.run.tasks != 1)}"
        self.notes = [] if self.run.is_final else [f"The run is in progress: {count} so far."]
        if follower.since_ns is not None:
            self.notes.append(
                f"{follower.left_out:,} calls that started before {follower.since_ns * 1e-9:.3f} s are left "
                f"out: at most {follower.most_events:,} are held."
            )
        return news

    def _held(self) -> Events:
        source = self.run.source
        return self._follower.events(source) if isinstance(source, SpoolSource) else self.run.events

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
        The run was recorded without events.
    """
    said, patient_until = False, time.monotonic() + _PATIENCE_S
    while True:
        try:
            return Followed(path)
        except EnsioError:
            if _has_begun(path) and time.monotonic() > patient_until:
                raise
        if not said and not _has_begun(path):
            say(f"waiting for {path}: no process has begun to record into it")
            said = True
        if not _has_begun(path):
            patient_until = time.monotonic() + _PATIENCE_S
        time.sleep(EVERY_S)


def _has_begun(path: str) -> bool:
    return os.path.isfile(path) or holds_record(run_directory_at(path))

"""A run in progress: its calls are read as they are recorded, in bounded memory."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable, Iterator

from ensembles.model.errors import EnsioError
from ensembles.model.events import Events
from ensembles.model.metadata import Process
from ensembles.model.units import count_text
from ensembles.readers.native.directory import holds_record, run_directory_at
from ensembles.readers.native.following import Follower
from ensembles.readers.native.spool_source import SpoolSource
from ensembles.run.open import open_as
from ensembles.run.run import Run

EVERY_S = 0.7
"""Time between two looks for a run that has not begun."""

_PATIENCE_S = 5.0
"""A process that begins to record may leave an unfinished file for so long."""


class RunInProgress:
    """The latest calls of a run in progress; `refresh` reads what was recorded since."""

    def __init__(self, path: str, most_events: int) -> None:
        self._path, self._follower = path, Follower(most_events)
        self.run: Run = open_as(Run, path)
        self._take()
        self._gone = gone_without_end(self.run)
        self._events: Events | None = None

    def refresh(self) -> bool:
        """Read what was recorded since the last time."""
        before = self.run.tasks, self._gone, type(self.run.reading.source)
        self.run = open_as(Run, self._path)
        news = self._take()
        # Calls that came in the meantime are of a process that this machine does not see.
        gone = gone_without_end(self.run)
        self._gone = None if gone and news else gone
        now = self.run.tasks, self._gone, type(self.run.reading.source)
        if news or before[2] is not now[2]:
            self._events = None
        return news or before != now

    def _take(self) -> bool:
        source = self.run.reading.source
        return isinstance(source, SpoolSource) and self._follower.take(source)

    @property
    def events(self) -> Events:
        """The calls that are held, sorted by (rank, start)."""
        if self._events is None:
            source = self.run.reading.source
            is_followed = isinstance(source, SpoolSource)
            self._events = self._follower.events(source) if is_followed else self.run.events  # type: ignore[arg-type]
        return self._events

    @property
    def has_ended(self) -> bool:
        """Whether no process records any more."""
        return self._gone is not None

    @property
    def left_out(self) -> int:
        """Number of calls that are not held."""
        return self._follower.left_out

    @property
    def notes(self) -> list[str]:
        """That the run is in progress, or has ended, and what is left out."""
        follower, notes = self._follower, []
        tasks = count_text(self.run.tasks, "task")
        if self._gone is None:
            notes.append(f"The run is in progress: {tasks} so far.")
        else:
            calls = count_text(len(self.events) + follower.left_out, "call")
            killed = f", and {count_text(self._gone, 'process')} did not end in order" if self._gone else ""
            notes.append(f"The run has ended: {tasks} made {calls}{killed}.")
        if follower.since_ns is not None:
            notes.append(
                f"{count_text(follower.left_out, 'call')} before {follower.since_ns * 1e-9:.3f} s are left "
                f"out: at most {follower.most_events:,} are held."
            )
        return notes


def looks_until_begun(path: str, say: Callable[[str], None]) -> Iterator[None]:
    """Look for a run until it can be opened."""
    said, patient_until = False, time.monotonic() + _PATIENCE_S
    while True:
        begun = _has_begun(path)
        try:
            open_as(Run, path)
            return
        except EnsioError:
            if begun and time.monotonic() > patient_until:
                raise
        if not begun:
            patient_until = time.monotonic() + _PATIENCE_S
            if not said:
                say(f"waiting for {path}: no process has begun to record into it")
                said = True
        yield


def _has_begun(path: str) -> bool:
    return os.path.isfile(path) or holds_record(run_directory_at(path))


def gone_without_end(run: Run) -> int | None:
    """Count the processes that are gone without an end; None: one still runs, as far as is known here."""
    open_ones = [process for process in run.info.processes if not process.ended]
    return len(open_ones) if all(map(_is_gone, open_ones)) else None


def _is_gone(process: Process) -> bool:
    """Whether a process of this machine is gone, or waits for its parent to take notice of its end."""
    if process.host != socket.gethostname() or not os.path.exists("/proc/self/stat"):
        return False
    try:
        with open(f"/proc/{process.pid}/stat", "rb") as file:
            # The name in brackets may have any characters; the state follows it.
            return file.read().rpartition(b")")[2].split()[0] in (b"Z", b"X")
    except FileNotFoundError:
        return True
    except OSError:
        return False

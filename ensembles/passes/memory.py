"""How much memory a pass may take: ``--memory``, and what follows from it."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ensembles.model.errors import EnsioError

if TYPE_CHECKING:
    from ensembles.model.events import Events

SHARE = 4
"""Without ``--memory``, one part in so many of the machine's memory may be taken."""

LEAST_BYTES = 1 << 28
"""Nobody has to make do with less who did not say so: Python, NumPy and the pictures take half of it."""

_BYTES_PER_CHUNK_EVENT = 1 << 12
_BYTES_PER_HELD_EVENT = 240
_MOST_CHUNK_EVENTS = 1 << 15
_LEAST_CHUNK_EVENTS = 1 << 14
_UNLIMITED = 1 << 60

_CHECKED_EVENTS = 1 << 17
"""Events between two checks of the memory: asking the kernel takes as long as counting some thousands."""


@dataclass(frozen=True)
class Budget:
    """Memory that a pass over a run may take.

    Attributes
    ----------
    memory_bytes : int
        Of a process, everything in it counted.
    watched : bool
        Whether `check` looks at what the process takes. Not in workers of which others keep the memory.
    """

    memory_bytes: int
    watched: bool = True

    @classmethod
    def default(cls) -> Budget:
        """A quarter of the machine, or of what its control group leaves."""
        return cls(max(machine_memory_bytes() // SHARE, LEAST_BYTES))

    @property
    def chunk_events(self) -> int:
        """Events that are worked on at a time: few enough for their columns to stay in the cache."""
        wanted = self.memory_bytes // _BYTES_PER_CHUNK_EVENT
        return max(_LEAST_CHUNK_EVENTS, min(wanted, _MOST_CHUNK_EVENTS))

    @property
    def held_events(self) -> int:
        """Events of which all columns may be held at once, with what sorting them takes."""
        return self.memory_bytes // _BYTES_PER_HELD_EVENT

    def shared_by(self, processes: int) -> Budget:
        """What each of several processes may take."""
        return replace(self, memory_bytes=self.memory_bytes // processes)

    def unwatched(self) -> Budget:
        """The same, where others keep the memory."""
        return replace(self, watched=False)

    def check(self, path: str) -> None:
        """Stop a pass over a run that takes more than it may.

        Raises
        ------
        EnsioError
            The process takes more.
        """
        if self.watched and resident_bytes() > self.memory_bytes:
            raise self.exceeded(path)

    def check_events(self, path: str, events: int, what: str) -> None:
        """Refuse to hold more events at once than fit.

        Parameters
        ----------
        path : str
        events : int
        what : str
            What they are, as in "all calls of two tasks".

        Raises
        ------
        EnsioError
            They do not fit.
        """
        if events > self.held_events:
            from ensembles.model.units import bytes_text

            need = bytes_text(2 * events * _BYTES_PER_HELD_EVENT)
            raise EnsioError(
                f"{path}: {what}, at least {events:,}, have to be in memory at once and do not fit into "
                f"{bytes_text(self.memory_bytes)}: give more memory (--memory), such as {need}"
            )

    def exceeded(self, path: str) -> EnsioError:
        """That a pass over a run takes more than it may."""
        from ensembles.model.units import bytes_text

        return EnsioError(
            f"{path}: this takes more memory than the {bytes_text(self.memory_bytes)} that a process may "
            "take (--memory): give more, or choose fewer calls with the filters"
        )


def watched(chunks: Iterator[Events], budget: Budget, path: str) -> Iterator[Events]:
    """The same chunks; now and then `Budget.check` is asked, between two of them."""
    unchecked = 0
    for chunk in chunks:
        unchecked += len(chunk)
        yield chunk
        del chunk  # so that the memory of its columns can take the next one
        if unchecked >= _CHECKED_EVENTS:
            budget.check(path)
            unchecked = 0


def resident_bytes() -> int:
    """Memory that this process takes."""
    with open("/proc/self/statm", "rb") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def held_elsewhere(columns: dict[str, np.ndarray]) -> bool:
    """Whether one of these columns, or a view of one, is held outside of this dictionary."""
    return any(holders != _ONLY_HERE for holders in _holders(columns))


def _holders(columns: dict[str, np.ndarray]) -> list[int]:
    """How many references there are to each column; a view of one is a reference to it."""
    return [sys.getrefcount(column) for column in columns.values()]


_ONLY_HERE = _holders({"one": np.empty(1)})[0]


def machine_memory_bytes(proc: str = "/proc", groups: str = "/sys/fs/cgroup") -> int:
    """Memory of the machine, or what the control groups of this process leave of it.

    Parameters
    ----------
    proc, groups : str
        Where the kernel tells about processes and control groups.
    """
    total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    limits = [total]
    with suppress(OSError):
        for line in Path(proc, "self", "cgroup").read_text(encoding="utf-8").splitlines():
            _, controllers, place = line.split(":", 2)
            if not controllers:
                limits += _limits(Path(groups), place, "memory.max")
                limits += _limits(Path(groups, "unified"), place, "memory.max")
            elif "memory" in controllers.split(","):
                limits += _limits(Path(groups, "memory"), place, "memory.limit_in_bytes")
    return min(limits)


def _limits(top: Path, place: str, name: str) -> list[int]:
    """The limits of a control group and of those around it. In a container the path may be that of the host:
    then the group at the top is ours."""
    folder = top / place.lstrip("/")
    found = []
    for group in (folder, *folder.parents):
        with suppress(OSError, ValueError):
            limit = int((group / name).read_text(encoding="ascii"))
            found += [limit] if 0 < limit < _UNLIMITED else []
        if group == top:
            break
    return found

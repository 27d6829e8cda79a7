"""Memory budget of a pass: ``--memory``, and the sizes that follow from it."""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ensembles.model.errors import EnsioError
from ensembles.model.units import HALF_INT64, ROWS_AT_ONCE

if TYPE_CHECKING:
    from ensembles.model.events import Events

SHARE = 4
"""Without ``--memory``, the budget is the memory of the machine divided by this number."""

LEAST_BYTES = 1 << 28
"""Smallest default budget in bytes: Python, NumPy and the pictures take half of it."""

_BYTES_PER_CHUNK_EVENT = 1 << 12
_BYTES_OF_PROGRAM = 160 << 20
_BYTES_PER_THREAD = 32 << 20
_BYTES_PER_HELD_EVENT = 240

_CHECKED_EVENTS = 1 << 17
"""Events between two checks of the memory: a check takes as long as counting some thousands of events."""


@dataclass(frozen=True)
class Budget:
    """The memory that a pass over a run may take."""

    memory_bytes: int  # Resident memory of a process, everything in it included
    # Whether `check` looks at the memory of the process. False in workers whose memory Dask limits.
    watched: bool = True
    # What `check` allows the process where several runs are open in it. Default: `memory_bytes`.
    process_bytes: int | None = None

    @classmethod
    def default(cls) -> Budget:
        """Return a quarter of the memory of the machine or of its control group."""
        return cls(max(machine_memory_bytes() // SHARE, LEAST_BYTES))

    @property
    def chunk_events(self) -> int:
        """Number of events in a chunk: few enough to stay in the processor's cache."""
        wanted = self.memory_bytes // _BYTES_PER_CHUNK_EVENT
        return max(ROWS_AT_ONCE // 2, min(wanted, ROWS_AT_ONCE))

    @property
    def held_events(self) -> int:
        """Number of events whose columns may all be held and sorted in memory."""
        return self.memory_bytes // _BYTES_PER_HELD_EVENT

    @property
    def threads(self) -> int:
        """Largest number of threads whose summaries fit into the budget with Python and its libraries."""
        return max(1, (self._allowed_bytes - _BYTES_OF_PROGRAM) // _BYTES_PER_THREAD)

    def shared_by(self, processes: int) -> Budget:
        """Divide the budget between several processes."""
        return replace(self, memory_bytes=self.memory_bytes // processes, process_bytes=None)

    def shared_by_runs(self, runs: int) -> Budget:
        """Divide what may be held between several runs, which are open in one process."""
        return replace(self, memory_bytes=self.memory_bytes // runs, process_bytes=self._allowed_bytes)

    @property
    def _allowed_bytes(self) -> int:
        return self.memory_bytes if self.process_bytes is None else self.process_bytes

    def unwatched(self) -> Budget:
        """Return the same budget with `check` switched off."""
        return replace(self, watched=False)

    def check(self, path: str) -> None:
        """Stop a pass that takes more memory than the budget."""
        if not self.watched or resident_bytes() <= self._allowed_bytes:
            return
        _return_free_memory()
        if resident_bytes() > self._allowed_bytes:
            raise self.exceeded(path)

    def spare(self) -> None:
        """Give the memory that a pass has freed back to the system, if the process takes half of the budget.

        Else it stays with the process, and what comes after the pass adds to it.
        """
        if self.watched and resident_bytes() > self._allowed_bytes // 2:
            _return_free_memory()

    def check_events(self, path: str, events: int, what: str) -> None:
        """Refuse to hold more events at once than fit into the budget.

        `what`: name of these events in the message, such as "all calls of two tasks".
        """
        if events > self.held_events:
            from ensembles.model.units import bytes_text

            need = bytes_text(2 * events * _BYTES_PER_HELD_EVENT)
            raise EnsioError(
                f"{path}: {what}, at least {events:,}, must be in memory at once and do not fit into "
                f"{bytes_text(self.memory_bytes)}: give more memory (--memory), such as {need}"
            )

    def exceeded(self, path: str) -> EnsioError:
        """Make the error of a pass that exceeds the budget."""
        from ensembles.model.units import bytes_text

        allowed = bytes_text(self._allowed_bytes)
        return EnsioError(
            f"{path}: the analysis takes more memory than the {allowed} that a process "
            "may take (--memory): give more memory, or select fewer calls with filters"
        )


def watched(chunks: Iterator[Events], budget: Budget, path: str) -> Iterator[Events]:
    """Pass chunks on, and check the memory budget between two of them now and then."""
    unchecked = 0
    for chunk in chunks:
        unchecked += len(chunk)
        yield chunk
        del chunk  # so that its memory can be reused for the next one
        if unchecked >= _CHECKED_EVENTS:
            budget.check(path)
            unchecked = 0


def _return_free_memory() -> None:
    with suppress(AttributeError):  # a C library that has no such function keeps little
        ctypes.CDLL(None).malloc_trim(0)


def resident_bytes() -> int:
    """Return the resident memory of this process in bytes."""
    with open("/proc/self/statm", "rb") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def held_elsewhere(columns: dict[str, np.ndarray]) -> bool:
    """Check whether a column, or a view of one, is referenced outside of the dict."""
    return any(holders != _ONLY_HERE for holders in _holders(columns))


def _holders(columns: dict[str, np.ndarray]) -> list[int]:
    """Count the references to each column; a view of a column is a reference to it."""
    return [sys.getrefcount(column) for column in columns.values()]


_ONLY_HERE = _holders({"one": np.empty(1)})[0]


def machine_memory_bytes(proc: str = "/proc", groups: str = "/sys/fs/cgroup") -> int:
    """Return the memory of the machine, or the lowest limit of its control groups.

    The control groups are those of this process.

    `proc`, `groups`: mount points of the kernel's file systems for processes and control groups.
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
    """Read the limits of a control group and of those around it.

    In a container, `place` may be a path of the host; then the group at the top is that of this process.
    """
    folder = top / place.lstrip("/")
    found = []
    for group in (folder, *folder.parents):
        with suppress(OSError, ValueError):
            limit = int((group / name).read_text(encoding="ascii"))
            found += [limit] if 0 < limit < HALF_INT64 else []
        if group == top:
            break
    return found

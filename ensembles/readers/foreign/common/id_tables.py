"""Tables that assign numbers to calls, files, tasks and threads in the order in which they are met."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Any

from ensembles.model.events import Call
from ensembles.model.metadata import Process
from ensembles.model.units import MOST_THREADS
from ensembles.readers.common.call_dictionary import UNKNOWN_CALL

MOST_CALLS = 1 << 15


class IdTable(dict[Any, int]):
    """A dictionary of numbers that calls a function for new keys.

    Examples
    --------
    >>> table = IdTable(lambda name: 10 * len(name))
    >>> table["read"], table["read"], len(table)
    (40, 40, 1)
    """

    def __init__(self, make: Callable[[Any], int]) -> None:
        super().__init__()
        self._make = make

    def __missing__(self, key: Any) -> int:
        number = self[key] = self._make(key)
        return number


class CallIds:
    """Numbers of the calls of a run. Number 0 is ``unknown``, and all calls beyond `MOST_CALLS`."""

    def __init__(self) -> None:
        self._numbers: dict[Call, int] = {UNKNOWN_CALL: 0}

    def number(self, call: Call) -> int:
        """Return the number of a call; a new call gets the next number."""
        if len(self._numbers) >= MOST_CALLS:
            return self._numbers.get(call, 0)
        return self._numbers.setdefault(call, len(self._numbers))

    @property
    def calls(self) -> tuple[Call, ...]:
        """The calls by number."""
        return tuple(self._numbers)


class FileIds:
    """Numbers of the paths of a run. Number 0 is ``""``: no file."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {"": 0}

    def number(self, path: str) -> int:
        """Return the number of a path; a new path gets the next number."""
        return self._numbers.setdefault(path, len(self._numbers))

    @property
    def paths(self) -> list[str]:
        """The paths by number."""
        return list(self._numbers)


@dataclass(slots=True)
class TracedProcess:
    """A process in a trace of another tool."""

    # host, pid, parent, program, command, cwd, source, ended, first_thread: As for `Process`; unknown values
    # are empty or 0
    host: str
    pid: int
    rank: int = -1  # Task of the process; -1: it belongs to no task
    parent: int = 0
    program: str = ""
    command: tuple[str, ...] = ()
    cwd: str = ""
    source: str = ""
    ended: bool = False
    # first, last: First and last known time of the process, ns since 1970-01-01 UTC; 0: unknown
    first: int = 0
    last: int = 0
    first_thread: int = 0
    beside_main: bool = True
    # Number within the task, by the name of the thread in the trace
    threads: dict[Hashable, int] = field(default_factory=dict)

    def seen(self, first: int, last: int) -> None:
        """Extend the known life of the process by an interval, ns since 1970."""
        self.first = min(self.first or first, first)
        self.last = max(self.last, last)

    def as_process(self) -> Process:
        """Convert to the `Process` of a run's metadata."""
        return Process(
            rank=self.rank,
            host=self.host,
            pid=self.pid,
            parent_pid=self.parent,
            program=self.program,
            command=self.command,
            cwd=self.cwd,
            start_unix_ns=self.first,
            end_unix_ns=self.last,
            ended=self.ended,
            threads=len(self.threads),
            first_thread=self.first_thread,
            beside_main=self.beside_main,
            source=self.source,
        )


class Tasks:
    """Assignment of ranks to processes and of numbers to threads at their first call.

    A process with a rank in the trace keeps it. Other processes get numbers after the largest rank in the
    trace, in the order of their first calls.
    """

    def __init__(self) -> None:
        self._next = 0
        self._threads_of_rank: dict[int, int] = {}

    def reserve(self, rank: int) -> None:
        """Reserve a rank that the trace assigns to a process."""
        self._next = max(self._next, rank + 1)

    def enter(self, process: TracedProcess) -> None:
        """Assign a rank to a process that makes its first call."""
        if process.rank < 0:
            process.rank = self._next
            self._next += 1
        if not process.threads:
            process.first_thread = self._threads_of_rank.get(process.rank, 0)
            # The main thread, beside which others may work.
            process.threads[process.pid] = min(process.first_thread, MOST_THREADS)
            self._threads_of_rank[process.rank] = process.first_thread + 1

    def thread(self, process: TracedProcess, name: Hashable) -> int:
        """Return the number of a thread within its task."""
        process.beside_main &= name != process.pid
        if name not in process.threads:
            number = self._threads_of_rank.get(process.rank, 0)
            process.threads[name] = min(number, MOST_THREADS)
            self._threads_of_rank[process.rank] = number + 1
        return process.threads[name]

    def number_of_tasks(self, processes: list[TracedProcess]) -> int:
        """Return the number of tasks; all ranks are smaller."""
        return max((process.rank for process in processes), default=-1) + 1

"""Numbers for names that come one by one: calls, files, and the tasks and threads of processes."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field

from ensembles.model.events import Call
from ensembles.model.metadata import Process
from ensembles.readers.common.call_dictionary import UNKNOWN_CALL

MOST_CALLS = 1 << 15
MOST_THREADS = 0xFFFF


class IdTable(dict[Hashable, int]):
    """Numbers keys in the order in which they are first asked for; that costs a look into a dictionary.

    Parameters
    ----------
    make : callable
        Gives the number of a key that is new.
    """

    def __init__(self, make: Callable[[Hashable], int]) -> None:
        super().__init__()
        self._make = make

    def __missing__(self, key: Hashable) -> int:
        number = self[key] = self._make(key)
        return number


class CallIds:
    """The calls of a run; the first is ``unknown``, which also stands for those beyond `MOST_CALLS`."""

    def __init__(self) -> None:
        self._numbers: dict[Call, int] = {UNKNOWN_CALL: 0}

    def number(self, call: Call) -> int:
        """Number of a call."""
        if len(self._numbers) >= MOST_CALLS:
            return self._numbers.get(call, 0)
        return self._numbers.setdefault(call, len(self._numbers))

    @property
    def calls(self) -> tuple[Call, ...]:
        """All of them, by number."""
        return tuple(self._numbers)


class FileIds:
    """The paths of a run; the first is ``""``: no file."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {"": 0}

    def number(self, path: str) -> int:
        """Number of a path."""
        return self._numbers.setdefault(path, len(self._numbers))

    @property
    def paths(self) -> list[str]:
        """All of them, by number."""
        return list(self._numbers)


@dataclass(slots=True)
class TracedProcess:
    """A process as a foreign trace shows it.

    Attributes
    ----------
    rank : int
        -1: it belongs to no task.
    threads : dict
        The trace's name of a thread → its number in the task.
    first, last : int
        ns since 1970-01-01 UTC of what is known of it first and last.
    """

    host: str
    pid: int
    rank: int = -1
    parent: int = 0
    program: str = ""
    command: tuple[str, ...] = ()
    cwd: str = ""
    source: str = ""
    ended: bool = False
    first: int = 0
    last: int = 0
    first_thread: int = 0
    threads: dict[Hashable, int] = field(default_factory=dict)

    def seen(self, first: int, last: int) -> None:
        """Note that something of it happened between two times."""
        self.first = min(self.first or first, first)
        self.last = max(self.last, last)

    def as_process(self) -> Process:
        """What a run's metadata say of it."""
        return Process(
            rank=self.rank,
            host=self.host,
            pid=self.pid,
            parent_pid=self.parent,
            program=self.program,
            command=self.command,
            cwd=self.cwd,
            user="",
            start_unix_ns=self.first,
            end_unix_ns=self.last,
            ended=self.ended,
            threads=len(self.threads),
            first_thread=self.first_thread,
            dropped_events=0,
            excluded_calls=0,
            lost_calls=0,
            source=self.source,
        )


class Tasks:
    """Gives processes ranks, and their threads numbers, when they first make a call.

    A process that told its rank keeps it; others are numbered in the order in which they come, after the
    largest rank that any told.
    """

    def __init__(self) -> None:
        self._next = 0
        self._threads_of_rank: dict[int, int] = {}

    def reserve(self, rank: int) -> None:
        """A process told this rank: it is nobody else's."""
        self._next = max(self._next, rank + 1)

    def enter(self, process: TracedProcess) -> None:
        """A process made a call."""
        if process.rank < 0:
            process.rank = self._next
            self._next += 1
        if not process.threads:
            process.first_thread = self._threads_of_rank.get(process.rank, 0)

    def thread(self, process: TracedProcess, name: Hashable) -> int:
        """Number of a thread in its task."""
        if name not in process.threads:
            number = self._threads_of_rank.get(process.rank, 0)
            process.threads[name] = min(number, MOST_THREADS)
            self._threads_of_rank[process.rank] = number + 1
        return process.threads[name]

    def number_of_tasks(self, processes: list[TracedProcess]) -> int:
        """Ranks are below it."""
        return max((process.rank for process in processes), default=-1) + 1

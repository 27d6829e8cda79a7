"""What is known about a run beside its events."""

from __future__ import annotations

from dataclasses import dataclass, field

from ensembles.events import Call


@dataclass(frozen=True, slots=True)
class Process:
    """A process that was recorded.

    Attributes
    ----------
    rank : int
        The task it belongs to; -1: it has no rank and recorded no call.
    host : str
    pid, parent_pid : int
    program : str
        Absolute path.
    command : tuple of str
        Arguments, the program's name first.
    cwd, user : str
    start_unix_ns, end_unix_ns : int
        First and last time that its clock was read, ns since 1970-01-01 UTC.
    ended : bool
        It ended in order, or went on as another program (exec) that is listed too; else it was killed, or
        still runs.
    threads : int
        Threads that recorded; in events they are numbered from `first_thread` on.
    first_thread : int
    dropped_events, excluded_calls : int
        Completed calls that are not in the events: for want of space, and because their file is left out.
    source : str
        Name of the file it was read from.
    """

    rank: int
    host: str
    pid: int
    parent_pid: int
    program: str
    command: tuple[str, ...]
    cwd: str
    user: str
    start_unix_ns: int
    end_unix_ns: int
    ended: bool
    threads: int
    first_thread: int
    dropped_events: int
    excluded_calls: int
    source: str


@dataclass(slots=True)
class RunMetadata:
    """What a reader finds out about a run before it reads events; `ensembles.run.Run` tells the meanings."""

    tasks: int
    threads: int
    origin_unix_ns: int
    calls: tuple[Call, ...]
    files: list[str]
    processes: list[Process]
    notes: list[str]
    mode: str = ""
    job: str = ""
    launcher: str = ""
    recorder: str = ""
    exclude: str = ""
    hosts: list[str] = field(default_factory=list)

    def note(self, sentence: str) -> None:
        """Add a sentence to the notes, once."""
        if sentence not in self.notes:
            self.notes.append(sentence)

"""What is known about a run beside its events."""

from __future__ import annotations

from dataclasses import dataclass, field

from ensembles.model.events import Call


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
    lost_calls : int
        Those of the dropped events that are not in the summary either.
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
    lost_calls: int
    source: str


@dataclass(frozen=True, slots=True)
class Mount:
    """A mounted file system.

    Attributes
    ----------
    point : str
        Where it is mounted.
    type : str
        As the kernel calls it: ``lustre``, ``nfs4``, ``ext4``, ...
    source : str
        Device, server or name.
    block_bytes : int
        The size of transfers that it asks for, if a recorded program opened a file there; 0: not known.
    """

    point: str
    type: str
    source: str
    block_bytes: int = 0

    def holds(self, path: str) -> bool:
        """Whether the path lies at or below the mount's point."""
        return path == self.point or path.startswith(self.point.rstrip("/") + "/")


@dataclass(slots=True)
class RunMetadata:
    """Metadata of a run, which a reader has before it reads events (meanings: `ensembles.run.run.Run`)."""

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
    clock_error_s: float | None = None
    user: str = ""
    uid: str = ""
    libc: str = ""
    mpi: str = ""
    environment: dict[str, str] = field(default_factory=dict)
    mounts: dict[str, tuple[Mount, ...]] = field(default_factory=dict)
    file_facts: dict[str, dict[str, str]] = field(default_factory=dict)
    dropped_by_reason: dict[str, int] = field(default_factory=dict)
    calls_on_other_paths: int = 0

    @property
    def has_all_events(self) -> bool:
        """Whether every call that the summary counts is among the events."""
        return self.mode not in ("profile", "tail") and all(
            process.dropped_events == process.lost_calls for process in self.processes
        )

    def note(self, sentence: str) -> None:
        """Add a sentence to the notes, once."""
        if sentence not in self.notes:
            self.notes.append(sentence)

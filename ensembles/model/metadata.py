"""Metadata of a run: processes, mounts, files and environment."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

from ensembles.model.c_layout import CONSTANTS
from ensembles.model.counters import Counters
from ensembles.model.events import Call
from ensembles.model.flights import Flights
from ensembles.model.holds import Holds, holds_of, note_on_calls, why_not_all_calls
from ensembles.model.masked_command import mask_command
from ensembles.model.sites import SiteTable

WAITS_FOR_DEVICE = CONSTANTS["ENSIO_WAITS_FOR_DEVICE"]
"""In ``carried`` of a write: its descriptor has ``O_SYNC``, ``O_DSYNC`` or ``O_DIRECT``."""

OPEN_FLAGS = "open.flags"
"""Fact of a file that was opened with flags with which writes wait (docs/reference/formats/spool.md)."""

OPEN_RANKS = "open.flags.ranks"
"""Fact of such a file that other tasks used without these flags: the ranks that had them, as ``0,5-7``."""


@dataclass(frozen=True, slots=True)
class Process:
    """A recorded process.

    Attributes
    ----------
    rank : int
        Task of the process; -1: it has no rank and recorded no call.
    host : str
        Name of the node.
    pid, parent_pid : int
        Process ids on that node.
    program : str
        Absolute path.
    command : tuple of str
        Arguments, with secrets masked (`mask_command`); the first is the name of the program.
    cwd : str
        Working directory.
    user : str
        Name or number of the user.
    start_unix_ns, end_unix_ns : int
        First and last reading of its clock, ns since 1970-01-01 UTC.
    ended : bool
        Whether it ended in order or was replaced (exec) by another listed program. If not, it was killed or
        is still running.
    threads : int
        Number of threads: the main one, and those that recorded calls. In events they are numbered from
        `first_thread`.
    first_thread : int
        Number of its first thread, the main one, within the task.
    dropped_events : int
        Completed calls without an event, because the disk was full or the budget was used up.
    excluded_calls : int
        Completed calls without an event, because their file is excluded.
    lost_calls : int
        Dropped events that are missing in the summary too.
    source : str
        Name of the file that the process was read from.
    beside_main : bool
        Whether the main thread made no call: it may compute while others are in I/O.

    Examples
    --------
    >>> import ensembles as en
    >>> process = en.open("ensio-ior").info.processes[0]
    >>> process.rank, process.threads, process.dropped_events
    (0, 1, 0)
    """

    rank: int
    host: str = ""
    pid: int = 0
    parent_pid: int = 0
    program: str = ""
    command: tuple[str, ...] = ()
    cwd: str = ""
    user: str = ""
    start_unix_ns: int = 0
    end_unix_ns: int = 0
    ended: bool = True
    threads: int = 1
    first_thread: int = 0
    dropped_events: int = 0
    excluded_calls: int = 0
    lost_calls: int = 0
    source: str = ""
    beside_main: bool = False

    def __post_init__(self) -> None:
        # Here all readers come by; the recorder's own files have the words as the program got them.
        object.__setattr__(self, "command", mask_command(tuple(self.command)))


_LOCAL = ("btrfs", "devtmpfs", "ext2", "ext3", "ext4", "overlay", "proc", "ramfs", "sysfs", "tmpfs", "xfs")


@dataclass(frozen=True, slots=True)
class Mount:
    """A mounted file system."""

    point: str  # Mount point
    type: str  # The kernel's name of the type: ``lustre``, ``nfs4``, ``ext4``, ...
    source: str  # Device, server or name
    # Preferred transfer size (``st_blksize``), if a recorded program opened a file there; 0: unknown.
    block_bytes: int = 0

    @property
    def is_local(self) -> bool:
        """Whether it is of one node, for sure: without servers, stripes and locks among nodes."""
        return self.type in _LOCAL

    def holds(self, path: str) -> bool:
        """Test whether a path lies at or below the mount point."""
        return path == self.point or path.startswith(self.point.rstrip("/") + "/")


KERNEL_BYTES = ("read", "written", "fetched", "dirtied", "excluded_read", "excluded_written")
"""Numbers of `KernelBytes`."""

LEAST_BYTES = 1 << 19
"""What programs move besides their files: start of the program, names of users, locales."""


@dataclass(frozen=True, slots=True)
class KernelBytes:
    """What the kernel counted in the processes of a run, to compare with what was recorded."""

    # read, written: Bytes that all reads and writes of the processes moved, also on pipes and sockets; but
    # for excluded writes that went to no regular file, where the recorder knew them.
    read: int = 0
    written: int = 0
    # fetched, dirtied: Bytes that were fetched from storage, and that are to be sent there.
    fetched: int = 0
    dirtied: int = 0
    # excluded_read, excluded_written: Bytes of calls that are not recorded because of their file, pipes and
    # sockets included.
    excluded_read: int = 0
    excluded_written: int = 0
    # ``linked``: the recorder is linked into the program; ``go``: the program is written in Go;
    # ``unchecked``: and what a process moved up to its end is not known; ``libaio``, ``io_uring``: a process
    # was seen with a context of libaio, or rings of io_uring; ``piped-in``, ``piped-out``: the standard
    # input, or output, of a process without a launcher was a pipe; ``inline-stdio``: inline functions of
    # stdio moved bytes of files; ``children``: a process has waited for children; ``mapped``: another
    # tool shows that the program mapped files.
    facts: tuple[str, ...] = ()
    libraries: tuple[str, ...] = ()  # File names of shared libraries of a relinked program that may do I/O
    # Why a program among the processes could not be recorded, and what to do.
    unrecorded: tuple[str, ...] = ()


@dataclass(slots=True)
class RunMetadata:
    """Metadata of a run, which readers provide before they read events.

    The attributes have the meanings of the properties of `RunInfo`.
    """

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
    clock_step_s: float | None = None
    user: str = ""
    uid: str = ""
    libc: str = ""
    mpi: str = ""
    environment: dict[str, str] = field(default_factory=dict)
    mounts: dict[str, tuple[Mount, ...]] = field(default_factory=dict)
    processors: dict[str, int] = field(default_factory=dict)
    file_facts: dict[str, dict[str, str]] = field(default_factory=dict)
    dropped_by_reason: dict[str, int] = field(default_factory=dict)
    calls_on_other_paths: int = 0
    sites: SiteTable = field(default_factory=SiteTable)
    kernel_bytes: KernelBytes | None = None
    summed: str = ""
    flights: dict[str, Flights] = field(default_factory=dict)
    counters: Counters = field(default_factory=Counters)
    left_out: int = 0
    processor_wait_ns: int = 0
    recorder_ns: int = 0

    def has_maps(self) -> None:
        """Keep that the program mapped files, accesses to which are in no call."""
        self.kernel_bytes = KernelBytes(facts=("mapped",))

    has_events: bool = field(default=True, init=False)

    @property
    def holds(self) -> frozenset[Holds]:
        """What the record holds."""
        return holds_of(*self._made, self.has_events)

    @property
    def why_not_all_calls(self) -> tuple[str, str]:
        """How a record was made that lacks calls, and how to record them."""
        return why_not_all_calls(*self._made)

    @property
    def note_on_calls(self) -> list[str]:
        """A sentence for what is shown of single calls, if some are missing."""
        return note_on_calls(*self._made)

    @property
    def _made(self) -> tuple[str, list[tuple[int, int]], str]:
        losses = [(each.dropped_events, each.lost_calls) for each in self.processes]
        return self.mode, losses, self.counters.tool

    def note_damage(self, sentences: Iterable[str], left_out: Collection[int]) -> None:
        """Note how many events are damaged or incomplete; −1: of parts that cannot be counted."""
        for sentence in sentences:
            self.note(sentence)
        self.left_out = -1 if -1 in (self.left_out, *left_out) else max(self.left_out, sum(left_out))

    def note(self, sentence: str) -> None:
        """Add a sentence to the notes unless it is there already."""
        if sentence not in self.notes:
            self.notes.append(sentence)

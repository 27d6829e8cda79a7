"""The one table of what time is lost to: of each finding, and of each other entry of an account."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

COMPUTING, COMMUNICATION, WAITING = "computing", "communication", "waiting"
FEWER_CALLS, FEWER_BYTES, NARROW, LIBRARY = "fewer-calls", "fewer-bytes", "narrow-resource", "library"
RATE, UNDECIDED = "rate", "undecided"
"""Principles: outside of calls; exchange of data; waiting for whom; calls that could be fewer;
bytes that need not move; a resource that serves too few at once; inside a library; bytes at the rate
attained; the rest."""

OUTSIDE, MESSAGES, LATE_TASK, TURNS = "outside", "communication", "late-task", "turns"
RECORDER, RECORDED = "recorder", "recorder-in-calls"
SLOW_TASK, EXCHANGE, IN_LIBRARY, AT_RATE = "slow-task", "exchange", "library", "rate"
CALLS, BYTES, ABOVE = "calls", "bytes", "above-storage"
UNTRACED, UNSEEN, OTHERS = "untraced", "unseen", "others"
"""Entries besides those of findings."""


class Cause(NamedTuple):
    """What an id stands for."""

    principle: str
    # It explains what single calls cost, whatever else there is: of the same calls, one such cause does
    of_each_call: bool = False
    # The remedy serves faster what waits for storage targets: time that calls lose in the client stays
    at_targets: bool = False
    in_client: bool = False  # The calls lose their time in the client, where they do not wait for a target
    advice: str = ""  # What to do, in plain words, unless a finding says it more closely
    # What follows it where a task makes several of the calls; where there are several tasks; where not all
    # files are on file systems of one node; where ranks of MPI move no data in collective calls yet
    of_many: str = ""
    of_tasks: str = ""
    of_servers: str = ""
    of_ranks: str = ""
    of_system_calls: str = ""  # What follows it where a record cannot have the calls of libraries
    is_estimated: bool = True  # A part of the time is the likely gain; else it is between nothing and all
    # What texts call an entry that is not a finding; ``{who}`` is the task for which others wait
    words: str = ""
    in_io: bool = True  # The time is in I/O calls
    # Remedies of ``ensio try`` that test it, by the operation of its calls; ``""``: of any. Empty: those
    # of the principle (`TRIALS`)
    trials: Mapping[str, str] = MappingProxyType({})


TRIALS = {
    FEWER_CALLS: {
        "read": "join=1MiB",
        "write": "join=1MiB",
        "seek": "join=1MiB",
        "sync": "sync=end",
        "open": "keep-open",
        "close": "keep-open",
        "meta": "once",
    }
}
"""Remedies of ``ensio try`` for the causes of a principle, by the operation of the calls."""

_ALIGNED = {"": "align=1MiB"}
_FEWER_COLLECTIVES = "; join collective calls into fewer: each exchanges messages, whatever it moves"

CAUSES = {
    "small-requests": Cause(
        FEWER_CALLS,
        of_each_call=True,
        advice=(
            "join small transfers in a buffer of 1 MiB or more (HDF5: chunk cache, H5Pset_sieve_buf_size; "
            "NetCDF: larger chunks; gfortran: GFORTRAN_FORMATTED_BUFFER_SIZE and "
            "GFORTRAN_UNFORMATTED_BUFFER_SIZE)"
        ),
        of_ranks=", or use collective I/O (romio_cb_write=enable)",
        of_system_calls=(
            "; strace does not see whether streams make these calls, by a flush after each record or a small "
            "buffer: ensio run does"
        ),
    ),
    "seek-heavy": Cause(
        FEWER_CALLS,
        of_each_call=True,
        advice=(
            "read the file in the order of its bytes and sort in memory, or read one large range and "
            "pick from it"
        ),
    ),
    "stdio-buffer": Cause(
        FEWER_CALLS,
        of_each_call=True,
        advice=(
            "give the stream a larger buffer before its first use: setvbuf(file, buffer, _IOFBF, 1 <<"
            " 20) with memory that lives as long as the stream (glibc ignores the size if buffer is "
            "NULL), in Fortran the compiler's buffer size (GFORTRAN_UNFORMATTED_BUFFER_SIZE), in "
            "Python open(..., buffering=1 << 20); or move large pieces with read(2) and write(2)"
        ),
    ),
    "o-sync": Cause(FEWER_CALLS, of_each_call=True),
    "hdf5-metadata": Cause(FEWER_CALLS, of_each_call=True),
    "serialised-metadata": Cause(
        FEWER_CALLS,
        of_each_call=True,
        advice=(
            "let the one task write its small pieces at once: buffer them, defer metadata until the "
            "file is closed (HDF5: H5Pset_meta_block_size, H5Pset_coll_metadata_write), or spread "
            "them over tasks"
        ),
    ),
    "sync-per-write": Cause(FEWER_CALLS),
    "metadata-storm": Cause(
        FEWER_CALLS,
        advice="ask once and keep the answer: keep files open, leave out stat and access before open",
        of_tasks=", let one task look a path up for the others",
        of_servers="; administrator: look at the load of the metadata server",
    ),
    "close-cost": Cause(
        FEWER_CALLS,
        advice=(
            "open the file once and keep it open over the steps, or sync before the close in a place where "
            "the program does not wait"
        ),
        of_tasks="; where that is not possible, let fewer tasks close it (one file for a node)",
    ),
    "fewer-calls": Cause(FEWER_CALLS),
    "strided-readahead": Cause(
        FEWER_BYTES,
        in_client=True,
        advice=(
            "switch off or reduce the client's strided read-ahead for these files (Lustre: "
            "llite.*.max_read_ahead_mb, or a client with the fix), or avoid its trigger: read without"
            " holes (whole regions with their padding, or a layout without padding), declare random "
            "reads to the kernel (posix_fadvise), or write dirty data to disk (fsync) before further "
            "reads"
        ),
    ),
    "read-modify-write": Cause(FEWER_BYTES, of_each_call=True),
    "hdf5-refill": Cause(FEWER_BYTES, of_each_call=True),
    "redundant-reads": Cause(
        FEWER_BYTES,
        advice=(
            "let one task (or each task its part) read the bytes once, and hand them to the others; for "
            "many tasks of one node, a copy on node-local storage"
        ),
        of_ranks="; with MPI, MPI_Bcast and collective reads send them",
        trials={"": "once"},
    ),
    "misaligned-requests": Cause(
        FEWER_BYTES,
        advice=(
            "make records and their offsets multiples of the stripe size (HDF5: H5Pset_alignment; "
            "MPI-IO: striping_unit), or choose a stripe size that divides the records"
        ),
        trials=_ALIGNED,
    ),
    "single-stripe": Cause(
        NARROW,
        at_targets=True,
        advice=(
            "stripe the folder of the file before it is written: lfs setstripe -c -1 (all targets) or"
            " -c 8 and more for files of many tasks (MPI-IO: striping_factor, HDF5: the same hint by "
            "H5Pset_fapl_mpio), or write a file for each task or node. Administrator: a progressive "
            "layout as default (lfs setstripe -E 64M -c 1 -E -1 -c 8)"
        ),
    ),
    "slow-target": Cause(
        NARROW,
        advice=(
            "tell the administrator which target it is (its disks rebuild, or it is nearly full); "
            "until then create the files anew on other targets (lfs setstripe -o, or a pool), or "
            "stripe wide, so that no file lies on it alone"
        ),
    ),
    "lock-contention": Cause(
        NARROW,
        advice=(
            "let each stripe belong to one node: records that are multiples of the stripe size and "
            "begin at stripes (pad them, or lfs setstripe -S with the size of a record), contiguous "
            "parts for the tasks of a node, or collective writes with aggregators at stripe "
            "boundaries (romio_cb_write=enable, striping_unit; Cray MPICH: cray_cb_write_lock_mode=2)"
        ),
        trials=_ALIGNED,
    ),
    "aggregation-mismatch": Cause(
        NARROW,
        advice=(
            "use one aggregator or more on each node (cb_nodes), buffers of 16 MiB or more "
            "(cb_buffer_size), and as many stripes as aggregators"
        ),
    ),
    "write-back": Cause(
        NARROW,
        advice=(
            "spread the writing over the computation (non-blocking or background writes), write less "
            "at once, or begin the writing back early (sync_file_range after each piece). "
            "Administrator: lower vm.dirty_background_bytes, so that writing back begins sooner; a "
            "higher vm.dirty_ratio only puts the waiting off"
        ),
    ),
    "cache-cliff": Cause(NARROW),
    "interference": Cause(NARROW),
    "too-many-writers": Cause(NARROW, trials={"": "aggregate=1"}),
    "node-serialisation": Cause(WAITING),
    "polling": Cause(WAITING),
    "imbalance": Cause(
        WAITING,
        advice=("give every task the same number of bytes (divide the domain by cost, not by index)"),
        of_ranks=(
            ", or write collectively, so that aggregators even the bytes out (MPI_File_write_at_all, "
            "H5FD_MPIO_COLLECTIVE)"
        ),
        trials={"": "even"},
    ),
    "straggler-task": Cause(
        WAITING,
        advice=(
            "look at what else runs on the core, and at what only this task does (logging, a "
            "different path or file system); pin tasks; ask the administrator to check its node"
        ),
    ),
    "straggler-node": Cause(
        WAITING,
        advice=(
            "run without this node (--exclude in Slurm), and tell the administrator: its link, its "
            "client or its memory is slow"
        ),
    ),
    "single-large-call": Cause(WAITING, trials={"": "split=8"}),
    "collective-coordination": Cause(
        COMMUNICATION,
        advice=(
            "write independently where the pieces are large and contiguous (romio_cb_write=disable), or use "
            "fewer tasks in the communicator"
        ),
        of_many=_FEWER_COLLECTIVES,
    ),
    "formatted-io": Cause(
        LIBRARY,
        of_each_call=True,
        advice=(
            "write and read numbers in binary: whole arrays in one call of fwrite and fread, HDF5 or netCDF; "
            "text that has to stay is cheaper with fewer digits, and in larger pieces"
        ),
    ),
    "hdf5-filters": Cause(LIBRARY),
    "not-io": Cause(COMPUTING, in_io=False),
    SLOW_TASK: Cause(
        WAITING,
        words="waiting for {who} in I/O",
        is_estimated=False,
        advice="compare the I/O calls of the task for which the others wait with theirs (ensio phases, ensio "
        "ranks): more bytes, other files, a slow node, or the processor that it shares",
    ),
    EXCHANGE: Cause(
        COMMUNICATION,
        words="exchange in collective calls",
        is_estimated=False,
        advice="give each task larger contiguous pieces: a collective call sorts and exchanges them",
        of_many=_FEWER_COLLECTIVES,
    ),
    IN_LIBRARY: Cause(LIBRARY, words="inside libraries"),
    ABOVE: Cause(UNDECIDED, words="in a library outside of storage calls: waiting, exchange or locks"),
    AT_RATE: Cause(RATE, words="bytes at the best rate of this run"),
    UNTRACED: Cause(UNDECIDED, words="calls that were counted, and not traced"),
    UNSEEN: Cause(UNDECIDED, words="I/O or computing, which the record does not show"),
    CALLS: Cause(UNDECIDED, words="calls without bytes"),
    BYTES: Cause(UNDECIDED, words="reads and writes"),
    OTHERS: Cause(UNDECIDED, words="I/O of other tasks, for which none or all may have waited"),
    TURNS: Cause(
        WAITING,
        words="waiting for the tasks before, one after the other",
        in_io=False,
        advice="let tasks do their I/O at the same time: each to its own range of a shared file (pwrite, "
        "MPI_File_write_at_all) or to a separate file, instead of passing the turn on",
    ),
    LATE_TASK: Cause(
        WAITING,
        words="waiting for {who} outside of I/O",
        in_io=False,
        is_estimated=False,
        advice="look at what the late task does outside of I/O calls: give all tasks as much to compute, and "
        "a processor each",
    ),
    MESSAGES: Cause(COMMUNICATION, words="communication", in_io=False),
    RECORDED: Cause(COMPUTING, words="the recorder itself"),
    RECORDER: Cause(COMPUTING, words="the recorder itself", in_io=False),
    OUTSIDE: Cause(COMPUTING, words="computing and other time outside of recorded I/O calls", in_io=False),
}

ADVICE_OF_CALLS = {
    "open": "put many records into one file that stays open; a program that cannot be changed gains where "
    "opens are fast, as on a local disk or in memory",
    "folder": "sync a folder once, after all files of a step are in their places",
    "file": "sync a file once a step, after all that the step changes in it",
    "mapping": "write a mapping back once a step instead of after each change (msync of all changed pages), "
    "or give the order without waiting (MS_ASYNC), where a crash may take the last changes",
    "stream": "flush a stream once a step, or when it is closed: a flush after each record makes a call of "
    "each, whatever buffer the stream has (C++: '\\n' instead of std::endl; gfortran flushes at each PRINT "
    "or WRITE to standard output: write more in each, or to a unit of OPEN)",
    "seek": "leave the seeks out where the next bytes follow, and give a stream that jumps a small buffer: a "
    "seek fills it anew; pread and pwrite take the offset; Python's open() seeks too: keep the file open",
    "descriptor": "ask, change or map once for all records instead of for each: set the size of a file "
    "before its first write, and keep a file mapped",
    "lock": "lock once for many records, and do less while the lock is held: a call waits as long as another "
    "task holds it; a file or a range for each task needs none",
    "path": "look a path up once, or read its folder once instead of asking for each path",
    "scan": "scan the folder once and keep what it held, instead of reading it and asking for each of its "
    "paths again: remember the newest name, write it to an index or a link, or put steps into folders",
    "once": "make fewer, larger files, or put them in a faster place (memory, a local disk): most of these "
    "calls are the first on their path, so that keeping answers spares few",
    "change": "make fewer and larger files or folders; a program that cannot be changed gains where these "
    "calls are fast, as on a local disk or in memory",
    "move": "replace a file less often, such as once in several steps: a rename of a file that was just "
    "written may wait for the disk",
    "flush": "flush less often, such as once in several steps or when the file is closed: each flush writes "
    "metadata, and chunks that are not yet full",
    "library": "make fewer objects: one dataset or attribute with an array instead of one object for each "
    "record, opened once",
}
"""What to do about many calls of a kind, of which no pattern says more."""

_LOCK = (
    "a file that is made and removed is a lock: write without it, each task to a file or a range that no "
    "other task writes, or let one task write for all; where tasks have to take turns, a lock of the system "
    "(fcntl with F_SETLKW, flock) wakes the one that waits"
)

ADVICE_OF_FAILURES = {
    "EEXIST": _LOCK,
    "EAGAIN": "wait in the call for a lock (F_SETLKW, flock without LOCK_NB) instead of trying again",
    "ENOENT": "let the task that makes the file send a message, or wait for an event of its folder (inotify) "
    "where both are on one node; else ask rarely, with growing pauses",
}
"""What to do about calls that fail with an error on a path, and are made again until they succeed."""

ADVICE_OF_PATHS = {
    "lock-file": _LOCK,
    "made-and-removed": "keep the file, and empty it or write over it, instead of removing it and making it "
    "again (SQLite: journal_mode=WAL, PERSIST or TRUNCATE); a file of the task alone can be in memory or on "
    "a local disk",
    "made-and-moved": "write more into a file before it is moved to its place, such as once in several "
    "steps; a file that no process reads meanwhile need not be moved at all: write into it, and keep it open",
}
"""What to do about paths that are made again and again, by the pattern of their calls."""


def cause_of(name: str) -> Cause:
    """Return what an id stands for; rules of others have no principle that is known."""
    return CAUSES.get(name, Cause(UNDECIDED))

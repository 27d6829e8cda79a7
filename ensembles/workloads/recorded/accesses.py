"""The calls of a recorded run that a replay makes again, as columns."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ensembles.model.c_layout import CONSTANTS
from ensembles.model.calls import OPS
from ensembles.model.enclosed import among_themselves
from ensembles.model.errors import EnsioError
from ensembles.model.events import COLUMNS, MISSING
from ensembles.model.holds import Holds
from ensembles.model.levels import RARE
from ensembles.model.units import count_text, share_text
from ensembles.run.selection import Selection

if TYPE_CHECKING:
    from ensembles.model.events import Events
    from ensembles.run.run import Run

READ, WRITE, OPEN, CLOSE, SEEK, SYNC, META, WAIT = range(len(OPS))
"""Codes of `ensembles.model.calls.OPS`."""

_COLUMNS = tuple(name for name in COLUMNS if name not in MISSING)

_SAME_NAMES = {
    "posix": "open openat creat close lseek read write pread pwrite readv writev preadv pwritev fsync "
    "fdatasync ftruncate fallocate fstat fcntl_lock flock stat lstat fstatat access unlink unlinkat remove "
    "mkdir rmdir opendir readdir closedir readlink realpath rename chmod truncate sync_file_range",
    "stdio": "fopen fdopen fclose fseek rewind ftell fread fwrite fprintf fputc fgetc __uflow __overflow "
    "fflush setvbuf",
    "mpiio": "open close read_at write_at read_at_all write_at_all read_all write_all read write seek sync "
    "set_size set_view",
}
MADE_AS = {
    (layer, f"MPI_File_{name}" if layer == "mpiio" else name): f"{layer}.{name}"
    for layer, names in _SAME_NAMES.items()
    for name in names.split()
}
MADE_AS |= {
    ("posix", "preadv2"): "posix.preadv",
    ("posix", "pwritev2"): "posix.pwritev",
    ("posix", "posix_fallocate"): "posix.fallocate",
    ("posix", "statx"): "posix.fstatat",
    ("posix", "faccessat"): "posix.access",
    ("posix", "mkdirat"): "posix.mkdir",
    ("posix", "mkstemp"): "posix.open",
    ("posix", "renameat"): "posix.rename",
    ("posix", "renameat2"): "posix.rename",
    ("posix", "readlinkat"): "posix.readlink",
    ("stdio", "fgets"): "stdio.fread",
    ("stdio", "getdelim"): "stdio.fread",
    ("stdio", "fputs"): "stdio.fwrite",
    ("stdio", "puts"): "stdio.fwrite",
    ("stdio", "fscanf"): "stdio.fread",
}
"""Calls of plans by layer and name of recorded ones."""

MEETINGS = (
    "MPI_Barrier",
    "MPI_Allreduce",
    "MPI_Allgather",
    "MPI_Allgatherv",
    "MPI_Alltoall",
    "MPI_Alltoallv",
)
"""Calls that no task leaves before all have entered; others than barriers are made as barriers."""

ACCESS_READ, ACCESS_WRITE = (CONSTANTS[f"ENSIO_OPENED_TO_{way}"] for way in ("READ", "WRITE"))
"""Bits of ``carried`` of an open."""

_TOGETHER = ("MPI_File_open", "MPI_File_close", "MPI_File_sync", "MPI_File_set_size", "MPI_File_set_view")
_LONE = ("mpiio.open", "mpiio.close", "mpiio.sync", "mpiio.set_size")

_MOST_PLAIN_BYTES = 16
"""Extent of a file type up to which it is an element: a view of it has no holes."""

OVERLAPPING_SHARE = RARE
"""Share of calls that begin before another thread of their task is done, from which on it is said."""


@dataclass(frozen=True)
class Accesses:
    """Calls in the order of tasks and their starts; columns are arrays of whole numbers, shape (n,)."""

    names: tuple[str, ...]  # Calls of plans, which `call` indexes
    ops: tuple[int, ...]  # Code of the operation of each name
    files: Sequence[str]  # Absolute paths, which `file` indexes
    tasks: int
    # `file` 0: none; `offset` -1: none; `moved` -1: the call failed
    task: np.ndarray
    call: np.ndarray
    file: np.ndarray
    offset: np.ndarray
    bytes: np.ndarray
    moved: np.ndarray
    start: np.ndarray  # ns since the first of all calls
    duration: np.ndarray  # ns in the run; -1: the run has no such call
    gap: np.ndarray  # ns before the call that the task was in no call
    access: np.ndarray  # Access mode of an open (`ACCESS_READ`, `ACCESS_WRITE`)
    # Of files that a task has open several times at once: which of these the call uses
    slot: np.ndarray
    # What is not made again, and what is made otherwise
    notes: tuple[str, ...] = field(default=(), compare=False)
    is_below: bool = False  # Whether calls of libraries are made as the calls inside of them
    source: np.ndarray | None = None  # Where the run had the bytes, if they lie elsewhere
    lost_s: float = 0.0  # Most time of a task in calls on files that are not made again

    def __len__(self) -> int:
        return len(self.task)

    @property
    def op(self) -> np.ndarray:
        """Codes of the operations."""
        found: np.ndarray = np.array(self.ops, np.int8)[self.call]
        return found

    @property
    def pair(self) -> np.ndarray:
        """A number for each pair of task and file, in the order of both."""
        found: np.ndarray = self.task.astype(np.int64) * len(self.files) + self.file
        return found

    def users(self, which: slice | np.ndarray = slice(None)) -> np.ndarray:
        """Return how many tasks make some of the calls on each file."""
        pairs = np.unique(self.pair[which])
        return np.bincount(pairs % len(self.files), minlength=len(self.files))

    def is_call(self, *names: str) -> np.ndarray:
        """Whether calls are of these names."""
        found: np.ndarray = np.isin(self.call, [n for n, name in enumerate(self.names) if name in names])
        return found

    def with_used_names(self) -> Accesses:
        """Return the same with the names that are used only."""
        used, call = np.unique(self.call, return_inverse=True)
        return replace(
            self,
            names=tuple(self.names[number] for number in used.tolist()),
            ops=tuple(self.ops[number] for number in used.tolist()),
            call=call,
        )

    def taken(self, which: np.ndarray, **columns: Any) -> Accesses:
        """Return some of the calls, with other columns; the gaps of those left out remain."""
        passed = np.cumsum(self.gap)
        kept = {name: columns.get(name, getattr(self, name))[which] for name in COLUMN_NAMES}
        task, passed = kept["task"], passed[which]
        begins = np.r_[True, task[1:] != task[:-1]][: len(task)]
        first = np.searchsorted(self.task, task[begins])
        before = np.r_[0, passed[:-1]][: len(task)]
        before[begins] = np.cumsum(self.gap)[first] - self.gap[first]
        return replace(self, **kept, gap=passed - before)


COLUMN_NAMES = ("task", "call", "file", "offset", "bytes", "moved", "start", "duration", "access", "slot")
"""Columns of `Accesses`, but for the gaps."""


def read_accesses(run: Run, part: Selection | None = None) -> Accesses:
    """Read the calls of a run that a replay makes again, or raise EnsioError if the record lacks some.

    `part`: those of this selection only.
    """
    run.reading.need(Holds.CALL_ORDER, "a replay makes every call again")
    events = run.reading.chosen_by((part or Selection()).for_run(run), _COLUMNS)
    why_below = why_not_as_mpiio(events)
    wanted = ("posix", "stdio", "mpisync", "mpimsg", *(() if why_below else ("mpiio",)))
    layers = np.array([call.layer for call in events.calls])
    used_layers = set(layers[np.unique(events.call)].tolist())
    events = _some(events, np.isin(layers, wanted)[events.call])
    access = events.carried & np.uint8(ACCESS_READ | ACCESS_WRITE)
    events = among_themselves(events)
    outermost = events.depth == 0
    events, access = _some(events, outermost), access[outermost]
    is_io = np.array([call.layer in ("posix", "stdio", "mpiio") for call in events.calls])[events.call]
    notes = [f"MPI-IO is replayed as the calls inside of it: {why_below}"] if why_below else []
    above = {"hdf5": "HDF5", "netcdf": "NetCDF", "pnetcdf": "PnetCDF"}
    used = [words for layer, words in above.items() if layer in used_layers]
    notes += [f"{' and '.join(used)} calls are replayed as the calls inside of them"] if used else []
    known = np.array([(c.layer, c.name) in MADE_AS for c in events.calls])[events.call] & (events.file > 0)
    found = _columns(run, events, access, is_io, notes) if known.any() else None
    if not found:
        why = f": {why_below}, and the calls inside of MPI-IO were not recorded" if why_below else ""
        raise EnsioError(f"{run.path} has no calls on files that can be replayed{why}")
    return replace(found, is_below=bool(used or why_below))


def _some(events: Events, which: np.ndarray) -> Events:
    """Return some events, without a copy if these are all."""
    return events if which.all() else events[which]


def _columns(
    run: Run, events: Events, access: np.ndarray, is_io: np.ndarray, notes: Sequence[str]
) -> Accesses:
    """Choose what is made again, and say what is not."""
    calls = events.calls
    used = set(np.unique(events.call).tolist())
    made = [MADE_AS.get((each.layer, each.name), "") if n in used else "" for n, each in enumerate(calls)]
    names = (*dict.fromkeys(name for name in made if name), "mpi.barrier")
    number = np.array([names.index(name) if name else -1 for name in made], np.int64)
    ops = {name: OPS.index(call.op) for call, name in zip(calls, made, strict=True) if name}
    _, task = np.unique(events.rank, return_inverse=True)
    tasks = int(task[-1]) + 1
    start, end = events.start, events.start + events.duration
    reached = running_maximum(task, end)
    begins = np.r_[True, task[1:] != task[:-1]]
    first_ns = int(start[is_io].min())
    before = np.where(begins, first_ns, np.r_[0, reached[:-1]])
    meets = _meetings(run, events, task, tasks)
    call = np.where(meets, len(names) - 1, number[events.call])
    is_made = (call >= 0) & (meets | (is_io & (events.file > 0)))
    overlaps = is_io & (start < before)
    notes = [*notes, *_not_made(events, is_io, is_made), *_threads(overlaps, is_io)]
    files = [os.path.normpath(path) if path else "" for path in events.files]
    if any("/../" in path for path in events.files):
        notes.append("names with /../ are made again as if the folder before it were not a symbolic link")
    numbers: dict[str, int] = {}
    file = np.array([numbers.setdefault(path, n) for n, path in enumerate(files)])[events.file]
    found = Accesses(
        names=names,
        ops=(*(ops[name] for name in names[:-1]), WAIT),
        files=files,
        tasks=tasks,
        task=task.astype(np.int32),
        call=call.astype(np.int16),
        file=np.where(meets, 0, file).astype(np.int32),
        offset=events.offset,
        bytes=events.wanted,
        moved=events.moved,
        start=start - first_ns,
        duration=events.duration,
        gap=np.maximum(start - np.maximum(before, first_ns), 0),
        access=access,
        slot=np.zeros(len(events), np.int16),
        notes=tuple(notes),
    ).taken(is_made)
    again = with_lone_opens(_with_slots(found))
    of_files = is_io & (events.file > 0)
    lost = np.bincount(task[of_files], events.duration[of_files], tasks)
    lost -= np.bincount(again.task, np.where(again.is_call("mpi.barrier"), 0, again.duration), tasks)
    return replace(again, lost_s=float(lost.max()) * 1e-9)


def why_not_as_mpiio(events: Events) -> str:
    """Say why calls of MPI-IO cannot be made again as such; ``""``: they can, or there are none."""
    is_mpiio = np.array([call.layer == "mpiio" for call in events.calls])[events.call]
    if not is_mpiio.any():
        return ""
    calls = events[is_mpiio]
    moves = np.isin(calls.op, [READ, WRITE])
    is_unknown = np.array([("mpiio", call.name) not in MADE_AS for call in events.calls])
    if (is_unknown[calls.call] & moves).any():
        return "it has calls that do not block, or of a shared position"
    is_view = np.array([call.name == "MPI_File_set_view" for call in events.calls])[calls.call]
    is_view &= calls.requested > _MOST_PLAIN_BYTES
    if is_view.any() or (moves & (calls.offset < 0) & (calls.moved > 0)).any():
        return "the record does not have the pieces of its views"
    is_together = [call.name.endswith("_all") or call.name in _TOGETHER for call in events.calls]
    together = np.array(is_together)[calls.call]
    tasks = len(np.unique(events.rank))
    for file in np.unique(calls.file).tolist():
        mine = calls.file == file
        each = [calls.call[mine & together & (calls.rank == rank)] for rank in np.unique(calls.rank[mine])]
        if len(each) not in (1, tasks) or not all(np.array_equal(one, each[0]) for one in each):
            return "its files are opened by groups of tasks, which the record does not name"
    return ""


def with_lone_opens(found: Accesses) -> Accesses:
    """Let tasks that use a file by MPI-IO alone open it alone."""
    if not any(name.startswith("mpiio.") for name in found.names) or found.tasks == 1:
        return found
    users = found.users()
    alone = [f"{name}_alone" for name in found.names]
    has_one = np.array([name in _LONE for name in found.names])[found.call] & (users[found.file] == 1)
    return replace(
        found,
        names=(*found.names, *alone),
        ops=(*found.ops, *found.ops),
        call=np.where(has_one, found.call + len(found.names), found.call),
    ).with_used_names()


def running_maximum(group: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Compute the largest value so far in each group; groups are contiguous, and values 0 or more."""
    known, place = np.unique(values, return_inverse=True)
    shift = group.astype(np.int64) * len(known)
    return known[np.maximum.accumulate(place + shift) - shift]


def _meetings(run: Run, events: Events, task: np.ndarray, tasks: int) -> np.ndarray:
    """Find the calls in which all tasks meet, each as often and in the same order."""
    is_meeting = np.array([call.name in MEETINGS for call in events.calls])[events.call]
    is_barrier = np.array([call.name == "MPI_Barrier" for call in events.calls])[events.call]
    if tasks == 1:
        return is_barrier
    for which in (is_meeting, is_barrier):
        each = [events.call[which & (task == one)] for one in range(tasks)] if which.any() else []
        if all(np.array_equal(one, each[0]) for one in each):
            return which
    raise EnsioError(
        f"{run.path}: its tasks meet in barriers of groups, which the record does not name: the order of "
        "their calls is not known"
    )


def _not_made(events: Events, is_io: np.ndarray, is_made: np.ndarray) -> list[str]:
    """Say which I/O calls are not made again, and their share of the time in I/O."""
    lost = is_io & ~is_made & (events.file > 0)
    if not lost.any():
        return []
    share = events.duration[lost].sum() / max(events.duration[is_io].sum(), 1)
    counts = Counter(dict(enumerate(np.bincount(events.call[lost]).tolist())))
    named = ", ".join(f"{events.calls[n].name} × {count:,}" for n, count in counts.most_common(4) if count)
    return [f"not made again: {named} ({share_text(share)} of the time in I/O)"]


def _threads(overlaps: np.ndarray, is_io: np.ndarray) -> list[str]:
    if overlaps.sum() <= OVERLAPPING_SHARE * is_io.sum():
        return []
    share = share_text(overlaps.sum() / is_io.sum())
    return [
        f"{share} of the calls began while another thread of their task was in a call: they follow it here"
    ]


def _with_slots(found: Accesses) -> Accesses:
    """Number the opens of a file that a task has open already, and leave out closes of what is not open."""
    delta = (found.op == OPEN).astype(np.int8) - (found.op == CLOSE)
    delta[found.moved < 0] = 0
    delta[found.is_call("stdio.fdopen", "posix.opendir", "posix.closedir")] = 0
    order = np.lexsort((found.file, found.task))
    key = found.pair[order]
    change = delta[order]
    begins = np.r_[True, key[1:] != key[:-1]]
    group = np.cumsum(begins) - 1
    total = np.cumsum(change)
    base = (total - change)[begins][group]
    level = total - base
    lowest = np.minimum(-running_maximum(group, np.maximum(-level, 0)), 0)
    depth_after = level - lowest
    depth_before = np.where(begins, 0, np.r_[0, depth_after[:-1]])
    slot = np.maximum(np.where(change > 0, depth_after, depth_before) - 1, 0)
    slots, unopened = np.empty(len(found), np.int16), np.empty(len(found), bool)
    slots[order], unopened[order] = slot, depth_before == 0
    is_stream = np.array([name.startswith("stdio.") and name != "stdio.fopen" for name in found.names])
    left_out = unopened & ((delta < 0) | is_stream[found.call])
    notes = found.notes
    if left_out.any():
        notes = (*notes, f"{count_text(int(left_out.sum()), 'call')} on streams or files that no call opened")
    found = replace(found, notes=notes).taken(~left_out, slot=slots)
    return replace(found, offset=sought(found))


def sought(found: Accesses) -> np.ndarray:
    """Return offsets; of a seek to an unknown one that of the next call on the file."""
    order = np.lexsort((found.slot, found.file, found.task))
    offset = found.offset[order]
    places = np.where(offset >= 0, np.arange(len(order)), len(order) - 1)
    later = np.minimum.accumulate(places[::-1])[::-1]
    same = (found.file[order] == found.file[order][later]) & (found.task[order] == found.task[order][later])
    sought = np.empty(len(order), np.int64)
    sought[order] = np.where((found.op[order] == SEEK) & same, offset[later], offset)
    return sought

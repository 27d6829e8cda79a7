"""The calls of patterns: requirements and effects of each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import IntEnum


class FileState(IntEnum):
    """State of a file in one task."""

    CLOSED = 0
    OPEN = 1
    DATASET = 2  # file and its dataset (HDF5) or variable (NetCDF) are open
    INDEPENDENT = 3  # PnetCDF: the same, and transfers are independent
    POSTED = 4  # PnetCDF: requests are not complete
    ALONE = 5  # MPI-IO: the task opened the file by itself


ANY = frozenset(FileState)
CLOSED = frozenset({FileState.CLOSED})
OPEN = frozenset({FileState.OPEN})
DATASET = frozenset({FileState.DATASET})
INDEPENDENT = frozenset({FileState.INDEPENDENT})
POSTED = frozenset({FileState.POSTED})
ALONE = frozenset({FileState.ALONE})


@dataclass(frozen=True)
class CallKind:
    """Requirements and effects of a call."""

    needs: tuple[str, ...] = ()  # Required keys of the operation, in addition to `call` and `file`
    smallest_size: int = 1  # Bytes; 0 for collective calls, in which some tasks may move no data
    # States in which the call is possible; empty for calls without a file
    before: frozenset[FileState] = OPEN
    after: FileState | None = None  # State after the call, if it changes
    # The call uses the path of the file, so that one of several files must be selected
    names_file: bool = False
    makes_file: bool = False  # The call creates the file
    # sets_position, moves_position: The call sets the file position to `offset`, or advances it by the bytes
    # moved
    sets_position: bool = False
    moves_position: bool = False
    # reads, writes: The call reads or writes the bytes at its offset
    reads: bool = False
    writes: bool = False
    in_pieces: bool = False  # The call can access separate pieces of the file
    in_boxes: bool = False  # The call can access several boxes of pieces
    collective: bool = False  # All tasks make the call together
    same_size: bool = False  # All tasks make it with the same number of bytes

    @property
    def moves(self) -> bool:
        """Whether the call moves bytes of its file."""
        return self.reads or self.writes


_AT = ("offset", "size")
_SIZE = ("size",)


def _opening(collective: bool = False) -> CallKind:
    return CallKind(
        before=CLOSED, after=FileState.OPEN, names_file=True, makes_file=True, collective=collective
    )


def _closing(collective: bool = False) -> CallKind:
    return CallKind(after=FileState.CLOSED, collective=collective)


_SEEK = CallKind(("offset",), sets_position=True)
_READ = CallKind(_SIZE, moves_position=True, reads=True)
_WRITE = CallKind(_SIZE, moves_position=True, writes=True)
_READ_AT = CallKind(_AT, reads=True)
_WRITE_AT = CallKind(_AT, writes=True)
_IN_PIECES_READ = CallKind(_AT, reads=True, in_pieces=True)
_IN_PIECES_WRITE = CallKind(_AT, writes=True, in_pieces=True)
_ALL_READ = CallKind(_AT, 0, reads=True, in_pieces=True, collective=True)
_ALL_WRITE = CallKind(_AT, 0, writes=True, in_pieces=True, collective=True)
_LENGTH = CallKind(_SIZE, 0)
_BY_PATH = CallKind(before=ANY, names_file=True)
_TOGETHER = CallKind(collective=True)


def _in(before: frozenset[FileState], kind: CallKind, after: FileState | None = None) -> CallKind:
    return replace(kind, before=before, after=after)


def _in_boxes(kind: CallKind) -> CallKind:
    return replace(kind, in_boxes=True)


def _of_dataset(kind: CallKind) -> CallKind:
    return _in(DATASET, kind)


_OPENING_TOGETHER = CallKind(before=CLOSED, after=FileState.OPEN, names_file=True, collective=True)

_NETCDF = {
    "create": _opening(collective=True),
    "open": _OPENING_TOGETHER,
    "close": CallKind(before=OPEN | DATASET, after=FileState.CLOSED, collective=True),
    "variable_create": CallKind(
        _SIZE, after=FileState.DATASET, in_pieces=True, in_boxes=True, collective=True, same_size=True
    ),
    "variable_open": CallKind(after=FileState.DATASET, collective=True),
    "read": _of_dataset(_in_boxes(_IN_PIECES_READ)),
    "write": _of_dataset(_in_boxes(_IN_PIECES_WRITE)),
    "read_all": _of_dataset(_in_boxes(_ALL_READ)),
    "write_all": _of_dataset(_in_boxes(_ALL_WRITE)),
    "sync": _in(DATASET, _TOGETHER),
}

_MPI = CallKind(before=frozenset(), collective=True)
_MPI_DATA = CallKind(_SIZE, before=frozenset(), collective=True, same_size=True)

FILE_CALLS: Mapping[str, Mapping[str, CallKind]] = {
    "posix": {
        "open": _opening(),
        "close": _closing(),
        "lseek": _SEEK,
        "read": _READ,
        "write": _WRITE,
        "pread": _READ_AT,
        "pwrite": _WRITE_AT,
        "fsync": CallKind(),
        "fdatasync": CallKind(),
        "stat": _BY_PATH,
        "unlink": _BY_PATH,
        "ftruncate": _LENGTH,
    },
    "stdio": {
        "fopen": _opening(),
        "fclose": _closing(),
        "fseek": _SEEK,
        "fread": _READ,
        "fwrite": _WRITE,
        "fflush": CallKind(),
    },
    "mpiio": {
        "open": _opening(collective=True),
        "close": _closing(collective=True),
        "open_alone": _in(CLOSED, _opening(), FileState.ALONE),
        "close_alone": _in(ALONE, CallKind(), FileState.CLOSED),
        "seek": _in(OPEN | ALONE, _SEEK),
        "read": _in(OPEN | ALONE, _READ),
        "write": _in(OPEN | ALONE, _WRITE),
        "read_at": _in(OPEN | ALONE, _in_boxes(_IN_PIECES_READ)),
        "write_at": _in(OPEN | ALONE, _in_boxes(_IN_PIECES_WRITE)),
        "read_at_all": _in_boxes(_ALL_READ),
        "write_at_all": _in_boxes(_ALL_WRITE),
        "read_all": _in_boxes(_ALL_READ),
        "write_all": _in_boxes(_ALL_WRITE),
        "sync": _TOGETHER,
        "sync_alone": CallKind(before=ALONE),
        "set_size": CallKind(_SIZE, 0, collective=True, same_size=True),
        "set_size_alone": CallKind(_SIZE, 0, before=ALONE),
    },
    "hdf5": {
        "create": _opening(collective=True),
        "open": _OPENING_TOGETHER,
        "close": _closing(collective=True),
        "dataset_create": CallKind(_SIZE, after=FileState.DATASET, collective=True, same_size=True),
        "dataset_open": CallKind(after=FileState.DATASET, collective=True),
        "dataset_close": CallKind(before=DATASET, after=FileState.OPEN, collective=True),
        "read": _of_dataset(_IN_PIECES_READ),
        "write": _of_dataset(_IN_PIECES_WRITE),
        "read_all": _of_dataset(_ALL_READ),
        "write_all": _of_dataset(_ALL_WRITE),
        "flush": CallKind(before=OPEN | DATASET, collective=True),
        "metadata": CallKind(_SIZE, before=OPEN | DATASET, collective=True, same_size=True),
    },
    "netcdf": _NETCDF,
    "pnetcdf": {
        **_NETCDF,
        "begin_independent": _in(DATASET, _TOGETHER, FileState.INDEPENDENT),
        "end_independent": _in(INDEPENDENT, _TOGETHER, FileState.DATASET),
        "read": _in(INDEPENDENT, _in_boxes(_IN_PIECES_READ)),
        "write": _in(INDEPENDENT, _in_boxes(_IN_PIECES_WRITE)),
        "iget": _in(DATASET | POSTED, _in_boxes(_IN_PIECES_READ), FileState.POSTED),
        "iput": _in(DATASET | POSTED, _in_boxes(_IN_PIECES_WRITE), FileState.POSTED),
        "wait_all": _in(DATASET | POSTED, _TOGETHER, FileState.DATASET),
    },
}

COLLECTIVELY_OPENED = ("mpiio", "hdf5", "netcdf", "pnetcdf")
"""Layers whose files all tasks open together, but for calls of MPI-IO that say otherwise."""

MAKES_ROOM = ("hdf5.dataset_create", "netcdf.variable_create", "pnetcdf.variable_create")
"""Calls that determine the length of a file by their size."""

OTHER_CALLS: Mapping[str, CallKind] = {
    "mpi.barrier": _MPI,
    "mpi.allgather": _MPI_DATA,
    "mpi.allreduce": _MPI_DATA,
    "mpi.exchange": CallKind(("to", "size"), before=frozenset()),
    "task.compute": CallKind(("duration_ns",), before=frozenset()),
}
"""Calls without a file, by layer and name."""

EXCHANGE = "mpi.exchange"

COMMON_NAMES: Mapping[str, Mapping[str, str]] = {
    "posix": {"seek": "lseek", "read_at": "pread", "write_at": "pwrite", "sync": "fsync"},
    "stdio": {
        "open": "fopen",
        "close": "fclose",
        "seek": "fseek",
        "read": "fread",
        "write": "fwrite",
        "sync": "fflush",
    },
    "mpiio": {},
    "hdf5": {},
    "netcdf": {},
    "pnetcdf": {},
}
"""Names of common calls in each layer, so that a pattern is independent of the layer."""

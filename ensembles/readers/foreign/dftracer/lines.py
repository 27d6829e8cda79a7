"""Find, recognise and parse the files of DFTracer: JSON records, one per line, maybe cut or compressed."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from typing import Any, get_type_hints

import msgspec
import numpy as np

from ensembles.files.untrusted import MOST_PART_BYTES
from ensembles.model.units import BYTES_AT_ONCE, MOST_TASKS, count_text
from ensembles.readers.foreign.common.call_catalog import NO_IO, canonical_function
from ensembles.readers.foreign.common.id_tables import CallIds, FileIds, IdTable, Tasks, TracedProcess
from ensembles.readers.foreign.common.text_blocks import (
    TextBlocks,
    plain,
    sorted_out,
)

_FEW = 32

UNTOLD = -(1 << 63)
"""Value of a number that a record lacks."""

Name = int | str | None


class Arguments(msgspec.Struct, gc=False):
    """Arguments of a record. Hashes are numbers or texts, depending on the version."""

    ret: int = UNTOLD
    count: int = UNTOLD
    size: int = UNTOLD
    offset: int = UNTOLD
    fhash: Name = None
    hhash: Name = None
    fname: str | None = None
    hostname: str | None = None
    name: Name = None
    value: Any = None
    ppid: Name = None
    cwd: Name = None
    cmd_hash: Name = None
    exec_hash: Name = None


class Record(msgspec.Struct, gc=False):
    """A record. ``ph`` is a letter of the Chrome format, or a number since DFTracer 4."""

    name: str
    ph: int | str
    id: Name = None
    cat: str = ""
    pid: int = 0
    tid: int = 0
    ts: int = 0
    dur: int = 0
    args: Arguments | None = None


NO_ARGUMENTS = Arguments()
_KINDS = get_type_hints(Arguments)

# Versions before 1.0.4 write numbers as texts.
_STRICT = msgspec.json.Decoder(Record, strict=False)


class _First(msgspec.Struct, gc=False):
    """What every record has; a trace in Chrome's format may lack the category."""

    name: str
    cat: str
    pid: int
    ph: str | int


_RECORD = msgspec.json.Decoder(_First, strict=False)


def bare(line: bytes) -> bytes:
    """Return the record in a line of JSON, whose commas and brackets may be those of an array."""
    return line.strip().removeprefix(b"[").removesuffix(b"]").strip().rstrip(b",").rstrip()


def is_dftracer(beginning: bytes) -> bool:
    """Test whether the first bytes of a file, compressed or not, are records of DFTracer."""
    first = next(filter(None, map(bare, plain(beginning, 1 << 16).split(b"\n", 64))), b"")
    try:
        _RECORD.decode(first)
    except (msgspec.MsgspecError, RecursionError, ValueError):
        return False
    return True


def dftracer_files(path: str) -> tuple[list[str], list[str]]:
    """List the files of a trace, and the others."""
    return sorted_out(path, lambda name: name.endswith((".pfw", ".pfw.gz")), is_dftracer)


class TextFile(TextBlocks):
    """A file of records; also counts lines that are not records as skipped."""

    def __init__(self, path: str) -> None:
        super().__init__(path, b'"name"')

    def records(self) -> Iterator[list[Record]]:
        """Yield the records, block by block."""
        hopeless = 0
        last: bytes = b""
        for block in self.blocks():
            if b"},\n" in block:  # the Chrome format has commas between records
                block = block.replace(b"},\n", b"}\n")
            records = self._decoded(block)
            hopeless = 0 if records else hopeless + len(block)
            if hopeless > MOST_PART_BYTES:
                raise self.hopeless()
            if records:
                yield records
            last = block[-BYTES_AT_ONCE:]
        tail = last.rstrip()
        if tail and not tail.endswith((b"}", b"]")):
            # A truncated last record is not an invalid line.
            self.torn, self.skipped = True, max(self.skipped - 1, 0)

    def _decoded(self, block: bytes) -> list[Record]:
        try:
            return _STRICT.decode_lines(block)
        except (msgspec.MsgspecError, RecursionError, ValueError):
            pass
        lines = block.split(b"\n")
        if len(lines) > _FEW:
            half = len(lines) // 2
            return self._decoded(b"\n".join(lines[:half])) + self._decoded(b"\n".join(lines[half:]))
        records = []
        for line in lines:
            line = bare(line)
            if not line:
                continue
            record = _leniently(line)
            if record is None:
                self.skipped += 1
            else:
                records.append(record)
        return records


def _leniently(line: bytes) -> Record | None:
    """Parse a record with arguments of unexpected types or invalid UTF-8; None: it is not a record."""
    if len(line) > BYTES_AT_ONCE:
        return None
    try:
        return _STRICT.decode(line)
    except (msgspec.MsgspecError, RecursionError, ValueError):
        pass
    try:
        told = json.loads(line.decode("utf-8", "surrogateescape"), strict=False)
        told["args"] = _plain(told.get("args"))
        return msgspec.convert(told, Record, strict=False)
    except (msgspec.MsgspecError, ValueError, RecursionError, AttributeError, TypeError, OverflowError):
        return None


def _plain(args: Any) -> dict[str, Any]:
    """Keep the arguments that have the expected types."""
    kept = {}
    for name, value in args.items() if isinstance(args, dict) else ():
        try:
            kept[name] = msgspec.convert(value, _KINDS[name], strict=False)
        except (KeyError, msgspec.MsgspecError):
            continue
    return kept


_LAYER_OF = {
    "POSIX": "posix",
    "STDIO": "stdio",
    "MPIIO": "mpiio",
    "MPI-IO": "mpiio",
    "MPI_IO": "mpiio",
    "MPI": "mpisync",
    "HDF5": "hdf5",
}
_MOST_REGION_NAMES = 1 << 16
_AT_AN_OFFSET = frozenset(("pread", "pwrite", "preadv", "pwritev", "preadv2", "pwritev2"))


class Names:
    """All names of a trace and their numbers.

    `codes`: key: (name, category) of a record. Value: number of a call, or `NO_IO`, or `REGION` minus the
    number of a region name.
    `pairs`: key: ((hash of host, host), (pid, tid)). Value: number of a thread.
    `files`: key: (hash of file, path). Value: number of a file.
    `region_names`: names of regions by number.
    """

    NO_IO = -1
    REGION = -2

    def __init__(self) -> None:
        self.calls = CallIds()
        self.codes = IdTable(self._code)
        self.pairs = IdTable(self._pair)
        self.files = IdTable(self._file)
        self.region_names: list[str] = []
        self._traits: list[tuple[bool, bool, bool, bool]] = []
        self._paths = FileIds()
        self._path_of_hash: dict[Any, str] = {}
        self._awaited: dict[Any, int] = {}
        self._host_of_hash: dict[Any, str] = {}
        self._text_of_hash: dict[Any, str] = {}
        self._processes: dict[tuple[Any, int], TracedProcess] = {}
        self._told_ranks: dict[tuple[Any, int], int] = {}
        self._threads: list[tuple[TracedProcess, int]] = []
        self._tasks = Tasks()
        self._cwd = ""
        self._host: Any = None
        self._source = ""
        self._moved = self._relative = False

    def note_rank(self, line: bytes) -> None:
        """Parse a line that may contain the rank of a process."""
        try:
            record = msgspec.json.decode(bare(line), type=Record, strict=False)
            args = record.args or NO_ARGUMENTS
            rank = int(args.value) if args.name == "rank" else -1
        except (msgspec.MsgspecError, ValueError, TypeError, RecursionError):
            return
        if 0 <= rank < MOST_TASKS:
            self._told_ranks[args.hhash or args.hostname, record.pid] = rank
            self._tasks.reserve(rank)

    def begin_file(self, source: str) -> None:
        """Begin another file."""
        self._source, self._host, self._cwd = source, None, ""
        self.pairs.clear()

    def note(self, record: Record) -> None:
        """Add a metadata record: the name behind a hash."""
        args = record.args or NO_ARGUMENTS
        if not isinstance(args.value, int | str) or not isinstance(args.name, int | str):
            return
        name = str(args.name)
        if record.name == "FH":
            self._path_of_hash.setdefault(args.value, self._absolute(name))
        elif record.name == "HH":
            self._host_of_hash[args.value] = name
            self._host = args.value
        elif record.name == "SH":
            self._text_of_hash[args.value] = name

    def _absolute(self, path: str) -> str:
        self._relative |= not path.startswith("/")
        return os.path.normpath(os.path.join(self._cwd, path)) if path else ""

    def note_life(self, record: Record, time_ns: int) -> None:
        """Add the record of the start or end of a process, at a time in ns since 1970."""
        args = record.args or NO_ARGUMENTS
        process = self._process(args.hhash or args.hostname, record.pid)
        process.seen(time_ns, time_ns)
        if record.name == "end":
            process.ended = True
        if record.name == "start":
            self._cwd = self._path_of_hash.get(args.cwd, self._cwd)
            process.cwd = self._cwd
            process.parent = args.ppid if isinstance(args.ppid, int) else 0
            command = self._text_of_hash.get(args.cmd_hash, "")
            process.command = tuple(word for word in command.split(";") if word)
            program = self._text_of_hash.get(args.exec_hash, "")
            if program.startswith("/"):
                process.program = program
            elif process.command and self._cwd:
                process.program = os.path.normpath(os.path.join(self._cwd, process.command[0]))

    def _process(self, host: Any, pid: int) -> TracedProcess:
        host = self._host if host is None else host
        process = self._processes.get((host, pid))
        if process is None:
            process = TracedProcess("", pid, source=self._source)
            self._processes[host, pid] = process
        return process

    def _pair(self, key: Any) -> int:
        (hhash, hostname), (pid, tid) = key
        host = hhash if hhash is not None else hostname
        process = self._process(host, pid)
        if process.rank < 0:
            host = self._host if host is None else host
            process.rank = self._told_ranks.get((host, pid), self._told_ranks.get((None, pid), -1))
            self._tasks.enter(process)
        self._threads.append((process, self._tasks.thread(process, tid)))
        return len(self._threads) - 1

    def rank_and_thread(self, pairs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return rank and thread number of each of some `pairs`."""
        unique, where = np.unique(pairs, return_inverse=True)
        told = [(self._threads[pair][0].rank, self._threads[pair][1]) for pair in unique.tolist()]
        table = np.array(told, np.int64).reshape(len(told), 2)
        return table[where, 0], table[where, 1]

    def note_times(self, pairs: np.ndarray, start: np.ndarray, end: np.ndarray) -> None:
        """Extend the known lives of processes by the times of their calls, ns since 1970."""
        for pair in np.unique(pairs).tolist():
            mine = pairs == pair
            self._threads[pair][0].seen(int(start[mine].min()), int(end[mine].max()))

    def _code(self, key: Any) -> int:
        name, category = key
        layer = _LAYER_OF.get(category.upper())
        if layer == "mpisync" and name.startswith("MPI_File_"):
            layer = "mpiio"
        if layer is None:
            if len(self.region_names) < _MOST_REGION_NAMES:
                self.region_names.append(f"{category}: {name}" if category else name)
            return self.REGION - (len(self.region_names) - 1)
        if name in NO_IO:
            self._moved |= name in ("chdir", "fchdir")
            return self.NO_IO
        return self.calls.number(canonical_function(name, layer))

    def traits(self, codes: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Return properties of calls that determine the meaning of their arguments."""
        for call in self.calls.calls[len(self._traits) :]:
            self._traits.append(
                (
                    call.op in ("read", "write"),
                    call.name in _AT_AN_OFFSET,
                    call.name in ("lseek", "ftell"),
                    call.name in ("fread", "fwrite"),
                )
            )
        return tuple(np.array(self._traits, bool)[codes].T)

    def _file(self, key: Any) -> int:
        fhash, path = key
        if path is not None:
            return self._paths.number(self._absolute(path))
        if fhash is None or fhash in (0, "", "0"):
            return 0
        if fhash in self._path_of_hash:
            return self._paths.number(self._path_of_hash[fhash])
        # The name may be in another file of the folder.
        self._awaited[fhash] = self._paths.number(f"\0{fhash}")
        return self._awaited[fhash]

    def paths(self) -> list[str]:
        """Return the paths by number."""
        paths = self._paths.paths
        for fhash, number in self._awaited.items():
            paths[number] = self._path_of_hash.get(fhash, f"file with the hash {fhash}")
        return paths

    def as_processes(self) -> list[Any]:
        """Return all processes, sorted by rank."""
        for (host, _), process in self._processes.items():
            process.host = self._host_of_hash.get(host, host if isinstance(host, str) else "")
        return sorted(
            (process.as_process() for process in self._processes.values()),
            key=lambda process: (process.rank, process.first_thread),
        )

    def notes(self) -> list[str]:
        """Describe missing names, paths and ranks."""
        notes = []
        nameless = sum(fhash not in self._path_of_hash for fhash in self._awaited)
        if nameless:
            notes.append(f"the trace lacks the names of {count_text(nameless, 'file')}, shown by hash")
        if self._moved and self._relative:
            notes.append(
                "programs changed their working directory: relative paths are resolved against the first one"
            )
        if not self._told_ranks:
            notes.append("the trace has no ranks: processes are numbered in the order of their start")
        elif any(
            process.rank >= 0 and process.rank not in set(self._told_ranks.values())
            for process in self._processes.values()
        ):
            notes.append("some processes have no rank in the trace: they are numbered after the others")
        return notes

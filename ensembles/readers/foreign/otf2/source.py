"""Read OTF2 archives of ``ensio export`` and of other tools through ``ensio-otf2``.

On a damaged archive, libotf2 aborts or hangs. Therefore separate processes with bounded memory read the
archive, and they are killed if they make no progress.

The call of each row of an archive follows from its region, I/O paradigm and kind.
"""

from __future__ import annotations

import os
import re
import select
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import IO

import numpy as np

from ensembles.files.untrusted import SMALL_PART_BYTES, beginning_of, open_regular
from ensembles.model.errors import EnsioError
from ensembles.model.events import OPS, Call
from ensembles.model.metadata import RunMetadata
from ensembles.model.regions import RegionTable
from ensembles.model.surroundings import COLUMNS, UNKNOWN, SurroundingsTable
from ensembles.model.units import MOST_THREADS
from ensembles.readers.common.columns import unsound
from ensembles.readers.foreign.common.id_tables import MOST_CALLS, CallIds, IdTable
from ensembles.readers.foreign.common.import_table import ForeignTrace
from ensembles.readers.foreign.otf2.definitions import Definitions
from ensembles.recorder import otf2_program as link

MAGIC = b"OTF2"
"""Magic number of an archive; it follows one byte for the kind of block and one for the byte order."""

ROW = np.dtype(
    [
        ("start", "i8"),
        ("duration", "i8"),
        ("offset", "i8"),
        ("moved", "i8"),
        ("requested", "u8"),
        ("flight", "i8"),
        ("location", "u4"),
        ("region", "u4"),
        ("file", "u4"),
        ("rank", "u4"),
        ("request", "u4"),
        ("site", "u4"),
        ("thread", "u2"),
        ("error", "u2"),
        ("kind", "u1"),
        ("paradigm", "u1"),
        ("depth", "u1"),
        ("carried", "u1"),
    ]
)
"""``struct ensio_otf2_row`` of ``libtrace/otf2/stream.h``."""

NO_NUMBER = 0xFFFFFFFF

MOST_DEFINITION_BYTES = 1 << 30
MOST_MEMORY_BYTES = 2 * MOST_DEFINITION_BYTES
"""Memory limit of the reading processes, which hold all definitions."""

MOST_PROCESSES = min(8, len(os.sched_getaffinity(0)))
"""Number of reading processes. More than eight produce rows faster than Python can process them."""

STANDSTILL_S = 60.0
"""Time without a message after which a reading process counts as stuck on damage."""

_COUNTED = {
    "unknown definitions": "definitions of unknown kinds were skipped",
    "unknown records": "records of unknown kinds, or about undefined handles, were skipped",
    "never complete": "operations have no end: they are left out",
    "never left": "calls were entered but not left: they are left out",
    "missing": "records announced by its definitions are missing, with the calls in them",
    "without begin": "operations have no beginning: they are left out",
    "without bytes": "reads and writes have no number of bytes (such as scanf in archives of Score-P): they "
    "count as 0 bytes, and later offsets in the file are unknown",
}


def find_anchor(path: str, beginning: bytes | None) -> str | None:
    """Find the anchor file of an archive: the file itself, or the only one in the folder."""
    if beginning is not None:
        return path if beginning[2:6] == MAGIC else None
    try:
        paths = sorted(os.path.join(path, name) for name in os.listdir(path) if name.endswith(".otf2"))
        anchors = [each for each in paths if beginning_of(each, 6)[2:] == MAGIC]
    except OSError:
        return None
    return anchors[0] if len(anchors) == 1 else None


def recognises(path: str, beginning: bytes | None) -> bool:
    """Test whether a path is an anchor file, or a folder with one anchor file."""
    return find_anchor(path, beginning) is not None


def read(path: str) -> Otf2Import:
    """Open an OTF2 archive."""
    anchor = find_anchor(path, None) if os.path.isdir(path) else path
    if anchor is None:
        raise EnsioError(f"{path} contains no OTF2 archive any more: name another folder")
    return Otf2Import(anchor)


class Otf2Import(ForeignTrace):
    """An OTF2 archive; a `ForeignTrace`."""

    def __init__(self, anchor: str) -> None:
        self._anchor = anchor
        self._check_files()
        self._program = link.program()
        self._definitions = Definitions(anchor)
        self._calls: CallResolver | None = None
        self._regions: list[dict[str, np.ndarray]] = []
        self._impossible = 0
        self._samples: list[np.ndarray] = []
        self.metadata = RunMetadata(0, 0, 0, (), [""], [], [])

    def _check_files(self) -> None:
        """Check that the library, which would wait for a pipe, finds regular files only."""
        stem = self._anchor.removesuffix(".otf2")
        try:
            for path in (self._anchor, stem + ".def", *(entry.path for entry in os.scandir(stem))):
                if not os.path.isdir(path):
                    open_regular(path).close()
        except FileNotFoundError:
            return  # the library says what is missing
        except OSError as error:
            raise EnsioError(f"{error.filename} cannot be read: {error.strerror}") from error

    def blocks(self, max_events: int) -> Iterator[Mapping[str, np.ndarray]]:
        """Yield blocks of calls, as `ForeignTrace.blocks`. Blocks of different ranks may alternate."""
        counts: dict[str, int] = {}
        for kind, count, data in self._messages():
            if kind == link.DEFINITION_KIND:
                self._definitions.add([os.fsdecode(word) for word in bytes(data).split(b"\0")[:-1]])
            elif kind == link.ROWS_KIND:
                rows = np.frombuffer(data, ROW, count)
                for low in range(0, count, max_events):
                    block = self._block_of(rows[low : low + max_events])
                    if len(block["rank"]):
                        yield block
            elif kind == link.SAMPLE_ROWS_KIND:
                self._samples.append(np.frombuffer(data, link.SAMPLE, count).copy())
            elif kind == link.READ_KIND:
                words = data.decode().split("\0")
                counts = {name: int(number) for name, number in zip(words[0::2], words[1::2], strict=False)}
        self._finish(counts)

    def regions(self) -> RegionTable:
        """Return the phases and regions that the program named."""
        if not self._regions:
            return RegionTable.empty()
        columns = {name: np.concatenate([part[name] for part in self._regions]) for name in self._regions[0]}
        # The order of the reading processes must not matter.
        by_rank = np.argsort(columns["rank"], kind="stable")
        return RegionTable(
            {name: column[by_rank] for name, column in columns.items()}, self._definitions.region_names
        )

    def surroundings(self) -> SurroundingsTable:
        """Return the samples of the kernel's counters in an archive of ensio."""
        return samples_from_metrics(self._samples, self._definitions.counters, self._definitions.tasks)

    def _finish(self, counts: Mapping[str, int]) -> None:
        calls = self._calls or CallResolver(self._definitions)
        self.metadata = self._definitions.metadata()
        self.metadata.calls = calls.ids.calls
        for name, count in counts.items():
            if count and name in _COUNTED:
                self.metadata.note(f"{self._anchor}: {count:,} {_COUNTED[name]}")
        if calls.without_operation:
            told = "reads and writes have neither bytes nor file"
            doing = "(Score-P: sockets, pipes and files opened before recording): they count as 0 bytes"
            self.metadata.note(f"{self._anchor}: {calls.without_operation:,} {told} {doing}")
        if self._impossible:
            told = "regions have impossible times: they are left out"
            self.metadata.note(f"{self._anchor}: {self._impossible:,} {told}")
        for note in self._definitions.notes():
            self.metadata.note(note)

    def _block_of(self, rows: np.ndarray) -> dict[str, np.ndarray]:
        """Convert rows to columns, and keep phases and regions separately."""
        if self._calls is None:
            self._definitions.complete()
            self._calls = CallResolver(self._definitions)
        regions = rows["kind"] == _REGION_ROW
        if regions.any():
            self._keep_regions(self._possible(rows[regions]))
            rows = rows[~regions]
        rank, thread = self._who(rows)
        return {
            "rank": rank,
            "thread": thread,
            "call": self._calls.resolve(rows),
            "depth": rows["depth"],
            "carried": rows["carried"],
            "file": self._definitions.read_files(rows["file"]),
            "offset": rows["offset"],
            "requested": rows["requested"],
            "moved": rows["moved"],
            "error": rows["error"],
            "start": rows["start"],
            "duration": rows["duration"],
            "site": self._definitions.read_sites(rows["site"]),
            "flight": rows["flight"],
            "request": rows["request"],
        }

    def _who(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return rank and thread of each row, from the row itself or from its location."""
        ranks, threads = self._definitions.ranks, self._definitions.threads
        location = rows["location"]
        if len(location) and int(location.max()) >= len(ranks):
            raise self._damaged("it has records of a location that it does not define")
        rank, thread = ranks[location], threads[location]
        told = rows["rank"] != NO_NUMBER
        if told.any():
            rank = np.where(told, rows["rank"], rank)
            thread = np.where(rows["thread"] != MOST_THREADS, rows["thread"], thread)
            if int(rank.max()) >= self._definitions.tasks:
                raise self._damaged("it has records of a rank that it does not define")
        return rank, thread

    def _possible(self, regions: np.ndarray) -> np.ndarray:
        """Leave out and count regions with impossible times."""
        beyond = unsound({name: regions[name] for name in ("start", "duration")})
        if beyond is None:
            return regions
        self._impossible += int(beyond.sum())
        possible: np.ndarray = regions[~beyond]
        return possible

    def _keep_regions(self, rows: np.ndarray) -> None:
        rank, thread = self._who(rows)
        kind, name = self._definitions.read_regions(rows["region"])
        self._regions.append(
            {
                "rank": rank.astype("u4"),
                "thread": thread.astype("u2"),
                "kind": kind,
                "name": name,
                "start": rows["start"].copy(),
                "duration": rows["duration"].copy(),
                "ended": (rows["moved"] != 0).astype("u1"),
            }
        )

    def _messages(self) -> Iterator[tuple[int, int, bytes | bytearray]]:
        """Yield kind, count and data of each message of the program."""
        with (
            tempfile.TemporaryFile() as complaint,
            subprocess.Popen(
                [self._program, "read", self._anchor, str(MOST_MEMORY_BYTES), str(MOST_PROCESSES)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=complaint,
                bufsize=0,
            ) as process,
        ):
            assert process.stdout is not None
            link.widen(process.stdout)
            told_all, definition_bytes = False, 0
            try:
                while (head := self._receive(process.stdout, link.HEAD.size)) is not None:
                    kind, count, size = link.HEAD.unpack(head)
                    if not _makes_sense(kind, count, size):
                        raise self._damaged("the OTF2 library crashed on it")
                    data = self._receive(process.stdout, size) if size else b""
                    if data is None:
                        break
                    definition_bytes += size * (kind == link.DEFINITION_KIND)
                    if definition_bytes > MOST_DEFINITION_BYTES:
                        raise self._damaged("its definitions are longer than 1 GiB")
                    told_all = told_all or kind == link.READ_KIND
                    yield kind, count, data
            finally:
                if not told_all:
                    _end(process)
            if process.wait() != 0 or not told_all:
                complaint.seek(0)
                reason = complaint.read(1000).decode("utf-8", "replace").strip().split("\n")[0]
                raise self._damaged(reason or "the OTF2 library crashed on it")

    def _receive(self, pipe: IO[bytes], size: int) -> bytearray | None:
        """Receive `size` bytes; None: the program has ended."""
        data = bytearray(size)
        room = memoryview(data)
        until = time.monotonic() + STANDSTILL_S
        while room:
            if not select.select([pipe], [], [], max(until - time.monotonic(), 0))[0]:
                raise self._damaged(f"the OTF2 library made no progress on it for {STANDSTILL_S:.0f} s")
            count = os.readv(pipe.fileno(), [room])
            if not count:
                return None
            room = room[count:]
        return data

    def _damaged(self, reason: str) -> EnsioError:
        return EnsioError(
            f"{self._anchor} cannot be read: {reason}; copy the archive again, or write it again"
        )


def _makes_sense(kind: int, count: int, size: int) -> bool:
    """Test whether the head of a message is valid; a damaged archive may have corrupted the program."""
    if kind in (link.ROWS_KIND, link.SAMPLE_ROWS_KIND):
        row = ROW if kind == link.ROWS_KIND else link.SAMPLE
        return size == count * row.itemsize <= SMALL_PART_BYTES
    known = kind in (link.DEFINITION_KIND, link.ALIVE_KIND, link.READ_KIND)
    return known and size <= SMALL_PART_BYTES


def _end(process: subprocess.Popen[bytes]) -> None:
    """Wait briefly for the program, whose own message is better than none, then kill it."""
    try:
        process.wait(timeout=0.2)
    except subprocess.TimeoutExpired:
        process.kill()


def samples_from_metrics(
    parts: Sequence[np.ndarray], counters: Mapping[int, str], tasks: int
) -> SurroundingsTable:
    """Put the values of each rank and time into a row."""
    if not parts:
        return SurroundingsTable.empty()
    rows = np.concatenate(parts)
    count = 1 + max(counters, default=0)
    metric = rows["metric"].astype(np.int64)
    rank = metric // count - 1
    known = (rank >= 0) & (rank < tasks)
    rows, rank, number = rows[known], rank[known], metric[known] % count
    sample = np.stack([rank, rows["time"]], axis=1)
    unique, place = np.unique(sample, axis=0, return_inverse=True)
    place = place.ravel()
    columns = {name: np.full(len(unique), UNKNOWN, dtype=np.int64) for name in COLUMNS}
    columns["rank"], columns["time"] = unique.T
    for counter, name in counters.items():
        if name in columns and name not in ("rank", "time"):
            mine = number == counter
            columns[name][place[mine]] = rows["value"][mine]
    return SurroundingsTable(columns)


LAYERS = {"POSIX": "posix", "ISOC": "stdio", "MPI-IO": "mpiio", "HDF5": "hdf5"}
"""Layer of each I/O paradigm, by its identification. Other paradigms become layers with their names."""

OPS_OF_ROWS = ("read", "write", "sync", "open", "close", "seek", "meta", "meta")
"""Kind of operation of each kind of row. For larger kinds the region determines the operation."""

_NAMES_OF_ROWS = ("read", "write", "flush", "open", "close", "seek", "delete", "duplicate")
_CALL_ROW = len(OPS_OF_ROWS)
_REGION_ROW = _CALL_ROW + 1
_IO_ROLES = (27, 38)
_STREAMS = re.compile(
    r"f(open|close|dopen|reopen|read|write|seek|tell|flush|gets?c?|puts?c?|printf|scanf).*|rewind|puts|getc|putc"
)
_OPS = (
    (
        "open",
        re.compile(
            r"(f|fd|fre)?open(at|dir)?(64)?|creat(64)?|tmpfile(64)?|mkstemps?|MPI_File_open|H5[A-Z](open|create).*"
        ),
    ),
    ("close", re.compile(r"f?close(dir)?|MPI_File_close|H5[A-Z]close")),
    ("seek", re.compile(r".*(seek|tell).*|rewind|f[gs]etpos(64)?")),
    ("sync", re.compile(r".*(sync|flush).*")),
    ("read", re.compile(r".*read(?!dir|link).*|f?getc|f?gets|f?scanf")),
    ("write", re.compile(r".*write.*|f?putc|f?puts|f?printf")),
)


class CallResolver:
    """Resolver of rows to calls, which adds new calls as they occur.

    `ids`: numbers of the calls in the column ``call``.
    `without_operation`: number of reads and writes so far with a region but without an I/O record.
    """

    def __init__(self, definitions: Definitions) -> None:
        self._definitions = definitions
        self.ids = CallIds()
        self._ours = self._our_calls()
        self._others = IdTable(lambda key: self.ids.number(self._call_of(key)))
        self.without_operation = 0

    def _our_calls(self) -> np.ndarray | None:
        """Return the call number of each region of an archive of ensio; None for other archives."""
        regions = self._definitions.call_regions
        if not regions or not all(said.startswith("ensio call ") for _, said, _ in regions.values()):
            return None
        table = np.zeros(max(regions) + 1, "u2")
        for number, (name, said, _) in regions.items():
            op, _, layer = said.removeprefix("ensio call ").partition(" ")
            if op not in OPS or len(regions) > MOST_CALLS:
                raise EnsioError("an OTF2 archive of ensio names calls that it cannot have: copy it again")
            table[number] = self.ids.number(Call(name, layer, op))
        return table

    def resolve(self, rows: np.ndarray) -> np.ndarray:
        """Resolve the call of each row."""
        region = rows["region"]
        if self._ours is not None:
            inside = region < len(self._ours)
            return np.where(inside, self._ours[np.where(inside, region, 0)], 0).astype("u2")
        key = region.astype("u8") << 16 | rows["paradigm"].astype("u8") << 8 | rows["kind"]
        unique, place, counts = np.unique(key, return_inverse=True, return_counts=True)
        others = [self._others[number] for number in unique.tolist()]
        known = self.ids.calls
        for number, other, count in zip(unique.tolist(), others, counts.tolist(), strict=True):
            # A read or write lacks its I/O record; ends of split collectives never have one.
            call = known[other]
            moves = call.op in ("read", "write") and not call.name.endswith("_end")
            self.without_operation += count * (moves and number & 0xFF == _CALL_ROW)
        return np.array(others, "u2")[place]

    def _call_of(self, key: int) -> Call:
        region, paradigm, kind = key >> 16, key >> 8 & 0xFF, key & 0xFF
        name, _, role = self._definitions.call_regions.get(region, ("", "", 0))
        told = self._definitions.paradigms.get(paradigm, "")
        layer = LAYERS.get(told, told.lower()) if told else _layer_of(name, role)
        if kind < _CALL_ROW:
            return Call(name or f"{told or 'I/O'} {_NAMES_OF_ROWS[kind]}", layer, OPS_OF_ROWS[kind])
        if layer == "mpisync":
            return Call(name, layer, "wait")
        return Call(name, layer, next((op for op, names in _OPS if names.fullmatch(name)), "meta"))


def _layer_of(name: str, role: int) -> str:
    """Determine the layer of a function without an I/O record."""
    if name.startswith("MPI_File_"):
        return "mpiio"
    if role not in _IO_ROLES:
        return "mpisync"
    if re.match(r"H5[A-Z]", name):
        return "hdf5"
    if name.startswith(("nc_", "ncmpi_")):
        return "netcdf" if name.startswith("nc_") else "pnetcdf"
    return "stdio" if _STREAMS.fullmatch(name) else "posix"

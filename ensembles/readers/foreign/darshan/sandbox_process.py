"""The process in which Darshan's library reads logs. A crash on a damaged log ends only this process.

The command line is ``python -m`` with this module and the arguments LOG, DESCRIPTOR and SEGMENTS. The process
writes frames (`write_frame`) to standard output. It decompresses DXT segments into the shared memory of the
descriptor, which has room for SEGMENTS segments. A byte on standard input acknowledges them.

Without arguments it reads the counters of many logs, each in a child process (`read_archive`).
"""

from __future__ import annotations

import gc
import io
import mmap
import os
import resource
import struct
import sys
from array import array
from collections.abc import Sequence
from typing import Any

from ensembles.files.untrusted import SMALL_PART_BYTES
from ensembles.model.errors import EnsioError
from ensembles.readers.foreign.darshan.header import ROWS, SEGMENT_BYTES, Header, open_header, write_frame
from ensembles.readers.foreign.darshan.library import DarshanError, Log, error_frame, warm_up

SUMMED = ("MPI-IO", "DFS", "DAOS", "POSIX", "STDIO")
COUNTED = ("H5D", "H5F", "PNETCDF_VAR", "PNETCDF_FILE", *SUMMED)
TRACED = ("DXT_MPIIO", "DXT_POSIX")

_RECORD = "Qqq64sqq"
_FIRST_WITH_THREADS = {"DXT_POSIX": 2, "DXT_MPIIO": 3}
_MOST_TIMES_PACKED = 200
_LEAST_SECONDS = 60
_BYTES_PER_SECOND = 1 << 20
_LEAST_MEMORY = 1 << 29
_MEMORY_PER_NAME_BYTE = 128


def main(path: str, descriptor: str, room: str) -> int:
    """Read the log and write its contents as frames."""
    out = sys.stdout.buffer
    try:
        header = open_header(path)
        limit(os.stat(path).st_size, header)
        _tell(path, header, out, int(descriptor), int(room))
    except Exception as error:
        write_frame(out, error_frame(path, error))
    return 0


def read_archive() -> int:
    """Read the counters of the logs whose paths are on standard input, each after its length of four bytes.

    The library is loaded once; the first frame says whether that works. A damaged log ends only the child
    that reads it. A frame ``end`` or ``error`` is the last of a log.
    """
    out = sys.stdout.buffer
    try:
        warm_up()
    except Exception as error:
        write_frame(out, error_frame("", error))
        return 1
    write_frame(out, {"kind": "ready"})
    gc.freeze()  # a collection in a child would copy every page
    while len(head := sys.stdin.buffer.read(4)) == 4:
        path = os.fsdecode(sys.stdin.buffer.read(struct.unpack("<I", head)[0]))
        child = os.fork()
        if child == 0:
            # After a crash of the library nothing of a log is written: the frames of others stay whole.
            out.write(_counters_of(path).getbuffer())
            out.flush()
            os._exit(0)
        if os.waitpid(child, 0)[1] != 0:
            text = f"{path} is damaged: Darshan's library failed on it"
            write_frame(out, {"kind": "error", "text": text})
    return 0


def _counters_of(path: str) -> io.BytesIO:
    """Return the frames of a log."""
    frames = io.BytesIO()
    try:
        header, size_bytes = open_header(path), os.stat(path).st_size
        limit(size_bytes, header)
        log = Log(path)
        write_counters(log, write_job(log, header, frames), SUMMED, frames, size_bytes)
        write_frame(frames, {"kind": "end"})
    except Exception as error:
        frames = io.BytesIO()
        write_frame(frames, error_frame(path, error))
    return frames


def limit(size_bytes: int, header: Header) -> None:
    """Limit core file, time and memory to what a log of this size needs."""
    _lower(resource.RLIMIT_CORE, 0)
    seconds = _LEAST_SECONDS + size_bytes // _BYTES_PER_SECOND
    _lower(resource.RLIMIT_CPU, seconds)
    with open("/proc/self/statm", "rb") as file:
        used = int(file.read().split()[0]) * mmap.PAGESIZE
    most = used + _LEAST_MEMORY + _MEMORY_PER_NAME_BYTE * header.names[1]
    _lower(resource.RLIMIT_AS, most)


def _lower(which: int, most: int) -> None:
    """Set a limit unless there is a lower one."""
    soft, hard = resource.getrlimit(which)
    most = min([most, *(limit for limit in (soft, hard) if limit != resource.RLIM_INFINITY)])
    resource.setrlimit(which, (most, most))


def _tell(path: str, header: Header, out: Any, descriptor: int, room: int) -> None:
    log = Log(path)
    modules = write_job(log, header, out)
    if "LUSTRE" in modules:
        for identity, components in log.layouts(modules["LUSTRE"]["number"]):
            write_frame(out, {"kind": "layout", "components": components}, [array("Q", [identity])])
    packed = os.stat(path).st_size
    write_counters(log, modules, COUNTED, out, packed)
    if "HEATMAP" in modules:
        for identity, rank, width_s, written, read in log.heatmaps(modules["HEATMAP"]["number"]):
            map_head = {"kind": "heatmap", "width_s": width_s}
            write_frame(out, map_head, [array("Q", [identity]), array("q", [rank]), written, read])
    shared = mmap.mmap(descriptor, room * SEGMENT_BYTES)
    for module in TRACED:
        if module in modules:
            _check_version(path, module, modules[module]["version"], log)
            _Segments(log, module, modules[module], shared, out, packed).tell()
    write_frame(out, {"kind": "end"})


def write_job(log: Log, header: Header, out: Any) -> dict[str, dict[str, Any]]:
    """Write the description of the job and the names of the files as frames, and return the modules."""
    modules = log.modules()
    job = {"kind": "job", "job": log.job(), "mounts": log.mounts()}
    write_frame(out, job | {"modules": modules, "version": header.version})
    identities, names = log.names() if header.names[1] else (array("Q"), [])
    if header.names[1] and not names:
        raise DarshanError("read the names of the files")
    for low in range(0, len(names), ROWS):
        write_frame(out, {"kind": "names", "names": names[low : low + ROWS]}, [identities[low : low + ROWS]])
    return modules


def write_counters(
    log: Log, modules: dict[str, dict[str, Any]], wanted: Sequence[str], out: Any, packed: int
) -> None:
    """Write the counters of modules as frames."""
    for module in wanted:
        if module in modules:
            counters, times = log.counter_names(module)
            head = {
                "kind": "counters",
                "module": module,
                "counters": counters,
                "times": times,
                "shape": log.counter_shape(module),
            }
            unpacked = 0
            for records in log.counters(module, modules[module]["number"], ROWS):
                unpacked += len(records)
                _check_packing(unpacked, packed)
                write_frame(out, head, [array("B", records)])


def _check_version(path: str, module: str, version: int, log: Log) -> None:
    """Refuse versions that the library does not know; the newest version added threads."""
    newest = _FIRST_WITH_THREADS[module] - (0 if log.knows_threads else 1)
    if version > newest:
        raise EnsioError(
            f"{path} was written by a newer Darshan than the package darshan that is installed "
            f"({module} {version}): pip install --upgrade darshan, once there is one for it"
        )


def _check_packing(unpacked: int, packed: int) -> None:
    if unpacked > SMALL_PART_BYTES and unpacked > _MOST_TIMES_PACKED * packed:
        raise DarshanError("decompress records with an implausible compression ratio (all alike)")


class _Segments:
    """Reader of the segments of a DXT module, which fills the shared memory again and again."""

    def __init__(
        self, log: Log, module: str, known: dict[str, Any], shared: mmap.mmap, out: Any, packed: int
    ) -> None:
        self._log, self._module, self._number, self._out, self._packed = (
            log,
            module,
            known["number"],
            out,
            packed,
        )
        self._has_threads = known["version"] >= _FIRST_WITH_THREADS[module]
        self._has_offsets = module != "DXT_MPIIO" or known["version"] > 1
        self._bytes = SEGMENT_BYTES if self._has_threads else SEGMENT_BYTES - 8
        self._view = memoryview(shared)
        self._room = len(shared) // SEGMENT_BYTES
        self._used = self._unpacked = 0
        self._rows: list[tuple[int, int, int, int]] = []
        self._hosts: dict[bytes, int] = {}
        self._host_of: list[int] = []
        self._shape = struct.Struct((">" if log.swapped else "<") + _RECORD)

    def tell(self) -> None:
        """Read the module and write its segments."""
        head = bytearray(self._shape.size)
        while (got := self._log.read_into(self._number, head, len(head))) == len(head):
            self._unpacked += len(head)
            identity, rank, _, host, writes, reads = self._shape.unpack(head)
            if min(writes, reads) < 0 or max(writes, reads) >= 1 << 48:
                raise DarshanError(f"interpret a record of {self._module}")
            self._take(identity, rank, host.partition(b"\0")[0], writes, 1)
            self._take(identity, rank, host.partition(b"\0")[0], reads, 0)
        if got:
            raise DarshanError(f"read the records of {self._module} to their end")
        self._send()
        self._view.release()

    def _take(self, identity: int, rank: int, host: bytes, count: int, is_write: int) -> None:
        while count:
            if self._used == self._room:
                self._send()
            now = min(count, self._room - self._used)
            length = now * self._bytes
            # Segments are contiguous, because their width is the same in the whole module.
            place = self._view[self._used * self._bytes :][:length]
            if self._log.read_into(self._number, place, length) < length:
                raise DarshanError(f"read the records of {self._module} to their end")
            self._rows.append((identity, rank, now, is_write))
            self._host_of.append(self._hosts.setdefault(host, len(self._hosts)))
            self._used += now
            count -= now
            self._unpacked += length
            _check_packing(self._unpacked, self._packed)

    def _send(self) -> None:
        if not self._used:
            return
        identities, ranks, counts, writes = zip(*self._rows, strict=True)
        head = {
            "kind": "segments",
            "module": self._module,
            "has_threads": self._has_threads,
            "has_offsets": self._has_offsets,
            "swapped": self._log.swapped,
            "hosts": [os.fsdecode(host) for host in self._hosts],
        }
        columns = [array("q", values) for values in (ranks, counts, writes, self._host_of)]
        write_frame(self._out, head, [array("Q", identities), *columns])
        if sys.stdin.buffer.read(1) != b"+":
            raise SystemExit(1)
        self._used, self._rows, self._host_of, self._hosts = 0, [], [], {}


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]) if sys.argv[1:] else read_archive())

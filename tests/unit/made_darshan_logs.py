"""Darshan logs, written from the description of the format alone: whatever a test needs, and lies too."""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass, field
from pathlib import Path

MAGIC = 6567223
MODULES = {"POSIX": 1, "MPI-IO": 2, "LUSTRE": 8, "STDIO": 9, "DXT_POSIX": 10, "DXT_MPIIO": 11}
MODULES |= {"H5F": 3, "H5D": 4, "PNETCDF_FILE": 5, "PNETCDF_VAR": 6, "MDHIM": 12, "HEATMAP": 15}
MODULES |= {"DFS": 16, "DAOS": 17}
"""Their places in the head since version 3.41; before, those behind the fifth were one lower."""
VERSIONS = {"POSIX": 4, "MPI-IO": 3, "LUSTRE": 2, "STDIO": 2, "DXT_POSIX": 1, "DXT_MPIIO": 2}
VERSIONS |= {"H5F": 3, "H5D": 1, "PNETCDF_FILE": 3, "PNETCDF_VAR": 1, "HEATMAP": 1}
VERSIONS |= {"DFS": 1, "DAOS": 1, "MDHIM": 1}
"""Of their records, as the most common Darshan writes them; later ones know threads."""

START_S = 1_700_000_000
# Some counters, by their place in a record.
POSIX = {"OPENS": 0, "READS": 3, "WRITES": 4, "SEEKS": 5, "STATS": 6, "BYTES_READ": 14, "BYTES_WRITTEN": 15}
POSIX |= {"MMAPS": 7, "FASTEST_RANK": 65, "SLOWEST_RANK": 67, "SLOWEST_RANK_BYTES": 68}
POSIX |= {"SIZE_READ_0_100": 29, "SIZE_WRITE_1K_10K": 41, "SIZE_WRITE_1M_4M": 44}
POSIX_F = {
    "WRITE_START": 2,
    "WRITE_END": 6,
    "READ_TIME": 8,
    "WRITE_TIME": 9,
    "META_TIME": 10,
    "MAX_WRITE_TIME": 12,
    "FASTEST_RANK_TIME": 13,
    "SLOWEST_RANK_TIME": 14,
}
MPIIO = {
    "COLL_OPENS": 1,
    "INDEP_WRITES": 3,
    "COLL_WRITES": 5,
    "BYTES_WRITTEN": 15,
    "SIZE_WRITE_AGG_1M_4M": 34,
}
STDIO = {"OPENS": 0, "READS": 2, "WRITES": 3, "BYTES_WRITTEN": 6, "BYTES_READ": 7}
STDIO_F = {"META_TIME": 0, "WRITE_TIME": 1, "READ_TIME": 2, "WRITE_START": 5, "WRITE_END": 9}
DFS = {"OPENS": 0, "READS": 4, "WRITES": 6, "BYTES_READ": 14, "BYTES_WRITTEN": 15}
DAOS = {"ARRAY_READS": 10, "ARRAY_WRITES": 11, "BYTES_READ": 24, "BYTES_WRITTEN": 25}
_SHAPES = {
    "DFS": (52, 15, DFS, POSIX_F),
    "DAOS": (64, 15, DAOS, POSIX_F),
    "POSIX": (69, 17, POSIX, POSIX_F),
    "MPI-IO": (51, 17, MPIIO, POSIX_F),
    "STDIO": (14, 15, STDIO, STDIO_F),
}


@dataclass
class Segment:
    """A read or write of DXT."""

    offset: int
    length: int
    start_s: float
    end_s: float
    thread: int = 0x7F0000001000


@dataclass
class MadeLog:
    """A log; `bytes()` is what would lie in its file."""

    version: str = "3.41"
    order: str = "<"
    tasks: int = 4
    command: str = "/opt/app --size 1"
    number: int = 4242
    start_s: int = START_S
    run_s: int = 60
    mounts: tuple[tuple[str, str], ...] = (("lustre", "/scratch"), ("ext4", "/"))
    partial: tuple[str, ...] = ()
    module_versions: dict[str, int] = field(default_factory=dict)
    names: dict[int, str] = field(default_factory=dict)
    parts: dict[str, bytes] = field(default_factory=dict)
    streams: int = 1

    def version_of(self, module: str) -> int:
        """The version of a module's records."""
        return self.module_versions.get(module, VERSIONS[module])

    def _add(self, module: str, record: bytes) -> None:
        self.parts[module] = self.parts.get(module, b"") + record

    def count(self, module: str, identity: int, rank: int, **values: float) -> None:
        """Add a record of counters; of names that begin with ``F_`` the value is a time."""
        whole_count, real_count, places, real_places = _SHAPES[module]
        whole, real = [0] * whole_count, [0.0] * real_count
        for name, value in values.items():
            if name.startswith("F_"):
                real[real_places[name[2:]]] = value
            else:
                whole[places[name]] = int(value)
        shape = f"{self.order}Qq{whole_count}q{real_count}d"
        further = bytes({"DFS": 32, "DAOS": 48}.get(module, 0))
        self._add(module, struct.pack(shape, identity, rank, *whole, *real) + further)

    def trace(
        self,
        module: str,
        identity: int,
        rank: int,
        writes: list[Segment],
        reads: list[Segment] = [],  # noqa: B006 (it is not changed)
        host: str = "node1",
        counts: tuple[int, int] | None = None,
    ) -> None:
        """Add a record of DXT; `counts`, of writes and reads, may lie."""
        has_threads = self.version_of(module) >= (2 if module == "DXT_POSIX" else 3)
        told = counts or (len(writes), len(reads))
        record = struct.pack(f"{self.order}Qqq64sqq", identity, rank, 0, host.encode(), *told)
        for segment in [*writes, *reads]:
            record += struct.pack(
                f"{self.order}qqdd", segment.offset, segment.length, segment.start_s, segment.end_s
            )
            record += struct.pack(f"{self.order}Q", segment.thread) if has_threads else b""
        self._add(module, record)

    def count_variable(
        self,
        identity: int,
        file: int,
        rank: int,
        writes: int,
        moved: int,
        write_s: float,
        slowest: tuple[int, float],
    ) -> None:
        """Add a record of a variable of PnetCDF: 120 counters and 17 timers, some of them by their place."""
        whole, real = [0] * 120, [0.0] * 17
        whole[4], whole[8], whole[118] = writes, moved, slowest[0]
        real[9], real[14] = write_s, slowest[1]
        shape = f"{self.order}QqQ120q17d"
        self._add("PNETCDF_VAR", struct.pack(shape, identity, rank, file, *whole, *real))

    def heat_map(self, identity: int, rank: int, bin_s: float, written: list[int], read: list[int]) -> None:
        """Add a heat map of a rank; the name of the record says of which module."""
        head = struct.pack(f"{self.order}Qqdqqq", identity, rank, bin_s, len(written), 0, 0)
        bins = struct.pack(f"{self.order}{2 * len(written)}q", *written, *read)
        self._add("HEATMAP", head + bins)

    def stripe(self, identity: int, stripe_bytes: int, targets: list[int]) -> None:
        """Add the layout of a file on Lustre."""
        component = (stripe_bytes, len(targets), 1, 0, 0, -1, 0)
        head = struct.pack(f"{self.order}Qqqq", identity, -1, 1, len(targets))
        body = struct.pack(f"{self.order}7q16s{len(targets)}q", *component, b"", *targets)
        self._add("LUSTRE", head + body)

    def job(self) -> bytes:
        """The description of the job, 4096 bytes as the recorder's own."""
        old = self.version < "3.41"
        end_s = self.start_s + self.run_s
        times = (self.start_s, end_s) if old else (self.start_s, 250_000_000, end_s, 0)
        shape = f"{self.order}q{'qq' if old else 'qqqq'}qq1024s"
        head = struct.pack(
            shape, 1000, *times, self.tasks, self.number, b"lib_ver=3.4.4\nh=romio_no_indep_rw=true\n"
        )
        lines = "".join(f"\n{kind}\t{point}" for kind, point in self.mounts)
        return (head + self.command.encode() + lines.encode()).ljust(4096, b"\0")

    def packed(self, part: bytes) -> bytes:
        """Compressed, as the ranks do it each for itself: streams behind each other."""
        length = -(-len(part) // self.streams)
        return b"".join(
            zlib.compress(part[low : low + length]) for low in range(0, len(part), max(length, 1))
        )

    def bytes(self) -> bytes:
        """The file."""
        old = self.version < "3.41"
        count, head_bytes = (16, 360) if old else (64, 1328)
        body = zlib.compress(self.job())
        names = b"".join(
            struct.pack(f"{self.order}Q", identity) + name.encode() + b"\0"
            for identity, name in self.names.items()
        )
        places = [(0, 0)] * (1 + count)
        versions, flags = [0] * count, 0
        for place, module, part in [
            (0, "", names),
            *(
                (self.place(module) + 1, module, part)
                for module, part in sorted(self.parts.items(), key=self._order)
            ),
        ]:
            packed = self.packed(part)
            places[place] = (head_bytes + len(body), len(packed))
            body += packed
            if module:
                versions[place - 1] = self.version_of(module)
                flags |= (module in self.partial) << (place - 1)
        numbers = [number for place in places for number in place]
        head = struct.pack(
            f"{self.order}8sq{'B3xI' if old else 'B7xQ'}{len(numbers)}Q{count}I",
            self.version.encode(),
            MAGIC,
            0,
            flags,
            *numbers,
            *versions,
        )
        assert len(head) == head_bytes
        return head + body

    def place(self, module: str) -> int:
        """Number of a module in the head of this version."""
        number = MODULES[module]
        return (
            number
            - (1 if self.version < "3.41" and number > 6 else 0)
            - (1 if self.version < "3.20" and number > 4 else 0)
        )

    @staticmethod
    def _order(item: tuple[str, bytes]) -> int:
        return MODULES[item[0]]

    def write(self, path: Path) -> Path:
        """Write the file."""
        path.write_bytes(self.bytes())
        return path


def traced_log(**options: object) -> MadeLog:
    """Two ranks that write a file by MPI-IO, each call with a POSIX call inside, and two of POSIX alone."""
    log = MadeLog(tasks=2, names={7: "/scratch/shared.dat", 8: "/scratch/own.dat"}, **options)  # type: ignore[arg-type]
    mib = 1 << 20
    for rank in (0, 1):
        base = rank * 0.25
        outer = [Segment((2 * i + rank) * mib, mib, 1 + i + base, 1.125 + i + base) for i in range(3)]
        inner = [Segment(s.offset, s.length, s.start_s + 0.03125, s.end_s - 0.03125) for s in outer]
        log.trace("DXT_MPIIO", 7, rank, outer, host=f"node{rank}")
        log.trace("DXT_POSIX", 7, rank, inner, host=f"node{rank}")
    log.trace("DXT_POSIX", 8, 1, [], [Segment(0, 50, 9.0, 9.5), Segment(50, 0, 9.5, 9.5625)], host="node1")
    return log


def counted_log(**options: object) -> MadeLog:
    """Counters only: a file of each of two ranks, one of both by MPI-IO, and standard output."""
    names = {7: "/scratch/shared.dat", 8: "/scratch/0.dat", 9: "/scratch/1.dat", 10: "<STDOUT>"}
    log = MadeLog(tasks=2, names=names, **options)  # type: ignore[arg-type]
    mib = 1 << 20
    for rank in (0, 1):
        log.count(
            "POSIX",
            8 + rank,
            rank,
            OPENS=1,
            WRITES=3,
            BYTES_WRITTEN=6000 + rank,
            SEEKS=2,
            STATS=1,
            SIZE_WRITE_1K_10K=3,
            F_WRITE_START=1.0,
            F_WRITE_END=2.0 + rank,
            F_WRITE_TIME=0.5,
            F_META_TIME=0.125,
            F_MAX_WRITE_TIME=0.25 * (1 + rank),
        )
        log.count(
            "POSIX",
            7,
            rank,
            OPENS=1,
            WRITES=2,
            BYTES_WRITTEN=4 * mib,
            SIZE_WRITE_1M_4M=2,
            F_WRITE_START=3.0,
            F_WRITE_END=4.0,
            F_WRITE_TIME=0.5,
            F_MAX_WRITE_TIME=0.375,
        )
        log.count(
            "MPI-IO",
            7,
            rank,
            COLL_OPENS=1,
            COLL_WRITES=1,
            INDEP_WRITES=1,
            BYTES_WRITTEN=4 * mib,
            SIZE_WRITE_AGG_1M_4M=2,
            F_WRITE_START=2.75,
            F_WRITE_END=4.5,
            F_WRITE_TIME=0.75,
            F_MAX_WRITE_TIME=0.5,
        )
        log.count(
            "STDIO",
            10,
            rank,
            WRITES=4,
            BYTES_WRITTEN=40,
            F_WRITE_START=5.0,
            F_WRITE_END=6.0,
            F_WRITE_TIME=0.0625,
        )
    return log

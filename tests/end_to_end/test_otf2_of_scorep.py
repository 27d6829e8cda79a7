"""An archive that Score-P 8.4 itself recorded of `programs/recorded_by_scorep.c` on two ranks: what is
read is what otf2-print shows of it, record by record, and what the program does."""

import os
import re
import subprocess
import tarfile
from collections import Counter, defaultdict
from pathlib import Path

import pytest
from places import BUILD

import ensembles

PACKED = Path(__file__).parent / "archives" / "scorep.tar.xz"
UNDEFINED = 2**64 - 1
DATA = "/tmp/record/data/"
"""Where the recorded program had its files."""


@pytest.fixture(autouse=True)
def program_to_read_with(monkeypatch):
    """The tree's own ensio-otf2."""
    monkeypatch.setenv("PATH", f"{BUILD / 'bin'}:{os.environ['PATH']}")


@pytest.fixture(scope="module")
def anchor(tmp_path_factory):
    folder = tmp_path_factory.mktemp("scorep")
    with tarfile.open(PACKED) as packed:
        for member in packed:
            if member.isfile():
                (folder / member.name).parent.mkdir(exist_ok=True)
                (folder / member.name).write_bytes(packed.extractfile(member).read())
    return folder / "traces.otf2"


def printed(anchor, *options):
    done = subprocess.run(["otf2-print", *options, anchor], capture_output=True, text=True, check=True)
    assert done.stderr == ""
    return done.stdout.splitlines()


class Printed:
    """The calls of an archive, of the text that otf2-print makes of it."""

    def __init__(self, anchor):
        self.role, self.place = {}, {}
        self._seen = Counter()
        for line in printed(anchor, "-G"):
            self._define(line)
        self.rows, self.offsets = Counter(), {}
        self._frames, self._begun = defaultdict(list), defaultdict(list)
        last = None
        for line in printed(anchor):
            if record := re.match(r"([A-Z_]+) +(\d+) +(\d+)  (.*)", line):
                kind, location, time, rest = record.groups()
                said = dict(
                    part.split(": ", 1) for part in re.split(r", (?=[A-Z][A-Za-z /]+: )", rest) if part
                )
                last = self._add(kind, location, self._ns(int(time)), said)
            elif last and (offset := re.search(r'"Offset" <\d+>; UINT64; (\d+)', line)):
                last["offset"] = int(offset[1])

    def _define(self, line):
        if found := re.match(r"CLOCK_PROPERTIES .*Second[s]?: (\d+), Global Offset: (\d+)", line):
            self._hz, self._zero = map(int, found.groups())
        elif found := re.match(r'REGION +\d+  Name: "([^"]*)".* Role: (\w+), Paradigm: ([^,]*)', line):
            self.role[found[1]] = found[2], found[3]
        elif found := re.match(r'LOCATION +(\d+) .*Group: "MPI Rank (\d+)"', line):
            rank = int(found[2])
            self.place[found[1]] = rank, self._seen[rank]
            self._seen[rank] += 1

    def _ns(self, time):
        return (time - self._zero) * 10**9 // self._hz

    def _is_call(self, name):
        role, paradigm = self.role[name]
        if role.startswith("FILE_IO"):
            return True
        if "MPI" not in paradigm:
            return False
        waits = role in ("BARRIER", "POINT2POINT") or role.startswith("COLL_")
        starts = re.match(r"MPI_I|.*_init$", name)
        return bool((waits and not starts) or re.match(r"MPI_(Wait|File_)", name))

    def _add(self, kind, location, time, said):
        frames = self._frames[location]
        quoted = re.compile(r'"([^"]*)"')
        file = re.sub(r".*?file://", "", quoted.search(said.get("Handle", said.get("File", '""')))[1])
        if kind == "ENTER" and self._is_call(name := quoted.search(said["Region"])[1]):
            frames.append({"name": name, "start": time, "depth": len(frames), "file": "", "operations": 0})
        elif kind == "LEAVE" and self._is_call(quoted.search(said["Region"])[1]):
            one = frames.pop()
            if not one["operations"]:
                self._put(location, one, one["file"], 0, 0, one["start"], time)
        elif kind == "IO_OPERATION_BEGIN":
            asked = int(said["Bytes Request"])
            one = {"frame": frames[-1], "file": file, "asked": asked, "start": time, "mode": said["Mode"]}
            frames[-1]["operations"] += 1
            self._begun[location, said["Handle"], said["Matching Id"]].append(one)
            return one
        elif kind == "IO_OPERATION_COMPLETE":
            one = self._begun[location, said["Handle"], said["Matching Id"]].pop()
            moved = int(said["Bytes Result"])
            if moved == UNDEFINED:
                moved = 0 if one["asked"] == UNDEFINED else -1
            asked = 0 if one["asked"] == UNDEFINED else one["asked"]
            self._put(location, one["frame"], one["file"], asked, moved, one["start"], time)
            if "offset" in one:
                self.offsets[(*self.place[location], one["start"])] = one["offset"]
        elif kind in ("IO_CREATE_HANDLE", "IO_DESTROY_HANDLE", "IO_SEEK", "IO_DELETE_FILE"):
            frames[-1]["file"] = file
        elif kind == "IO_DUPLICATE_HANDLE":
            frames[-1]["file"] = re.sub(r".*?file://", "", quoted.search(said["New Handle"])[1])
        return None

    def _put(self, location, frame, file, asked, moved, start, end):
        row = (*self.place[location], frame["name"], frame["depth"], file if file.startswith("/") else "")
        self.rows[(*row, asked, moved, start, end - start)] += 1


def told(run, *columns):
    events = run.events
    numbers = [getattr(events, name).tolist() for name in columns]
    names = [run.calls[call].name for call in events.call]
    files = [run.files[file] for file in events.file]
    return list(zip(names, files, *numbers, strict=True))


def test_calls_are_those_that_otf2_print_shows(anchor):
    expected = Printed(anchor)
    run = ensembles.open(anchor)
    columns = ("rank", "thread", "depth", "requested", "moved", "start", "duration", "flight")
    ours = Counter()
    for name, file, rank, thread, depth, asked, moved, start, duration, flight in told(run, *columns):
        assert flight < 0 or duration <= flight
        ours[(rank, thread, name, depth, file, asked, moved, start, max(duration, flight))] += 1
    assert ours == expected.rows
    offsets = {
        (rank, thread, start): offset
        for _, _, rank, thread, start, offset in told(run, "rank", "thread", "start", "offset")
    }
    assert len(expected.offsets) > 20
    assert {key: offsets[key] for key in expected.offsets} == expected.offsets
    assert (run.tasks, run.info.hosts) == (2, ["vm"])


def calls_on(run, name, rank, *ops):
    """Function, offset, requested and moved of the calls of a rank on one of its files, in order of time."""
    rows = told(run, "rank", "start", "op", "offset", "requested", "moved")
    chosen = [row for row in rows if row[1] == DATA + name and row[2] == rank]
    kept = [row for row in chosen if ensembles.model.events.OPS[row[4]] in ops]
    return [(row[0], *row[5:]) for row in sorted(kept, key=lambda row: row[3])]


@pytest.mark.parametrize("rank", [0, 1])
def test_offsets_are_those_of_the_program(anchor, rank):
    run = ensembles.open(anchor)
    written = [("write", 0, 1000), ("write", 1000, 2000), ("write", 3000, 3000), ("write", 6000, 4000)]
    assert calls_on(run, f"own.{rank}", rank, "read", "write", "seek", "sync") == [
        *((name, offset, size, size) for name, offset, size in written),
        ("pwrite", 8192, 512, 512),
        ("lseek", 100, 0, 0),
        ("read", 100, 300, 300),
        ("read", 400, 65536, 9600),
        ("read", 10000, 10, 0),
        ("lseek", 0, 0, 0),
        ("readv", 0, 10, 10),
        ("readv", 10, 20, 20),
        ("preadv", 500, 10, 10),
        ("preadv", 510, 20, 20),
        ("read", 30, 40, 40),
        ("read", 70, 41, 41),
        ("fsync", -1, 0, 0),
        ("write", -1, 5, 5),
    ]
    start = 5000 * rank
    assert calls_on(run, "both", rank, "write") == [
        ("write", start, 300 + rank, 300 + rank),
        ("write", start + 300 + rank, 400 + rank, 400 + rank),
    ]
    assert calls_on(run, f"stream.{rank}", rank, "read", "write", "seek", "sync") == [
        ("fwrite", 0, 800, 800),
        ("fprintf", 800, 0, 8),
        ("fflush", -1, 0, 0),
        ("fseek", 800, 0, 0),
        ("fscanf", 800, 0, 0),
        ("fread", -1, 3, 3),
        ("rewind", 0, 0, 0),
        ("fread", 0, 100, 100),
    ]
    assert calls_on(run, f"thread.{rank}", rank, "read") == [("read", 50, 60, 60)]
    assert calls_on(run, f"common.{rank}", rank, "write") == [("write", -1, 6, 6), ("write", -1, 7, 7)]
    assert calls_on(run, f"aio.{rank}", rank, "write") == [("aio_write", 100, 900, 900)]


def test_only_what_failed_is_an_error(anchor):
    """Of fsync, fflush and fscanf Score-P tells no bytes, as of the write that failed."""
    run = ensembles.open(anchor)
    failed = [(name, file) for name, file, moved in told(run, "moved") if moved < 0]
    assert failed == [("write", "/dev/full")] * 2
    assert any(re.search(r": \d+ reads and writes have no number of bytes", note) for note in run.notes)
    assert any(re.search(r": \d+ reads and writes have neither bytes nor file", note) for note in run.notes)


def test_bytes_that_mpi_moves_count_once(anchor):
    run = ensembles.open(anchor)
    rows = [
        (run.calls[call].layer, op, carried, moved)
        for call, op, carried, moved, file in zip(
            *(getattr(run.events, name).tolist() for name in ("call", "op", "carried", "moved", "file")),
            strict=True,
        )
        if run.files[file] == DATA + "shared" and moved > 0
    ]
    bytes_of = Counter()
    for layer, op, carried, moved in rows:
        bytes_of[layer, ensembles.model.events.OPS[op], bool(carried)] += moved
    read, written = 2 * (2048 + 64), 2 * (4096 + 1000 + 100)
    assert bytes_of == {
        ("mpiio", "read", False): read,
        ("mpiio", "write", False): written,
        ("posix", "read", True): read,
        ("posix", "write", True): written,
    }


def test_waiting_in_mpi_is_what_waits(anchor):
    run = ensembles.open(anchor)
    waits = Counter(run.calls[call].name for call in run.select(op="wait").call)
    assert waits == {"MPI_Wait": 4, "MPI_Send": 2, "MPI_Barrier": 2}


def test_requests_of_one_process_have_their_own_numbers(anchor):
    """Score-P writes when a non-blocking operation begins, when its call is left, and when it ends."""
    events = ensembles.open(anchor).events
    flies = events.flight >= 0
    posts = {events.calls[call].name for call in events.call[flies]}
    assert {"MPI_File_iread_at", "aio_write"} <= posts
    for rank in range(2):
        numbers = events.request[flies & (events.rank == rank)]
        assert len(numbers) > 2
        assert len(set(numbers.tolist())) == len(numbers)
    waits = {events.calls[call].name for call in events.call[~flies & (events.request > 0)]}
    assert any(name.startswith("MPI_Wait") for name in waits), waits
